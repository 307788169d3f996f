"""The way on from criteria that no recipe covers: what is recommended resolves, and is the nearest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.recipe.trees import catalog, overlay, refusal, resolved

from aicr.catalog.catalog import Catalog
from aicr.catalog.criteria_values import FIELDS
from aicr.recipe.coverage import neighbours
from aicr.recipe.criteria import Criteria
from aicr.recipe.resolve import resolve

#: A service with an os of its own, one with intents, and one word that stands alone.
WORLD = {
    "gke-cos": ("base", {"service": "gke", "os": "cos"}),
    "gke-training": (
        "gke-cos",
        {"service": "gke", "os": "cos", "intent": "training", "platform": "kubeflow"},
    ),
    "eks": ("base", {"service": "eks"}),
    "eks-training": ("eks", {"service": "eks", "intent": "training"}),
    "eks-ubuntu": (
        "eks-training",
        {"service": "eks", "intent": "training", "os": "ubuntu", "accelerator": "h100"},
    ),
    "h100-eks-ubuntu": ("eks", {"service": "eks", "accelerator": "h100", "os": "ubuntu"}),
    "h100-any": ("base", {"accelerator": "h100"}),
}


def world(folder: Path, **more: tuple[str, dict[str, str]]) -> Catalog:
    """The catalogue of these overlays and some more, each a parent and criteria."""
    return catalog(
        folder,
        {
            f"overlays/{name}.yaml": overlay(name, criteria, base=parent)
            for name, (parent, criteria) in {**WORLD, **more}.items()
        },
    )


@pytest.mark.covers("E3", "E4")
@pytest.mark.parametrize(
    ("query", "first"),
    [
        # The least that is missing, and not a leaf with words that nobody asked for.
        ({"service": "gke"}, {"service": "gke", "os": "cos"}),
        # What the refusal asks for is what is recommended.
        (
            {"service": "eks", "accelerator": "h100"},
            {"service": "eks", "accelerator": "h100", "os": "ubuntu"},
        ),
        # The word that no recipe has is left out, the others stay.
        (
            {"service": "gke", "os": "cos", "accelerator": "l40"},
            {"service": "gke", "os": "cos"},
        ),
        # Nobody changes their service for a recipe.
        (
            {"service": "eks", "intent": "training", "platform": "kubeflow"},
            {"service": "eks", "intent": "training"},
        ),
    ],
    ids=["one-missing", "strict-os", "one-too-many", "keeps-service"],
)
def test_the_first_that_is_offered_is_the_least_change(
    query: dict[str, Any], first: dict[str, str], tmp_path: Path
) -> None:
    """Fewest changed words, then fewest added; the same service before any other."""
    error = refusal(lambda: resolve(world(tmp_path), Criteria(**query)))
    words = " ".join(f"--{field} {first[field]}" for field in FIELDS if field in first)
    assert error.hint.startswith("nearest that resolve: ")
    assert error.hint.removeprefix("nearest that resolve: ").split(" | ")[0] == words


def test_what_is_offered_resolves(tmp_path: Path) -> None:
    """Also beside an overlay whose own chain is broken: that one is not recommended."""
    found = world(tmp_path, broken=("nowhere", {"service": "eks", "accelerator": "l40"}))
    queries: list[dict[str, Any]] = [
        {"os": "ubuntu"},
        {"service": "eks", "os": "rhel"},
        {"accelerator": "l40"},
    ]
    for query in queries:
        for words in neighbours(found, query):
            assert words != {"service": "eks", "accelerator": "l40"}
            stated: dict[str, Any] = dict(words)
            resolve(found, Criteria(**stated))


def test_with_nothing_near_the_words_that_have_recipes_are_named(tmp_path: Path) -> None:
    """A service without a recipe of any kind is answered with the services that have one."""
    error = refusal(lambda: resolved(world(tmp_path), service="metal3"))
    assert error.message == "no recipe provides service 'metal3' for criteria(service=metal3)"
    assert error.hint == "recipes exist for service eks, gke"
