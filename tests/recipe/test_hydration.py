"""Values of a component: which layers, in which order, and what a null does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.recipe.conftest import Install
from tests.recipe.trees import (
    base,
    catalog,
    chart,
    command,
    data,
    innermost,
    overlay,
    refusal,
    refused,
    resolved,
)

from aicr.catalog.directory_tree import DirectoryTree
from aicr.recipe.hydrate import hydrate, layered, resolve_values
from aicr.values.merge import copy_tree

OWN = "components/x/values.yaml"
NAMED = "components/x/values-eks.yaml"


def values(folder: Path, files: dict[str, str], **ref: Any) -> dict[str, Any]:
    """The values of component x of a tree with these files."""
    found = DirectoryTree(str(data(folder, files)))
    given: Any = {"name": "x", "type": "Helm", **ref}
    return resolve_values(given, found)


@pytest.mark.parametrize(
    ("files", "ref", "expected"),
    [
        # Nothing anywhere.
        ({}, {}, {}),
        # The layers one by one.
        ({OWN: "a: own\n"}, {"valuesFile": OWN}, {"a": "own"}),
        ({OWN: "a: own\nb: own\n", NAMED: "b: named\n"}, {"valuesFile": NAMED},
         {"a": "own", "b": "named"}),
        ({OWN: "a: 1\nb: 1\nc: 1\n", NAMED: "b: 2\nc: 2\n"},
         {"valuesFile": NAMED, "overrides": {"c": 3}}, {"a": 1, "b": 2, "c": 3}),
        # A named file stands alone when there is no values.yaml.
        ({NAMED: "b: named\n"}, {"valuesFile": NAMED}, {"b": "named"}),
        # Maps merge, lists and scalars replace.
        ({OWN: "m: {a: 1, l: [1, 2]}\n"}, {"overrides": {"m": {"b": 2, "l": [3]}}},
         {"m": {"a": 1, "b": 2, "l": [3]}}),
        ({OWN: "m: {a: 1}\n"}, {"overrides": {"m": 5}}, {"m": 5}),
        ({OWN: "m: 5\n"}, {"overrides": {"m": {"a": 1}}}, {"m": {"a": 1}}),
        ({OWN: ""}, {"valuesFile": OWN}, {}),
        # A component of Kustomize has no values.
        ({OWN: "a: 1\n"}, {"type": "Kustomize", "valuesFile": OWN, "overrides": {"b": 1}}, {}),
    ],
)  # fmt: skip
def test_layers_from_values_yaml_up(
    tmp_path: Path, files: dict[str, str], ref: dict[str, Any], expected: dict[str, Any]
) -> None:
    """The component's own file, the ref's file, the inline overrides."""
    assert values(tmp_path, files, **ref) == expected


@pytest.mark.covers("R11-46", "C-017")
def test_a_ref_without_values_file_starts_from_values_yaml(tmp_path: Path) -> None:
    """Decision 51, as the seed says; the original uses the overrides alone."""
    found = values(tmp_path, {OWN: "a: own\n"}, overrides={"b": 1})
    assert found == {"a": "own", "b": 1}
    assert values(tmp_path / "none", {}, overrides={"b": 1}) == {"b": 1}
    assert values(tmp_path / "bare", {OWN: "a: own\n"}) == {"a": "own"}


@pytest.mark.covers("R11-42", "B7")
@pytest.mark.parametrize(
    ("layers", "expected"),
    [
        # A null over a key that a lower layer sets deletes it, at any depth.
        ([{"a": 1}, {"a": None}], {}),
        ([{"m": {"a": 1, "b": 2}}, {"m": {"a": None}}], {"m": {"b": 2}}),
        ([{"m": {"a": 1}}, {"m": None}], {}),
        ([{"a": [1]}, {"a": None}], {}),
        # Over nothing it stays, for Helm to drop the chart's own default.
        ([{}, {"a": None}], {"a": None}),
        ([{}, {"m": {"a": None}}], {"m": {"a": None}}),
        ([{"m": {"b": 1}}, {"m": {"a": None}}], {"m": {"b": 1, "a": None}}),
        ([{"m": 5}, {"m": {"a": None}}], {"m": {"a": None}}),
        # A null in the lowest layer is for Helm too, and stays under another null.
        ([{"a": None}], {"a": None}),
        ([{"a": None}, {"a": None}], {"a": None}),
        ([{"a": None}, {"a": 1}], {"a": 1}),
        # Three layers: deleted twice is deleted, set again is set.
        ([{"a": 1}, {"a": None}, {"a": None}], {}),
        ([{}, {"a": 1}, {"a": None}], {}),
        ([{"a": 1}, {}, {"a": None}], {}),
        ([{"a": 1}, {"a": None}, {"a": 2}], {"a": 2}),
        ([{"m": {"a": 1}}, {"m": None}, {"m": {"a": None, "b": None}}], {"m": {"b": None}}),
        ([{}, {"a": None}, {"a": {"b": None}}], {"a": {"b": None}}),
        # Nulls in lists are values.
        ([{"l": [1]}, {"l": [None, {"a": None}]}], {"l": [None, {"a": None}]}),
        ([{"a": 0}, {"a": None}], {}),
        ([{"a": False}, {"a": None}], {}),
        ([{"a": ""}, {"a": None}], {}),
        ([], {}),
    ],
)
def test_a_null_deletes_what_is_below_and_else_stays(
    layers: list[dict[str, Any]], expected: dict[str, Any]
) -> None:
    """Our documented rule for every depth and number of layers; no layer is changed."""
    before = copy_tree(layers)
    assert layered(*layers) == expected
    assert layers == before


@pytest.mark.covers("B7")
def test_the_field_case_of_nulls() -> None:
    """A and C were set and go; D was null already and E was never set: both stay for Helm."""
    lower = {"env": {"A": "1", "B": {"C": "2", "D": None}}}
    upper = {"env": {"A": None, "B": {"C": None, "E": None}}}
    assert layered(lower, upper) == {"env": {"B": {"D": None, "E": None}}}


@pytest.mark.covers("R11-42")
def test_a_null_of_an_overlay_deletes_from_the_values_file(tmp_path: Path) -> None:
    """The recipe keeps `emptyDir: null`, the resolved values have no such key."""
    found = catalog(
        tmp_path,
        {
            OWN: "storageSpec: {emptyDir: {medium: Memory}, size: 1Gi}\n",
            "overlays/base.yaml": base(
                componentRefs=[chart("x", valuesFile=OWN,
                                     overrides={"storageSpec": {"emptyDir": None}})]
            ),
            "overlays/eks.yaml": overlay("eks", {"service": "eks"}),
        },
    )  # fmt: skip
    recipe = resolved(found, service="eks")
    assert recipe.document["componentRefs"][0]["overrides"] == {"storageSpec": {"emptyDir": None}}
    component = hydrate(recipe)["components"]["x"]
    assert component["values"] == {"storageSpec": {"size": "1Gi"}}


BROKEN = {
    "overlays/base.yaml": base(componentRefs=[
        chart("fine"), chart("foo", valuesFile="components/foo/values.yaml")
    ]),
    "overlays/eks.yaml": overlay("eks", {"service": "eks"}),
    "components/fooo/values.yaml": "a: 1\n",
}  # fmt: skip


@pytest.mark.covers("R11-47")
def test_a_missing_values_file_fails_every_query_and_no_recipe(
    installed: Install, tmp_path: Path
) -> None:
    """Even a selector that does not touch the component; exit 8, with the nearest file."""
    found = installed(BROKEN)
    assert command("recipe", "--service", "eks").status == 0
    for selector in ("components.fine.version", "kind", ""):
        ran = refused("query", "--service", "eks", "--selector", selector)
        assert ran.status == 8
        assert 'failed to read values file "components/foo/values.yaml"' in ran.err
        assert 'did you mean "components/fooo/values.yaml"?' in ran.err
    error = refusal(lambda: hydrate(resolved(found, service="eks")))
    assert [link.message for link in error.chain()][:3] == [
        "failed to hydrate recipe",
        'failed to hydrate values for component "foo"',
        'failed to read values file "components/foo/values.yaml"',
    ]
    assert {link.code for link in error.chain()[:3]} == {"INTERNAL"}


@pytest.mark.covers("R11-47")
def test_a_missing_context_file_is_named_as_such(tmp_path: Path) -> None:
    """The message tells the component's own file from the ref's."""
    error = refusal(lambda: values(tmp_path, {OWN: "a: 1\n"}, valuesFile=NAMED))
    assert error.code == "INTERNAL"
    assert error.message == f'failed to read overlay values file "{NAMED}"'
    assert innermost(error).code == "NOT_FOUND"


@pytest.mark.parametrize(
    ("text", "message"),
    [("- a\n", "a values file must be a map"), ("a: [\n", ""), ("a: 1\na: 2\n", "duplicate key")],
)
def test_a_values_file_that_is_no_map_is_the_files_fault(
    tmp_path: Path, text: str, message: str
) -> None:
    """INVALID_REQUEST with its place, and no INTERNAL."""
    error = refusal(lambda: values(tmp_path, {OWN: text}, valuesFile=OWN))
    assert error.code == "INVALID_REQUEST"
    assert message in str(error)
    assert OWN in str(error)


def test_a_values_file_outside_the_tree_is_refused(tmp_path: Path) -> None:
    """Whatever the ref says."""
    (tmp_path / "secret.yaml").write_text("a: 1\n")
    error = refusal(lambda: values(tmp_path / "tree", {}, valuesFile="../secret.yaml"))
    assert "path traversal or non-local path detected" in str(error)
    assert error.code == "INVALID_REQUEST"


def test_values_are_read_as_helm_reads_them(tmp_path: Path) -> None:
    """Values are the chart's business: yes is true, and nobody has to quote anything."""
    assert values(tmp_path, {OWN: "a: yes\nb: 24.10\nc: 010\n"}, valuesFile=OWN)["a"] is True


