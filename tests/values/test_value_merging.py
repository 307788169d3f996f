"""How two layers of values combine."""

from __future__ import annotations

from typing import Any

import pytest

from aicr.values.merge import copy_tree, deep_merge, is_set


@pytest.mark.parametrize(
    ("dst", "src", "merged"),
    [
        ({}, {}, {}),
        ({"a": 1}, {}, {"a": 1}),
        ({}, {"a": 1}, {"a": 1}),
        ({"a": 1, "b": 2}, {"b": 3, "c": 4}, {"a": 1, "b": 3, "c": 4}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"c": 3}}, {"a": {"b": 1, "c": 3}}),
        ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
        ({"a": [{"b": 1}]}, {"a": [{"c": 1}]}, {"a": [{"c": 1}]}),
        ({"a": {"b": 1}}, {"a": "x"}, {"a": "x"}),
        ({"a": "x"}, {"a": {"b": 1}}, {"a": {"b": 1}}),
        ({"a": [1]}, {"a": {}}, {"a": {}}),
        ({"a": {"b": 1}}, {"a": {}}, {"a": {"b": 1}}),
        ({"a": None}, {"a": {"b": 1}}, {"a": {"b": 1}}),
        ({"a": {"b": 1}}, {"a": False}, {"a": False}),
    ],
)
@pytest.mark.parametrize("null_deletes", [False, True])
def test_maps_merge_and_everything_else_is_replaced(
    dst: dict[str, Any], src: dict[str, Any], merged: dict[str, Any], null_deletes: bool
) -> None:
    """The later layer wins; only maps are combined (recipe.md 4.1 and 7)."""
    assert deep_merge(dst, src, null_deletes=null_deletes) == merged


@pytest.mark.covers("B7", "R11-42")
@pytest.mark.parametrize(
    ("dst", "src", "deleted", "kept"),
    [
        (
            {"env": {"A": "1", "B": {"C": "2", "D": None}}},
            {"env": {"A": None, "B": {"C": None, "E": None}}},
            {"env": {"B": {"D": None}}},
            {"env": {"A": None, "B": {"C": None, "D": None, "E": None}}},
        ),
        ({"a": {"b": 1}}, {"a": None}, {}, {"a": None}),
        ({}, {"a": {"b": None}}, {"a": {}}, {"a": {"b": None}}),
        ({"a": 1}, {"a": {"b": {"c": None}}}, {"a": {"b": {}}}, {"a": {"b": {"c": None}}}),
        ({"a": [1]}, {"a": [None, {"b": None}]}, {"a": [None, {"b": None}]}, None),
        (
            {"storageSpec": {"emptyDir": {"medium": "Memory"}}},
            {"storageSpec": {"emptyDir": None, "pvc": 1}},
            {"storageSpec": {"pvc": 1}},
            {"storageSpec": {"emptyDir": None, "pvc": 1}},
        ),
    ],
)
def test_a_null_deletes_at_every_depth_or_is_kept(
    dst: dict[str, Any],
    src: dict[str, Any],
    deleted: dict[str, Any],
    kept: dict[str, Any] | None,
) -> None:
    """The earlier layer's own nulls stay, a deleting null leaves nothing behind, lists are whole."""
    assert deep_merge(dst, src, null_deletes=True) == deleted
    assert deep_merge(dst, src, null_deletes=False) == (deleted if kept is None else kept)


def test_keys_keep_the_order_of_the_earlier_layer() -> None:
    """New keys come last, in their own order."""
    merged = deep_merge({"b": 1, "a": {"z": 1}}, {"d": 1, "a": {"y": 2}, "c": 1}, null_deletes=True)
    assert list(merged) == ["b", "a", "d", "c"]
    assert list(merged["a"]) == ["z", "y"]


def test_copy_tree_shares_no_container() -> None:
    """A change in the copy, at any depth, is not seen in the original."""
    original = {"a": [{"b": [1]}], "c": {"d": {}}, "e": "x"}
    copy = copy_tree(original)
    copy["a"][0]["b"].append(2)
    copy["c"]["d"]["new"] = 1
    assert original == {"a": [{"b": [1]}], "c": {"d": {}}, "e": "x"}
    assert copy_tree(3) == 3
    assert copy_tree(None) is None


@pytest.mark.parametrize(
    ("tree", "keys", "taken"),
    [
        ({"a": {"b": 1}}, ["a", "b"], True),
        ({"a": {"b": None}}, ["a", "b"], True),
        ({"a": {"b": {}}}, ["a", "b"], True),
        ({"a": {"b": 1}}, ["a"], True),
        ({"a": 1}, ["a", "b", "c"], True),
        ({"a": [{"b": 1}]}, ["a", "b"], True),
        ({"a": None}, ["a", "b"], True),
        ({"a": {}}, ["a", "b"], False),
        ({"a": {"b": 1}}, ["b"], False),
        ({}, ["a"], False),
        ({"a.b": 1}, ["a", "b"], False),
        ({"a.b": 1}, ["a.b"], True),
    ],
)
def test_a_place_is_taken_by_a_value_or_by_something_that_is_no_map(
    tree: dict[str, Any], keys: list[str], taken: bool
) -> None:
    """Also null and an empty map are values; keys are whole, dots in them mean nothing (4.7)."""
    assert is_set(tree, keys) is taken
