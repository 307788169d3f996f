"""Which overlays a query selects: chains, maximal leaves, and their order."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.recipe.trees import (
    catalog,
    chart,
    data,
    innermost,
    overlay,
    refs_of,
    refusal,
    refused,
    registry,
    resolved,
)
from tests.recipe.world import WORLD

from aicr.catalog.catalog import Catalog
from aicr.recipe.match import candidates, chain, maximal_leaves
from aicr.recipe.resolve import ONLY_BASE


def loaded(folder: Path, *texts: str) -> Catalog:
    """A catalogue of overlays, in files whose names say nothing."""
    return catalog(folder, {f"overlays/{n:02}.yaml": text for n, text in enumerate(texts)})


def test_a_chain_is_root_first_without_base(tmp_path: Path) -> None:
    """Empty, absent and "base" all mean the root."""
    found = loaded(
        tmp_path,
        overlay("a", base=""),
        overlay("b", base="base"),
        overlay("c"),
        overlay("d", base="a"),
        overlay("e", base="d"),
    )
    assert chain(found, "e") == ("a", "d", "e")
    assert [chain(found, name) for name in "abc"] == [("a",), ("b",), ("c",)]


@pytest.mark.covers("R11-31")
def test_a_missing_parent_is_an_error_of_the_query_that_needs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tree loads, other queries work, and the one that matches says which parent is missing."""
    lower = catalog(tmp_path / "lower", WORLD)
    monkeypatch.setattr(Catalog, "builtin", classmethod(lambda cls: lower))
    folder = data(
        tmp_path / "data",
        {"overlays/mine.yaml": overlay("mine", {"service": "eks", "os": "rhel"}, base="zzz")},
    )
    found = lower.overlay(str(folder))
    resolved(found, service="eks")
    error = refusal(lambda: resolved(found, service="eks", os="rhel"))
    assert error.code == "INVALID_REQUEST"
    assert error.message == "failed to resolve inheritance chain"
    assert innermost(error).code == "NOT_FOUND"
    assert innermost(error).message == 'recipe "zzz" not found (referenced in inheritance chain)'
    assert innermost(error).where == str(folder / "overlays/mine.yaml")
    ran = refused("recipe", "--service", "eks", "--os", "rhel", "--data", str(folder))
    assert ran.status == 2
    assert 'recipe "zzz" not found (referenced in inheritance chain)' in ran.err


@pytest.mark.covers("R11-31")
def test_looking_for_an_os_to_ask_for_does_not_trip_over_a_broken_chain(tmp_path: Path) -> None:
    """eks and h100 reach the broken overlay once an os is named: that is said, not its error."""
    found = loaded(
        tmp_path,
        overlay("eks", {"service": "eks"}),
        overlay("h100", {"accelerator": "h100"}),
        overlay("mine", {"service": "eks", "accelerator": "h100", "os": "rhel"}, base="zzz"),
    )
    error = refusal(lambda: resolved(found, service="eks", accelerator="h100"))
    assert error.message.endswith("specify os (valid: rhel)")
    error = refusal(lambda: resolved(found, service="eks", accelerator="h100", os="rhel"))
    assert innermost(error).message == 'recipe "zzz" not found (referenced in inheritance chain)'


@pytest.mark.covers("R11-32")
@pytest.mark.parametrize(
    ("parents", "at"),
    [
        ({"mine": "mine"}, "mine"),
        ({"mine": "b", "b": "mine"}, "mine"),
        ({"mine": "b", "b": "c", "c": "b"}, "b"),
    ],
)
def test_an_overlay_that_inherits_from_itself_is_refused(
    tmp_path: Path, parents: dict[str, str], at: str
) -> None:
    """The overlay where the circle closes is named, and the walk is shown."""
    texts = [
        overlay(name, {"service": "eks"} if name == "mine" else None, base=parent)
        for name, parent in parents.items()
    ]
    found = loaded(tmp_path, *texts)
    error = refusal(lambda: resolved(found, service="eks"))
    assert error.message == "failed to resolve inheritance chain"
    assert innermost(error).code == "INVALID_REQUEST"
    assert innermost(error).message == (
        f'circular inheritance detected: recipe "{at}" references itself in inheritance chain'
    )
    assert innermost(error).hint.startswith("the chain is mine -> ")


def test_an_overlay_without_criteria_is_only_a_parent(tmp_path: Path) -> None:
    """It is never selected, but merged where somebody inherits from it."""
    found = loaded(
        tmp_path,
        overlay("parent", componentRefs=[chart("p")]),
        overlay("child", {"service": "eks"}, base="parent"),
        overlay("null-criteria", None),
    )
    assert candidates(found, {"service": "eks"}) == ["child"]
    assert list(refs_of(resolved(found, service="eks"))) == ["p"]


