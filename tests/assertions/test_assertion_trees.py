"""Assertion trees: keys, nodes and comparison of validators spec 8.8.1 to 8.8.3."""

from __future__ import annotations

from typing import Any

import pytest

from aicr.assertions.findings import shown
from aicr.assertions.tree import parse
from aicr.errors import INVALID_REQUEST, AicrError

NUMBERS: dict[str, Any] = {"a": 1, "b": True, "gpu": "8", "r": 8, "z": 0}
CONDITIONS: dict[str, Any] = {
    "conditions": [{"type": "A", "status": "True"}, {"type": "Ready", "status": "True"}]
}
POD: dict[str, Any] = {
    "metadata": {"name": "p", "labels": {"app": "x", "tier": "gpu"}},
    "spec": {"replicas": 3, "containers": [{"name": "a"}, {"name": "b"}]},
    "status": {
        "phase": "Running",
        "reason": None,
        "replicas": 3,
        "containerStatuses": [{"ready": True}, {"ready": True}],
    },
    "(x)": 1,
    "e": [],
    "arrow": "x -> y",
}

MATCHING: list[tuple[Any, Any]] = [
    # scalars
    ({"a": 1.0}, NUMBERS),
    ({"r": 8, "gpu": "8", "b": True}, NUMBERS),
    ({"status": {"reason": None}}, POD),
    (None, None),
    # maps
    ({}, POD),
    ({"status": {}}, POD),
    ({"e": {}}, POD),
    ({"status": {"phase": "Running"}, "metadata": {"labels": {"app": "x"}}}, POD),
    # lists, by position
    ({"spec": {"containers": [{"name": "a"}, {}]}}, POD),
    ({"e": []}, POD),
    # expressions as keys
    ({"(to_number(gpu) >= `8`)": True}, NUMBERS),
    ({"([`true`] == [`1`])": False}, NUMBERS),
    ({"(z || 'dflt')": 0}, NUMBERS),
    ({"(missing)": None}, NUMBERS),
    ({"(missing == `null`)": True}, NUMBERS),
    ({"(jp;r)": 8}, NUMBERS),
    ({"(conditions[?type == 'Ready'])": [{"status": "True"}]}, CONDITIONS),
    ({"(status.replicas == spec.replicas)": True}, POD),
    ({"((nothing || `[]`)[?type == 'x'] | length(@) > `0`)": False}, POD),
    ({"(to_number(spec.replicas) == `3`)": True}, POD),
    # expressions as values
    ({"status": {"phase": "(to_string('Running'))"}}, POD),
    ({"e": "(`[]`)"}, POD),
    ({"metadata": "({name: 'p'})"}, POD),
    ({"spec": {"containers": "(@)"}}, POD),
    # iterators
    ({"~.conditions": {"status": "True"}}, CONDITIONS),
    ({"~i.conditions": {"(to_number($i) < `2`)": True}}, CONDITIONS),
    ({"metadata": {"~k.labels": {"(length($k) > `2`)": True}}}, POD),
    ({"~.(conditions[?type == 'Ready'])": {"status": "True"}}, CONDITIONS),
    ({"~.e": {"nothing": 1}}, POD),
    # bindings
    ({"spec": {"replicas->n": {"($n)": 3}}}, POD),
    ({"(status.replicas)->n": {"(@ == $n)": True}}, POD),
    ({"spec->s": {"containers": {"($s.replicas)": 3}}}, POD),
    ({"~i.(spec.containers)->all": {"(length($all))": 2}}, POD),
    # escapes
    ({"\\(x)\\": 1}, POD),
    ({"arrow": "\\x -> y\\"}, POD),
]


@pytest.mark.covers("V10-82")
@pytest.mark.parametrize(("assertion", "actual"), MATCHING)
def test_matching_documents_have_no_findings(assertion: Any, actual: Any) -> None:
    """Each construct on a document that it matches."""
    assert parse(assertion).judge(actual).text == ""


