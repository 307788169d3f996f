"""Expressions: the grammar, operators and typing rules of validators spec 8.8.4."""

from __future__ import annotations

import math
from typing import Any

import pytest

from aicr.assertions.jmespath import compiled, search
from aicr.errors import INVALID_REQUEST, AicrError

DOCUMENT: dict[str, Any] = {
    "a": 1,
    "b": True,
    "f": 1.5,
    "gpu": "8",
    "r": 8,
    "z": 0,
    "n": None,
    "e": [],
    "text": "hello",
    "m": {"x": {"y": 1}, "w": 2},
    "nested": [[1, 2], [3, [4]], 5],
    "odd key": "odd",
    "conditions": [
        {"type": "Available", "status": "True"},
        {"type": "Ready", "status": "False", "reason": "Waiting"},
    ],
    "containers": [{"name": "a", "ports": [1, 2]}, {"name": "b"}, {"name": "c", "ports": [3]}],
}


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("a", 1),
        ("m.x.y", 1),
        ("m.x.q", None),
        ("text.q", None),
        ("q.r.s", None),
        ('"odd key"', "odd"),
        ('"\\u0061"', 1),
        ("@.a", 1),
        ("$", None),
        ("'raw'", "raw"),
        (r"'it\'s'", "it's"),
        (r"'a\\b'", "a\\b"),
        (r"'a\nb'", "a\\nb"),
        ('`"x"`', "x"),
        ('`"a\\`b"`', "a`b"),
        ("`null`", None),
        ("`[1, {}]`", [1.0, {}]),
        ("conditions[0].type", "Available"),
        ("conditions[-1].type", "Ready"),
        ("conditions[7]", None),
        ("m[0]", None),
        ("conditions[*].type", ["Available", "Ready"]),
        ("conditions[*].reason", ["Waiting"]),
        ("q[*].x", None),
        ("m[*]", None),
        ("m.*.y", [1]),
        ("*.y", []),
        ("m.x.*", [1]),
        ("text.*", None),
        ("nested[]", [1, 2, 3, [4], 5]),
        ("nested[][]", [1, 2, 3, 4, 5]),
        ("text[]", None),
        ("containers[].ports[]", [1, 2, 3]),
        ("containers[*].ports[0]", [1, 3]),
        ("containers[*].ports | [0]", [1, 2]),
        ("containers[1:].name", ["b", "c"]),
        ("containers[::-1].name", ["c", "b", "a"]),
        ("containers[:2][*].name", []),
        ("containers[:2].ports[0]", [1]),
        ("text[1:3]", "el"),
        ("text[::-1]", "olleh"),
        ("text[-3:]", "llo"),
        ("text[::0]", None),
        ("a[1:]", None),
        ("conditions[?status == 'True'].type", ["Available"]),
        ("conditions[?reason].type", ["Ready"]),
        ("conditions[?!reason].type", ["Available"]),
        ("conditions[?type == 'Ready' && status == 'False'] | length(@)", 1.0),
        ("conditions[?type == 'Ready'] | [0].status", "False"),
        ("q[?x]", None),
        ("conditions | [?reason].type", ["Ready"]),
        ("nested | []", [1, 2, 3, [4], 5]),
        ("nested | [*]", [[1, 2], [3, [4]], 5]),
        ("m | *", [{"y": 1}, 2]),
        ("m[?x]", None),
        ("conditions[].[type, status]", [["Available", "True"], ["Ready", "False"]]),
        ("conditions[].{t: type}", [{"t": "Available"}, {"t": "Ready"}]),
        ("[a, q]", [1, None]),
        ('{k: a, "l m": q}', {"k": 1, "l m": None}),
        ("m.[w, x.y]", [2, 1]),
        ("m.{w: w}", {"w": 2}),
        ("q.[a]", None),
        ("let $x = a in $x", 1),
        ("let $x = a, $y = r in [$x, $y]", [1, 8]),
        ("let $x = a in let $x = r in $x", 8),
        ("let $t = 'Ready' in conditions[?type == $t] | length(@)", 1.0),
        ("let.x", None),
        ("in", None),
    ],
)
def test_expressions_select_as_the_community_edition_does(expression: str, expected: Any) -> None:
    """Fields, indices, slices, projections, filters, multiselects and let."""
    assert search(expression, DOCUMENT) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("r > `7`", True),
        ("r >= `8`", True),
        ("r < `8`", False),
        ("f <= `1.5`", True),
        ("gpu >= `8`", None),
        ("q > `0`", None),
        ("b > `0`", None),
        ("e < m", None),
        ("'a' < 'b'", None),
        ("r > a", True),
        ("(q > `0`) == `null`", True),
    ],
)
@pytest.mark.covers("H4")
def test_ordering_needs_two_numbers_and_is_null_otherwise(expression: str, expected: Any) -> None:
    """Mixed types give null, and never a Python exception."""
    assert search(expression, DOCUMENT) is expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("`true` == `1`", False),
        ("[`true`] == [`1`]", False),
        ("`false` == `0`", False),
        ("r == `8`", False),
        ("to_number(r) == `8`", True),
        ("r == r", True),
        ("length(conditions) == `2`", True),
        ("a == b", False),
        ("`1` == `1.0`", True),
        ("q == n", True),
        ("q == `null`", True),
        ("e == `[]`", True),
        ("e == `{}`", False),
        ("{x: a} == {x: a}", True),
        ("{x: a} == {x: `1`}", False),
        ("a != `1`", True),
        ("'1' == `1`", False),
        ("nested[0] == nested[0]", True),
    ],
)
@pytest.mark.covers("H4")
def test_equality_is_deep_and_strict_about_types(expression: str, expected: bool) -> None:
    """True is not 1, an integer of the document is not a literal, in lists and maps too."""
    assert search(expression, DOCUMENT) is expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("z || 'dflt'", 0),
        ("q || 'dflt'", "dflt"),
        ("e || 'dflt'", "dflt"),
        ("`{}` || 'dflt'", "dflt"),
        ("'' || 'dflt'", "dflt"),
        ("`false` || 'dflt'", "dflt"),
        ("z && 'yes'", "yes"),
        ("q && 'yes'", None),
        ("e && 'yes'", []),
        ("!z", False),
        ("!q", True),
        ("!text", False),
        ("!!e", False),
        ("a && b || q", True),
    ],
)
@pytest.mark.covers("H4")
def test_zero_is_true_and_what_is_empty_is_false(expression: str, expected: Any) -> None:
    """Truth of JMESPath: false, null, and empty texts, lists and maps; no number."""
    found = search(expression, DOCUMENT)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("a + `2`", 3.0),
        ("a - -`2`", 3.0),
        ("-a", -1.0),
        ("+r", 8.0),
        ("-text", None),
        ("r * `2` + a", 17.0),
        ("a + r * `2`", 17.0),
        ("(a + r) * `2`", 18.0),
        ("r / `3` // `1`", 2.0),
        ("-r // `3`", -2.0),
        ("r % `3`", 2.0),
        ("`-7` % `3`", -1.0),
        ("r \u00d7 `2`", 16.0),
        ("r \u00f7 `2`", 4.0),
        ("r \u2212 `2`", 6.0),
        ("a + text", None),
        ("b + a", None),
        ("q * `2`", None),
        ("`1` / `0`", math.inf),
        ("`-1` / `0`", -math.inf),
        ("`1` // `0`", math.inf),
    ],
)
def test_arithmetic_gives_floats_or_null(expression: str, expected: Any) -> None:
    """Precedence as in arithmetic; what is no number makes the result null; zero divides as in IEEE."""
    found = search(expression, DOCUMENT)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize("expression", ["`0` / `0`", "r % `0`", "(`1` / `0`) % `2`"])
