"""What explanations look like: JSON for programs, columns and colour for people."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.cli.program import EKS, aicr
from tests.explain.layers import QUERY, write

from aicr.catalog.catalog import Catalog
from aicr.cli.console import Console
from aicr.cli.explain_text import LIMIT, draw
from aicr.cli.main import main
from aicr.recipe.criteria import Criteria
from aicr.recipe.explain import explain
from aicr.recipe.resolve import resolve

PAGE = Path(__file__).resolve().parents[2] / "docs" / "explain.md"

KEYS = {
    "": {"about", "selector", "criteria", "overlays", "notes"},
    "components": {"about", "selector", "items"},
    "components.gpu-operator": {"about", "selector", "component", "items", "notes"},
    "components.gpu-operator.values": {"about", "selector", "component", "items"},
    "constraints": {"about", "selector", "items"},
    "validation": {"about", "selector", "items"},
    "criteria": {"about", "selector", "items"},
    "deploymentOrder": {"about", "selector", "order"},
    "deploymentOrder.nfd": {"about", "selector", "component", "order", "edges", "notes"},
    "deploymentOrder.gpu-operator.nfd": {
        *("about", "selector", "component", "other", "order", "edges", "notes")
    },
    "overlays": {"about", "selector", "overlays"},
    "metadata.excludedOverlays": {"about", "selector", "overlays", "notes"},
}
STEP = {"kind", "name", "where", "action", "inForce"}
STEP_MAY = STEP | {"value", "at", "namedBy"}


@pytest.mark.parametrize("selector", KEYS)
def test_the_json_form_has_the_documented_keys(selector: str) -> None:
    """Programs find the keys that the manual lists, and steps of one shape."""
    ran = aicr("explain", *EKS, selector, "--format", "json")
    found = json.loads(ran.out)
    assert set(found) == KEYS[selector]
    assert found["selector"] == selector
    for item in found.get("items", ()):
        assert set(item) == {"selector", "state", "steps"} | ({"value"} & set(item))
        assert ("value" in item) == (item["state"] != "deleted")
        for step in item["steps"]:
            assert set(step) >= STEP
            assert set(step) <= STEP_MAY
            assert re.fullmatch(r"recipes/.+\.yaml:\d+", step["where"])
    for row in found.get("overlays", ()):
        assert set(row) == {"overlay", "state", "because", "where"}


def test_every_word_of_the_json_form_is_in_the_manual(tmp_path: Path) -> None:
    """Kinds, actions and states that can come out are described."""
    page = PAGE.read_text(encoding="utf-8")
    write(tmp_path / "sky")
    words: set[str] = set()
    for selector in (
        "components.weather.values",
        "components.weather",
        "constraints",
        "validation",
    ):
        ran = aicr("explain", "--data", tmp_path / "sky", *QUERY, selector, "--format", "json")
        for item in json.loads(ran.out)["items"]:
            words.add(item["state"])
            for step in item["steps"]:
                words |= {step["kind"], step["action"]}
    assert len(words) > 10
    assert not [word for word in words if f"`{word}`" not in page]


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        """It is one."""
        return True


@pytest.mark.parametrize(
    ("variables", "coloured"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)],
)
def test_colour_is_for_terminals_only(
    variables: dict[str, str], coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A terminal gets colour unless its user declined it; a pipe never does; the words are the same."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    words = ["explain", *EKS, "constraints.K8s.server.version"]
    out = Terminal()
    assert main(words, Console(out, io.StringIO())) == 0
    assert ("\033[" in out.getvalue()) == coloured
    assert re.sub(r"\033\[\d+m", "", out.getvalue()) == aicr(*words).out


@pytest.mark.parametrize(
    "selector",
    ["", "constraints", "components", "components.gpu-operator", "gpu-operator:driver.enabled",
     "deploymentOrder.gpu-operator.cert-manager", "validation"],
)  # fmt: skip
def test_rows_that_are_wider_than_the_terminal_are_broken_between_cells(selector: str) -> None:
    """No line with a place in it runs over 80 columns, and the words and their order stay."""
    criteria = Criteria(service="aks", accelerator="h100", intent="training", os="ubuntu")
    found = explain(resolve(Catalog.builtin(), criteria), selector)
    wide, narrow = draw(found), draw(found, width=80)
    assert narrow.split() == wide.split()
    table = [line for line in narrow.splitlines() if re.search(r"^ .*\.yaml:\d+", line)]
    assert table
    assert max(map(len, table)) <= 80
    assert draw(found, width=500) == wide


@pytest.mark.parametrize(("columns", "broken"), [("80", True), ("200", False)])
def test_a_narrow_terminal_gets_broken_rows_and_a_pipe_never(
    columns: str, broken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The width is the terminal's own; what a program reads has a line for each layer."""
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", columns)
    words = ["explain", *EKS, "constraints.K8s.server.version"]
    out = Terminal()
    assert main(words, Console(out, io.StringIO())) == 0
    piped = aicr(*words).out
    assert (out.getvalue() != piped) == broken
    assert out.getvalue().split() == piped.split()


def test_a_value_cannot_write_over_the_terminal(tmp_path: Path) -> None:
    """Control characters of a values file are shown, not sent."""
    folder = write(tmp_path / "sky")
    values = folder / "components" / "weather" / "values.yaml"
    values.write_text('driver:\n  version: "a\\e[31m\\u202eb"\nlong: "' + "x" * 500 + '"\n')
    ran = aicr("explain", "--data", folder, *QUERY, "components.weather.values")
    assert ran.out.replace("\n", "").isprintable()
    assert "x" * 60 not in ran.out
    assert "…" in ran.out


def test_a_long_table_is_cut_with_a_word_about_it() -> None:
    """People are told how many rows are left out; JSON has them all."""
    step: dict[str, Any] = {
        "kind": "overlay",
        "name": "x",
        "where": "x.yaml:1",
        "action": "sets",
        "value": 1,
        "inForce": True,
    }
    items: list[Any] = [
        {"selector": f"constraints.c{n}", "state": "set", "value": n, "steps": [step]}
        for n in range(LIMIT + 5)
    ]
    text = draw({"about": "constraints", "selector": "constraints", "items": items})
    assert f"{LIMIT + 5} entries" in text
    assert "and 5 more: narrow the selector, or take --format json" in text
    assert len(text.splitlines()) == LIMIT + 3


def test_explaining_changes_nothing_and_repeats_itself() -> None:
    """The same recipe gives the same explanation, and is the same afterwards."""
    catalog = Catalog.builtin()
    criteria = Criteria(service="eks", accelerator="h100", intent="training", os="ubuntu")
    recipe = resolve(catalog, criteria)
    before = json.dumps(recipe.document)
    first = json.dumps(explain(recipe, "components.gpu-operator.values"))
    assert json.dumps(explain(recipe, "components.gpu-operator.values")) == first
    assert json.dumps(recipe.document) == before
    assert json.dumps(resolve(catalog, criteria).document) == before


def test_the_manual_shows_every_selector_of_the_help_text() -> None:
    """What --help offers is explained in the manual."""
    page = PAGE.read_text(encoding="utf-8")
    epilog = aicr("explain", "--help").out
    for part in (
        "components",
        "constraints",
        "criteria",
        "deploymentOrder",
        "overlays",
        "validation",
    ):
        assert part in epilog
        assert f"`{part}`" in page