FAILING: list[tuple[Any, Any, str]] = [
    ({"a": 2}, NUMBERS, "a: Invalid value: 1: Expected value: 2"),
    ({"gpu": "9"}, NUMBERS, 'gpu: Invalid value: "8": Expected value: "9"'),
    ({"b": False}, NUMBERS, "b: Invalid value: true: Expected value: false"),
    ({"b": None}, NUMBERS, "b: Invalid value: true: Expected value: null"),
    ({"missing": None}, NUMBERS, "missing: Required value: field not found in the input object"),
    ({"status": {"reason": "x"}}, POD, 'status.reason: Invalid value: null: Expected value: "x"'),
    ({"status": {"reason": {"x": 1}}}, POD, "status.reason.x: Required value: field not found"),
    (
        {"status": {"reason": {}}},
        POD,
        "status.reason: Invalid value: null: invalid value, must not",
    ),
    ({"status": {"reason": []}}, POD, "status.reason: Invalid value: null: value is null"),
    ({}, None, "Invalid value: null: invalid value, must not be null"),
    ({"conditions": None}, CONDITIONS, "Expected value: null"),
    (
        {"conditions": [{"type": "Ready", "status": "True"}]},
        CONDITIONS,
        "lengths of slices don't match: length 2, expected 1; lists compare by position",
    ),
    (
        {"conditions": [{"type": "Ready"}, {"type": "A"}]},
        CONDITIONS,
        'conditions[0].type: Invalid value: "A": Expected value: "Ready"; conditions[1].type',
    ),
    (
        {"status": {"containerStatuses": [{"ready": True}]}},
        POD,
        "length 2, expected 1; lists compare by position",
    ),
    ({"(gpu >= `8`)": True}, NUMBERS, "Expected value: true (string compared with number)"),
    ({"(q > `0`)": True}, NUMBERS, "null: Expected value: true (null compared with number)"),
    ({"(q > `0`)": False}, NUMBERS, "null: Expected value: false (null compared with number)"),
    ({"(r == `8`)": True}, NUMBERS, "convert it with to_number()"),
    ({"e": "([`1`])"}, POD, "length 0, expected 1; lists compare by position"),
    ({"metadata": "({name: 'q'})"}, POD, "metadata: Invalid value:"),
    ({"metadata": "({other: 'q'})"}, POD, "metadata: Invalid value:"),
    ({"~i.conditions": {"type": "A"}}, CONDITIONS, "~i.conditions[1].type: Invalid value"),
    ({"metadata": {"~.labels": "x"}}, POD, 'metadata.~.labels[tier]: Invalid value: "gpu"'),
    ({"(metadata.name) -> n": 1}, POD, "(metadata.name) -> n: Required value: field not found"),
    ({"(foo;bar)": 1}, NUMBERS, "(foo;bar): Required value: field not found"),
    ({"gpu": "(foo;bar)"}, NUMBERS, 'Expected value: "bar"'),
]


@pytest.mark.covers("V10-81")
@pytest.mark.parametrize(("assertion", "actual", "text"), FAILING)
def test_findings_say_where_what_and_why(assertion: Any, actual: Any, text: str) -> None:
    """A difference has the path, the value found and the value expected."""
    judgement = parse(assertion).judge(actual)
    assert not judgement.passed
    assert text in judgement.text


HARD: list[tuple[Any, Any, str]] = [
    ({"a": True}, NUMBERS, "types are not comparable, bool - int64"),
    ({"b": 1}, NUMBERS, "types are not comparable, int64 - bool"),
    ({"z": False}, NUMBERS, "types are not comparable, bool - int64"),
    ({"a": "1"}, NUMBERS, "types are not comparable, string - int64"),
    ({"b": "true"}, NUMBERS, "types are not comparable, string - bool"),
    ({"gpu": 8}, NUMBERS, "types are not comparable, int64 - string"),
    ({"gpu": 8.5}, NUMBERS, "types are not comparable, float64 - string"),
    ({"conditions": "x"}, CONDITIONS, "types are not comparable, string - slice"),
    ({"a": []}, NUMBERS, "expected a slice, found int64"),
    ({"a": {"b": 1}}, NUMBERS, "projection not recognized"),
    ({"conditions": {"type": "A"}}, CONDITIONS, "projection not recognized"),
    ({"a": "([`1`])"}, NUMBERS, "must be a slice, found int64"),
    ({"a": "({x: `1`})"}, NUMBERS, "must be a map, found int64"),
    ({"~.a": 1}, NUMBERS, "expected a slice or a map"),
    ({"~.(q)": 1}, NUMBERS, "expected a slice or a map"),
    ({"(length(q) > `0`)": True}, NUMBERS, "give a default with ||"),
    ({"(conditions[?type=='Ready'] | length(@) > `0`)": True}, {}, "found null"),
    ({"a": "($nope)"}, NUMBERS, "variable not defined: $nope"),
    ({"(spec.replicas)->n": 3, "metadata": {"name": "($m)"}}, POD, "variable not defined: $m"),
]


