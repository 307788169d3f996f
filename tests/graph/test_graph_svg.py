"""The picture of a graph: well-formed, self-contained, readable, and the same everywhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.cli.program import ROOT, aicr
from tests.graph.graph_recipes import recipe, ref
from tests.leaves.leaf_cases import BUNDLED

from aicr.catalog.catalog import Catalog
from aicr.recipe.criteria import Criteria
from aicr.recipe.graph import Graph, graph_of
from aicr.recipe.graph_svg import svg, text_width
from aicr.recipe.resolve import resolve

NS = "{http://www.w3.org/2000/svg}"
Box = tuple[int, int, int, int]


def parsed(graph: Graph) -> ET.Element:
    """The picture as a tree."""
    return ET.fromstring(svg(graph))


def boxes(root: ET.Element) -> dict[str, Box]:
    """Name -> left, top, right, bottom."""
    found: dict[str, Box] = {}
    for group in root.iter(f"{NS}g"):
        rect = group.find(f"{NS}rect")
        name = group.find(f"{NS}text")
        assert rect is not None
        assert name is not None
        x, y, w, h = (int(rect.attrib[key]) for key in ("x", "y", "width", "height"))
        found[name.text or ""] = (x, y, x + w, y + h)
    return found


def lines(root: ET.Element) -> list[str]:
    """The path data of every edge."""
    return [
        path.attrib["d"]
        for path in root.iter(f"{NS}path")
        if "line" in path.attrib.get("class", "")
    ]


def slurm() -> Graph:
    """A recipe with long edges and disabled components."""
    found = Criteria(
        service="gke", accelerator="h100", intent="training", os="cos", platform="slurm"
    )
    return graph_of(resolve(Catalog.builtin(), found).document)


GRAPHS = {
    "empty": graph_of(recipe()),
    "one": graph_of(recipe(ref("a"))),
    "disabled in one tier": graph_of(recipe(ref("off", on=False), ref("a", "off"), ref("b", "a"))),
    "long edges": graph_of(
        recipe(
            *(ref(f"base-{n}") for n in range(4)),
            *(ref(f"mid-{n}", "base-0") for n in range(6)),
            ref("top", "mid-0"),
            ref("last", "top", *(f"base-{n}" for n in range(4))),
        )
    ),
    "slurm": slurm(),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_the_picture_stands_alone(name: str) -> None:
    """XML of one namespace, with a title and a description, and nothing loaded from elsewhere."""
    text = svg(GRAPHS[name])
    root = ET.fromstring(text)
    assert root.tag == f"{NS}svg"
    assert root.attrib["role"] == "img"
    labels = root.attrib["aria-labelledby"].split()
    found = {e.attrib["id"]: e.text for e in root if "id" in e.attrib}
    title, description = [found[label] for label in labels]
    assert title == GRAPHS[name].title
    assert description
    assert re.findall(r"https?://[^\"\s]+", text) == ["http://www.w3.org/2000/svg"]
    for foreign in ("<script", "href", "url(h", "@import", "<image", "<foreignObject"):
        assert foreign not in text
    assert text.endswith("</svg>\n")


@pytest.mark.parametrize("name", GRAPHS)
def test_every_component_has_a_box_that_its_text_fits_in(name: str) -> None:
    """Boxes lie on the page, apart from each other, tiers from left to right, names downwards."""
    check_boxes(GRAPHS[name])


def check_boxes(graph: Graph) -> None:
    """The rule about boxes."""
    root = parsed(graph)
    found = boxes(root)
    assert list(found) == [node.name for node in graph.nodes()]
    width, height = int(root.attrib["width"]), int(root.attrib["height"])
    for node in graph.nodes():
        left, top, right, bottom = found[node.name]
        assert 0 < left < right < width
        assert 0 < top < bottom < height
        assert text_width(node.name, 13) + 20 <= right - left
        assert text_width(node.detail, 11) + 20 <= right - left
    for tier in graph.tiers:
        assert len({found[node.name][0] for node in tier}) == 1
        for above, below in pairwise(tier):
            assert found[above.name][3] + 12 <= found[below.name][1]
    for before, after in pairwise(graph.tiers):
        assert found[before[0].name][2] + 40 <= found[after[0].name][0]


@pytest.mark.parametrize("name", GRAPHS)
def test_no_line_crosses_a_box(name: str) -> None:
    """Long edges run through the gaps; curves stay between the columns."""
    check_lines(GRAPHS[name])


def check_lines(graph: Graph) -> None:
    """The rule about lines."""
    root = parsed(graph)
    found = boxes(root)
    columns = sorted({(left, right) for left, _, right, _ in found.values()})
    for data in lines(root):
        for x, y, to in re.findall(r"M(-?\d+) (-?\d+)H(-?\d+)", data):
            inside = [
                other
                for other, (left, top, right, bottom) in found.items()
                if left < int(to) and int(x) < right and top - 2 < int(y) < bottom + 2
            ]
            assert inside == [], data
        for numbers in re.findall(
            r"M(-?\d+) -?\d+C(-?\d+) -?\d+ (-?\d+) -?\d+ (-?\d+) -?\d+", data
        ):
            low, high = min(map(int, numbers)), max(map(int, numbers))
            assert low + 8 >= 0
            assert not any(low < right and left < high for left, right in columns)


@pytest.mark.parametrize("name", GRAPHS)
def test_every_edge_ends_with_a_tip_at_what_waits(name: str) -> None:
    """One arrow an edge, into the left side of the box, with words for who points at it."""
    graph = GRAPHS[name]
    root = parsed(graph)
    found = boxes(root)
    arrows = [path for path in root.iter(f"{NS}path") if "marker-end" in path.attrib]
    said = sorted((path.find(f"{NS}title").text or "") for path in arrows)  # type: ignore[union-attr]
    assert said == sorted(f"{after.name} waits for {before.name}" for before, after in graph.edges)
    ends = {tuple(map(int, re.findall(r"-?\d+", path.attrib["d"])[-2:])): path for path in arrows}
    for _, after in graph.edges:
        left, top, _, bottom = found[after.name]
        assert (left, (top + bottom) // 2) in ends


def test_disabled_components_and_their_edges_are_dashed() -> None:
    """What is not deployed looks different, without colour."""
    graph = GRAPHS["slurm"]
    root = parsed(graph)
    groups = [g.attrib.get("class", "") for g in root.iter(f"{NS}g")]
    assert [kind == "off" for kind in groups] == [not node.enabled for node in graph.nodes()]
    dashed = [
        path.find(f"{NS}title").text  # type: ignore[union-attr]
        for path in root.iter(f"{NS}path")
        if path.attrib.get("class") == "line off" and "marker-end" in path.attrib
    ]
    off = {node.name for node in graph.nodes() if not node.enabled}
    assert len(dashed) == sum(bool({b.name, a.name} & off) for b, a in graph.edges)
    style = root.find(f"{NS}style")
    assert style is not None
    assert "stroke-dasharray" in (style.text or "")
    assert "prefers-color-scheme: dark" in (style.text or "")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<script>alert(1)</script>", None),
        ('a"b&c', None),
        ("v1\x00\x1b[31m", "v1\ufffd\ufffd[31m"),
        ("]]>", None),
        ("версия 版本", None),
    ],
)
def test_free_text_stays_text(text: str, shown: str | None) -> None:
    """Whatever a catalogue says in a version, the picture is well-formed and shows it."""
    root = parsed(graph_of(recipe(ref("a", version=text), service=text)))
    assert not list(root.iter(f"{NS}script"))
    details = [e.text for e in root.iter(f"{NS}text") if e.attrib.get("class") == "detail"]
    assert details == [shown or text]


def test_every_recipe_of_the_catalogue_can_be_drawn() -> None:
    """No leaf whose picture has lines through boxes."""
    catalog = Catalog.builtin()
    for leaf in BUNDLED[::4]:
        words = dict(zip(leaf.recipe[::2], leaf.recipe[1::2], strict=False))
        if not set(words) <= {"--service", "--accelerator", "--intent", "--os", "--platform"}:
            continue
        criteria: Any = {flag[2:]: word for flag, word in words.items()}
        graph = graph_of(resolve(catalog, Criteria(**criteria)).document)
        check_boxes(graph)
        check_lines(graph)


def test_the_bytes_do_not_depend_on_the_process(tmp_path: Path) -> None:
    """Same inputs, same bytes: whatever the hash seed and the locale (decision 3)."""
    words = ["recipe", "--service", "gke", "--os", "cos", "--graph", "svg"]
    here = aicr(*words).out
    for seed, locale in (("1", "C"), ("2", "C.UTF-8")):
        environment = {
            **os.environ,
            "PYTHONHASHSEED": seed,
            "LC_ALL": locale,
            "PYTHONPATH": str(ROOT / "src"),
        }
        done = subprocess.run(
            [sys.executable, "-m", "aicr", *words],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            check=True,
        )
        assert done.stdout.decode() == here
