"""Where inference-perf runs: refusals, candidates, occupancy, the choice, the size of the load."""

from __future__ import annotations

from typing import Any

import pytest
from tests.checks.contexts import node
from tests.checks_inference.perf_scene import settings

from aicr.checks.performance.inference_occupancy import Ledgers, effective_gpus, ledgers
from aicr.checks.performance.inference_sizing import (
    Load,
    Offer,
    candidates,
    choose,
    hostname,
    offer,
    refuse,
    size,
    tolerations,
)
from aicr.checks.sdk.allocation import DEVICE_PLUGIN, DRA_CLAIM, UNSPECIFIED, Facts
from aicr.checks.sdk.nodes import GpuNode, gpu_nodes
from aicr.errors import INTERNAL, INVALID_REQUEST, AicrError

Document = dict[str, Any]


def pod(*gpus: int, on: str = "n", phase: str = "Running", **spec: Any) -> Document:
    """A pod whose containers ask for so many GPUs each."""
    containers = [{"name": f"c{i}", **gpu(count)} for i, count in enumerate(gpus)]
    return {
        "metadata": {"name": "p"},
        "spec": {"nodeName": on, "containers": containers, **spec},
        "status": {"phase": phase},
    }


def gpu(count: int) -> Document:
    """The resources of a container."""
    return {"resources": {"limits": {"nvidia.com/gpu": str(count)}} if count else {}}


def claim(*devices: tuple[str, str], driver: str = "gpu.nvidia.com", **more: Any) -> Document:
    """A claim that holds (pool, device)."""
    results = [{"driver": driver, "pool": pool, "device": name, **more} for pool, name in devices]
    return {
        "metadata": {"name": "c"},
        "status": {"allocation": {"devices": {"results": results}}},
    }


def one(name: str = "n", *, gpus: int = 8, **more: Any) -> GpuNode:
    """A GPU node."""
    (found,) = gpu_nodes([node(name, gpus=gpus, **more)])
    return found


# Refusals


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        (
            Facts(foreign_drivers=("gpu.intel.com",)),
            "by other drivers than gpu.nvidia.com: gpu.intel",
        ),
        (Facts(non_node_local=("slice-a", "slice-b")), "to no single node: slice-a, slice-b"),
        (Facts(pool_nodes={"p": ("a", "b"), "q": ("a",)}), "published by several nodes: p"),
    ],
    ids=["foreign driver", "not node-local", "shared pool"],
)
def test_gpus_that_cannot_be_put_down_to_one_node_are_refused(facts: Facts, message: str) -> None:
    """INVALID_REQUEST that names them."""
    with pytest.raises(AicrError) as caught:
        refuse(facts)
    assert caught.value.code == INVALID_REQUEST
    assert message in caught.value.message


def test_an_ordinary_cluster_is_not_refused() -> None:
    """One pool for each node, one driver."""
    refuse(Facts(pool_nodes={"p": ("a",)}, dra_node_devices={"a": 8}))


# Candidates


def names(nodes: list[GpuNode]) -> list[str]:
    """Of nodes."""
    return [each.name for each in nodes]


@pytest.mark.covers("V-247")
def test_candidates_follow_policy_and_node_selector() -> None:
    """A DRA policy takes DRA nodes, others what a device plugin advertises; cordons never."""
    nodes = gpu_nodes(
        [
            node("a", gpus=8, labels={"pool": "x"}),
            node("b", gpus=8, labels={"pool": "y"}),
            node("c", gpus=8, cordoned=True),
            node("d", labels={"nvidia.com/gpu.present": "true", "pool": "x"}),
        ]
    )
    facts = Facts(dra_node_devices={"b": 4, "d": 4})
    assert names(candidates(nodes, facts, UNSPECIFIED, None)) == ["a", "b"]
    assert names(candidates(nodes, facts, DEVICE_PLUGIN, {})) == ["a", "b"]
    assert names(candidates(nodes, facts, DRA_CLAIM, None)) == ["b", "d"]
    assert names(candidates(nodes, facts, DRA_CLAIM, {"pool": "x"})) == ["d"]


