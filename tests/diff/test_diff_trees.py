"""Differences between plain documents, path by path."""

from __future__ import annotations

from typing import Any

import pytest

from aicr.diff import order, trees
from aicr.diff.changes import ABSENT


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, []),
        ({"a": 1}, {"a": 1.0}, []),
        ({"a": 1}, {"a": True}, [("a", 1, True)]),
        ({"a": 0}, {"a": False}, [("a", 0, False)]),
        ({"a": 1}, {"a": "1"}, [("a", 1, "1")]),
        ({"a": None}, {}, [("a", None, ABSENT)]),
        ({}, {"a": {}}, [("a", ABSENT, {})]),
        ({}, {"a": {"b": 1, "c": [2]}}, [("a.b", ABSENT, 1), ("a.c", ABSENT, [2])]),
        ({"a": {"b": 1}}, {"a": [1]}, [("a", {"b": 1}, [1])]),
        ({"a.b": {"c[0]": 1}}, {"a.b": {"c[0]": 2}}, [(r"a\.b.c\[0\]", 1, 2)]),
        ({"": 1}, {"": 2}, [('""', 1, 2)]),
        ([1, 2], [1, 3], [("[1]", 2, 3)]),
        ([1, 2], [2], [("", [1, 2], [2])]),
        ({"a": [{"x": 1}]}, {"a": [{"x": 2}]}, [("a[0].x", 1, 2)]),
        (
            [{"name": "a", "v": 1}, {"name": "b", "v": 2}],
            [{"name": "b", "v": 3}, {"name": "a", "v": 1}],
            [("b.v", 2, 3)],
        ),
        (
            [{"name": "a"}, {"name": "a"}],
            [{"name": "a"}],
            [("", [{"name": "a"}] * 2, [{"name": "a"}])],
        ),
        (1, 2, [("", 1, 2)]),
    ],
)
def test_differences_are_found_by_meaning(before: Any, after: Any, found: list[Any]) -> None:
    """Order of keys and of named items means nothing; a text is never a number."""
    assert trees.compare(before, after) == found
    assert trees.equal(before, after) is (found == [])


@pytest.mark.parametrize(
    ("before", "after", "moved"),
    [
        ("abc", "abc", []),
        ("abc", "xabc", []),
        ("abc", "ac", []),
        ("abcd", "bcda", [("a", "first", "after d")]),
        ("abcd", "dabc", [("d", "after c", "first")]),
        ("ab", "ba", [("a", "first", "after b")]),
        ("", "abc", []),
        ("abc", "", []),
    ],
)
def test_only_what_really_moved_is_said_to(before: str, after: str, moved: list[Any]) -> None:
    """New and removed components push others without moving them."""
    found = order.compare(before, after)
    said = [(change.component, change.before, change.after) for change in found]
    if before == "ab":
        # Either of two may be said to have moved.
        assert len(said) == 1
    else:
        assert said == moved
