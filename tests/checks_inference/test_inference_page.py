"""docs/inference-perf.md says what the check does; shipped recipes keep to it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from aicr.checks.performance.inference_knobs import KNOBS, PREFIX, ROUTER_MODES
from aicr.checks.performance.inference_verdict import threshold

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "inference-perf.md").read_text(encoding="utf-8")


def rows() -> dict[tuple[str, str], list[str]]:
    """The table of settings: (variable, constraint) → default and meaning."""
    table = PAGE.partition("## Settings")[2].partition("## ")[0]
    found = {}
    for line in table.splitlines():
        cells = [cell.strip().strip("`") for cell in line.strip("|").split("|")]
        if len(cells) == 4 and re.fullmatch(r"[A-Z_]+|-", cells[0]):
            name = "" if cells[0] == "-" else PREFIX + cells[0]
            found[name, "" if cells[1] == "-" else cells[1]] = cells[2:]
    return found


def test_the_table_of_settings_is_the_table_of_knobs() -> None:
    """Variables, constraints, defaults."""
    table = rows()
    assert set(table) == {(knob.variable, knob.constraint) for knob in KNOBS}
    for knob in KNOBS:
        default, meaning = table[knob.variable, knob.constraint]
        expected = knob.default or ("cluster default" if knob.key == "storage_class" else "not set")
        assert default == expected, knob.key
        assert meaning.startswith(knob.meaning.split(";")[0]), knob.key
    assert all(mode in PAGE for mode in ROUTER_MODES)


@pytest.mark.covers("V-338", "V-339")
@pytest.mark.parametrize(
    "words",
    ["nvidia-dra-driver-gpu-kubelet-plugin", "empty device edits", "run it again", "power draw"],
)
def test_the_page_says_how_to_look_into_an_odd_run(words: str) -> None:
    """A restarted driver, stalls that do not come back, and what utilisation means."""
    assert words in PAGE.partition("## When it fails")[2]


def shipped() -> dict[str, str]:
    """Overlay → its threshold of the first token."""
    found = {}
    for path in sorted((ROOT / "recipes" / "overlays").rglob("*.yaml")):
        spec = yaml.safe_load(path.read_text(encoding="utf-8")).get("spec") or {}
        phase = (spec.get("validation") or {}).get("performance") or {}
        for each in phase.get("constraints") or []:
            if each["name"] == "inference-ttft-p99":
                found[path.stem] = each["value"]
    return found


@pytest.mark.covers("V-329")
def test_shipped_ceilings_of_the_first_token_let_swing_pass_and_catch_stalls() -> None:
    """At least a second, and below the shortest stall on record even with the tolerance."""
    found = shipped()
    assert found
    for name, expression in found.items():
        value = threshold("inference-ttft-p99", expression).value
        assert value >= 1000, name
        assert value * 11 / 10 < 9000, name
