"""The rows of components: every requirement and every bundler case is in the list, once."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

HERE = Path(__file__).resolve().parent


@pytest.mark.parametrize(("prefix", "width", "highest"), [("C-", 3, 141), ("B10-", 0, 85)])
def test_no_row_of_the_range_is_left_out_or_listed_twice(
    prefix: str, width: int, highest: int
) -> None:
    """A requirement cannot be dropped from the list unseen (decision 81)."""
    listed: list[str] = []
    for path in [HERE / "rows.yaml", *sorted((HERE / "rows").glob("*.yaml"))]:
        listed += [
            row for row in yaml.safe_load(path.read_text())["rows"] if row.startswith(prefix)
        ]
    wanted = [f"{prefix}{number:0{width}d}" for number in range(1, highest + 1)]
    assert sorted(listed) == sorted(wanted)
