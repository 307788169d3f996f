"""The readiness gate, and the constraint language where it is validation's own table."""

from __future__ import annotations

from typing import Any

import pytest
from tests.validate.cases import recipe

from aicr.constraints import expression
from aicr.constraints.evaluate import evaluate_constraint
from aicr.errors import AicrError
from aicr.validate.readiness import check_readiness

NAME = "K8s.server.version"


def snapshot(version: str) -> dict[str, Any]:
    """A snapshot of a cluster of some version."""
    subtype = {"subtype": "server", "data": {"version": version}}
    return {"kind": "Snapshot", "measurements": [{"type": "K8s", "subtypes": [subtype]}]}


def refused(document: dict[str, Any], found: dict[str, Any] | None) -> AicrError:
    """How the gate refuses."""
    with pytest.raises(AicrError) as raised:
        check_readiness(document, found)
    assert raised.value.code == "INVALID_REQUEST"
    assert raised.value.exit_status == 2
    return raised.value


@pytest.mark.covers("V10-17", "V-069", "G12")
def test_a_constraint_that_does_not_hold_ends_the_run() -> None:
    """The message has name, expectation, reading, and the remediation on a line of its own."""
    stated = {"name": NAME, "value": ">= 1.32.4", "remediation": "  upgrade the control plane\n"}
    error = refused(recipe([stated]), snapshot("1.31.0"))
    assert error.message == (
        "readiness check failed: K8s.server.version expected >= 1.32.4, got 1.31.0\n"
        "upgrade the control plane"
    )
    assert "--fail-on-error=false does not cover readiness" in error.hint


def test_a_failure_shows_what_was_compared() -> None:
    """A vendor's suffix is no part of the comparison, and the message says so (decision 10)."""
    error = refused(recipe([{"name": NAME, "value": ">= 1.34"}]), snapshot("v1.33.5-eks-3025e55"))
    assert error.message.endswith("got v1.33.5-eks-3025e55 (compared 1.33.5 with >= 1.34)")
    assert error.context["actual"] == "1.33.5"


@pytest.mark.covers("V10-18", "V-070", "V-071", "V-443")
@pytest.mark.parametrize("version", ["v1.x-unknown", "", "unknown"])
def test_a_reading_that_is_no_version_is_an_error(version: str) -> None:
    """Could not evaluate is not the same as does not hold, and never a pass."""
    error = refused(recipe([{"name": NAME, "value": ">= 1.30"}]), snapshot(version))
    assert error.message == "readiness check could not evaluate: K8s.server.version"
    assert error.__cause__ is not None


@pytest.mark.covers("V-031")
@pytest.mark.parametrize(
    "constraint",
    [
        {"name": "GPU.smi.driver-version", "value": ">= 550"},
        {"name": "K8s", "value": "x"},
        {"name": NAME, "value": "=> 1.32"},
        {"name": NAME, "value": 24.1},
    ],
    ids=["missing", "path", "operator", "number"],
)
def test_what_cannot_be_evaluated_is_refused(constraint: dict[str, Any]) -> None:
    """A missing reading, a path that is none, a mistyped operator, a value YAML has changed."""
    error = refused(recipe([constraint]), snapshot("v1.33.0"))
    assert error.message == f"readiness check could not evaluate: {constraint['name']}"


@pytest.mark.covers("V10-19")
def test_without_a_snapshot_only_a_recipe_without_constraints_is_ready() -> None:
    """Nothing to hold and nothing to hold it against."""
    error = refused(recipe([{"name": NAME, "value": ">= 1.30"}]), None)
    assert "readiness needs a snapshot" in error.message
    assert check_readiness(recipe(), None) == []


@pytest.mark.covers("V-067", "V-068", "V-012", "V-013")
def test_readiness_constraints_come_after_the_recipes_own_and_phases_are_left_alone() -> None:
    """The first that fails ends it; thresholds of phases are not read here."""
    document = recipe([{"name": NAME, "value": ">= 1.30"}])
    document["validation"] = {
        "readiness": {"constraints": [{"name": NAME, "value": ">= 1.40"}]},
        "performance": {"constraints": [{"name": "nccl-all-reduce-bw", "value": ">= 450"}]},
    }
    error = refused(document, snapshot("v1.33.0"))
    assert "expected >= 1.40" in error.message
    assert len(check_readiness(document, snapshot("v1.41.0"))) == 2


@pytest.mark.covers("V10-25", "V10-26", "V10-27")
@pytest.mark.parametrize(
    ("value", "actual", "holds"),
    [
        (">= 1.30 < 1.34", "1.33.2", True),
        (">= 1.30 < 1.34", "1.34.0", False),
        ("ubuntu", "Ubuntu", False),
        ("== 1.33", "v1.33.0", True),
    ],
)
def test_rows_of_the_constraint_language(value: str, actual: str, holds: bool) -> None:
    """Ranges, exact text, equality of versions."""
    assert expression.evaluate(expression.parse(value), actual).passed is holds


@pytest.mark.covers("V10-28", "V10-29", "V10-30")
@pytest.mark.parametrize("value", ["!=", "> abc", ">= 1.30 ||"])
def test_expressions_that_are_refused(value: str) -> None:
    """Never false: an expression that says nothing is an error."""
    with pytest.raises(AicrError) as raised:
        expression.parse(value)
    assert raised.value.code == "INVALID_REQUEST"


def nodes(provider: str, labels: dict[str, str]) -> dict[str, Any]:
    """A snapshot with node labels: key → ``value|node,node``."""
    return {
        "kind": "Snapshot",
        "measurements": [
            {"type": "K8s", "subtypes": [{"subtype": "node", "data": {"provider": provider}}]},
            {"type": "NodeTopology", "subtypes": [{"subtype": "label", "data": labels}]},
        ],
    }


@pytest.mark.covers("V10-31")
def test_the_node_set_constraint_names_the_node_that_fails() -> None:
    """Two of three GPU nodes are labelled; without GPU nodes, or on AKS, it cannot be told."""
    constraint = {
        "name": "NodeTopology.gpu-nodes.label",
        "value": "nvidia.com/gpu.deploy=true",
    }
    gpus = {"cloud.google.com/gke-accelerator": "nvidia-h100|a,b,c"}
    outcome = evaluate_constraint(
        constraint, nodes("gke", {**gpus, "nvidia.com/gpu.deploy": "true|a,b"})
    )
    assert not outcome.passed
    assert "c" in outcome.actual
    for provider, labels, code in (
        ("gke", {"nvidia.com/gpu.deploy": "true|a"}, "NOT_FOUND"),
        ("aks", gpus, "INVALID_REQUEST"),
    ):
        with pytest.raises(AicrError) as raised:
            evaluate_constraint(constraint, nodes(provider, labels))
        assert raised.value.code == code