def test_undefined_arithmetic_is_not_a_number(expression: str) -> None:
    """As in the reference implementation, and not a ZeroDivisionError."""
    assert math.isnan(search(expression, DOCUMENT))


@pytest.mark.parametrize(
    ("expression", "column", "words"),
    [
        ("", 1, "incomplete"),
        ("a.", 3, "after a dot"),
        ("a b", 3, "nothing can follow"),
        ("a ==", 5, "incomplete"),
        ("1", 1, "backticks"),
        ("a > 0", 5, "backticks"),
        ("foo(", 5, "incomplete"),
        ("foo(a b)", 7, 'expected ")"'),
        ("foo(a,)", 7, "operand is missing"),
        ("a[0](b)", 5, "only a name can be called"),
        ('"f"(a)', 4, "quoted name"),
        ("a[", 3, 'expected "*"'),
        ("a[b]", 3, 'expected "*"'),
        ("a[0", 4, 'expected "]"'),
        ("a[0:1:2:3]", 8, "two colons"),
        ("a[1 2]", 5, 'expected "]"'),
        ("{a}", 3, 'expected ":"'),
        ("{`1`: a}", 2, "expected a key"),
        ("{a: b c: d}", 7, 'expected "}"'),
        ("`{`", 1, "is not JSON"),
        ("`1", 1, "no closing"),
        ("'a", 1, "no closing"),
        ('"a', 1, "no closing"),
        ("`NaN`", 1, "is not JSON"),
        ("`1e999`", 1, "out of range"),
        ("a ; b", 3, "unknown character"),
        ("a # b", 3, "unknown character"),
        ("let $x = a", 11, '"in"'),
        ("let $x a", 8, 'expected "="'),
        ("a = b", 3, "nothing can follow"),
        ("a ! b", 3, "cannot follow an operand"),
        ("a[*]{b: c}", 5, "cannot follow a projection"),
        ("a[1:b]", 5, "expected a number, a colon or a bracket"),
        ("a" * 20_001, 20_000, "longer than"),
        ("(" * 100 + "a" + ")" * 100, 61, "nested deeper"),
        (".".join("a" * 300), 402, "more than 200 operators"),
        ("a[99999999999999999999]", 3, "out of range"),
    ],
)
def test_malformed_expressions_say_where_and_what(expression: str, column: int, words: str) -> None:
    """An error of syntax has the expression, the column and a next step."""
    with pytest.raises(AicrError) as caught:
        compiled(expression)
    assert caught.value.code == INVALID_REQUEST
    assert caught.value.context["column"] == column
    assert words in f"{caught.value.message} {caught.value.hint}"
    assert caught.value.hint


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("$nope", "variable not defined: $nope"),
        ("let $pods = a in $pod", 'did you mean "$pods"?'),
        ("lenght(a)", 'did you mean "length"?'),
        ("frobnicate(a)", "unknown function: frobnicate"),
        ("length(q)", "found null; give a default with ||"),
        ("abs(r)", "convert it with to_number()"),
        ("abs()", "abs() takes 1 argument, not 0"),
        ("abs(`1`, `2`)", "abs() takes 1 argument, not 2"),
        ("contains(e)", "contains() takes 2 arguments, not 1"),
        ("merge()", "merge() takes at least 1 argument, not 0"),
        ("find_first('a')", "find_first() takes 2 to 4 arguments, not 1"),
        ("map(a, e)", "expected expref, found number"),
        ("conditions[::0]", "step cannot be 0"),
        ("type(r)", "to_number()"),
    ],
)
def test_what_cannot_be_evaluated_says_where_and_what_to_do(expression: str, words: str) -> None:
    """A hard error has the expression, the column and a next step."""
    with pytest.raises(AicrError) as caught:
        search(expression, DOCUMENT)
    error = caught.value
    assert error.code == INVALID_REQUEST
    assert expression in error.message
    assert f"at column {error.context['column']}" in error.message
    assert words in f"{error.message} {error.hint}"
    assert error.hint


