"""The table of outcomes on the real API server: what it reads, and that nothing is missing."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cluster import checks_table
from tests.cluster.checks_table import IMPOSSIBLE, OUTCOMES, claims, markdown, reaches, table

from aicr.checks import registry

CLUSTER = Path(checks_table.__file__).parent


def test_every_check_that_is_in_the_table_has_all_its_cells() -> None:
    """A test, or the section that says that there can be none; never both."""
    found = table(CLUSTER)
    for check, cells in found.items():
        if not any(cells.values()):
            continue
        for outcome in OUTCOMES:
            impossible = (check, outcome) in IMPOSSIBLE
            assert bool(cells[outcome]) != impossible, (check, outcome)


def test_impossible_cells_are_of_checks_that_exist() -> None:
    """And name a section."""
    for (check, outcome), section in IMPOSSIBLE.items():
        assert check in registry.names()
        assert outcome in OUTCOMES
        assert section.startswith(("spec ", "decision "))


def test_decorators_are_read_from_the_text_of_a_test() -> None:
    """By name or as text, several checks and several decorators."""
    text = """
MINE = "a"

@reaches(PASS, MINE, "b")
@reaches("fail", "a")
@other("c")
def test_one(): ...

def test_two(): ...
"""
    assert list(claims(text)) == [
        ("a", "pass", "test_one"),
        ("b", "pass", "test_one"),
        ("a", "fail", "test_one"),
    ]


def test_an_unknown_name_is_refused_where_it_is_written() -> None:
    """A typo would leave a cell empty."""
    with pytest.raises(AssertionError):
        reaches("pass", "no-such-check")
    with pytest.raises(AssertionError):
        reaches("passes", "operator-health")


def test_the_table_has_a_row_a_check() -> None:
    """With a dash for what no test reaches."""
    rows = markdown(table(CLUSTER), ["operator-health", "gpu-operator-health"]).splitlines()
    assert rows[0] == "| check | pass | fail | skip | could-not-tell |"
    assert rows[2].startswith("| operator-health | test_")
    assert "n/a (spec 6.2)" in rows[3]
