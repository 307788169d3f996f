"""The dependency graph: tiers, edges, disabled components, and its form as Mermaid text."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cli.program import EKS, aicr
from tests.graph.graph_recipes import recipe, ref

from aicr.catalog.dependencies import levels
from aicr.errors import AicrError
from aicr.recipe.graph import Graph, graph_of, mermaid

DIAMOND = recipe(
    ref("d", "b", "c"), ref("b", "a"), ref("c", "a"), ref("a"), service="eks", intent="training"
)


def shape(graph: Graph) -> list[list[str]]:
    """Names by tier, disabled ones in brackets."""
    return [[n.name if n.enabled else f"({n.name})" for n in tier] for tier in graph.tiers]


def edges(graph: Graph) -> list[str]:
    """The edges as text."""
    return [f"{before.name}>{after.name}" for before, after in graph.edges]


def test_columns_are_the_tiers_of_deployment() -> None:
    """A graph shows what deployment does: the same tiers, names sorted."""
    graph = graph_of(DIAMOND)
    assert shape(graph) == levels(DIAMOND["componentRefs"]) == [["a"], ["b", "c"], ["d"]]
    assert edges(graph) == ["a>b", "a>c", "b>d", "c>d"]
    assert graph.title == "Recipe for service eks, intent training"
    assert graph.summary() == "4 components in 3 tiers, an arrow leads to what waits"


def test_a_disabled_component_stands_where_it_would_and_edges_pass_through_it() -> None:
    """Edges are those that are declared; tiers of the others are those of deployment (F1)."""
    graph = graph_of(recipe(ref("a"), ref("off", "a", on=False), ref("b", "off"), ref("c", "b")))
    assert shape(graph) == [["a"], ["b", "(off)"], ["c"]]
    assert edges(graph) == ["a>off", "b>c", "off>b"]
    assert "1 disabled and dashed" in graph.summary()


def test_disabled_components_alone_have_tiers_as_well() -> None:
    """A chain of disabled ones is drawn as a chain."""
    graph = graph_of(recipe(ref("z", on=False), ref("y", "z", on=False), ref("x", "y", on=False)))
    assert shape(graph) == [["(z)"], ["(y)"], ["(x)"]]
    assert graph.summary().startswith("0 components in 0 tiers, 3 disabled")


def test_a_circle_is_refused() -> None:
    """What cannot be ordered cannot be drawn, enabled or not."""
    for on in (True, False):
        with pytest.raises(AicrError, match="circular"):
            graph_of(recipe(ref("a", "b", on=on), ref("b", "a", on=on)))


def test_a_recipe_without_components_is_an_empty_graph() -> None:
    """Nothing to deploy is no error of a picture."""
    graph = graph_of(recipe())
    assert (shape(graph), edges(graph)) == ([], [])
    assert graph.title == "Recipe for any cluster"
    assert mermaid(graph).startswith("flowchart LR\n")


def test_a_dependency_is_drawn_once_and_an_undeclared_one_not_at_all() -> None:
    """Repeated and dangling names do no harm."""
    graph = graph_of(recipe(ref("a"), ref("b", "a", "a", "ghost")))
    assert edges(graph) == ["a>b"]


def test_mermaid_text_has_a_subgraph_a_tier_and_an_arrow_an_edge() -> None:
    """The whole text, as GitHub gets it."""
    graph = graph_of(recipe(ref("a", version="v1"), ref("b-c", "a", on=False), ref("d", "b-c")))
    assert mermaid(graph) == (
        "flowchart LR\n"
        "  accTitle: Recipe for any cluster\n"
        "  accDescr: 2 components in 2 tiers, 1 disabled and dashed, an arrow leads to what waits\n"
        '  subgraph tier0["tier 0"]\n'
        '    c_a["a<br/>v1"]\n'
        "  end\n"
        '  subgraph tier1["tier 1"]\n'
        '    c_b_c["b-c<br/>1.0.0"]:::disabled\n'
        '    c_d["d<br/>1.0.0"]\n'
        "  end\n"
        "  c_a -.-> c_b_c\n"
        "  c_b_c -.-> c_d\n"
        "  classDef disabled stroke-dasharray: 5 4,opacity: 0.6\n"
    )


@pytest.mark.parametrize(
    ("fields", "detail"),
    [
        ({"version": "v26.7.0"}, "v26.7.0"),
        ({"version": "", "manifestFiles": ["m.yaml"]}, "manifests"),
        ({"type": "Kustomize", "version": "", "tag": "v2"}, "v2"),
        ({"type": "Kustomize", "version": ""}, "kustomize"),
        ({"version": ""}, ""),
    ],
)
def test_below_its_name_a_component_has_its_version_or_what_stands_for_one(
    fields: dict[str, Any], detail: str
) -> None:
    """Charts have a version, kustomizations a tag, the rest is manifests."""
    (tier,) = graph_of(recipe(ref("a", **fields))).tiers
    assert tier[0].detail == detail


@pytest.mark.parametrize(
    "text",
    ['"]; click x', "a<script>", "#quot;", "`code`", "a\nb", "%%{init}%%", "end", "\x1b[31m"],
)
def test_free_text_cannot_end_a_label(text: str) -> None:
    """What a catalogue says in a version stays a label: one line, no syntax."""
    found = mermaid(graph_of(recipe(ref("a", version=text), service=text)))
    (line,) = [line for line in found.splitlines() if line.startswith("    c_a[")]
    inner = re.fullmatch(r'    c_a\["a<br/>(.*)"\]', line)
    assert inner is not None
    assert not set(inner[1]) & set('"<>`%{}[]()|\\')
    decoded = re.sub(r"#(\d+);", lambda match: chr(int(match[1])), inner[1])
    assert decoded == text
    assert len(found.splitlines()) == 7


def test_names_that_differ_in_a_sign_have_ids_of_their_own() -> None:
    """a-b and a.b are two components; an identifier has neither sign."""
    found = mermaid(graph_of(recipe(ref("a-b"), ref("a.b", "a-b"), ref("end", "a.b"))))
    assert '    c_a_b["a-b<br/>1.0.0"]' in found
    assert '    c_a_b_2["a.b<br/>1.0.0"]' in found
    assert "  c_a_b --> c_a_b_2\n" in found
    assert "  c_a_b_2 --> c_end\n" in found


def test_the_command_prints_the_graph_instead_of_the_recipe(tmp_path: Path) -> None:
    """Every component and declared edge of the recipe, to stdout or a file."""
    document = yaml.safe_load(aicr("recipe", *EKS).out)
    found = aicr("recipe", *EKS, "--graph", "mermaid")
    assert found.status == 0, found.err
    assert found.out == mermaid(graph_of(document))
    arrows = re.findall(r"^  c_\S+ -(?:-|\.-)> c_\S+$", found.out, re.MULTILINE)
    assert len(arrows) == sum(len(r.get("dependencyRefs", ())) for r in document["componentRefs"])
    target = tmp_path / "graph.mmd"
    assert aicr("recipe", *EKS, "--graph", "mermaid", "-o", target).out == ""
    assert target.read_text() == found.out


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--graph", "svgg"), ('unknown form of graph: "svgg"', "did you mean svg?")),
        (("--graph", "png"), ("valid forms are: mermaid, svg",)),
        (("--graph", ""), ('unknown form of graph: ""',)),
        (("--graph", "svg", "--graph", "svg"), ("can only be specified once",)),
        (("--graph", "svg", "--format", "yaml"), ("--graph and --format exclude each other",)),
        (("--graph",), ("flag --graph needs a value",)),
    ],
)
def test_wrong_forms_are_refused_before_anything_is_resolved(
    flags: tuple[str, ...], words: tuple[str, ...], tmp_path: Path
) -> None:
    """Usage errors leave no file."""
    target = tmp_path / "graph"
    aicr("recipe", *EKS, "-o", target, *flags).refused(2, *words)
    assert not target.exists()
