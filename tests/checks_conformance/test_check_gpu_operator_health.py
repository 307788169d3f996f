"""gpu-operator-health: Deployment, ClusterPolicy, exporter (validators spec 6.2)."""

from __future__ import annotations

from typing import Any

import pytest
from aiohttp import web
from tests.checks.contexts import node, validation
from tests.checks_conformance.scene import Scene, workload
from tests.checks_deployment.answers import COULD_NOT_LOOK

from aicr.checks.conformance.gpu_operator_health import CHECK
from aicr.checks.sdk.outcome import could_not_tell, skip_in
from aicr.errors import INTERNAL, NOT_FOUND
from aicr.kube import kinds
from aicr.kube.kinds import Resource

Document = dict[str, Any]

POLICY = Resource("nvidia.com", "v1", "clusterpolicies", "ClusterPolicy", False)
NS = "gpu-operator"


def operator(**counts: int) -> Document:
    """The operator's Deployment, under a chart's name."""
    found = workload("Deployment", "release-gpu-operator", NS, **counts)
    found["metadata"]["labels"] = {"app.kubernetes.io/name": "gpu-operator"}
    return found


def policy(state: str | None = "ready") -> Document:
    """The cluster policy."""
    status = {} if state is None else {"state": state}
    return {"metadata": {"name": "cluster-policy"}, "status": status}


def scene(
    deployment: Document | None = None,
    state: Document | None = None,
    exporter: Document | None = None,
    **settings: Any,
) -> Scene:
    """A healthy operator, but for what is given; an empty document leaves a part out."""
    parts = (
        (kinds.DEPLOYMENT, operator() if deployment is None else deployment),
        (POLICY, policy() if state is None else state),
        (
            kinds.DAEMON_SET,
            workload("DaemonSet", "nvidia-dcgm-exporter", NS) if exporter is None else exporter,
        ),
    )
    found = Scene(CHECK, served=(POLICY,), **settings)
    for resource, document in parts:
        if document:
            found.put(resource, document)
    return found


@pytest.mark.covers("V-271")
def test_a_ready_policy_passes_whatever_is_cordoned() -> None:
    """Its operands run on cordoned nodes too."""
    found = scene().put(kinds.NODE, node("a", gpus=8, cordoned=True))
    assert found.judge() is None
    assert found.seen.lines == [
        "Deployment gpu-operator/release-gpu-operator: 1/1 available",
        "ClusterPolicy cluster-policy: ready",
        "DaemonSet gpu-operator/nvidia-dcgm-exporter: 1 ready",
    ]


def test_the_deployment_is_found_by_name_without_the_label_in_the_recipes_namespace() -> None:
    """The recipe says where the operator is."""
    recipe = validation("gpu-operator")
    recipe["componentRefs"][0]["namespace"] = "elsewhere"
    found = Scene(CHECK, served=(POLICY,), validation=recipe)
    found.put(kinds.DEPLOYMENT, workload("Deployment", "gpu-operator", "elsewhere"))
    found.put(POLICY, policy())
    found.put(kinds.DAEMON_SET, workload("DaemonSet", "nvidia-dcgm-exporter", "elsewhere"))
    assert found.judge() is None


@pytest.mark.parametrize(
    ("parts", "code", "words"),
    [
        ({"deployment": {}}, NOT_FOUND, "Deployment gpu-operator/gpu-operator not found"),
        ({"deployment": operator(ready=0)}, INTERNAL, "is not available: 0/1"),
        ({"state": {}}, NOT_FOUND, "ClusterPolicy cluster-policy not found"),
        ({"state": policy("notReady")}, INTERNAL, '"notReady", not "ready"'),
        ({"state": policy(None)}, INTERNAL, "not stated"),
        ({"exporter": {}}, NOT_FOUND, "nvidia-dcgm-exporter not found"),
        (
            {"exporter": workload("DaemonSet", "nvidia-dcgm-exporter", NS, ready=0)},
            INTERNAL,
            "has no ready pod",
        ),
    ],
    ids=[
        *("no deployment", "unavailable", "no policy", "not ready", "no state"),
        *("no exporter", "exporter down"),
    ],
)
def test_a_part_that_is_absent_or_not_ready_fails(parts: Document, code: str, words: str) -> None:
    """A verdict each; it never skips."""
    error = scene(**parts).judge()
    assert error is not None
    assert error.code == code
    assert words in error.message
    assert could_not_tell(error) == ""
    assert skip_in(error) is None


def test_a_cluster_without_the_policys_crd_fails() -> None:
    """Nobody serves the kind."""
    found = scene(state={})
    found.served = ()
    error = found.judge()
    assert error is not None
    assert (error.code, could_not_tell(error)) == (NOT_FOUND, "")


@pytest.mark.parametrize("path", ["/deployments", "/clusterpolicies/", "/daemonsets/"])
@pytest.mark.parametrize(("answer", "code"), COULD_NOT_LOOK)
def test_a_read_that_fails_is_internal_and_could_not_be_told(
    path: str, answer: web.Response, code: str
) -> None:
    """With the reason as the published code."""
    error = scene().fault(f"GET .*{path}", answer).judge()
    assert error is not None
    assert (error.code, could_not_tell(error)) == (INTERNAL, code)
