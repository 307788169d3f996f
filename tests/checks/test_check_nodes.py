"""GPU nodes, cordons, dead drivers and busy nodes (validators spec 5.4)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.checks.contexts import Seen, node, pod, put
from tests.kube.loopback import cluster, refused, run

from aicr.checks.sdk import nodes
from aicr.errors import INVALID_REQUEST, UNAUTHORIZED
from aicr.kube import kinds

PCI = {"feature.node.kubernetes.io/pci-10de.present": "true"}
GKE = {"cloud.google.com/gke-accelerator": "nvidia-h100-80gb"}


def container(**resources: Any) -> dict[str, Any]:
    """A pod spec with one container of these resources."""
    return {"containers": [{"name": "c", "image": "i", "resources": resources}]}


@pytest.mark.covers("V-253", "V-272")
@pytest.mark.parametrize(
    ("document", "found"),
    [
        (node("n", gpus=8), True),
        (node("n", gpus=0), False),
        (node("n"), False),
        (node("n", gpus=0, labels=PCI), True),
        (node("n", labels=GKE), True),
        (node("n", labels={"nvidia.com/gpu.present": "true"}), True),
        (node("n", labels={"nvidia.com/gpu.present": "false"}), False),
        (node("n", labels={"feature.node.kubernetes.io/pci-15b3.present": "true"}), False),
        (node("n", gpus=0, labels={**PCI, "nvidia.com/gpu.deploy.operands": "false"}), False),
        (node("n", gpus=8, labels={"nvidia.com/gpu.deploy.operands": "false"}), True),
        (node("n", gpus=8, cordoned=True), True),
        (node("n", gpus=8, ready=False), True),
    ],
    ids=[
        *("advertises", "zero", "none", "dead driver", "cloud label", "discovered", "label false"),
        *("a NIC", "taken out", "taken out and advertising", "cordoned", "not ready"),
    ],
)
def test_a_gpu_node_advertises_gpus_or_has_a_label_that_needs_no_driver(
    document: dict[str, Any], found: bool
) -> None:
    """The universe does not shrink with what is broken; operator intent takes a node out of it."""
    assert nodes.names(nodes.gpu_nodes([document])) == (["n"] if found else [])


@pytest.mark.covers("V-253", "V-254")
def test_each_node_is_tagged_and_a_dead_driver_is_counted_and_named() -> None:
    """Cordoned and silent nodes stay in the count."""
    mig = node("mig")
    mig["status"]["allocatable"] = {"nvidia.com/gpu": "0", "nvidia.com/mig-1g.10gb": "7"}
    found = nodes.gpu_nodes(
        [
            node("b", gpus=8),
            mig,
            node("a", gpus=8, cordoned=True),
            node("dead", gpus=0, labels=PCI),
            node("dra", labels=PCI),
            node("cpu"),
        ]
    )
    assert nodes.names(found) == ["a", "b", "dead", "dra", "mig"]
    assert nodes.names(nodes.schedulable(found)) == ["b", "dead", "dra", "mig"]
    assert nodes.names(nodes.cordoned(found)) == ["a"]
    assert nodes.silent(found) == ["dead", "dra"]
    assert nodes.silent(found, given_by_dra=["dra"]) == ["dead"]
    assert [each.gpus for each in found] == [8, 8, 0, 0, 0]


@pytest.mark.parametrize(
    ("document", "held"),
    [
        (pod("p", "n", spec=container(limits={"nvidia.com/gpu": 1})), True),
        (pod("p", "n", spec=container(requests={"nvidia.com/gpu": "2"})), True),
        (pod("p", "n", phase="Pending", spec=container(limits={"nvidia.com/gpu": "1"})), True),
        (pod("p", "n", phase="Succeeded", spec=container(limits={"nvidia.com/gpu": "1"})), False),
        (pod("p", "n", phase="Failed", spec=container(limits={"nvidia.com/gpu": "1"})), False),
        (pod("p", "n", spec=container(limits={"nvidia.com/gpu": "0"})), False),
        (pod("p", "n", spec=container(limits={"cpu": "1"})), False),
        (
            pod(
                "p",
                "n",
                spec={"initContainers": container(limits={"nvidia.com/gpu": "1"})["containers"]},
            ),
            True,
        ),
        (pod("p", "n"), False),
    ],
    ids=["limit", "request", "pending", "done", "failed", "zero", "cpu", "init", "nothing"],
)
def test_a_pod_that_has_not_ended_and_asks_for_a_gpu_holds_it(
    document: dict[str, Any], held: bool
) -> None:
    """Limits or requests, of init containers too."""
    assert nodes.holders([document]) == (["n/p"] if held else [])


def test_the_pods_of_one_node_are_asked_for() -> None:
    """Only pods bound to that node count."""

    async def scenario() -> list[str]:
        async with cluster() as (api, client):
            for name, place in (("mine", "gpu-1"), ("other", "gpu-2")):
                held = {**container(limits={"nvidia.com/gpu": "1"}), "nodeName": place}
                await put(api, kinds.POD, pod(name, "team", spec=held))
            return await nodes.gpu_holders(Seen().context(client), "gpu-1")

    assert run(scenario()) == ["team/mine"]


def test_that_pods_cannot_be_listed_is_no_free_node() -> None:
    """The error comes out; nothing says that the node is free."""

    async def scenario() -> str:
        from tests.kube.fakeapi import refuse

        async with cluster() as (api, client):
            api.next("GET /api/v1/pods", refuse(403, "Forbidden", 'cannot list resource "pods"'))
            return (await refused(nodes.gpu_holders(Seen().context(client), "gpu-1"))).code

    assert run(scenario()) == UNAUTHORIZED


def test_an_allocatable_quantity_that_is_no_count_is_refused() -> None:
    """A node whose count cannot be read is not a node without GPUs."""
    document = node("n")
    document["status"]["allocatable"] = {"nvidia.com/gpu": "1500m"}

    async def scenario() -> str:
        async with cluster() as (api, client):
            await put(api, kinds.NODE, document)
            return (await refused(nodes.find_gpu_nodes(Seen().context(client)))).code

    assert run(scenario()) == INVALID_REQUEST
