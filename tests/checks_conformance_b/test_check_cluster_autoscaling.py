"""cluster-autoscaling: Karpenter's GPU pools grow, or the platform has something that adds nodes
(validators spec 6.2)."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web
from tests.checks.contexts import node, pod
from tests.checks_conformance.scene import workload
from tests.checks_conformance_b.bench import (
    METRICS,
    SHORT,
    Bench,
    autoscaler,
    declared,
    external_values,
)
from tests.checks_deployment.answers import COULD_NOT_LOOK
from tests.kube.fakeapi import FakeApi

from aicr.checks.conformance import hpa
from aicr.checks.conformance.cluster_autoscaling import (
    CHECK,
    LARGEST,
    POOL_LABEL,
    free_gpus,
    gpus_a_pod,
)
from aicr.checks.sdk.outcome import could_not_tell, skip_in
from aicr.errors import INTERNAL, NOT_FOUND, TIMEOUT
from aicr.kube import kinds
from aicr.kube.kinds import Resource

Document = dict[str, Any]
POOL = Resource("karpenter.sh", "v1", "nodepools", "NodePool", False)
GPU = "nvidia.com/gpu"


def in_pool(name: str, pool: str = "gpu", gpus: int = 8) -> Document:
    """A Ready node of a pool."""
    return node(name, gpus=gpus, labels={POOL_LABEL: pool})


def asks(name: str, gpus: int, *, on: str = "", phase: str = "Running") -> Document:
    """A pod with GPUs."""
    amounts = {"limits": {GPU: str(gpus)}, "requests": {GPU: str(gpus)}}
    spec = {"containers": [{"name": "main", "resources": amounts}], "nodeName": on}
    return pod(name, "default", phase=phase, spec=spec)


def node_pool(name: str, **limits: str) -> Document:
    """A NodePool with limits."""
    return {"metadata": {"name": name}, "spec": {"limits": limits}}


async def provision(api: FakeApi, *, bind: bool = True, nodes: bool = True) -> None:
    """A stand-in of Karpenter and the scheduler: pods of the load, and a node for them."""
    await autoscaler(api, wanted=4)
    for load in list(api.objects.get(kinds.DEPLOYMENT.qualified, {}).values()):
        name = load["metadata"]["name"]
        if not name.startswith("cluster-auto-test-"):
            continue
        pool = load["spec"]["template"]["spec"]["nodeSelector"][POOL_LABEL]
        if nodes and ("", f"new-{pool}") not in api.objects.get("nodes", {}):
            await api.store("ADDED", kinds.NODE, in_pool(f"new-{pool}", pool))
        if (name, "load-0") not in api.objects.get("pods", {}):
            made = pod("load-0", name)
            made["spec"]["nodeName"] = f"new-{pool}" if bind else ""
            await api.store("ADDED", kinds.POD, made)


def bench(
    *,
    karpenter: int | None = 1,
    labels: Document | None = None,
    pools: tuple[Document, ...] = (node_pool("gpu", **{GPU: "64"}), node_pool("cpu", cpu="100")),
    beside: Any = provision,
    validation: Document | None = None,
    **more: Any,
) -> Bench:
    """A cluster with Karpenter that works, but for what is named."""
    found = Bench(
        CHECK, validation=validation, beside=beside, **{"served": (*METRICS, POOL), **more}
    )
    if karpenter is not None:
        controller = workload("Deployment", "karpenter", "kube-system", ready=karpenter)
        controller["metadata"]["labels"] = labels or {"app.kubernetes.io/name": "karpenter"}
        found.put(kinds.DEPLOYMENT, controller)
    found.put(POOL, *pools)
    return found.put(hpa.EXTERNAL_METRIC, *external_values("70"))


def load_of(found: Bench) -> Document:
    """The spec of the load's pods."""
    (load,) = (
        each
        for each in found.stored(kinds.DEPLOYMENT)
        if each["metadata"]["name"].startswith("cluster-auto-test-")
    )
    spec: Document = load["spec"]["template"]["spec"]
    return spec


