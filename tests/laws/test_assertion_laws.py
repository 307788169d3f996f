"""Laws of assertion trees, on documents of any shape."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from aicr.assertions.tree import parse
from aicr.errors import INVALID_REQUEST, AicrError

#: Texts that no micro-syntax claims.
PLAIN = st.text("abcXYZ 019._:/", max_size=8)
SCALARS = st.one_of(
    *(st.none(), st.booleans(), st.integers(), PLAIN),
    st.floats(allow_nan=False, allow_infinity=False),
)
DOCUMENTS: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(PLAIN, inner, max_size=4),
    max_leaves=15,
)
MAPS = st.dictionaries(PLAIN, DOCUMENTS, max_size=4)
KEYS = st.sampled_from(
    [
        *("a", "(a)", "(a > `0`)", "~.a", "~i.a", "~i.(a)->x", "(length(a))", "(keys(@))->k"),
        *("(a || `[]`)", "(a[?b])", "(*)", "a->b", "\\(a)\\", "(to_number(a))", "($i)", "(sum(a))"),
    ]
)
ANY_TREE: st.SearchStrategy[Any] = st.recursive(
    SCALARS | st.sampled_from(["(a)", "(@)", "(length(@))", "($x)", "(a == `1`)"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
NEAR: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b", "(a)"]), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(DOCUMENTS)
def test_a_document_matches_itself(document: Any) -> None:
    """Asserting what is there passes; null alone is asserted as null."""
    assert parse(document).judge(document).text == ""


@given(MAPS, MAPS)
def test_more_fields_never_make_a_map_fail(assertion: dict[str, Any], more: dict[str, Any]) -> None:
    """Maps are compared by the fields that are asserted."""
    actual = {**more, **assertion}
    assert parse(assertion).judge(actual).passed


@given(st.lists(DOCUMENTS, min_size=1, max_size=4), DOCUMENTS)
def test_one_element_more_makes_a_list_fail(items: list[Any], another: Any) -> None:
    """Lists are compared by position and exact length."""
    assert not parse(items).judge([*items, another]).passed
    assert not parse(items).judge(items[:-1]).passed


@given(ANY_TREE, NEAR)
def test_judging_ends_in_a_judgement_or_in_an_error_of_the_author(tree: Any, actual: Any) -> None:
    """Nothing but AicrError is raised, always the same, and the document is left as it was."""
    before = copy.deepcopy(actual)
    outcomes, codes = [], set()
    for _ in range(2):
        try:
            judgement = parse(tree).judge(actual)
            outcomes.append((judgement.text, judgement.notes))
            assert judgement.passed is (judgement.text == "")
        except AicrError as error:
            codes.add(error.code)
            outcomes.append((str(error), []))
    assert outcomes[0] == outcomes[1]
    assert codes <= {INVALID_REQUEST}
    assert repr(actual) == repr(before)


@given(st.text("~i.(a)-> x\\;cjp`", max_size=12), NEAR)
def test_any_text_can_be_a_key_or_a_value(text: str, actual: Any) -> None:
    """The micro-syntax has no input that breaks it."""
    codes = set()
    for tree in ({text: 1}, {"a": text}, text):
        try:
            parse(tree).judge(actual)
        except AicrError as error:
            codes.add(error.code)
    assert codes <= {INVALID_REQUEST}


@given(PLAIN.filter(bool), DOCUMENTS)
def test_absence_is_asserted_with_an_expression(key: str, value: Any) -> None:
    """A missing field is null to an expression, and an error to a literal key."""
    quoted = f'("{key}")'
    assert parse({quoted: None}).judge({}).passed
    assert not parse({key: value}).judge({}).passed
