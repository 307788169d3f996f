"""The dependency graph: what is refused, the flat order, and the tiers."""

from __future__ import annotations

from typing import Any

import pytest
from tests.recipe.trees import innermost, refusal

from aicr.catalog.dependencies import (
    check_dependencies,
    deployment_order,
    effective_dependencies,
    is_enabled,
    levels,
    toggle_warnings,
)


def graph(text: str, disabled: str = "") -> list[Any]:
    """Refs of ``a:b,c d:`` (a depends on b and c), some of them disabled."""
    off = disabled.split()
    refs: list[Any] = []
    for part in text.split():
        name, _, needs = part.partition(":")
        ref: dict[str, Any] = {"name": name}
        if needs:
            ref["dependencyRefs"] = needs.split(",")
        if name in off:
            ref["overrides"] = {"enabled": False}
        refs.append(ref)
    return refs


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        (None, True),
        ({}, True),
        ({"enabled": True}, True),
        ({"enabled": False}, False),
        ({"install": False}, False),
        ({"enabled": True, "install": False}, False),
        ({"enabled": "false"}, True),
        ({"enabled": 0}, True),
        ({"enabled": None}, True),
        ({"driver": {"enabled": False}}, True),
    ],
)
def test_only_a_literal_false_disables(overrides: dict[str, Any] | None, expected: bool) -> None:
    """enabled or install, at the top, a boolean."""
    ref: Any = {"name": "a", "overrides": overrides} if overrides is not None else {"name": "a"}
    assert is_enabled(ref) is expected


def test_a_toggle_that_is_no_boolean_is_warned_about() -> None:
    """It looks like a switch and does nothing."""
    refs: list[Any] = [
        {"name": "a", "overrides": {"enabled": "false", "install": 0}},
        {"name": "b", "overrides": {"enabled": False}},
        {"name": "c"},
    ]
    assert toggle_warnings(refs) == [
        "component \"a\": overrides.enabled is 'false', not true or false; the component stays "
        "enabled",
        'component "a": overrides.install is 0, not true or false; the component stays enabled',
    ]


def test_an_unknown_dependency_names_the_edge_and_the_nearest() -> None:
    """Nobody has to guess which component it was."""
    error = refusal(lambda: check_dependencies(graph("gpu-operator:cert-mnager cert-manager:")))
    assert error.code == "INVALID_REQUEST"
    assert error.message == ('component "gpu-operator" references unknown dependency "cert-mnager"')
    assert error.hint == 'did you mean "cert-manager"?'
    error = refusal(lambda: check_dependencies(graph("a:zebra")))
    assert error.hint == 'add "zebra" to componentRefs, or drop the reference'


@pytest.mark.covers("F1")
@pytest.mark.parametrize(
    ("text", "circle"),
    [
        ("a:b b:a", "[a b a]"),
        ("a:a", "[a a]"),
        ("a:b b:c c:a", "[a b c a]"),
        ("x:a a:b b:c c:b", "[b c b]"),
        ("z: y:z b:c c:d d:b", "[b c d b]"),
    ],
)
def test_a_circle_is_shown_whole(text: str, circle: str) -> None:
    """Only its members, in order, the first repeated at the end."""
    error = refusal(lambda: check_dependencies(graph(text)))
    assert error.message == "dependency validation failed"
    assert innermost(error).message == f"circular dependency detected: {circle}"
    assert error.code == "INVALID_REQUEST"


@pytest.mark.covers("F1")
def test_a_circle_through_a_disabled_component_is_a_circle() -> None:
    """What is switched off today may be switched on tomorrow."""
    error = refusal(lambda: check_dependencies(graph("a:b b:a", "b")))
    assert innermost(error).message == "circular dependency detected: [a b a]"


def test_a_diamond_is_no_circle() -> None:
    """Two ways to one component are fine."""
    check_dependencies(graph("a:b,c b:d c:d d:"))


@pytest.mark.covers("C-092", "C-093", "C-107", "C-108")
@pytest.mark.parametrize(
    ("text", "order", "tiers"),
    [
        ("", [], []),
        ("b: a: c:", ["a", "b", "c"], [["a", "b", "c"]]),
        ("a:z z:", ["z", "a"], [["z"], ["a"]]),
        # The queue is sorted again after each pop: b is free once c is done, and goes before d.
        ("b:c c: d:", ["c", "b", "d"], [["c", "d"], ["b"]]),
        ("a:b,c b:d c:d d:", ["d", "b", "c", "a"], [["d"], ["b", "c"], ["a"]]),
        ("a:x,x,x x:", ["x", "a"], [["x"], ["a"]]),
        ("Z: a:", ["Z", "a"], [["Z", "a"]]),
    ],
)
def test_order_and_tiers(text: str, order: list[str], tiers: list[list[str]]) -> None:
    """Every component after what it needs, ties alphabetical by code point."""
    assert deployment_order(graph(text)) == order
    assert levels(graph(text)) == tiers


def test_the_order_of_a_known_recipe() -> None:
    """The sample of recipe specification 10.7."""
    refs = graph(
        "aws-ebs-csi-driver: aws-efa: cert-manager: gpu-operator:cert-manager,kube-prometheus-stack "
        "k8s-ephemeral-storage-metrics:kube-prometheus-stack kai-scheduler:gpu-operator "
        "kube-prometheus-stack:cert-manager nvidia-dra-driver-gpu:gpu-operator "
        "nvsentinel:cert-manager,gpu-operator prometheus-adapter:kube-prometheus-stack "
        "skyhook-customizations:skyhook-operator skyhook-operator:kube-prometheus-stack"
    )
    assert deployment_order(refs)[:4] == [
        "aws-ebs-csi-driver",
        "aws-efa",
        "cert-manager",
        "kube-prometheus-stack",
    ]


@pytest.mark.covers("F1", "R11-50")
def test_edges_pass_through_a_disabled_component() -> None:
    """gpu-operator still waits for cert-manager, although nfd between them is switched off."""
    text = (
        "cert-manager: nfd:cert-manager gpu-operator:nfd kai-scheduler:gpu-operator "
        "dynamo:gpu-operator aws-efa:"
    )
    refs = graph(text, "nfd")
    assert effective_dependencies(refs) == {
        "cert-manager": [],
        "gpu-operator": ["cert-manager"],
        "kai-scheduler": ["gpu-operator"],
        "dynamo": ["gpu-operator"],
        "aws-efa": [],
    }
    assert deployment_order(refs) == [
        "aws-efa",
        "cert-manager",
        "gpu-operator",
        "dynamo",
        "kai-scheduler",
    ]
    assert levels(refs) == [
        ["aws-efa", "cert-manager"],
        ["gpu-operator"],
        ["dynamo", "kai-scheduler"],
    ]


@pytest.mark.covers("F1")
def test_edges_pass_through_a_chain_of_disabled_components() -> None:
    """However many lie between, and however many ways there are."""
    refs = graph("z:y,x y:b x:w w:a,b a: b:", "y x w")
    assert effective_dependencies(refs) == {"z": ["a", "b"], "a": [], "b": []}
    assert deployment_order(graph("b:a a:", "a")) == ["b"]


def test_a_circle_has_no_order_and_no_tiers() -> None:
    """Even if nobody checked before."""
    error = refusal(lambda: deployment_order(graph("a:b b:a c:")))
    assert error.message == "cannot determine deployment order: circular dependencies exist"
    error = refusal(lambda: levels(graph("a:b b:a c:")))
    assert error.message == "cannot determine deployment levels: circular dependencies exist"
    assert error.code == "INVALID_REQUEST"
