"""Who hands out GPUs: facts, policy, choice (validators spec 5.5, field case G7)."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from tests.checks.contexts import Seen, node, put, validation
from tests.kube.fakeapi import SERVED, FakeApi, refuse
from tests.kube.loopback import cluster, refused, run

from aicr.checks.sdk import allocation
from aicr.checks.sdk.allocation import DEVICE_PLUGIN, DRA_CLAIM, DRA_EXTENDED, UNSPECIFIED, Facts
from aicr.checks.sdk.cluster_reads import served_dra_version
from aicr.errors import INVALID_REQUEST, SERVICE_UNAVAILABLE, UNAUTHORIZED, AicrError
from aicr.kube import kinds
from aicr.kube.kinds import Resource

Document = dict[str, Any]


def gpu(name: str = "gpu-0", kind: str | None = "gpu", taint: str = "") -> Document:
    """A device of the GPU driver."""
    device: Document = {"name": name}
    if kind is not None:
        device["attributes"] = {"type": {"string": kind}}
    if taint:
        device["taints"] = [{"key": "x", "effect": taint}]
    return device


def piece(
    node_name: str = "n1",
    *devices: Document,
    pool: str = "",
    generation: int = 1,
    count: int = 1,
    driver: str = "gpu.nvidia.com",
    name: str = "",
) -> Document:
    """A ResourceSlice."""
    spec: Document = {
        "driver": driver,
        "pool": {
            "name": pool or node_name,
            "generation": generation,
            "resourceSliceCount": count,
        },
        "devices": list(devices),
    }
    if node_name:
        spec["nodeName"] = node_name
    return {"metadata": {"name": name or f"{node_name}-{driver}-{generation}"}, "spec": spec}


@pytest.mark.covers("V-243")
@pytest.mark.parametrize(
    ("slices", "usable"),
    [
        ([piece("n1", gpu("a"), gpu("b"))], {"n1": 2}),
        ([piece("n1", gpu(kind=None))], {"n1": 1}),
        ([piece("n1", gpu(kind="mig"))], {}),
        ([piece("n1", gpu(taint="NoSchedule"))], {}),
        ([piece("n1", gpu(taint="NoExecute"), gpu("b"))], {"n1": 1}),
        ([piece("n1", gpu(taint="None"))], {"n1": 1}),
        ([piece("n1", gpu(), count=2)], {}),
        ([piece("n1", gpu(), count=2), piece("n1", gpu("b"), count=2, name="second")], {"n1": 2}),
        ([piece("n1", gpu(), gpu("b")), piece("n1", gpu(), generation=2)], {"n1": 1}),
        ([piece("n1", gpu()), piece("n1", gpu(), generation=2, count=2)], {}),
        ([piece("cordoned", gpu())], {}),
        ([piece("unready", gpu())], {}),
        ([piece("elsewhere", gpu())], {}),
        ([piece("", gpu(), pool="p")], {}),
        ([piece("n1", gpu(), driver="compute-domain.nvidia.com")], {}),
        ([piece("n1")], {}),
        ([], {}),
    ],
    ids=[
        *("two GPUs", "no type", "a MIG slice", "tainted", "one tainted", "taint without effect"),
        *("pool not whole", "pool of two slices", "newest generation", "newest not whole"),
        *(
            "cordoned",
            "not ready",
            "unknown node",
            "not of a node",
            "other driver",
            "empty",
            "none",
        ),
    ],
)
def test_a_dra_gpu_is_usable_in_a_whole_current_pool_untainted_on_a_good_node(
    slices: list[Document], usable: dict[str, int]
) -> None:
    """Everything else is there and cannot be allocated."""
    nodes = [node("n1"), node("cordoned", cordoned=True), node("unready", ready=False)]
    given = copy.deepcopy((nodes, slices))
    facts = allocation.detect(nodes, slices)
    assert facts.dra_node_devices == usable
    assert facts.dra_usable == bool(usable)
    assert (nodes, slices) == given


@pytest.mark.covers("V-243")
def test_the_other_facts_are_collected_without_an_opinion() -> None:
    """Raw devices, foreign drivers, slices of no node, ambiguous pools, device plugin nodes."""
    nodes = [
        node("n1"),
        node("plug", gpus=8),
        node("off", gpus=8, cordoned=True),
        node("down", gpus=8, ready=False),
        node("zero", gpus=0),
    ]
    slices = [
        piece("n1", gpu(taint="NoSchedule"), gpu("b"), pool="shared", name="s1"),
        piece("plug", gpu(kind="mig"), pool="shared", name="s2"),
        piece("", gpu(), pool="rack", name="s3"),
        piece("n1", gpu(), driver="gpu.amd.com", name="s4"),
        piece("n1", gpu(), driver="compute-domain.nvidia.com", name="s5"),
    ]
    facts = allocation.detect(nodes, slices)
    assert facts.node_local_devices == {"n1": 2, "plug": 1}
    assert facts.foreign_drivers == ("gpu.amd.com",)
    assert facts.non_node_local == ("s3",)
    assert facts.pool_nodes == {"shared": ("n1", "plug")}
    assert facts.ambiguous_pools == ["shared"]
    assert facts.device_plugin_nodes == {"plug": 8}
    assert facts.device_plugin_usable


@pytest.mark.covers("G7")
def test_gpus_that_are_handed_out_twice_are_reported_with_the_nodes() -> None:
    """Device plugin and DRA list the same GPUs; ComputeDomain slices are no second owner."""
    nodes = [node("n1", gpus=8), node("n2", gpus=8)]
    eight = [gpu(f"gpu-{number}") for number in range(8)]
    twice = allocation.detect(nodes, [piece("n1", *eight)])
    assert twice.dual == ("n1",)
    (said,) = allocation.explain(twice)
    assert "the GPUs of n1 are handed out twice" in said
    assert "gpu.nvidia.com" in said
    domain = piece("n1", gpu(), driver="compute-domain.nvidia.com")
    assert allocation.explain(allocation.detect(nodes, [domain])) == []


@pytest.mark.covers("G7")
def test_a_device_class_that_answers_to_the_extended_resource_is_explained() -> None:
    """Pods that ask for nvidia.com/gpu then get it through DRA."""
    classes = [
        {
            "metadata": {"name": "gpu.nvidia.com"},
            "spec": {"extendedResourceName": "nvidia.com/gpu"},
        },
        {"metadata": {"name": "other"}, "spec": {}},
    ]
    facts = allocation.detect([], [], classes)
    assert facts.dra_backed_classes == ("gpu.nvidia.com",)
    assert "DeviceClass gpu.nvidia.com answers to nvidia.com/gpu" in allocation.explain(facts)[0]


def test_devices_of_the_first_beta_are_read_as_those_of_v1() -> None:
    """v1beta1 puts attributes and taints under `basic`."""
    device = {"name": "a", "basic": {"attributes": {"type": {"string": "mig"}}}}
    assert allocation.devices(piece("n1", device)) == [
        {"name": "a", "attributes": {"type": {"string": "mig"}}}
    ]
    assert allocation.detect([node("n1")], [piece("n1", device)]).dra_node_devices == {}


DRA = Facts(dra_node_devices={"n1": 8})
PLUGIN = Facts(device_plugin_nodes={"n1": 8})
BOTH = Facts(dra_node_devices={"n1": 8}, device_plugin_nodes={"n1": 8}, dual=("n1",))
NOTHING = Facts()


@pytest.mark.covers("V-244")
@pytest.mark.parametrize(
    ("policy", "facts", "holds"),
    [
        (DEVICE_PLUGIN, PLUGIN, True),
        (DEVICE_PLUGIN, BOTH, True),
        (DEVICE_PLUGIN, DRA, False),
        (DEVICE_PLUGIN, NOTHING, False),
        (DRA_CLAIM, DRA, True),
        (DRA_CLAIM, BOTH, True),
        (DRA_CLAIM, PLUGIN, False),
        (DRA_CLAIM, NOTHING, False),
        (DRA_EXTENDED, BOTH, False),
        ("typo", BOTH, False),
        (UNSPECIFIED, NOTHING, True),
        ("", NOTHING, True),
    ],
)
def test_a_policy_that_the_cluster_contradicts_is_invalid(
    policy: str, facts: Facts, holds: bool
) -> None:
    """INVALID_REQUEST with what was found; nothing is verified without a policy."""
    if holds:
        assert bool(allocation.verify(policy, facts)) == (facts is BOTH)
        return
    with pytest.raises(AicrError) as caught:
        allocation.verify(policy, facts)
    assert caught.value.code == INVALID_REQUEST
    assert policy in caught.value.message


@pytest.mark.covers("V-246")
@pytest.mark.parametrize(
    ("policy", "facts", "chosen"),
    [
        (DEVICE_PLUGIN, BOTH, DEVICE_PLUGIN),
        (DRA_CLAIM, BOTH, DRA_CLAIM),
        (UNSPECIFIED, BOTH, DRA_CLAIM),
        (UNSPECIFIED, DRA, DRA_CLAIM),
        (UNSPECIFIED, PLUGIN, DEVICE_PLUGIN),
        (UNSPECIFIED, NOTHING, ""),
    ],
)
def test_a_policy_forces_the_mechanism_and_without_one_dra_is_preferred(
    policy: str, facts: Facts, chosen: str
) -> None:
    """Preference by capability only on standalone runs."""
    assert allocation.select(policy, facts) == chosen


def dra_resources(version: str) -> list[Resource]:
    """ResourceSlice and DeviceClass in one version."""
    verbs = ("get", "list", "watch")
    return [
        Resource(
            *("resource.k8s.io", version, "resourceslices", "ResourceSlice", False), verbs=verbs
        ),
        Resource(*("resource.k8s.io", version, "deviceclasses", "DeviceClass", False), verbs=verbs),
    ]


@pytest.mark.parametrize(
    ("served", "expected"),
    [(["v1"], "v1"), (["v1beta1"], "v1beta1"), (["v1beta1", "v1", "v1beta2"], "v1")],
    ids=["v1", "first beta", "best of three"],
)
def test_slices_are_read_in_the_best_served_version(served: list[str], expected: str) -> None:
    """v1, v1beta2, v1beta1."""

    async def scenario() -> None:
        found = [each for version in served for each in dra_resources(version)]
        async with cluster(FakeApi(resources=[*SERVED, *found])) as (api, client):
            await put(api, kinds.NODE, node("n1"))
            await put(api, dra_resources(expected)[0], piece("n1", gpu()))
            context = Seen().context(client, validation=validation())
            assert await served_dra_version(context) == expected
            assert (await allocation.inspect(context)).dra_node_devices == {"n1": 1}
            assert allocation.policy_of(context) == UNSPECIFIED

    run(scenario())


def test_a_cluster_without_dra_is_a_fact_and_one_that_hides_it_an_error() -> None:
    """Not served: no slices, and SERVICE_UNAVAILABLE only where DRA is required. 403 is raised."""

    async def scenario() -> None:
        async with cluster() as (api, client):
            await put(api, kinds.NODE, node("n1", gpus=4))
            context = Seen().context(client)
            facts = await allocation.inspect(context)
            assert (facts.dra_usable, facts.device_plugin_nodes) == (False, {"n1": 4})
            error = await refused(served_dra_version(context))
            assert error.code == SERVICE_UNAVAILABLE
            assert "v1, v1beta2, v1beta1" in error.message
        async with cluster(FakeApi(resources=[*SERVED, *dra_resources("v1")])) as (api, client):
            api.next("GET .*resourceslices", refuse(403, "Forbidden", "cannot list resource"))
            error = await refused(allocation.inspect(Seen().context(client)))
            assert error.code == UNAUTHORIZED

    run(scenario())
