"""How overlays combine: refs field by field, constraints by name, phases by field."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.recipe.trees import (
    base,
    catalog,
    chart,
    constraint,
    document_of,
    overlay,
    refs_of,
    resolved,
)

from aicr.catalog.fields import REF_ORDER
from aicr.recipe.merge import Composition, merge_phase, merge_ref

SERVER = "K8s.server.version"


def chained(folder: Path, *specs: dict[str, Any]) -> Any:
    """The recipe of a chain of specs: base, then each inheriting from the one before."""
    files = {"overlays/base.yaml": base(**specs[0])}
    parent = ""
    for number, spec in enumerate(specs[1:]):
        name = f"o{number}"
        files[f"overlays/{name}.yaml"] = overlay(name, {"service": "eks"}, base=parent, **spec)
        parent = name
    if len(specs) == 1:
        files["overlays/o.yaml"] = overlay("o", {"service": "eks"})
    return resolved(catalog(folder, files), service="eks")


STRINGS = (
    "namespace",
    "chart",
    "type",
    "source",
    "version",
    "tag",
    "valuesFile",
    "path",
    "healthCheckAsserts",
)


@pytest.mark.parametrize("field", STRINGS)
def test_a_text_replaces_and_an_empty_one_does_not(field: str) -> None:
    """Non-empty wins; empty and absent inherit."""
    old: Any = {"name": "a", field: "old"}
    assert merge_ref(old, {"name": "a", field: "new"})[field] == "new"  # type: ignore
    assert merge_ref(old, {"name": "a", field: ""})[field] == "old"  # type: ignore
    assert merge_ref(old, {"name": "a"})[field] == "old"  # type: ignore
    assert merge_ref({"name": "a"}, {"name": "a", field: "new"})[field] == "new"  # type: ignore


@pytest.mark.covers("R11-43")
@pytest.mark.parametrize("field", ["dependencyRefs", "manifestFiles", "preManifestFiles"])
@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (["a", "b"], ["x"], ["a", "b", "x"]),
        (["a", "b"], ["b", "x", "x"], ["a", "b", "x"]),
        (["a"], [], ["a"]),
        (["a"], None, ["a"]),
        (None, ["x"], ["x"]),
        ([], ["x"], ["x"]),
    ],
)
def test_lists_of_names_unite_in_order(
    field: str, old: list[str] | None, new: list[str] | None, expected: list[str]
) -> None:
    """Inherited first, each once; an empty list takes nothing away."""
    below: Any = {"name": "a", **({} if old is None else {field: old})}
    above: Any = {"name": "a", **({} if new is None else {field: new})}
    merged: Any = merge_ref(below, above)
    assert merged[field] == expected


@pytest.mark.covers("R11-43")
def test_a_childs_dependency_joins_the_inherited_ones(tmp_path: Path) -> None:
    """In a resolved recipe: [a, b] and [x] give [a, b, x]."""
    others = [chart("a"), chart("b"), chart("x")]
    recipe = chained(
        tmp_path,
        {"componentRefs": [*others, chart("c", dependencyRefs=["a", "b"])]},
        {"componentRefs": [{"name": "c", "dependencyRefs": ["x"]}]},
    )
    assert refs_of(recipe)["c"]["dependencyRefs"] == ["a", "b", "x"]
    assert recipe.document["deploymentOrder"] == ["a", "b", "x", "c"]


@pytest.mark.parametrize("field", ["patches", "expectedResources"])
def test_other_lists_are_replaced_as_a_whole(field: str) -> None:
    """Non-empty replaces, empty inherits."""
    old: Any = {"name": "a", field: ["old"]}
    new: Any = {"name": "a", field: ["new"]}
    empty: Any = {"name": "a", field: []}
    assert dict(merge_ref(old, new))[field] == ["new"]
    assert dict(merge_ref(old, empty))[field] == ["old"]


@pytest.mark.parametrize("field", ["cleanup", "healthCheckSkip"])
def test_a_true_switch_stays_true(field: str) -> None:
    """A child cannot take it back."""
    on: Any = {"name": "a", field: True}
    off: Any = {"name": "a", field: False}
    assert dict(merge_ref(on, off))[field] is True
    assert dict(merge_ref(off, on))[field] is True
    assert dict(merge_ref(on, {"name": "a"}))[field] is True
    assert not dict(merge_ref(off, off)).get(field)


@pytest.mark.covers("R11-44")
@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({"driver": {"enabled": True}}, {"driver": {"version": 1}},
         {"driver": {"enabled": True, "version": 1}}),
        ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
        ({"a": {"b": 1}}, {"a": 5}, {"a": 5}),
        ({"a": 5}, {"a": {"b": 1}}, {"a": {"b": 1}}),
        ({"a": 1}, {}, {"a": 1}),
        ({"a": 1}, {"a": None}, {"a": None}),
        ({"a": {"b": 1}}, {"a": {"b": None, "c": None}}, {"a": {"b": None, "c": None}}),
        ({"a": None}, {"a": 1}, {"a": 1}),
        ({"a": {"b": {"c": 1}}}, {"a": {"b": {"d": 2}}}, {"a": {"b": {"c": 1, "d": 2}}}),
    ],
)  # fmt: skip
def test_overrides_merge_deeply_and_keep_nulls(
    old: dict[str, Any], new: dict[str, Any], expected: dict[str, Any]
) -> None:
    """Maps recurse, all else replaces, and a null is a value until values are resolved."""
    merged = merge_ref({"name": "a", "overrides": old}, {"name": "a", "overrides": new})
    assert merged["overrides"] == expected


def test_a_merged_ref_is_in_wire_order_and_shares_nothing() -> None:
    """Whatever order it was written in; and changing the result changes no input."""
    below: Any = {"overrides": {"a": {"b": 1}}, "name": "x", "dependencyRefs": ["d"]}
    above: Any = {"healthCheckSkip": True, "version": "1", "namespace": "n", "name": "x"}
    merged: Any = merge_ref(below, above)
    assert list(merged) == [key for key in REF_ORDER if key in merged]
    merged["overrides"]["a"]["b"] = 2
    merged["dependencyRefs"].append("e")
    assert below == {"overrides": {"a": {"b": 1}}, "name": "x", "dependencyRefs": ["d"]}


@pytest.mark.covers("V-009")
def test_constraints_merge_by_name_and_come_out_sorted(tmp_path: Path) -> None:
    """A later entry replaces the whole earlier one, its remediation included."""
    recipe = chained(
        tmp_path,
        {"constraints": [constraint(SERVER, ">= 1.25", remediation="upgrade", unit="v")]},
        {
            "constraints": [
                constraint("OS.release.ID", "ubuntu"),
                constraint("GPU.hardware.model", "h"),
            ]
        },
        {"constraints": [constraint(SERVER, ">= 1.30", severity="error")]},
    )
    assert recipe.document["constraints"] == [
        {"name": "GPU.hardware.model", "value": "h"},
        {"name": SERVER, "value": ">= 1.30", "severity": "error"},
        {"name": "OS.release.ID", "value": "ubuntu"},
    ]


def test_refs_come_out_sorted_by_name(tmp_path: Path) -> None:
    """Alphabetical, whatever the order of deployment."""
    recipe = chained(
        tmp_path, {"componentRefs": [chart("z"), chart("a", dependencyRefs=["z"]), chart("m")]}
    )
    assert list(refs_of(recipe)) == ["a", "m", "z"]
    assert recipe.document["deploymentOrder"] == ["m", "z", "a"]


@pytest.mark.covers("V-011")
@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({"checks": ["a", "b"]}, {"checks": ["c", "a"]}, {"checks": ["a", "b", "c"]}),
        ({"checks": ["a"]}, {}, {"checks": ["a"]}),
        ({"checks": ["a"]}, {"checks": []}, {"checks": []}),
        ({}, {"checks": ["a"]}, {"checks": ["a"]}),
        ({"timeout": "5m"}, {"timeout": "10m"}, {"timeout": "10m"}),
        ({"timeout": "5m"}, {"timeout": ""}, {"timeout": "5m"}),
        ({"timeout": "5m", "infrastructure": "x"}, {"infrastructure": "y"},
         {"timeout": "5m", "infrastructure": "y"}),
        ({"nodeSelection": {"maxNodes": 2, "selector": {"a": "b"}}}, {"nodeSelection": {"maxNodes": 1}},
         {"nodeSelection": {"maxNodes": 1}}),
        ({"nodeSelection": {"maxNodes": 2}}, {"nodeSelection": {}}, {"nodeSelection": {}}),
        ({"nodeSelection": {"maxNodes": 2}}, {}, {"nodeSelection": {"maxNodes": 2}}),
        ({"constraints": [constraint("a", "1"), constraint("b", "1")]},
         {"constraints": [constraint("c", "2"), constraint("a", "2")]},
         {"constraints": [constraint("a", "2"), constraint("b", "1"), constraint("c", "2")]}),
        ({"constraints": [constraint("a", "1")]}, {"constraints": []}, {"constraints": []}),
        ({"constraints": [constraint("a", "1")]}, {"checks": ["x"]},
         {"constraints": [constraint("a", "1")], "checks": ["x"]}),
    ],
)  # fmt: skip
def test_phases_merge_field_by_field(
    old: dict[str, Any], new: dict[str, Any], expected: dict[str, Any]
) -> None:
    """Checks unite, constraints unite by name in the inherited place, texts and selection replace."""
    below: Any = old
    above: Any = new
    assert merge_phase(below, above) == expected


@pytest.mark.covers("R11-45")
@pytest.mark.parametrize(
    ("child", "expected"),
    [
        ({"checks": []}, {"deployment": {"timeout": "5m"}}),
        ({}, {"deployment": {"timeout": "5m", "checks": ["a"]}}),
        ({"timeout": "9m"}, {"deployment": {"timeout": "9m", "checks": ["a"]}}),
        ({"checks": ["b"]}, {"deployment": {"timeout": "5m", "checks": ["a", "b"]}}),
    ],
)
def test_an_empty_list_of_checks_clears_and_an_absent_one_inherits(
    tmp_path: Path, child: dict[str, Any], expected: dict[str, Any]
) -> None:
    """In a resolved recipe, where the cleared list is left out."""
    recipe = chained(
        tmp_path,
        {"validation": {"deployment": {"checks": ["a"], "timeout": "5m"}}},
        {"validation": {"deployment": child}},
    )
    assert recipe.document["validation"] == expected


@pytest.mark.covers("R11-45")
def test_a_cleared_list_can_be_filled_again_further_down(tmp_path: Path) -> None:
    """Clearing happens where it is said, not for ever; an all-empty phase is left out."""
    recipe = chained(
        tmp_path / "a",
        {"validation": {"deployment": {"checks": ["a"]}}},
        {"validation": {"deployment": {"checks": []}}},
        {"validation": {"deployment": {"checks": ["b"]}}},
    )
    assert recipe.document["validation"] == {"deployment": {"checks": ["b"]}}
    emptied = chained(
        tmp_path / "b",
        {"validation": {"deployment": {"checks": ["a"]}}},
        {"validation": {"deployment": {"checks": []}}},
    )
    assert "validation" not in document_of(emptied)


@pytest.mark.covers("V-009", "V-011")
def test_phases_and_their_fields_come_out_in_wire_order(tmp_path: Path) -> None:
    """However the layers spread them."""
    recipe = chained(
        tmp_path,
        {"validation": {"conformance": {"checks": ["c"]}, "deployment": {"checks": ["a"]}}},
        {"validation": {"deployment": {"infrastructure": "x", "nodeSelection": {"maxNodes": 1}},
                        "readiness": {"constraints": [constraint(SERVER, ">= 1.30")]}}},
        {"validation": {"deployment": {"constraints": [constraint("m", "1")], "timeout": "5m"}}},
    )  # fmt: skip
    validation = recipe.document["validation"]
    assert list(validation) == ["readiness", "deployment", "conformance"]
    assert list(validation["deployment"]) == [
        "timeout",
        "constraints",
        "checks",
        "nodeSelection",
        "infrastructure",
    ]


@pytest.mark.covers("R11-42")
def test_a_null_survives_every_overlay(tmp_path: Path) -> None:
    """The recipe shows `emptyDir: null`; it deletes when values are resolved."""
    recipe = chained(
        tmp_path,
        {"componentRefs": [chart("k", overrides={"storageSpec": {"emptyDir": {"medium": "x"}}})]},
        {"componentRefs": [{"name": "k", "overrides": {"storageSpec": {"emptyDir": None}}}]},
        {"componentRefs": [{"name": "k", "overrides": {"storageSpec": {"size": "1Gi"}}}]},
    )
    assert refs_of(recipe)["k"]["overrides"] == {"storageSpec": {"emptyDir": None, "size": "1Gi"}}
    assert "emptyDir: null\n" in recipe.to_yaml()


@pytest.mark.covers("R11-50")
@pytest.mark.parametrize("switch", ["enabled", "install"])
def test_a_disabled_component_stays_listed_and_is_not_deployed(tmp_path: Path, switch: str) -> None:
    """In componentRefs, not in deploymentOrder; its dependents are unaffected."""
    recipe = chained(
        tmp_path,
        {"componentRefs": [chart("a"), chart("b", dependencyRefs=["a"]),
                           chart("c", dependencyRefs=["b"])]},
        {"componentRefs": [{"name": "b", "overrides": {switch: False}}]},
    )  # fmt: skip
    assert list(refs_of(recipe)) == ["a", "b", "c"]
    assert recipe.document["deploymentOrder"] == ["a", "c"]
    assert recipe.warnings == []


def test_a_switch_that_is_no_boolean_warns_and_does_nothing(tmp_path: Path) -> None:
    """`enabled: "false"` deploys."""
    recipe = chained(tmp_path, {"componentRefs": [chart("a", overrides={"enabled": "false"})]})
    assert recipe.document["deploymentOrder"] == ["a"]
    assert "component \"a\": overrides.enabled is 'false'" in recipe.warnings[0]


def test_a_null_switch_takes_a_false_back(tmp_path: Path) -> None:
    """Null deletes, and without a switch a component is enabled."""
    recipe = chained(
        tmp_path,
        {"componentRefs": [chart("a", overrides={"enabled": False})]},
        {"componentRefs": [{"name": "a", "overrides": {"enabled": None}}]},
    )
    assert recipe.document["deploymentOrder"] == ["a"]


def test_a_fork_is_changed_without_touching_what_it_came_from() -> None:
    """Every part: what is added to the one is not in the other."""
    first = Composition()
    first.add("base", {"mixins": ["m"], "componentRefs": [{"name": "a", "version": "1"}]})
    fork = first.fork()
    assert {part: getattr(fork, part) for part in Composition.__slots__} == {
        part: getattr(first, part) for part in Composition.__slots__
    }
    before = {part: getattr(first, part).copy() for part in Composition.__slots__}
    fork.add(
        "leaf",
        {
            "mixins": ["n"],
            "constraints": [{"name": SERVER, "value": ">= 1"}],
            "componentRefs": [{"name": "a", "version": "2"}, {"name": "b"}],
            "validation": {"deployment": {"checks": ["c"]}},
            "profile": {"name": "p", "default": "", "values": {}},
        },
    )
    assert {part: getattr(first, part) for part in Composition.__slots__} == before
    assert all(getattr(fork, part) != before[part] for part in Composition.__slots__)