@pytest.mark.parametrize("expression", ["nope()[?x]", "nope()[]", "nope().*", "length(q)[?x]"])
def test_a_failing_source_of_a_projection_is_null(expression: str) -> None:
    """As in the reference implementation; strict trees find unknown functions beforehand."""
    assert search(expression, DOCUMENT) is None


def test_an_expression_is_read_once_for_the_same_text() -> None:
    """Polling evaluates; it does not parse again."""
    assert compiled("a.b.c") is compiled("a.b.c")


def test_evaluating_changes_neither_value_nor_bindings() -> None:
    """Sorting, merging and let work on copies."""
    value = {"l": [{"k": "b"}, {"k": "a"}], "m": {"x": 1}}
    bindings = {"$v": 1}
    expression = compiled("let $v = l in [sort_by(l, &k), merge(m, {y: `2`}), reverse($v)]")
    expression.evaluate(value, bindings)
    assert value == {"l": [{"k": "b"}, {"k": "a"}], "m": {"x": 1}}
    assert bindings == {"$v": 1}


def test_bindings_from_outside_are_variables() -> None:
    """A named loop and a binding of a tree reach expressions so."""
    assert search("$i + `1`", {}, {"$i": 1}) == 2.0


@pytest.mark.parametrize(
    ("expression", "remark"),
    [
        ("gpu >= `8`", "string compared with number"),
        ("q > `0`", "null compared with number"),
        ("b < `1`", "boolean compared with number"),
        ("(&a) < `1`", "expression compared with number"),
        ("r == `8`", "the integer 8 of the document is not equal to the number 8"),
    ],
)
@pytest.mark.covers("H4")
def test_remarks_explain_surprising_results(expression: str, remark: str) -> None:
    """Why a comparison that looks right is null or false."""
    assert remark in compiled(expression).remarks(DOCUMENT)[0]


@pytest.mark.parametrize("expression", ["r > `7`", "a == `2`", "nope(a)", "$q"])
def test_nothing_is_remarked_where_nothing_surprises(expression: str) -> None:
    """Remarks are for comparisons across types only, and never fail."""
    assert compiled(expression).remarks(DOCUMENT) == []
