"""Which numbered row of the specifications is covered by which test (decision 81).

The list of rows is data (rows.yaml, and a topic each in rows/); the tests say with
``@pytest.mark.covers("R11-42")`` what they cover. The markers are read from the source text, so a test
that is skipped here still counts and no test has to be imported.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

HERE = Path(__file__).resolve().parent
TESTS = HERE.parent
STATE = re.compile(r"test|decided: decision \d+.*|later: .+")


def rows() -> dict[str, str]:
    """Row id → what is to be said about it."""
    found: dict[str, str] = {}
    for path in [HERE / "rows.yaml", *sorted((HERE / "rows").glob("*.yaml"))]:
        loaded: dict[str, str] = yaml.safe_load(path.read_text())["rows"]
        twice = found.keys() & loaded.keys()
        assert not twice, f"{path.name} lists rows again: {', '.join(sorted(twice))}"
        found.update(loaded)
    return found


def optional_ids() -> set[str]:
    """Ids that a test may name although this milestone does not owe them."""
    ranges: dict[str, int] = yaml.safe_load((HERE / "rows.yaml").read_text())["optional"]
    return {
        f"{prefix}{number:03d}" if prefix in ("C-", "V-", "P-") else f"{prefix}{number}"
        for prefix, highest in ranges.items()
        for number in range(1, highest + 1)
    }


def claims_of(source: str, name: str) -> Iterator[tuple[str, str]]:
    """(row id, place) of every ``covers`` marker in one test file."""
    for node in ast.walk(ast.parse(source)):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        if node.func.attr != "covers":
            continue
        for argument in node.args:
            place = f"{name}:{argument.lineno}"
            if not (isinstance(argument, ast.Constant) and isinstance(argument.value, str)):
                raise AssertionError(f"{place}: covers() takes ids written out as strings")
            yield argument.value, place


@pytest.fixture(scope="module")
def claims() -> dict[str, list[str]]:
    """Row id → the places that claim it."""
    found: dict[str, list[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        name = path.relative_to(TESTS).as_posix()
        for row, place in claims_of(path.read_text(encoding="utf-8"), name):
            found.setdefault(row, []).append(place)
    return found


def test_every_row_says_test_or_names_its_reason() -> None:
    """A row is tested, decided otherwise by a numbered decision, or put off for a reason."""
    odd = {row: state for row, state in rows().items() if not STATE.fullmatch(state)}
    assert odd == {}


def test_every_row_marked_test_is_covered(claims: dict[str, list[str]]) -> None:
    """A row without a test, a decision or a reason is a hole."""
    missing = [row for row, state in rows().items() if state == "test" and row not in claims]
    assert not missing, f"no test covers {', '.join(missing)}"


def test_no_row_put_off_is_covered_already(claims: dict[str, list[str]]) -> None:
    """A row that has its test is no longer `later`, so the list cannot go stale."""
    stale = {
        row: claims[row]
        for row, state in rows().items()
        if state.startswith("later") and row in claims
    }
    assert stale == {}


def test_no_test_claims_a_row_that_does_not_exist(claims: dict[str, list[str]]) -> None:
    """A mistyped id would cover nothing and nobody would notice."""
    known = rows().keys() | optional_ids()
    assert {row: places for row, places in claims.items() if row not in known} == {}


def test_the_list_has_every_row_of_its_ranges() -> None:
    """Recipe rows 1 to 80 without a gap: a row cannot be dropped from the list unseen."""
    assert [f"R11-{number}" for number in range(1, 81)] == [
        row for row in rows() if row.startswith("R11-")
    ]


def test_the_marker_reader_finds_decorators_module_marks_and_parameters() -> None:
    """All three ways to put a marker on a test count, and an id that is computed is refused."""
    source = (
        'pytestmark = pytest.mark.covers("A1")\n'
        '@pytest.mark.covers("B1", "B2")\n'
        "@pytest.mark.parametrize('x', [pytest.param(1, marks=pytest.mark.covers(\"C1\"))])\n"
        "def test_x(x): ...\n"
    )
    assert [row for row, _ in claims_of(source, "f.py")] == ["A1", "B1", "B2", "C1"]
    with pytest.raises(AssertionError, match=r"f\.py:1: covers\(\) takes ids written out"):
        list(claims_of("@pytest.mark.covers(NAME)\ndef test_x(): ...\n", "f.py"))
