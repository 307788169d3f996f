"""The other GPU readiness probes: the DRA kubelet plugin and the RDMA fabric."""

from __future__ import annotations

import asyncio
import json
from typing import Any, cast

import pytest
from tests.checks.contexts import Seen
from tests.expected_resources.deployed_cluster import (
    DeployedCluster,
    check,
    gpu_node,
    made,
    namespace,
)
from tests.kube import virtual_time

from aicr.checks.deployment import rdma_fabric
from aicr.checks.deployment.expected_resources import run_with
from aicr.checks.deployment.value_gates import embedded_tree, rendered
from aicr.checks.sdk.outcome import could_not_tell
from aicr.checks.sdk.timeouts import Timeouts
from aicr.errors import CONFLICT, INVALID_REQUEST, SERVICE_UNAVAILABLE, TIMEOUT, AicrError
from aicr.kube.port import Cluster

DRA = {"name": "nvidia-dra-driver-gpu", "namespace": "dra"}
NETWORK = {
    "name": "network-operator",
    "namespace": "net",
    "manifestFiles": ["components/network-operator/manifests/nic-cluster-policy-aks.yaml"],
}
PLACES = (namespace("dra"), namespace("net"))
SHARED = "rdma/hca_shared_devices_a"


def plugin(name: str = "x-kubelet-plugin", *, desired: int = 2, ready: int = 2) -> dict[str, Any]:
    """The plugin's DaemonSet."""
    status = {"desiredNumberScheduled": desired, "numberReady": ready}
    return made("apps/v1", "DaemonSet", name, "dra", status=status)


def test_the_plugin_is_ready_on_every_node() -> None:
    """For a minute; DaemonSets of other names and places do not count."""
    other = plugin("other", ready=0)
    elsewhere = made("apps/v1", "DaemonSet", "y-kubelet-plugin", "far")
    found = check(DeployedCluster(*PLACES, plugin(), other, elsewhere), DRA)
    assert found.error is None
    assert found.seconds == 60
    assert "  [gpuReadiness] DRA kubelet plugin: ready" in found.lines


@pytest.mark.parametrize(
    ("objects", "words"),
    [
        ([], "no DaemonSet *-kubelet-plugin in namespace dra"),
        ([plugin(ready=1)], "DaemonSet dra/x-kubelet-plugin is not ready: 1/2 ready"),
        ([plugin(desired=0, ready=0)], "DaemonSet dra/x-kubelet-plugin is wanted on no node"),
        (
            [made("apps/v1", "DaemonSet", "x-kubelet-plugin", "dra")],
            "DaemonSet dra/x-kubelet-plugin is not ready: its controller has not reported yet",
        ),
    ],
)
def test_a_plugin_that_is_not_ready_is_named_at_the_deadline(
    objects: list[Any], words: str
) -> None:
    """TIMEOUT after 8 m with the last reason."""
    found = check(DeployedCluster(*PLACES, *objects), DRA)
    assert found.error is not None
    assert (found.error.code, found.seconds) == (TIMEOUT, 480)
    assert found.error.message == f"DRA kubelet plugin not ready within 8m0s: {words}"


def test_two_plugins_end_the_wait_at_once() -> None:
    """No time mends that."""
    found = check(DeployedCluster(*PLACES, plugin(), plugin("y-kubelet-plugin")), DRA)
    assert found.error is not None
    assert (found.error.code, found.seconds) == (CONFLICT, 0)
    assert found.error.message == (
        "2 DaemonSets *-kubelet-plugin in namespace dra: x-kubelet-plugin, y-kubelet-plugin"
    )


def test_probes_run_at_the_same_time_and_each_has_its_verdict() -> None:
    """A minute for both; one that fails does not stop the other."""
    nodes = [gpu_node("n1", {SHARED: "4"}), gpu_node("n2", {SHARED: "4"})]
    both = check(DeployedCluster(*PLACES, plugin(), *nodes), DRA, NETWORK)
    assert (both.error, both.seconds) == (None, 60)
    one = check(DeployedCluster(*PLACES, plugin(ready=0), *nodes), DRA, NETWORK)
    assert one.error is not None
    assert "  [gpuReadiness] RDMA fabric: ready" in one.lines
    assert any("[gpuReadiness] DRA kubelet plugin: DRA" in line for line in one.lines)