def test_a_pool_that_grows_by_a_node_for_a_pod_passes_and_nothing_is_left() -> None:
    """Only pools that limit GPUs; pods of one GPU each, in that pool, wherever it taints."""
    found = bench().put(kinds.NODE, in_pool("old")).put(kinds.POD, asks("busy", 6, on="old"))
    assert found.judge() is None
    assert found.left == []
    assert found.seen.lines[:3] == [
        "Karpenter kube-system/karpenter: 1/1 available",
        "GPU NodePools: gpu",
        "NodePool gpu: 1 node(s), 2 GPU(s) free",
    ]
    assert found.seen.lines[-1] == "NodePool gpu: 1 new node(s); 1 of 1 pods on them, 0 waiting"
    spec = load_of(found)
    assert spec["nodeSelector"] == {POOL_LABEL: "gpu"}
    assert spec["tolerations"] == [{"operator": "Exists"}]
    assert spec["containers"][0]["resources"]["limits"][GPU] == "1"
    (scaler,) = found.stored(hpa.HPA)
    assert scaler["spec"]["maxReplicas"] == LARGEST == 4


@pytest.mark.covers("V-134")
def test_the_users_node_selector_narrows_the_pool_and_tolerations_come_first() -> None:
    """Without the pool's own label another pool would be tested."""
    found = bench(
        settings={"node_selector": {"zone": "a"}, "tolerations": [{"key": "x"}]},
        labels={"app": "karpenter"},
    )
    assert found.judge() is None
    spec = load_of(found)
    assert spec["nodeSelector"] == {"zone": "a", POOL_LABEL: "gpu"}
    assert spec["tolerations"] == [{"key": "x"}]


def test_every_gpu_pool_is_tested() -> None:
    """In a namespace each."""
    pools = (node_pool("b", **{GPU: "8"}), node_pool("a", **{GPU: "8"}))
    found = bench(pools=pools)
    assert found.judge() is None
    grown = [line.split(":")[0] for line in found.seen.lines if "new node" in line]
    assert grown == ["NodePool a", "NodePool b"]
    assert found.left == []


@pytest.mark.parametrize(
    ("settings", "code", "words"),
    [
        ({"karpenter": 0}, INTERNAL, "Karpenter is not ready: 0/1 available"),
        ({"pools": (node_pool("cpu", cpu="1"),)}, NOT_FOUND, f"no NodePool has {GPU}"),
        ({"served": METRICS, "pools": ()}, NOT_FOUND, "serves no NodePool"),
        (
            {
                "beside": functools.partial(autoscaler, wanted=1),
                "timeouts": replace(SHORT, hpa_scale=0.3),
            },
            TIMEOUT,
            "did not want more than 1 pod",
        ),
        (
            {
                "beside": functools.partial(provision, nodes=False, bind=False),
                "timeouts": replace(SHORT, karpenter_node=0.3),
            },
            TIMEOUT,
            "0 new node(s), 1 of 1 pods waiting",
        ),
        (
            # Long enough for the node to be made.
            {
                "beside": functools.partial(provision, bind=False),
                "timeouts": replace(SHORT, karpenter_node=3.0),
            },
            TIMEOUT,
            "1 new node(s), 1 of 1 pods waiting",
        ),
    ],
    ids=["not ready", "no GPU pool", "no CRD", "not wanted", "no node", "node without pod"],
)
def test_what_does_not_work_fails_and_leaves_nothing(
    settings: Document, code: str, words: str
) -> None:
    """A verdict."""
    found = bench(**settings)
    error = found.judge()
    assert error is not None
    assert (error.code, could_not_tell(error)) == (code, "")
    assert words in error.message
    assert found.left == []


def test_a_pool_that_need_not_grow_could_not_be_told() -> None:
    """Four idle nodes with room for any pod."""
    found = bench().put(kinds.NODE, *(in_pool(f"idle-{each}", gpus=16) for each in range(4)))
    error = found.judge()
    assert error is not None
    assert could_not_tell(error) == INTERNAL
    assert found.left == []


@pytest.mark.parametrize(
    ("free", "expected"),
    [
        ({}, 1),
        ({"a": 3}, 1),
        ({"a": 4}, 2),
        ({"a": 8}, 3),
        ({"a": 8, "b": 8}, 5),
        (dict.fromkeys("abc", 16), 9),
        (dict.fromkeys("abcd", 16), 0),
    ],
)
def test_a_pod_asks_for_so_many_gpus_that_the_load_does_not_fit(
    free: dict[str, int], expected: int
) -> None:
    """The fewest; none when the load always fits."""
    assert gpus_a_pod(free) == expected