def test_empty_criteria_match_everything(tmp_path: Path) -> None:
    """`criteria: {}` is present, and states nothing."""
    found = loaded(tmp_path, overlay("all", {}), overlay("eks", {"service": "eks"}))
    assert candidates(found, {}) == ["all"]
    assert candidates(found, {"service": "eks"}) == ["all", "eks"]


def test_criteria_are_not_inherited(tmp_path: Path) -> None:
    """A child that forgets the service of its parent applies to every service."""
    found = loaded(
        tmp_path,
        overlay("eks", {"service": "eks"}),
        overlay("child", {"intent": "training"}, base="eks"),
    )
    assert maximal_leaves(found, {"intent": "training"}) == ("child",)
    assert chain(found, "child") == ("eks", "child")


def test_an_ancestor_of_another_candidate_is_no_leaf(tmp_path: Path) -> None:
    """Also when generations between them do not match the query."""
    found = loaded(
        tmp_path,
        overlay("a", {"service": "eks"}),
        overlay("b", {"service": "gke"}, base="a"),
        overlay("c", {"service": "eks", "intent": "training"}, base="b"),
        overlay("d", {"service": "eks"}),
    )
    query = {"service": "eks", "intent": "training"}
    assert candidates(found, query) == ["a", "d", "c"]
    assert maximal_leaves(found, query) == ("d", "c")


@pytest.mark.covers("E1")
def test_leaves_go_from_vague_to_specific_then_by_name(tmp_path: Path) -> None:
    """So the most specific overlay has the last word, and ties are alphabetical."""
    words = {"service": "eks", "accelerator": "h100"}
    found = loaded(
        tmp_path,
        overlay("o3", {**words, "os": "any"}),
        overlay("o1", words),
        overlay("o2", {**words, "os": ""}),
        overlay("vague", {"service": "eks"}),
        overlay("z-any", {}),
    )
    assert maximal_leaves(found, words) == ("z-any", "vague", "o1", "o2", "o3")


@pytest.mark.covers("E1")
def test_the_last_leaf_wins(tmp_path: Path) -> None:
    """The tie-break is visible in the result: o2 has the last word over o1."""
    words = {"service": "eks", "accelerator": "h100"}
    found = loaded(
        tmp_path,
        overlay("o2", {**words, "os": "any"}, componentRefs=[chart("x", version="2")]),
        overlay("o1", words, componentRefs=[chart("x", version="1")]),
    )
    assert refs_of(resolved(found, service="eks", accelerator="h100"))["x"]["version"] == "2"


def test_a_shared_ancestor_is_merged_once(tmp_path: Path) -> None:
    """Its values do not come back over what another leaf set."""
    found = loaded(
        tmp_path,
        overlay("root", componentRefs=[chart("x", version="1")]),
        overlay("a", {"service": "eks"}, base="root", componentRefs=[chart("x", version="2")]),
        overlay("b", {"service": "eks"}, base="root"),
    )
    recipe = resolved(found, service="eks")
    assert recipe.document["metadata"]["appliedOverlays"] == ["base", "root", "a", "b"]
    assert refs_of(recipe)["x"]["version"] == "2"


def test_only_base_is_said_aloud(tmp_path: Path) -> None:
    """A recipe of the base alone is no error without criteria to cover, but nobody wants it."""
    recipe = resolved(loaded(tmp_path), nodes=5)
    assert recipe.document["metadata"]["appliedOverlays"] == ["base"]
    assert recipe.warnings == [ONLY_BASE]


def test_an_external_overlay_joins_the_leaves(tmp_path: Path) -> None:
    """The worked example of recipe specification 12.3, as far as it resolves here."""
    lower = loaded(
        tmp_path / "lower",
        overlay("monitoring-hpa", {"intent": "any"}),
        overlay("l40-any", {"accelerator": "l40"}),
        overlay("eks", {"service": "eks"}),
    )
    folder = data(
        tmp_path / "data",
        {
            "registry.yaml": registry(),
            "overlays/mine.yaml": overlay(
                "mine", {"service": "eks", "accelerator": "l40"}, base="eks"
            ),
        },
    )
    recipe = resolved(lower.overlay(str(folder)), service="eks", accelerator="l40")
    assert recipe.document["metadata"]["appliedOverlays"] == [
        "base",
        "monitoring-hpa",
        "l40-any",
        "eks",
        "mine",
    ]