@pytest.mark.parametrize(
    ("policy", "facts", "selector", "code", "message"),
    [
        (UNSPECIFIED, Facts(dra_node_devices={"d": 1}), None, INVALID_REQUEST, "by DRA only"),
        (UNSPECIFIED, Facts(), None, INTERNAL, "no schedulable GPU node found"),
        (DEVICE_PLUGIN, Facts(dra_node_devices={"d": 1}), None, INTERNAL, "no schedulable GPU"),
        (
            *(DRA_CLAIM, Facts(dra_node_devices={"d": 1}), {"pool": "z", "a": "b"}),
            *(INTERNAL, "no schedulable GPU node matches node selector a=b,pool=z"),
        ),
    ],
    ids=["DRA only", "none", "plugin policy", "selector"],
)
def test_no_candidate_is_an_error_that_says_why(
    policy: str, facts: Facts, selector: dict[str, str] | None, code: str, message: str
) -> None:
    """Never a skip: the recipe asked for a benchmark."""
    nodes = gpu_nodes([node("d", labels={"nvidia.com/gpu.present": "true"})])
    with pytest.raises(AicrError) as caught:
        candidates(nodes, facts, policy, selector)
    assert caught.value.code == code
    assert message in caught.value.message


# Occupancy


@pytest.mark.parametrize(
    ("found", "count"),
    [
        (pod(1, 2), 3),
        (pod(0), 0),
        (pod(1, initContainers=[{"name": "i", **gpu(4)}]), 4),
        (pod(4, initContainers=[{"name": "i", **gpu(1)}]), 4),
        (pod(2, initContainers=[{"name": "s", "restartPolicy": "Always", **gpu(1)}]), 3),
        (
            pod(
                1,
                initContainers=[
                    {"name": "s", "restartPolicy": "Always", **gpu(1)},
                    {"name": "i", **gpu(3)},
                ],
            ),
            4,
        ),
    ],
    ids=["containers", "none", "init larger", "init smaller", "sidecar", "init beside a sidecar"],
)
def test_the_effective_request_is_the_most_that_runs_at_one_time(
    found: Document, count: int
) -> None:
    """Init containers one by one, sidecars from their turn on."""
    assert effective_gpus(found) == count


def test_the_ledgers_are_kept_apart_by_node() -> None:
    """Ended and unbound pods hold nothing; claims count where their pool is published."""
    found = ledgers(
        [
            pod(2, on="a"),
            pod(1, on="a", phase="Pending"),
            pod(4, on="a", phase="Succeeded"),
            pod(4, on="a", phase="Failed"),
            pod(4, on=""),
        ],
        [
            claim(("pool-b", "gpu-0"), ("pool-b", "gpu-1")),
            claim(("pool-b", "gpu-1")),
            claim(("pool-b", "gpu-5"), adminAccess=True),
            claim(("pool-b", "channel-0"), driver="compute-domain.nvidia.com"),
            {"metadata": {"name": "pending"}},
        ],
        {"pool-b": ("b",)},
    )
    assert found == Ledgers(scalar={"a": 3}, dra={"b": 2})


def test_a_request_that_dra_answers_counts_once() -> None:
    """KEP-5004: by container; what its pod asks of the device plugin still counts."""
    both = pod(2, 1, on="a")
    both["status"]["extendedResourceClaimStatus"] = {
        "resourceClaimName": "generated",
        "requestMappings": [
            {"containerName": "c0", "resourceName": "nvidia.com/gpu", "requestName": "r"},
            {"containerName": "c1", "resourceName": "example.com/nic", "requestName": "s"},
        ],
    }
    found = ledgers([both], [claim(("a", "gpu-0"), ("a", "gpu-1"))], {"a": ("a",)})
    assert found == Ledgers(scalar={"a": 1}, dra={"a": 2})


def test_devices_of_a_pool_that_is_published_no_more_still_count() -> None:
    """A pool named after a node is that node's; any other is named."""
    found = ledgers([], [claim(("a", "gpu-0"), ("gone", "gpu-0"))], {}, ["a"])
    assert found == Ledgers(dra={"a": 1}, unplaced=("gone",))


# Offers and the choice


