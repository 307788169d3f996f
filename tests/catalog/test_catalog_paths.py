"""Files that a data tree names: none may leave the tree, and what cannot be read is named with why."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.recipe.trees import (
    V1BETA1,
    catalog,
    chart,
    data,
    document,
    entry,
    overlay,
    refusal,
    registry,
    resolved,
)

from aicr.catalog.directory_tree import DirectoryTree
from aicr.errors import AicrError
from aicr.recipe.hydrate import hydrate

ESCAPES = ["../../etc/passwd", "/etc/passwd", "components/../../x.yaml", "a//b.yaml", "a\\b.yaml"]


def traversal(error: AicrError, path: str) -> None:
    """Assert that the error refuses the path by name, at its place, with a next step."""
    assert error.code == "INVALID_REQUEST"
    assert error.message == f"path traversal or non-local path detected: {path!r}"
    assert error.hint.startswith("name a file inside the catalogue")


@pytest.mark.parametrize("path", ESCAPES)
def test_a_values_file_outside_the_tree_is_refused_when_the_tree_is_read(
    path: str, tmp_path: Path
) -> None:
    """As manifests are (recipe spec 2.3): a recipe with such a path is never printed."""
    refs = [chart("a", valuesFile=path)]
    files = {"overlays/o.yaml": overlay("o", {"service": "eks"}, componentRefs=refs)}
    error = refusal(lambda: catalog(tmp_path, files))
    traversal(error, path)
    assert error.where.startswith(f"{tmp_path}/overlays/o.yaml:")


@pytest.mark.parametrize("path", ESCAPES)
@pytest.mark.parametrize(("block", "key"), [("healthCheck", "assertFile"), ("upgrades", "file")])
def test_a_file_of_a_registry_entry_outside_the_tree_is_refused(
    block: str, key: str, path: str, tmp_path: Path
) -> None:
    """Health checks and upgrade records are read from the tree alone."""
    files = {"registry.yaml": registry(entry("a", **{block: {key: path}}))}
    error = refusal(lambda: catalog(tmp_path, files))
    traversal(error, path)
    assert error.where.startswith(f"{tmp_path}/registry.yaml:")


def test_a_missing_values_file_names_where_it_was_looked_for(tmp_path: Path) -> None:
    """Over a catalogue both layers were asked; the place is the one where the file can be put."""
    path = "components/a/mine.yaml"
    refs = [chart("a", valuesFile=path)]
    more = data(
        tmp_path / "data",
        {"overlays/o.yaml": overlay("o", {"service": "eks"}, componentRefs=refs)},
    )
    recipe = resolved(catalog(tmp_path / "own").overlay(str(more)), service="eks")
    innermost = refusal(lambda: hydrate(recipe)).chain()[-1]
    assert innermost.code == "NOT_FOUND"
    assert innermost.message == (
        f"file not found in the data directory, nor in the catalogue below it: {path}"
    )
    assert innermost.where == str(more / path)


@pytest.mark.parametrize("place", ["", "overlays"])
def test_a_folder_that_may_not_be_listed_is_named(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not taken for one without a registry, and nothing escapes as an unexpected error."""
    root = data(tmp_path / "data", {"overlays/o.yaml": overlay("o", {"service": "eks"})})
    closed = str(root / place) if place else str(root)
    listing = os.scandir

    def scandir(folder: str) -> Iterator[Any]:
        if folder == closed:
            raise PermissionError(13, "Permission denied", folder)
        return listing(folder)

    monkeypatch.setattr(os, "scandir", scandir)
    error = refusal(lambda: DirectoryTree(str(root))).chain()[-1]
    assert error.message == f"cannot list {closed}: Permission denied"
    assert error.hint.endswith(f"ls -ld {closed}")


def test_a_registry_that_may_not_be_looked_at_is_not_called_absent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that cannot be entered hides its registry; that is another mistake than having none."""
    root = data(tmp_path / "data")

    def stat(path: Any, **options: Any) -> os.stat_result:
        del options
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr("aicr.catalog.directory_tree.os.stat", stat)
    monkeypatch.setattr("aicr.catalog.directory_tree.os.path.isdir", lambda _: True)
    tree = DirectoryTree(str(root))
    assert tree.exists("registry.yaml")


def test_an_entry_that_cannot_be_looked_at_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that may be listed and not entered gives names alone."""
    root = data(tmp_path / "data", {"overlays/o.yaml": overlay("o", {"service": "eks"})})

    class Closed:
        name = "o.yaml"

        def stat(self, *, follow_symlinks: bool) -> os.stat_result:
            del follow_symlinks
            raise PermissionError(13, "Permission denied")

    listing = os.scandir
    monkeypatch.setattr(
        os, "scandir", lambda folder: [Closed()] if "overlays" in folder else listing(folder)
    )
    error = refusal(lambda: DirectoryTree(str(root))).chain()[-1]
    assert error.message == f"cannot list {root}/overlays/o.yaml: Permission denied"