def test_disabled_components_are_hydrated_too(tmp_path: Path) -> None:
    """Everything in the recipe is in the document."""
    found = catalog(
        tmp_path,
        {"overlays/base.yaml": base(componentRefs=[chart("x", overrides={"enabled": False})]),
         "overlays/eks.yaml": overlay("eks", {"service": "eks"}), OWN: "a: 1\n"},
    )  # fmt: skip
    document = hydrate(resolved(found, service="eks"))
    assert document["components"]["x"]["values"] == {"a": 1, "enabled": False}
    assert document["deploymentOrder"] == []


def test_hydration_copies_what_it_hands_out(tmp_path: Path) -> None:
    """Changing the hydrated document changes neither the recipe nor the next hydration."""
    found = catalog(
        tmp_path,
        {"overlays/base.yaml": base(componentRefs=[chart("x", overrides={"m": {"l": [1]}})]),
         "overlays/eks.yaml": overlay("eks", {"service": "eks"})},
    )  # fmt: skip
    recipe = resolved(found, service="eks")
    before = recipe.to_yaml()
    first = hydrate(recipe)
    first["components"]["x"]["values"]["m"]["l"].append(2)
    first["metadata"]["appliedOverlays"].append("x")
    first["deploymentOrder"].clear()
    assert recipe.to_yaml() == before
    assert hydrate(recipe)["components"]["x"]["values"] == {"m": {"l": [1]}}