@pytest.mark.covers("V-264", "V-265", "V-266", "V-267")
def test_a_fabric_that_is_even_passes_with_its_nodes_and_counts() -> None:
    """Cordoned nodes are listed and in the total; nodes without an adapter are no part of it."""
    plain = made("v1", "Node", "n4", status={"allocatable": {"nvidia.com/gpu": "8"}})
    nodes = [
        gpu_node("n1", {SHARED: "1k"}),
        gpu_node("n2", {SHARED: "1000"}),
        gpu_node("n3", cordoned=True),
        plain,
    ]
    found = check(DeployedCluster(*PLACES, *nodes), NETWORK)
    assert found.error is None
    assert found.lines[1:] == [
        "Found 3 RDMA node(s), 2 schedulable, 1 cordoned:",
        "  n1: rdma/hca_shared_devices_a 1000",
        "  n2: rdma/hca_shared_devices_a 1000",
        "  n3: skipped (cordoned)",
        "RESULT: nodesValidated: 2/3 (1 cordoned, skipped)",
        "  [gpuReadiness] RDMA fabric: ready",
        "All deployment resources and required readiness signals are healthy",
    ]
    assert len(found.emitted) == 2
    assert json.loads(found.emitted[0].partition(" ")[2]) == {
        "nodesValidated": "0",
        "nodesTotal": "3",
    }
    assert found.extra == {"nodesValidated": "2", "nodesTotal": "3"}


@pytest.mark.covers("V-264", "V-265", "V-266", "V-268")
@pytest.mark.parametrize(
    ("nodes", "words", "result"),
    [
        ([], "no schedulable GPU node has an RDMA adapter", "0/0"),
        (
            [gpu_node("n1", cordoned=True)],
            "no schedulable GPU node has an RDMA adapter",
            "0/1 (1 cordoned, skipped)",
        ),
        (
            [gpu_node("n1", {SHARED: "4"}), gpu_node("n2")],
            "nodes hand out no rdma/hca_shared_devices_a: n2",
            "0/2",
        ),
        (
            [gpu_node("n1", {SHARED: "4"}), gpu_node("n2", {SHARED: "3"})],
            "nodes hand out different amounts of rdma/hca_shared_devices_a: n1 4, n2 3",
            "0/2",
        ),
    ],
)
def test_an_uneven_fabric_fails_and_never_skips(nodes: list[Any], words: str, result: str) -> None:
    """TIMEOUT with the last reason; the RESULT line comes once."""
    found = check(DeployedCluster(*PLACES, *nodes), NETWORK)
    assert found.error is not None
    assert (found.error.code, words in found.error.message) == (TIMEOUT, True)
    results = [line for line in found.lines if line.startswith("RESULT:")]
    assert results == [f"RESULT: nodesValidated: {result}"]
    assert found.extra["nodesValidated"] == "0"


@pytest.mark.covers("V-268", "V-269")
def test_nodes_that_cannot_be_listed_fail_and_could_not_be_told() -> None:
    """What cannot be observed has failed."""
    cluster = DeployedCluster(*PLACES)
    cluster.plans["v1/Node"] = lambda now: AicrError(SERVICE_UNAVAILABLE, "down")
    found = check(cluster, NETWORK)
    assert found.error is not None
    assert could_not_tell(found.error) == TIMEOUT
    assert found.lines.count("Found 0 RDMA node(s).") == 1
    assert found.lines.count("RESULT: nodesValidated: 0/0") == 1
    assert found.extra == {"nodesValidated": "0", "nodesTotal": "0"}


@pytest.mark.covers("V-266", "V-267", "V-269")
@pytest.mark.parametrize(
    ("later", "emitted", "result"),
    [
        # ready for a while, then nobody can look any more
        (
            lambda now, nodes: nodes if now < 30 else AicrError(SERVICE_UNAVAILABLE, "down"),
            2,
            "0/2",
        ),
        # the first looks see no adapter: feature discovery is late
        (lambda now, nodes: [] if now < 30 else nodes, 2, "2/2"),
        # a node comes and goes all the time
        (lambda now, nodes: nodes if int(now) % 20 < 10 else [], 2, "0/"),
    ],
    ids=["unreachable later", "seen later", "unsteady"],
)
def test_the_floor_goes_out_once_and_only_a_settled_fabric_is_certified(
    later: Any, emitted: int, result: str
) -> None:
    """The floor at the first sight of a node, final values at the end; one listing, however many looks."""
    nodes = [gpu_node("n1", {SHARED: "4"}), gpu_node("n2", {SHARED: "4"})]
    cluster = DeployedCluster(*PLACES)
    cluster.plans["v1/Node"] = lambda now: later(now, nodes)
    found = check(cluster, NETWORK)
    assert len(found.emitted) == emitted
    assert json.loads(found.emitted[0].partition(" ")[2]) == {
        "nodesValidated": "0",
        "nodesTotal": "2",
    }
    (line,) = [line for line in found.lines if line.startswith("RESULT:")]
    assert line.startswith(f"RESULT: nodesValidated: {result}")
    assert len([line for line in found.lines if line.startswith("Found ")]) == 1
    assert (found.error is None) == (result == "2/2")


