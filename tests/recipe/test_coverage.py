"""The post-condition: what was asked for is what was applied, or the recipe is refused."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.recipe.trees import base, catalog, overlay, refusal, resolved

from aicr.catalog.catalog import Catalog
from aicr.recipe.coverage import completion_tuples, neighbours

Words = Mapping[str, str]


def loaded(folder: Path, *criteria: Words) -> Catalog:
    """A catalogue whose overlays have these criteria, in this order of names."""
    return catalog(
        folder,
        {f"overlays/o{n}.yaml": overlay(f"o{n}", words) for n, words in enumerate(criteria)},
    )


@pytest.mark.parametrize(
    ("overlays", "query", "message"),
    [
        # 2: nobody has it.
        ([{"service": "eks"}], {"service": "gke"},
         "no recipe provides service 'gke' for criteria(service=gke)"),
        ([], {"os": "ubuntu"}, "no recipe provides os 'ubuntu' for criteria(os=ubuntu)"),
        # 2: somebody has it, but never with what else is stated.
        ([{"service": "eks", "os": "ubuntu"}, {"service": "gke"}], {"service": "gke", "os": "ubuntu"},
         "no recipe provides os 'ubuntu' for criteria(service=gke, os=ubuntu)"),
        # 3: one more word of one dimension.
        ([{"service": "gke", "os": "cos"}], {"service": "gke"},
         "service 'gke' for criteria(service=gke) requires os (valid: cos)"),
        ([{"service": "gke", "os": "ubuntu"}, {"service": "gke", "os": "cos"},
          {"service": "gke", "os": "cos", "intent": "training"}], {"service": "gke"},
         "service 'gke' for criteria(service=gke) requires os (valid: cos, ubuntu)"),
        ([{"service": "gke", "intent": "training"}], {"service": "gke"},
         "service 'gke' for criteria(service=gke) requires intent (valid: training)"),
        # 4: several words, or words of several dimensions.
        ([{"service": "eks", "intent": "training", "platform": "kubeflow"}],
         {"platform": "kubeflow"},
         "platform 'kubeflow' requires additional criteria; supported combinations: "
         "(service=eks, intent=training)"),
        ([{"service": "gke", "os": "cos"}, {"service": "gke", "intent": "training"}],
         {"service": "gke"},
         "service 'gke' requires additional criteria; supported combinations: "
         "(intent=training), (os=cos)"),
        ([{"os": "cos", "service": "gke", "intent": "training"}, {"os": "cos", "service": "eks"}],
         {"os": "cos"},
         "os 'cos' requires additional criteria; supported combinations: "
         "(service=eks), (service=gke, intent=training)"),
        # Several uncovered dimensions, in their order.
        ([{"service": "gke", "os": "cos"}], {"platform": "nim", "service": "gke"},
         "service 'gke' for criteria(service=gke, platform=nim) requires os (valid: cos); "
         "no recipe provides platform 'nim' for criteria(service=gke, platform=nim)"),
    ],
)  # fmt: skip
def test_each_uncovered_dimension_has_its_clause(
    tmp_path: Path, overlays: list[Words], query: dict[str, str], message: str
) -> None:
    """Messages 2, 3 and 4 of recipe specification 4.9."""
    asked: dict[str, Any] = dict(query)
    error = refusal(lambda: resolved(loaded(tmp_path, *overlays), **asked))
    assert error.code == "INVALID_REQUEST"
    assert error.message == message


def test_details_are_for_programs(tmp_path: Path) -> None:
    """Each uncovered dimension with its value and completions."""
    found = loaded(tmp_path, {"service": "gke", "os": "cos"}, {"accelerator": "h100"})
    error = refusal(lambda: resolved(found, service="gke", accelerator="h100", platform="nim"))
    assert error.context == {
        "uncovered": [
            {"dimension": "service", "requestedValue": "gke", "validCompletions": [{"os": "cos"}],
             "constraintExcluded": False},
            {"dimension": "platform", "requestedValue": "nim", "validCompletions": [],
             "constraintExcluded": False},
        ]
    }  # fmt: skip


def test_an_ancestor_covers_and_a_mixin_does_not(tmp_path: Path) -> None:
    """Applied overlays count, however they were applied; the base and mixins never do."""
    found = catalog(
        tmp_path,
        {
            "overlays/parent.yaml": overlay("parent", {"service": "eks", "os": "cos"}),
            "overlays/child.yaml": overlay("child", {"intent": "training"}, base="parent"),
        },
    )
    recipe = resolved(found, service="eks", intent="training")
    assert recipe.document["metadata"]["appliedOverlays"] == ["base", "parent", "child"]


def test_criteria_of_the_base_cover_nothing(tmp_path: Path) -> None:
    """The base is merged under everything, so it says nothing about what was asked."""
    found = catalog(tmp_path, {"overlays/base.yaml": base(criteria={"service": "eks"})})
    error = refusal(lambda: resolved(found, service="eks"))
    assert error.message == "no recipe provides service 'eks' for criteria(service=eks)"


@pytest.mark.parametrize(
    ("overlays", "query", "dimension", "expected"),
    [
        ([{"service": "eks", "os": "a"}], {"service": "eks"}, "service", [{"os": "a"}]),
        # Duplicates once, supersets not at all, the empty completion not at all.
        ([{"service": "eks", "os": "a"}, {"service": "eks", "os": "a"},
          {"service": "eks", "os": "a", "intent": "b"}, {"service": "eks"}],
         {"service": "eks"}, "service", [{"os": "a"}]),
        # Not a superset: the shared word differs.
        ([{"service": "eks", "os": "a"}, {"service": "eks", "os": "b", "intent": "c"}],
         {"service": "eks"}, "service", [{"os": "a"}, {"intent": "c", "os": "b"}]),
        # Conflicts with another stated word.
        ([{"service": "eks", "os": "a", "intent": "x"}], {"service": "eks", "intent": "y"},
         "service", []),
        # By size, then by text in the order of dimensions.
        ([{"platform": "p", "service": "z"}, {"platform": "p", "accelerator": "b"},
          {"platform": "p", "accelerator": "a"},
          {"platform": "p", "intent": "i", "os": "o"}],
         {"platform": "p"}, "platform",
         [{"accelerator": "a"}, {"accelerator": "b"}, {"service": "z"},
          {"intent": "i", "os": "o"}]),
        ([{"service": "any", "accelerator": "h100", "os": ""}], {"accelerator": "h100"},
         "accelerator", []),
    ],
)  # fmt: skip
def test_completions_are_minimal_and_sorted(
    tmp_path: Path,
    overlays: list[Words],
    query: dict[str, str],
    dimension: str,
    expected: list[dict[str, str]],
) -> None:
    """What else would have to be stated, and no more than that."""
    assert completion_tuples(loaded(tmp_path, *overlays), query, dimension) == expected


def test_an_overlay_without_criteria_completes_nothing(tmp_path: Path) -> None:
    """It can never be selected."""
    found = catalog(tmp_path, {"overlays/p.yaml": overlay("p")})
    assert completion_tuples(found, {"service": "eks"}, "service") == []


@pytest.mark.covers("R11-20")
@pytest.mark.parametrize(
    ("overlays", "query", "expected"),
    [
        # One overlay carries everything: nothing more is asked.
        ([{"service": "eks", "intent": "t"}, {"service": "eks", "os": "ubuntu"}],
         {"service": "eks", "intent": "t"}, None),
        # The joint overlay needs an os.
        ([{"service": "eks"}, {"intent": "t"}, {"service": "eks", "intent": "t", "os": "ubuntu"}],
         {"service": "eks", "intent": "t"}, ["ubuntu"]),
        # Any overlay that an os would reach counts, also one that does not carry everything.
        ([{"service": "eks"}, {"intent": "t"}, {"service": "eks", "os": "rhel"}],
         {"service": "eks", "intent": "t"}, ["rhel"]),
        ([{"service": "eks"}, {"intent": "t"}, {"os": "ol"}, {"intent": "t", "os": "cos"}],
         {"service": "eks", "intent": "t"}, ["cos", "ol"]),
        # No os reaches anything for this query.
        ([{"service": "eks"}, {"intent": "t"}, {"service": "gke", "os": "cos"}],
         {"service": "eks", "intent": "t"}, None),
        # An os is stated: its presence is demanded, not a particular value.
        ([{"service": "eks"}, {"os": "cos"}, {"service": "eks", "os": "ubuntu"}],
         {"service": "eks", "os": "cos"}, None),
        # Only the node count is stated.
        ([{"service": "eks", "os": "cos"}], {}, None),
    ],
)  # fmt: skip
def test_an_os_is_demanded_exactly_when_it_would_reach_more(
    tmp_path: Path, overlays: list[Words], query: dict[str, str], expected: list[str] | None
) -> None:
    """Joint sufficiency (recipe specification 4.9 B)."""
    intents = {"t": "training"}
    words = [{k: intents.get(v, v) for k, v in criteria.items()} for criteria in (*overlays, query)]
    found = loaded(tmp_path, *words[:-1])
    asked: dict[str, Any] = {**words[-1], "nodes": 1}
    if expected is None:
        resolved(found, **asked)
        return
    error = refusal(lambda: resolved(found, **asked))
    assert error.code == "INVALID_REQUEST"
    assert error.message.endswith(
        f") has no recipe covering that combination; specify os (valid: {', '.join(expected)})"
    )
    assert error.context == {"strictDimensions": [{"dimension": "os", "validValues": expected}]}


def test_the_refusal_can_be_switched_off_for_comparison(tmp_path: Path) -> None:
    """Decision 50: coverage=False resolves what there is; nothing else changes."""
    found = loaded(tmp_path, {"service": "eks"})
    recipe = resolved(found, service="eks", os="rhel", options={"coverage": False})
    assert recipe.document["metadata"]["appliedOverlays"] == ["base", "o0"]
    assert recipe.document["criteria"]["os"] == "rhel"


@pytest.mark.covers("E3", "E4")
def test_the_hint_names_the_nearest_recipes(tmp_path: Path) -> None:
    """At most three, those that share the most words, as flags to type."""
    found = loaded(
        tmp_path,
        {"service": "eks", "intent": "training", "os": "ubuntu"},
        {"service": "eks", "intent": "inference", "os": "ubuntu"},
        {"service": "gke", "os": "cos"},
        {"os": "ubuntu"},
        {"os": "ubuntu", "service": "oke"},
    )
    error = refusal(lambda: resolved(found, service="eks", os="rhel"))
    assert error.hint == (
        "nearest that resolve: --service eks --intent inference --os ubuntu | "
        "--service eks --intent training --os ubuntu"
    )
    assert len(neighbours(found, {"os": "ubuntu"})) == 3
    assert neighbours(found, {"platform": "nim"}) == []


def test_nodes_never_count(tmp_path: Path) -> None:
    """Neither as something to cover nor as something that covers."""
    found = catalog(tmp_path, {"overlays/o.yaml": overlay("o", {"service": "eks", "nodes": 8})})
    for nodes in (0, 1, 8):
        recipe = resolved(found, service="eks", nodes=nodes)
        assert recipe.document["metadata"]["appliedOverlays"] == ["base", "o"]