@pytest.mark.covers("V-247")
@pytest.mark.parametrize(
    ("facts", "ledger", "policy", "wiring", "capacity", "free"),
    [
        (Facts(), Ledgers(), UNSPECIFIED, DEVICE_PLUGIN, 8, 8),
        (Facts(), Ledgers({"n": 3}, {"n": 1}), UNSPECIFIED, DEVICE_PLUGIN, 8, 4),
        (Facts(), Ledgers({"n": 9}), UNSPECIFIED, DEVICE_PLUGIN, 8, 0),
        (Facts(dra_node_devices={"n": 4}), Ledgers(dra={"n": 1}), UNSPECIFIED, DRA_CLAIM, 4, 3),
        (Facts(dra_node_devices={"n": 4}), Ledgers(), DRA_CLAIM, DRA_CLAIM, 4, 4),
        (Facts(dra_node_devices={"n": 4}), Ledgers(), DEVICE_PLUGIN, "", 0, 0),
        (Facts(dra_node_devices={"n": 4}), Ledgers({"n": 1}), UNSPECIFIED, "", 0, 0),
        (Facts(node_local_devices={"n": 4}), Ledgers(), UNSPECIFIED, "", 0, 0),
        (Facts(), Ledgers(), DRA_CLAIM, "", 0, 0),
    ],
    ids=[
        *("plugin", "both ledgers", "overcommitted", "DRA", "DRA policy", "plugin policy on DRA"),
        *("DRA beside scalar use", "unvalidated slices", "DRA policy on plugin"),
    ],
)
def test_what_a_node_offers(
    facts: Facts, ledger: Ledgers, policy: str, wiring: str, capacity: int, free: int
) -> None:
    """By who hands out its GPUs, what is taken, and the policy."""
    found = offer(one(), facts, ledger, policy)
    assert (found.wiring, found.capacity, found.free) == (wiring, capacity, free)
    assert found.why


def test_a_node_that_is_not_ready_offers_nothing() -> None:
    """Whatever it advertises."""
    assert offer(one(ready=False), Facts(), Ledgers(), UNSPECIFIED).why == "not Ready"


@pytest.mark.parametrize(
    ("offers", "chosen"),
    [
        ([("a", DEVICE_PLUGIN, 2), ("b", DEVICE_PLUGIN, 4)], "b"),
        ([("a", DEVICE_PLUGIN, 4), ("b", DRA_CLAIM, 4)], "b"),
        ([("b", DEVICE_PLUGIN, 4), ("a", DEVICE_PLUGIN, 4)], "a"),
        ([("a", "", 0), ("b", DEVICE_PLUGIN, 1)], "b"),
    ],
    ids=["most free", "DRA first", "by name", "one that gives nothing"],
)
def test_the_choice(offers: list[tuple[str, str, int]], chosen: str) -> None:
    """Most free, then DRA, then the name."""
    found = [Offer(name, wiring, 8, free, "w") for name, wiring, free in offers]
    assert choose(found).node == chosen
    assert choose(reversed(found)).node == chosen


def test_no_free_gpu_is_internal_and_says_what_each_node_said() -> None:
    """So that a person sees who holds them."""
    found = [Offer("a", DEVICE_PLUGIN, 8, 0, "0 of 8 free"), Offer("b", "", 0, 0, "not Ready")]
    with pytest.raises(AicrError) as caught:
        choose(found)
    assert caught.value.code == INTERNAL
    assert caught.value.message == "no node has a free GPU: a: 0 of 8 free; b: not Ready"


# Size and placement


@pytest.mark.covers("V-299", "V-304")
@pytest.mark.parametrize(
    ("changed", "free", "load"),
    [
        ({}, 4, Load(4, 8, 1024, 8192, 1024)),
        ({"concurrency_per_gpu": 1}, 2, Load(2, 8, 2, 1000, 2)),
        (
            {
                "concurrency_per_gpu": 10,
                "warmup_per_concurrency": 3,
                "requests_per_concurrency": 60,
            },
            *(2, Load(2, 8, 20, 1200, 60)),
        ),
    ],
    ids=["defaults", "at least the minimum", "every factor"],
)
def test_the_load_follows_the_free_gpus(changed: dict[str, int], free: int, load: Load) -> None:
    """Concurrency per GPU, requests and warm-up per concurrency."""
    assert size(settings(**changed), Offer("n", DEVICE_PLUGIN, 8, free, "")) == load


def test_tolerations_mirror_the_node_s_taints_but_not_its_conditions() -> None:
    """The user's own are taken as they are, an empty list too."""
    tainted = node("n")
    tainted["spec"]["taints"] = [
        {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"},
        {"key": "dedicated", "effect": "NoExecute"},
        {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"},
    ]
    assert tolerations(tainted, None) == [
        {"key": "nvidia.com/gpu", "operator": "Equal", "value": "present", "effect": "NoSchedule"},
        {"key": "dedicated", "operator": "Exists", "effect": "NoExecute"},
    ]
    assert tolerations(tainted, []) == []
    assert tolerations(tainted, [{"operator": "Exists"}]) == [{"operator": "Exists"}]


def test_workers_are_pinned_by_the_host_name_label() -> None:
    """Which is not always the node's name."""
    assert hostname(node("n", labels={"kubernetes.io/hostname": "host"})) == "host"
    assert hostname(node("n")) == "n"
