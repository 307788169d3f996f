"""Laws of override flags that hold for any text, path and value."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from aicr.bundle.override_values import apply_scalars, apply_typed
from aicr.bundle.overrides import Override, check_conflicts, parse_overrides
from aicr.bundle.typed_values import typed
from aicr.errors import AicrError
from aicr.values import paths
from aicr.values.merge import copy_tree

KEYS = st.text(alphabet="ab.[]\\/é-", min_size=1, max_size=4)
SCALARS = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=5)
TREES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
MAPS = st.dictionaries(KEYS, TREES, max_size=3)


def scalar(segments: list[str | int], text: str) -> Override:
    """A `--set` override of component c, as its flag text is parsed."""
    (found,), _ = parse_overrides(
        scalars=[f"c:{paths.join(segments)}={text}"], files=(), jsons=(), read_file=None
    )
    found.component = "c"
    return found


def outcome(
    values: dict[str, Any], override: Override
) -> tuple[dict[str, Any], list[str]] | AicrError:
    """The new values and change lines, or the error."""
    try:
        return apply_scalars(values, [override])
    except AicrError as error:
        return error


@given(st.text())
def test_a_typed_text_prints_as_it_was_written(text: str) -> None:
    """Whatever type a text gets, writing the value gives the text back."""
    value = typed(text)
    if value is None:
        assert text == "null"
    elif isinstance(value, bool):
        assert text == ("true" if value else "false")
    else:
        assert str(value) == text


@given(st.integers(-(2**63), 2**63 - 1))
def test_every_int64_in_its_usual_spelling_is_a_number(number: int) -> None:
    """The canonical spelling of an integer is not lost as text."""
    assert typed(str(number)) == number
    assert type(typed(str(number))) is int


@given(MAPS, st.lists(KEYS, min_size=1, max_size=3), st.text(alphabet="ab1é{", max_size=4))
def test_a_scalar_changes_its_path_and_nothing_else(
    values: dict[str, Any], keys: list[str], text: str
) -> None:
    """After --set the path holds the value, every other path is as before, and so is the input."""
    segments: list[str | int] = list(keys)
    if segments[0] == "enabled":
        return
    before = copy_tree(values)
    override = scalar(segments, text)
    found = outcome(values, override)
    assert values == before
    if isinstance(found, AicrError):
        assert found.code == "INVALID_REQUEST"
        return
    changed, lines = found
    assert len(lines) == 1
    assert str(paths.get(changed, segments)) == text
    if paths.get(before, segments, before) is not before:
        assert paths.put(changed, segments, paths.get(before, segments)) == before


@given(MAPS, MAPS)
def test_a_typed_map_applied_twice_is_applied_once(
    values: dict[str, Any], patch: dict[str, Any]
) -> None:
    """Merging is idempotent, and no null of the patch survives in a map."""
    (override,), _ = parse_overrides(
        scalars=(), files=(), jsons=[f"c:root={json.dumps(patch)}"], read_file=None
    )
    once, _, _ = apply_typed({"root": values}, [override])
    twice, _, _ = apply_typed(once, [override])
    assert once == twice
    for key, item in patch.items():
        if item is None:
            assert key not in once["root"]
        elif not isinstance(item, dict):
            assert once["root"][key] == item


@given(st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=3), min_size=2, max_size=5))
def test_flags_conflict_exactly_when_one_path_starts_with_another(found: list[list[str]]) -> None:
    """The check finds a pair iff there is one, in any order of flags."""
    segments: list[list[str | int]] = [list(path) for path in found]
    overrides = [scalar(path, "1") for path in segments]
    expected = any(
        first[: len(second)] == second or second[: len(first)] == first
        for index, first in enumerate(segments)
        for second in segments[:index]
    )
    for order in (overrides, overrides[::-1]):
        try:
            check_conflicts(order)
        except AicrError:
            assert expected
        else:
            assert not expected
