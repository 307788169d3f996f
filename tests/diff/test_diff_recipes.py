"""Two recipes: what changes on the cluster is found, what only says how they came about is not."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from aicr.diff import recipes
from aicr.diff.changes import AREAS, Change
from aicr.errors import invalid


def recipe(**more: Any) -> dict[str, Any]:
    """A recipe with three components."""
    base: dict[str, Any] = {
        "kind": "RecipeResult",
        "apiVersion": "aicr.run/v1",
        "metadata": {"version": "1.0", "appliedOverlays": ["a"]},
        "criteria": {"service": "eks"},
        "constraints": [{"name": "K8s.server.version", "value": ">= 1.30"}],
        "componentRefs": [
            ref("cert-manager"),
            ref("gpu-operator", dependencyRefs=["cert-manager"], overrides={"driver": {"x": 1}}),
            ref("nfd"),
        ],
    }
    return {**base, **more}


def ref(name: str, **more: Any) -> dict[str, Any]:
    """A component."""
    made = {"name": name, "type": "Helm", "source": f"https://{name}.example", "version": "1.2.3"}
    return {key: value for key, value in (made | more).items() if value is not None}


def changed(index: int, **more: Any) -> dict[str, Any]:
    """The recipe with another component at a place."""
    made = copy.deepcopy(recipe())
    old = made["componentRefs"][index]
    made["componentRefs"][index] = {k: v for k, v in {**old, **more}.items() if v is not None}
    return made


def said(change: Change) -> tuple[str, str, str, str]:
    """A change without its sides."""
    return change.area, change.component, change.path, change.change


@pytest.mark.parametrize(
    ("after", "found"),
    [
        (changed(2, version="1.2.4"), [("versions", "nfd", "version", "upgraded")]),
        (changed(2, version="v1.2.2"), [("versions", "nfd", "version", "downgraded")]),
        (changed(2, version="latest"), [("versions", "nfd", "version", "changed")]),
        (changed(2, version=None), [("versions", "nfd", "version", "removed")]),
        (changed(2, namespace="x"), [("components", "nfd", "namespace", "added")]),
        (changed(2, source="https://b"), [("components", "nfd", "source", "changed")]),
        (changed(2, overrides={"enabled": False}), [("components", "nfd", "enabled", "changed")]),
        (
            changed(1, overrides={"driver": {"x": 2}}),
            [("values", "gpu-operator", "driver.x", "changed")],
        ),
        (
            changed(2, dependencyRefs=["cert-manager"]),
            [("dependencies", "nfd", "cert-manager", "added")],
        ),
        (
            changed(2, manifestFiles=["a.yaml"]),
            [("manifests", "nfd", "manifestFiles a.yaml", "added")],
        ),
        (
            recipe(criteria={"service": "gke"}),
            [("criteria", "", "service", "changed")],
        ),
        (
            recipe(constraints=[{"name": "K8s.server.version", "value": ">= 1.31"}]),
            [("constraints", "", "K8s.server.version", "changed")],
        ),
        (recipe(constraints=[]), [("constraints", "", "K8s.server.version", "removed")]),
        (
            recipe(configuration={"gke": {"tcpxoInterfaces": "a"}}),
            [("configuration", "", "gke.tcpxoInterfaces", "added")],
        ),
        (
            recipe(metadata={"version": "1.0", "gpuDriverState": "absent"}),
            [("metadata", "", "gpuDriverState", "added")],
        ),
        (
            recipe(validation={"deployment": {"checks": ["x"]}}),
            [("validation", "", "deployment.checks", "added")],
        ),
        (
            recipe(componentRefs=[*recipe()["componentRefs"][:2]]),
            [("components", "nfd", "", "removed")],
        ),
        (
            recipe(componentRefs=[*recipe()["componentRefs"], ref("a")]),
            [("components", "a", "", "added")],
        ),
    ],
)
def test_a_change_is_found_once_and_in_its_area(
    after: dict[str, Any], found: list[tuple[str, str, str, str]]
) -> None:
    """Versions, sources, values, edges, manifests, criteria, constraints and more (decision 30)."""
    kept = copy.deepcopy(after)
    comparison = recipes.compare(recipe(), after)
    assert [said(change) for change in comparison.changes if change.area != "order"] == found
    assert after == kept
    assert not comparison.same


@pytest.mark.parametrize(
    "after",
    [
        recipe(),
        recipe(metadata={"version": "2.0", "appliedOverlays": ["b"], "excludedOverlays": []}),
        recipe(componentRefs=recipe()["componentRefs"][::-1]),
        recipe(deploymentOrder=["wrong"]),
        changed(1, overrides={"driver": {"x": 1.0}}),
        changed(2, namespace=""),
    ],
)
def test_what_deploys_the_same_is_the_same(after: dict[str, Any]) -> None:
    """Program version, overlays that were tried, order of writing and stated order mean nothing."""
    assert recipes.compare(recipe(), after).same


def test_an_order_that_changes_is_found() -> None:
    """A new edge that turns two components round is an edge and a move."""
    after = changed(0, dependencyRefs=["nfd"])
    found = [said(change) for change in recipes.compare(recipe(), after).changes]
    assert ("dependencies", "cert-manager", "nfd", "added") in found
    assert [item for item in found if item[0] == "order"] == [("order", "nfd", "", "moved")]


def test_an_edge_through_a_disabled_component_is_kept() -> None:
    """a needs b needs c: with b disabled, a still needs c (field case F1)."""
    before = recipe(
        componentRefs=[ref("a", dependencyRefs=["b"]), ref("b", dependencyRefs=["c"]), ref("c")]
    )
    after = copy.deepcopy(before)
    after["componentRefs"][1]["overrides"] = {"enabled": False}
    found = [said(change) for change in recipes.compare(before, after).changes]
    assert ("dependencies", "a", "b", "removed") in found
    assert ("dependencies", "a", "c", "added") in found


@pytest.mark.parametrize("bring", [True, False])
def test_a_chart_that_brings_crds_is_pointed_out_when_it_moves(bring: bool) -> None:
    """CRDs are not upgraded by themselves, so a moved chart with CRDs is a change of its own."""
    comparison = recipes.compare(
        recipe(), changed(2, version="1.3.0"), bring_crds=["nfd"] if bring else []
    )
    found = [change for change in comparison.changes if change.area == "crds"]
    assert [(c.component, c.before, c.after) for c in found] == (
        [("nfd", "nfd 1.2.3", "nfd 1.3.0")] if bring else []
    )


def test_values_are_compared_as_the_charts_get_them() -> None:
    """An override that repeats a values file is no difference; a values file that differs is one."""
    before, after = recipe(), changed(1, overrides={}, valuesFile="x.yaml")

    def old(item: Any) -> dict[str, Any]:
        return {"driver": {"x": 1}} if item["name"] == "gpu-operator" else {}

    assert [
        said(change)
        for change in recipes.compare(before, after, values_before=old, values_after=old).changes
    ] == []

    def new(item: Any) -> dict[str, Any]:
        return {"driver": {"x": 2}} if item["name"] == "gpu-operator" else {}

    comparison = recipes.compare(before, after, values_before=old, values_after=new)
    assert [said(change)[2] for change in comparison.changes] == ["driver.x"]


def test_values_that_cannot_be_worked_out_are_said_to_be_left_out() -> None:
    """A values file that this catalogue lacks does not stop the comparison."""

    def fails(item: Any) -> dict[str, Any]:
        raise invalid(f"no values for {item['name']}")

    comparison = recipes.compare(
        recipe(),
        changed(1, overrides={"driver": {"x": 3}}),
        values_before=fails,
        values_after=fails,
    )
    assert [said(change)[2] for change in comparison.changes] == ["driver.x"]
    assert len(comparison.notes) == 3
    assert "no values for cert-manager" in comparison.notes[0]


def test_changes_are_sorted_by_area_and_counted() -> None:
    """The summary counts each area."""
    after = changed(2, version="1.3.0", namespace="x")
    comparison = recipes.compare(recipe(), after)
    areas = [AREAS.index(change.area) for change in comparison.changes]
    assert areas == sorted(areas)
    assert comparison.counts() == {"components": 1, "versions": 1}
    assert comparison.document("a", "b")["summary"] == comparison.counts()
