"""Laws of merging, for any two layers."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from aicr.values.merge import copy_tree, deep_merge

KEYS = st.sampled_from(["a", "b", "c"])
VALUES = st.recursive(
    st.one_of(st.none(), st.integers(0, 3), st.text("xy", max_size=2), st.booleans()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=10,
)
LAYERS = st.dictionaries(KEYS, VALUES, max_size=3)


def containers(value: Any) -> set[int]:
    """The identities of all dicts and lists in a document."""
    if isinstance(value, dict):
        return {id(value)}.union(*(containers(item) for item in value.values()))
    if isinstance(value, list):
        return {id(value)}.union(*(containers(item) for item in value))
    return set()


def nulls_in_maps(value: Any) -> int:
    """How many keys hold null, not counting what lies inside lists."""
    if not isinstance(value, dict):
        return 0
    return sum(1 if item is None else nulls_in_maps(item) for item in value.values())


@given(LAYERS, LAYERS, st.booleans())
def test_merging_twice_is_merging_once(dst: Any, src: Any, null_deletes: bool) -> None:
    """A layer applied again changes nothing."""
    once = deep_merge(dst, src, null_deletes=null_deletes)
    assert deep_merge(once, src, null_deletes=null_deletes) == once


@given(LAYERS, LAYERS, st.booleans())
def test_inputs_stay_as_they_are_and_share_nothing(dst: Any, src: Any, null_deletes: bool) -> None:
    """The result is a new tree down to its last list."""
    before = repr((dst, src))
    merged = deep_merge(dst, src, null_deletes=null_deletes)
    assert repr((dst, src)) == before
    assert not containers(merged) & (containers(dst) | containers(src))


@given(LAYERS, st.booleans())
def test_the_empty_layer_is_neutral(layer: Any, null_deletes: bool) -> None:
    """An empty layer on top adds nothing; one below loses nothing but deleting nulls."""
    assert deep_merge(layer, {}, null_deletes=null_deletes) == layer
    assert deep_merge({}, layer, null_deletes=False) == layer


@given(LAYERS)
def test_deleting_nulls_leave_nothing_behind(layer: Any) -> None:
    """On nothing, a layer of deletions is a layer without them."""
    assert nulls_in_maps(deep_merge({}, layer, null_deletes=True)) == 0


@given(LAYERS, LAYERS, LAYERS)
def test_kept_nulls_still_delete_later(base: Any, first: Any, second: Any) -> None:
    """Overlays merged with nulls kept resolve as if each had been applied in turn (recipe.md 7)."""
    overlays = deep_merge(first, second, null_deletes=False)
    at_once = deep_merge(base, overlays, null_deletes=True)
    in_turn = deep_merge(deep_merge(base, first, null_deletes=True), second, null_deletes=True)
    if not replaces_a_map(first, second):
        assert at_once == in_turn


def replaces_a_map(first: Any, second: Any) -> bool:
    """Whether *second* puts a map where *first* put something else, or the other way round.

    There the two orders differ by design: replacing happens between overlays in one case and on the
    base in the other.
    """
    for key, item in second.items():
        if key in first and isinstance(item, dict) != isinstance(first[key], dict):
            return True
        if isinstance(item, dict) and key in first and replaces_a_map(first[key], item):
            return True
    return False


@given(LAYERS, LAYERS)
def test_scalars_and_lists_of_the_later_layer_win(dst: Any, src: Any) -> None:
    """Whatever the later layer says, except a map, is in the result as it stands."""
    merged = deep_merge(dst, src, null_deletes=False)
    for key, item in src.items():
        if not isinstance(item, dict):
            assert merged[key] == item
    assert list(merged) == list(dst) + [key for key in src if key not in dst]


@given(VALUES)
def test_a_copy_is_equal_and_shares_nothing(value: Any) -> None:
    """Copying keeps the content and none of the containers."""
    copy = copy_tree(value)
    assert repr(copy) == repr(value)
    assert not containers(copy) & containers(value)