def test_bytes_that_are_no_text_have_a_place(tmp_path: Path) -> None:
    """A byte count alone helps nobody who has an editor."""
    root = data(tmp_path / "data")
    (root / "components/a").mkdir(parents=True)
    (root / "components/a/values.yaml").write_bytes("a: 1\nb: é".encode() + b"\xff\n")
    error = refusal(lambda: DirectoryTree(str(root)).values("components/a/values.yaml"))
    assert error.message == "components/a/values.yaml is not UTF-8 text (byte 10)"
    assert error.where == f"{root}/components/a/values.yaml:2:5"


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        ({"selector": 1}, "selector must be a map, found a number"),
        ({"selector": {"a": 1}}, "selector.a must be a string, not a number (1)"),
        ({"maxNodes": "8"}, "maxNodes must be a whole number from 0, found text"),
        ({"maxNodes": True}, "maxNodes must be a whole number from 0, found a boolean"),
        ({"maxNodes": -1}, "maxNodes must be a whole number from 0, found -1"),
        ({"excludeNodes": "n1"}, "excludeNodes must be a list, found text"),
    ],
    ids=["selector", "label", "text", "boolean", "negative", "names"],
)
def test_a_node_selection_of_another_shape_is_refused(
    selection: dict[str, Any], message: str, tmp_path: Path
) -> None:
    """It reaches the recipe and the checks as it is written (recipe spec 4.1)."""
    phases = {"deployment": {"nodeSelection": selection}}
    files = {"overlays/o.yaml": overlay("o", {"service": "eks"}, validation=phases)}
    error = refusal(lambda: catalog(tmp_path, files))
    assert (error.code, error.message) == ("INVALID_REQUEST", message)


def test_a_node_selection_reaches_the_recipe(tmp_path: Path) -> None:
    """Labels, the largest number and the names left out, untouched."""
    selection = {"selector": {"pool": "gpu"}, "maxNodes": 8, "excludeNodes": ["n1"]}
    phases = {"deployment": {"checks": ["x"], "nodeSelection": selection}}
    files = {
        "overlays/o.yaml": overlay(
            "o", {"service": "eks"}, validation=phases, componentRefs=[chart("a")]
        )
    }
    recipe = resolved(catalog(tmp_path, files), service="eks")
    assert recipe.document["validation"]["deployment"]["nodeSelection"] == selection


@pytest.mark.parametrize(
    ("nodes", "shown"),
    [(True, "true"), (1.5, "1.5"), ("many", "many"), (10**12, "1000000000000"), (-1, "-1")],
    ids=str,
)
def test_a_node_count_that_is_none_is_shown_as_it_was_written(
    nodes: Any, shown: str, tmp_path: Path
) -> None:
    """In the words of YAML, and with what to write instead (recipe spec 1.3)."""
    own = document("RecipeMetadata", V1BETA1, "o", spec={"criteria": {"nodes": nodes}})
    error = refusal(lambda: catalog(tmp_path, {"overlays/o.yaml": own}))
    assert error.message == f"invalid nodes count: {shown} (must be >= 0)"
    assert error.hint.startswith("write a whole number from 0 to 999999999")


@pytest.mark.parametrize(
    "files",
    [
        {"overlays/o.yaml": overlay("o", componentRefs={"a": 1})},
        {"overlays/o.yaml": overlay("o", componentRefs=["a"])},
        {"overlays/o.yaml": overlay("o", componentRefs=[{}])},
        {"overlays/o.yaml": overlay("o", componentRefs=[chart("a"), chart("a")])},
        {"overlays/o.yaml": overlay("o", componentRefs=[chart("a", cleanup="no")])},
        {"overlays/o.yaml": overlay("o", constraints=[{"value": "x"}])},
        {"overlays/o.yaml": document("RecipeMetadata", V1BETA1, spec={})},
        {"registry.yaml": registry(entry("a", validations=[{}]))},
        {"registry.yaml": registry({"name": "a"})},
        {"registry.yaml": document("ComponentRegistry", "x/v1", components=[])},
        {"registry.yaml": document("Registry", V1BETA1, components=[])},
        {"mixins/m.yaml": document("RecipeMetadata", V1BETA1, "m", spec={})},
    ],
    ids=[
        *["list", "map", "nameless-ref", "twice", "boolean", "nameless-constraint", "nameless"],
        *["function", "entry", "version", "kind", "mixin"],
    ],
)
def test_a_refusal_of_a_document_says_what_to_do_next(
    files: dict[str, str], tmp_path: Path
) -> None:
    """What, where and why are not enough at night: each names the next step."""
    error = refusal(lambda: catalog(tmp_path, files))
    assert error.code == "INVALID_REQUEST"
    assert error.where.startswith(str(tmp_path))
    assert error.hint