def test_free_gpus_are_those_that_a_new_pod_could_get() -> None:
    """Of nodes that are Ready and not cordoned, without those of pods that have not ended."""
    nodes = [
        node("a", gpus=8),
        node("b", gpus=8, cordoned=True),
        node("c", gpus=8, ready=False),
        node("d", gpus=1),
    ]
    pods = [
        asks("1", 3, on="a"),
        asks("2", 4, on="a", phase="Succeeded"),
        asks("3", 2, on="d"),
        asks("4", 1),
    ]
    assert free_gpus(nodes, pods) == {"a": 5, "d": 0}


def cloud(provider: str, *nodes: Document, **more: Any) -> Bench:
    """A cluster without Karpenter, whose nodes are of a provider."""
    found = bench(karpenter=None, pools=(), **more)
    for each in nodes or (node("n", gpus=8),):
        each["spec"]["providerID"] = f"{provider}zone/{each['metadata']['name']}"
        found.put(kinds.NODE, each)
    return found


def autoscaler_deployment(ready: int = 1) -> Document:
    """The autoscaler of clouds, as its chart labels it."""
    found = workload("Deployment", "cas", "kube-system", ready=ready)
    found["metadata"]["labels"] = {"app.kubernetes.io/name": "cluster-autoscaler"}
    return found


@pytest.mark.parametrize(
    ("provider", "labels", "expected"),
    [
        (
            "aws:///",
            {"eks.amazonaws.com/nodegroup": "g"},
            "EKS: 1/1 node(s) in 1 group(s) (eks.amazonaws.com/nodegroup)",
        ),
        (
            "azure:///",
            {"kubernetes.azure.com/agentpool": "g"},
            "AKS: 1/1 node(s) in 1 group(s) (kubernetes.azure.com/agentpool)",
        ),
    ],
)
def test_nodes_in_a_group_of_the_cloud_pass_without_karpenter(
    provider: str, labels: Document, expected: str
) -> None:
    """GPU nodes count where there are any; nothing is created."""
    cpu = node("cpu")
    found = cloud(provider, node("n", gpus=8, labels=labels), cpu)
    assert found.judge() is None
    assert found.seen.lines[-1] == expected
    assert not any(line.startswith("POST") for line in found.api.seen)


def test_the_clouds_autoscaler_passes_and_has_to_be_ready() -> None:
    """As a Deployment, or by what GKE's reports."""
    assert cloud("aws:///").put(kinds.DEPLOYMENT, autoscaler_deployment()).judge() is None
    error = cloud("aws:///").put(kinds.DEPLOYMENT, autoscaler_deployment(0)).judge()
    assert error is not None
    assert (could_not_tell(error), "0/1 available" in error.message) == ("", True)
    status = {"metadata": {"name": "cluster-autoscaler-status", "namespace": "kube-system"}}
    found = cloud("gce://").put(kinds.CONFIG_MAP, status)
    assert found.judge() is None
    assert found.seen.lines[-1] == "GKE: ConfigMap kube-system/cluster-autoscaler-status"


@pytest.mark.parametrize("provider", ["aws:///", "azure:///", "gce://"])
def test_a_cloud_without_anything_that_adds_nodes_fails(provider: str) -> None:
    """A verdict."""
    error = cloud(provider).judge()
    assert error is not None
    assert (error.code, could_not_tell(error)) == (NOT_FOUND, "")


def test_a_platform_that_nobody_knows_skips_unless_karpenter_is_declared() -> None:
    """Without nodes as well."""
    for found in (cloud("kind://"), bench(karpenter=None, pools=())):
        error = found.judge()
        assert error is not None
        assert skip_in(error) is not None
    error = cloud("kind://", validation=declared("karpenter")).judge()
    assert error is not None
    assert (error.code, skip_in(error)) == (NOT_FOUND, None)


@pytest.mark.covers("V10-54")
@pytest.mark.parametrize(("answer", "code"), COULD_NOT_LOOK)
@pytest.mark.parametrize(
    ("what", "karpenter"),
    [
        ("GET /apis/apps/v1/deployments", None),
        ("GET /api/v1/nodes", None),
        ("GET /apis/karpenter.sh", 1),
        ("GET /api/v1/nodes", 1),
        ("POST /apis/apps", 1),
    ],
    ids=["controller", "platform", "pools", "baseline", "create"],
)
def test_what_cannot_be_looked_at_is_never_a_verdict_nor_a_skip(
    what: str, karpenter: int | None, answer: web.Response, code: str
) -> None:
    """Also the list of nodes that tells the platform (field case G2)."""
    found = bench(karpenter=karpenter).fault(what, answer)
    error = found.judge()
    assert error is not None
    assert skip_in(error) is None
    assert could_not_tell(error) == code
    assert found.left == []
