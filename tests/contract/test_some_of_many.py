"""Messages name a few of many things, and say how many there are besides."""

from __future__ import annotations

import pytest

from aicr.errors import some_of


@pytest.mark.parametrize(
    ("count", "most", "said"),
    [
        (0, 2, ""),
        (1, 2, "a"),
        (2, 2, "a, b"),
        (3, 2, "a, b and 1 more"),
        (4, 1, "a and 3 more"),
        (2, 0, " and 2 more"),
    ],
)
def test_a_message_names_the_first_and_counts_the_rest(count: int, most: int, said: str) -> None:
    """Nothing is counted that is named."""
    assert some_of("abcd"[:count], most) == said


def test_things_that_hold_commas_are_joined_by_something_else() -> None:
    """The joint is the caller's."""
    assert some_of(["a: x, y", "b: z", "c"], 2, "; ") == "a: x, y; b: z and 1 more"
