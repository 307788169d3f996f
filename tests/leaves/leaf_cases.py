"""The rows of the table of leaves as parameters of tests."""

from __future__ import annotations

import pytest
from tools.leaf_table import Leaf

from tools import leaf_table

ROWS = leaf_table.leaves()
BUNDLED = [row for row in ROWS if row.exit == 0]
#: Names of the fixtures that hold the outcomes.
WAYS = ("plain", "placed")


def each(rows: list[Leaf]) -> pytest.MarkDecorator:
    """Parameters *way* and *row*: each of the rows, asked for in both ways."""
    cases = [pytest.param(way, row, id=f"{way}-{row.name}") for way in WAYS for row in rows]
    return pytest.mark.parametrize(("way", "row"), cases)
