"""Laws of expressions: whatever is written and whatever it is applied to, no Python leaks."""

from __future__ import annotations

import copy
import math
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from aicr.assertions.jmespath import Expression, search
from aicr.assertions.jmespath.functions import TABLE
from aicr.errors import INVALID_REQUEST, AicrError

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(min_value=10**300, max_value=10**320),
    st.floats(),
    st.text(max_size=6),
    st.sampled_from(["1Gi", "1h", "2026-01-01T00:00:00Z", "1.2.3", "[a-", "*?", "YQ==", "a: b"]),
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=12,
)
ATOMS = st.sampled_from(
    [
        "a",
        "b",
        "c",
        "@",
        "$",
        "$x",
        "`1`",
        "`null`",
        "`[1, 2]`",
        "`{}`",
        "'t'",
        "*",
        "[*]",
        "[]",
        "[0]",
    ]
)


def _grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    operators = st.sampled_from(
        ["==", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "//", "%", "&&", "||", "|", "."]
    )
    ends = st.sampled_from(["[0]", "[-1]", "[]", "[*]", "[::2]", "[::-1]", "[1:]", ".a", ".*"])
    names = st.sampled_from(sorted(TABLE))
    return st.one_of(
        st.tuples(inner, operators, inner).map(" ".join),
        st.tuples(inner, ends).map("".join),
        st.tuples(inner, inner).map(lambda two: f"{two[0]}[?{two[1]}]"),
        st.tuples(names, inner).map(lambda two: f"{two[0]}({two[1]})"),
        st.tuples(names, inner, inner).map(lambda three: f"{three[0]}({three[1]}, {three[2]})"),
        st.tuples(names, inner, inner).map(lambda three: f"{three[0]}({three[1]}, &{three[2]})"),
        st.tuples(names, inner, inner, inner).map(lambda f: f"{f[0]}({f[1]}, {f[2]}, {f[3]})"),
        st.tuples(inner, inner).map(lambda two: f"let $x = {two[0]} in {two[1]}"),
        st.tuples(inner, inner).map(lambda two: f"[{two[0]}, {two[1]}]"),
        inner.map(lambda one: f"{{k: {one}}}"),
        inner.map(lambda one: f"!{one}"),
        inner.map(lambda one: f"-({one})"),
    )


EXPRESSIONS = st.recursive(ATOMS, _grown, max_leaves=6)


def _outcome(text: str, value: Any) -> str:
    try:
        return repr(Expression(text).evaluate(value))
    except AicrError as error:
        failure = error
    assert failure.code == INVALID_REQUEST
    assert failure.hint
    return str(failure)


@given(EXPRESSIONS, VALUES)
def test_evaluating_raises_nothing_but_our_error_and_changes_nothing(text: str, value: Any) -> None:
    """Every expression on every value gives a value or an AicrError, and leaves the value alone."""
    before = repr(copy.deepcopy(value))
    _outcome(text, value)
    assert repr(value) == before


@given(st.text(max_size=30) | st.text("ab.[]?*()&|!=<>`'\"$@{}:,+-/% 01", max_size=20))
def test_any_text_is_read_or_refused_with_a_column(text: str) -> None:
    """The parser has no input that breaks it."""
    failure = None
    try:
        Expression(text)
    except AicrError as error:
        failure = error
    if failure is not None:
        assert failure.code == INVALID_REQUEST
        assert 1 <= failure.context["column"] <= len(text) + 1


@given(VALUES, VALUES)
def test_ordering_is_true_false_or_null(left: Any, right: Any) -> None:
    """Null exactly where an operand is no number; a boolean is none."""
    numeric = all(type(value) in (int, float) for value in (left, right))
    for operator in ("<", "<=", ">", ">="):
        found = search(f"a {operator} b", {"a": left, "b": right})
        assert (found is None) is not numeric
        assert found in (None, True, False)


@given(VALUES)
def test_equality_is_reflexive_and_never_crosses_types(value: Any) -> None:
    """A value equals itself and no value of another type, 1, 1.0 and true included."""
    nan = "nan" in repr(value)
    assert search("a == a", {"a": value}) is not nan
    others: list[Any] = [None, True, False, 0, 0.0, 1, 1.0, "", "1", [], {}]
    for other in others:
        if type(other) is not type(value):
            assert search("a == b", {"a": value, "b": other}) is False


@given(VALUES, VALUES)
def test_or_and_not_agree_about_truth(left: Any, right: Any) -> None:
    """``a || b`` is a unless ``!a``; every number is true."""
    document = {"a": left, "b": right}
    falsy = search("!a", document)
    assert repr(search("a || b", document)) == repr(right if falsy else left)
    assert repr(search("a && b", document)) == repr(left if falsy else right)
    if type(left) in (int, float):
        assert falsy is False


@given(st.lists(st.integers(), max_size=8), *[st.none() | st.integers(-9, 9)] * 3)
def test_slices_are_those_of_python(
    items: list[int], start: int | None, stop: int | None, step: int | None
) -> None:
    """Bounds beyond the ends are cut, negative ones count from the end."""
    written = ":".join("" if part is None else str(part) for part in (start, stop, step))
    if step == 0:
        assert "step cannot be 0" in _outcome(f"a[{written}]", {"a": items})
    else:
        assert search(f"a[{written}]", {"a": items}) == items[start:stop:step]


@given(st.integers(-(2**53), 2**53), st.integers(-(2**53), 2**53))
def test_integers_of_documents_compute_as_numbers(left: int, right: int) -> None:
    """Arithmetic converts; equality with the result needs to_number()."""
    document = {"a": left, "b": right}
    assert search("a + b", document) == float(left) + float(right)
    assert search("a < b", document) is (left < right)
    assert search("to_number(a) == to_number(b)", document) is (left == right)
    assert math.copysign(1, search("-a", {"a": 0})) == -1
