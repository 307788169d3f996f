"""Laws of paths, for any segments and documents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from aicr.errors import AicrError
from aicr.values import paths

NAMES = st.one_of(st.text(min_size=1, max_size=6), st.text("a.[]\\0 -", min_size=1, max_size=6))
SEGMENTS = st.lists(st.one_of(NAMES, st.integers(0, 65536)), min_size=1, max_size=5)
KEYS = st.sampled_from(["a", "b", "c.d"])
DOCUMENTS = st.recursive(
    st.one_of(st.none(), st.integers(0, 3), st.just("x")),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=10,
)
ROUTES = st.lists(st.one_of(KEYS, st.integers(0, 3)), min_size=1, max_size=4)


def result_of(function: Callable[..., Any], *arguments: Any) -> Any:
    """What the function returns, or the refusal it raises, which has its code and hint."""
    try:
        return function(*arguments)
    except AicrError as error:
        found = error
    assert found.code == "INVALID_REQUEST"
    assert found.hint
    return found


@given(SEGMENTS)
def test_split_undoes_join(segments: list[str | int]) -> None:
    """Any keys and positions survive as text."""
    assert paths.split(paths.join(segments)) == segments


@given(st.text("ab.[]\\01-", max_size=10))
def test_a_path_that_splits_means_one_thing(text: str) -> None:
    """Splitting either fails in our words or gives segments that join to an equal path."""
    segments = result_of(paths.split, text)
    if not isinstance(segments, AicrError):
        assert segments
        assert paths.split(paths.join(segments)) == segments


@given(DOCUMENTS, ROUTES, DOCUMENTS)
def test_what_was_put_is_there_and_nothing_else_moved(
    document: Any, route: list[str | int], value: Any
) -> None:
    """Put, then get, gives the value; putting it again changes nothing; the input is untouched."""
    before = repr(document)
    changed = result_of(paths.put, document, route, value)
    assert repr(document) == before
    if isinstance(changed, AicrError):
        return
    assert paths.get(changed, route) == value
    assert paths.put(changed, route, value) == changed
    if isinstance(document, dict):
        for key, item in document.items():
            if key != route[0]:
                assert changed[key] == item


@given(DOCUMENTS, ROUTES)
def test_what_was_deleted_is_gone(document: Any, route: list[str | int]) -> None:
    """Deleting a key leaves no value there; deleting what is absent changes nothing."""
    before = repr(document)
    absent = object()
    present = paths.get(document, route, absent) is not absent
    changed = paths.delete(document, route)
    assert repr(document) == before
    if not present:
        assert changed == document
    elif isinstance(route[-1], str):
        assert paths.get(changed, route, absent) is absent


@given(ROUTES, ROUTES)
def test_conflict_is_symmetric_and_holds_with_itself(
    a: list[str | int], b: list[str | int]
) -> None:
    """Two paths conflict exactly if one begins with the other."""
    assert paths.conflict(a, a)
    assert paths.conflict(a, b) == paths.conflict(b, a)
    assert paths.conflict(a, [*a, *b])