@pytest.mark.covers("V-269")
def test_a_look_that_is_cut_short_certifies_nothing() -> None:
    """Whoever cancels the check while the fabric still has to prove steady gets a 0."""
    seen = Seen()
    nodes = [gpu_node("n1", {SHARED: "4"}), gpu_node("n2", {SHARED: "4"})]
    cluster = cast(Cluster, DeployedCluster(*PLACES, *nodes))

    async def body() -> None:
        context = seen.context(
            cluster,
            name="expected-resources",
            timeouts=Timeouts(),
            validation={"componentRefs": [NETWORK]},
            deadline=virtual_time.now() + 600.0,
        )
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(run_with(context, embedded_tree()), 20)

    virtual_time.run(body())
    assert seen.lines[-1] == "RESULT: nodesValidated: 0/2"
    assert seen.output.extra == {"nodesValidated": "0", "nodesTotal": "2"}


def policy(plugin: str, config: Any) -> dict[str, Any]:
    """A NicClusterPolicy with the configuration of a device plugin."""
    text = config if isinstance(config, str) else json.dumps(config)
    return {"kind": "NicClusterPolicy", "spec": {plugin: {"config": text}}}


@pytest.mark.parametrize(
    ("documents", "resource"),
    [
        ([policy("rdmaSharedDevicePlugin", {"configList": [{"resourceName": "a"}]})], "rdma/a"),
        (
            [
                policy(
                    "rdmaSharedDevicePlugin",
                    {"configList": [{"resourceName": "a", "resourcePrefix": "x.y"}]},
                )
            ],
            "x.y/a",
        ),
        ([policy("sriovDevicePlugin", {"resourceList": [{"resourceName": "b"}]})], "intel.com/b"),
        (
            [
                policy("rdmaSharedDevicePlugin", {"configList": [{"resourceName": "a"}] * 2}),
                {"kind": "Other"},
            ],
            "rdma/a",
        ),
    ],
)
def test_the_resource_is_the_one_that_the_policy_names(documents: list[Any], resource: str) -> None:
    """With the plugins' own prefixes where none is stated."""
    assert rdma_fabric.resource_of(documents) == resource


@pytest.mark.parametrize(
    ("documents", "words"),
    [
        ([], "names no RDMA resource"),
        ([policy("rdmaSharedDevicePlugin", {"configList": []})], "names no RDMA resource"),
        (
            [
                policy(
                    "rdmaSharedDevicePlugin",
                    {"configList": [{"resourceName": "a"}, {"resourceName": "b"}]},
                )
            ],
            "several RDMA resources: rdma/a, rdma/b",
        ),
        ([policy("rdmaSharedDevicePlugin", "{")], "is not as the plugin reads it"),
        ([policy("rdmaSharedDevicePlugin", "[]")], "is not as the plugin reads it"),
        ([policy("sriovDevicePlugin", {"resourceList": [{}]})], "is not as the plugin reads it"),
    ],
)
def test_a_policy_that_names_not_exactly_one_resource_is_refused(
    documents: list[Any], words: str
) -> None:
    """There would be nothing definite to look for."""
    with pytest.raises(AicrError, match=words) as caught:
        rdma_fabric.resource_of(documents)
    assert caught.value.code == INVALID_REQUEST


@pytest.mark.parametrize("name", ["aks", "oke-gb200", "generic-gb300"])
def test_the_catalogues_policies_name_one_resource_each(name: str) -> None:
    """So the probe applies wherever the recipe has a fabric."""
    path = f"components/network-operator/manifests/nic-cluster-policy-{name}.yaml"
    ref = {**NETWORK, "manifestFiles": [path]}
    assert rdma_fabric.applies(ref)
    assert "/" in rdma_fabric.resource_of(rendered(ref, embedded_tree()))
    assert not rdma_fabric.applies({"manifestFiles": ["x.yaml"]})
    assert not rdma_fabric.applies(None)