@pytest.mark.parametrize(("assertion", "actual", "message"), HARD)
def test_what_cannot_be_compared_is_an_error_and_no_finding(
    assertion: Any, actual: Any, message: str
) -> None:
    """A hard error is INVALID_REQUEST, so that nothing retries it, and it says what to do."""
    with pytest.raises(AicrError) as caught:
        parse(assertion).judge(actual)
    assert caught.value.code == INVALID_REQUEST
    assert message in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize(
    ("assertion", "path", "message"),
    [
        ({"a": {"(b ==)": 1}}, ("a", "(b ==)"), "incomplete"),
        ({"a": ["(b ==)"]}, ("a", 0), "incomplete"),
        ({"a": "~.x"}, ("a",), "foreach is not supported in scalar projections"),
        ({"a": "x -> y"}, ("a",), "binding is not supported in scalar projections"),
        ({"(cel;a > 1)": True}, ("(cel;a > 1)",), "CEL expressions are not supported"),
        ({"a": "(cel;a > 1)"}, ("a",), "CEL expressions are not supported"),
    ],
)
def test_assertions_that_cannot_be_read_are_refused_before_any_document(
    assertion: Any, path: tuple[Any, ...], message: str
) -> None:
    """Errors of the author are found when the tree is parsed, with the path in it."""
    with pytest.raises(AicrError) as caught:
        parse(assertion)
    assert caught.value.code == INVALID_REQUEST
    assert caught.value.context["at"] == path
    assert message in caught.value.message


def test_a_strict_tree_refuses_functions_that_do_not_exist() -> None:
    """Even where the reference would never call them."""
    assertion = {"(a || lenght(b))": 1}
    assert parse(assertion).judge({"a": 1}).passed
    with pytest.raises(AicrError) as caught:
        parse(assertion, strict=True)
    assert caught.value.hint == 'did you mean "length"?'


def test_a_hard_error_outranks_findings() -> None:
    """A document that differs and cannot be compared has not been judged."""
    with pytest.raises(AicrError, match="types are not comparable"):
        parse({"r": 9, "gpu": 8}).judge(NUMBERS)


def test_findings_of_all_fields_accumulate() -> None:
    """One evaluation reports every difference."""
    judgement = parse({"a": 2, "r": 9, "missing": 1}).judge(NUMBERS)
    assert [finding.path for finding in judgement.findings] == ["a", "r", "missing"]


def test_a_finding_is_a_plain_document_for_reports() -> None:
    """Path, expected, actual and message."""
    finding = parse({"a": 2}).judge(NUMBERS).findings[0]
    assert finding.as_document() == {
        "path": "a",
        "expected": 2,
        "actual": 1,
        "message": "Invalid value: 1: Expected value: 2",
    }


def test_a_loop_over_nothing_passes_and_says_so() -> None:
    """0 iterations prove nothing, and the report has them (decision 15)."""
    judgement = parse({"~.e": {"x": 1}}).judge(POD)
    assert judgement.passed
    assert judgement.notes == ["~.e: 0 iterations"]


def test_a_value_can_be_left_out_of_a_message() -> None:
    """Findings about Secrets name the path alone."""
    finding = parse({"data": {"k": "x"}}).judge({"data": {"k": "hidden"}}).findings[0]
    assert finding.without_values == "data.k: Invalid value: <redacted>"
    missing = parse({"data": 1}).judge({}).findings[0]
    assert missing.without_values == "data: Required value"


def test_bindings_reach_every_level() -> None:
    """Variables of the caller are known in keys and values."""
    tree = parse({"spec": {"(replicas == $n)": True, "containers": "($c)"}})
    assert tree.judge(POD, {"$n": 3, "$c": POD["spec"]["containers"]}).passed


def test_a_binding_of_a_loop_does_not_leak() -> None:
    """The index is known inside the loop only."""
    with pytest.raises(AicrError, match="variable not defined"):
        parse({"~i.conditions": {}, "(to_number($i))": 0}).judge(CONDITIONS)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": 1, "a": "\u00e4<"}, '{"a":"\u00e4<","b":1}'),
        ("x" * 300, '"' + "x" * 239 + "..."),
        ({1: 1, "a": 1}, "<map>"),
    ],
)
def test_values_in_messages_are_short_json(value: Any, text: str) -> None:
    """Sorted, readable, and cut to a length that a terminal can show."""
    assert shown(value) == text


def test_keys_that_are_no_texts_are_literal() -> None:
    """A tree made by a program may have them."""
    assert parse({1: "x"}).judge({1: "x"}).passed


def test_nesting_beyond_reason_is_an_error_and_no_crash() -> None:
    """Deep trees and deep documents end in an AicrError."""
    deep: Any = 1
    for _ in range(5000):
        deep = {"a": deep}
    with pytest.raises(AicrError, match="nested too deeply"):
        parse(deep)
    with pytest.raises(AicrError, match="nested too deeply"):
        parse({"(@ == $v)": True}).judge(deep, {"$v": _copy(5000)})


def _copy(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = {"a": value}
    return value
