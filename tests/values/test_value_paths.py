"""Paths: spelling, and what they get, put and delete."""

from __future__ import annotations

from typing import Any

import pytest

from aicr.errors import INVALID_REQUEST, NOT_FOUND, AicrError
from aicr.values import paths

Segments = list[str | int]


@pytest.mark.parametrize(
    ("value", "words"),
    [({}, "a map"), ([], "a list"), (1, "an integer"), (1.5, "a number"), (None, "null")],
)
def test_a_type_is_named_as_a_sentence_takes_it(value: Any, words: str) -> None:
    """Messages say "holds an integer" and "holds null"."""
    assert paths.a_type(value) == words


@pytest.mark.parametrize(
    "text",
    [".".join("a" * 101), "a" + "[0]" * 100, "a." * 5000 + "b"],
    ids=["keys", "lists", "far"],
)
def test_a_path_longer_than_any_document_is_refused(text: str) -> None:
    """At most 100 segments: what is nested deeper cannot be written, and Python cannot follow it."""
    with pytest.raises(AicrError, match="segments, and at most 100 are possible") as caught:
        paths.split(text)
    assert caught.value.code == INVALID_REQUEST
    assert len(caught.value.message) < 120
    assert len(paths.split(".".join("a" * 100))) == 100


@pytest.mark.covers("B4", "B5")
@pytest.mark.parametrize(
    ("text", "segments"),
    [
        ("a", ["a"]),
        ("a.b.c", ["a", "b", "c"]),
        (r"a.b\.c[0].d", ["a", "b.c", 0, "d"]),
        (r"nodeSelector.kubernetes\.io/hostname", ["nodeSelector", "kubernetes.io/hostname"]),
        ("nodeSelector.kubernetes.io/hostname", ["nodeSelector", "kubernetes", "io/hostname"]),
        (r"resources.limits.nvidia\.com/gpu", ["resources", "limits", "nvidia.com/gpu"]),
        ("a[0][12]", ["a", 0, 12]),
        ("[3].a", [3, "a"]),
        ("a.0", ["a", "0"]),
        (r"a\[0\]", ["a[0]"]),
        (r"a\\.b", ["a\\", "b"]),
        ("a b.c=d", ["a b", "c=d"]),
        ("a[65536]", ["a", 65536]),
    ],
)
def test_paths_split_into_keys_and_positions(text: str, segments: Segments) -> None:
    """Dots separate, a backslash escapes, brackets index (decision 6)."""
    assert paths.split(text) == segments


@pytest.mark.covers("B5")
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "empty path"),
        (".", "empty segment"),
        ("a.", "empty segment"),
        (".a", "empty segment"),
        ("a..b", "empty segment"),
        ("a.[0]", "empty segment"),
        ("a[", 'unterminated "["'),
        ("a[0", 'unterminated "["'),
        ("list[-1]", 'index "-1" is not a plain number'),
        ("a[]", 'index "" is not a plain number'),
        ("a[x]", 'index "x" is not a plain number'),
        ("a[1_0]", 'index "1_0" is not a plain number'),
        ("a[01]", 'index "01" is not a plain number'),
        ("a[１]", 'index "１" is not a plain number'),
        ("a[+1]", 'index "+1" is not a plain number'),
        ("list[99999999]", "index 99999999 is above 65536"),
        ("a[65537]", "index 65537 is above 65536"),
        ("a[0]b", '"b" directly after "]"'),
        ("a]", 'unexpected "]"'),
        ("a\\", "backslash at the end"),
        (r"a\x", 'backslash before "x"'),
    ],
)
def test_malformed_paths_are_refused(text: str, problem: str) -> None:
    """The error quotes the path, names the fault and shows the way out."""
    with pytest.raises(AicrError) as caught:
        paths.split(text)
    assert caught.value.code == INVALID_REQUEST
    assert caught.value.message == f'invalid path "{text}": {problem}'
    assert caught.value.hint


def test_join_escapes_what_split_would_take_apart() -> None:
    """Keys with dots, brackets and backslashes come back as one key."""
    assert paths.join(["a", "b.c", 0, "d[1]", "e\\"]) == r"a.b\.c[0].d\[1\].e\\"
    assert paths.join([2, 3, "a"]) == "[2][3].a"


@pytest.mark.parametrize("segments", [[], [""], ["a", ""], ["a", -1], ["a", 65537]])
def test_join_refuses_what_no_path_can_say(segments: Segments) -> None:
    """There is no text for an empty key or an impossible position."""
    with pytest.raises(AicrError) as caught:
        paths.join(segments)
    assert caught.value.code == INVALID_REQUEST


DOCUMENT: dict[str, Any] = {"a": {"b": [{"c": 1}, 2], "n": None, "s": "x"}, "driver": {}}


@pytest.mark.parametrize(
    ("path", "value"),
    [("a.s", "x"), ("a.b[0].c", 1), ("a.b[1]", 2), ("a.n", None), ("driver", {})],
)
def test_get_returns_the_value(path: str, value: Any) -> None:
    """A stored null is a value, also when there is a default."""
    assert paths.get(DOCUMENT, paths.split(path)) == value
    assert paths.get(DOCUMENT, paths.split(path), "default") == value


@pytest.mark.parametrize(
    ("path", "message", "hint"),
    [
        ("a.x", 'no value at "a.x"', 'did you mean "b"?'),
        ("drivr.x", 'no value at "drivr"', 'did you mean "driver"?'),
        ("unrelated", 'no value at "unrelated"', ""),
        ("a.b[2]", 'no value at "a.b[2]": the list has 2 items', ""),
        ("a.s.t", 'no value at "a.s.t": the value above it is a string', ""),
        ("a[0]", 'no value at "a[0]": the value above it is a map', ""),
        ("a.b.c", 'no value at "a.b.c": the value above it is a list', ""),
        ("a.n.x", 'no value at "a.n.x": the value above it is null', ""),
    ],
)
def test_get_names_the_first_missing_segment(path: str, message: str, hint: str) -> None:
    """NOT_FOUND with the nearest key, or the default when one is given."""
    segments = paths.split(path)
    with pytest.raises(AicrError) as caught:
        paths.get(DOCUMENT, segments)
    assert caught.value.code == NOT_FOUND
    assert caught.value.message == message
    assert caught.value.hint == hint
    assert paths.get(DOCUMENT, segments, None) is None


@pytest.mark.parametrize(
    ("document", "path", "result"),
    [
        ({}, "a", {"a": "v"}),
        ({}, "a.b.c", {"a": {"b": {"c": "v"}}}),
        ({"a": {"x": 1}}, "a.b", {"a": {"x": 1, "b": "v"}}),
        ({"a": None}, "a.b", {"a": {"b": "v"}}),
        (None, "a.b", {"a": {"b": "v"}}),
        ({"a": 1}, "a", {"a": "v"}),
        ({"t": [{"key": "k"}]}, "t[0].key", {"t": [{"key": "v"}]}),
        ({"t": [1, 2]}, "t[1]", {"t": [1, "v"]}),
        ({"t": [None]}, "t[0].k", {"t": [{"k": "v"}]}),
        ({"t": [[1]]}, "t[0][0]", {"t": [["v"]]}),
        ([1], "[0]", ["v"]),
        ({}, r"l.nvidia\.com/gpu", {"l": {"nvidia.com/gpu": "v"}}),
    ],
)
def test_put_sets_one_place_and_makes_maps_on_the_way(
    document: Any, path: str, result: Any
) -> None:
    """Absent and null places become maps; list items are set within bounds."""
    assert paths.put(document, paths.split(path), "v") == result


@pytest.mark.covers("R11-53", "B5")
@pytest.mark.parametrize(
    ("document", "path", "message"),
    [
        ({"a": "x"}, "a.b", 'path segment "a" exists but is not a map (type: string)'),
        ({"a": [1]}, "a.b", 'path segment "a" exists but is not a map (type: list)'),
        ({"a": 1}, "a.b.c", 'path segment "a" exists but is not a map (type: integer)'),
        ({"a": 1.5}, "a.b", 'path segment "a" exists but is not a map (type: number)'),
        ({"a": True}, "a.b", 'path segment "a" exists but is not a map (type: boolean)'),
        ({"o": {"a.b": ""}}, r"o.a\.b.c", r'path segment "a\.b" exists but is not a map'),
        ({"t": ["x"]}, "t[0].k", 'path segment "t[0]" exists but is not a map (type: string)'),
        ({"a": {"b": 1}}, "a[0]", 'path segment "a" exists but is not a list (type: map)'),
        ([1], "a", 'path segment "." exists but is not a map (type: list)'),
        ({"t": [1]}, "t[1]", 'index 1 of "t" is out of bounds: the list has 1 items'),
        ({"t": [{}]}, "t[2].key", 'index 2 of "t" is out of bounds: the list has 1 items'),
        ({"t": []}, "t[0]", 'index 0 of "t" is out of bounds: the list has 0 items'),
        ({}, "t[0]", 'index 0 of "t" is out of bounds: the list has 0 items'),
    ],
)
def test_put_never_goes_through_something_else(document: Any, path: str, message: str) -> None:
    """A scalar or list is never silently replaced, and a list is never grown."""
    with pytest.raises(AicrError) as caught:
        paths.put(document, paths.split(path), "v")
    assert caught.value.code == INVALID_REQUEST
    assert caught.value.message.startswith(message)
    assert caught.value.hint


def test_put_of_the_empty_path_is_the_value_itself() -> None:
    """The root can be replaced."""
    assert paths.put({"a": 1}, [], {"b": 2}) == {"b": 2}


def test_put_changes_neither_the_document_nor_keeps_the_value() -> None:
    """Input documents are never changed, and the stored value is a copy."""
    document = {"a": {"b": [1]}, "c": {}}
    value = {"x": [1]}
    result = paths.put(document, ["a", "b", 0], value)
    value["x"].append(2)
    assert document == {"a": {"b": [1]}, "c": {}}
    assert result == {"a": {"b": [{"x": [1]}]}, "c": {}}


@pytest.mark.parametrize(
    ("path", "result"),
    [
        ("a.s", {"a": {"b": [{"c": 1}, 2], "n": None}, "driver": {}}),
        ("a.b[0]", {"a": {"b": [2], "n": None, "s": "x"}, "driver": {}}),
        ("a.b[0].c", {"a": {"b": [{}, 2], "n": None, "s": "x"}, "driver": {}}),
        ("a", {"driver": {}}),
        ("a.x", DOCUMENT),
        ("a.s.x", DOCUMENT),
        ("a.b[7]", DOCUMENT),
        ("driver[0]", DOCUMENT),
    ],
)
def test_delete_removes_one_place_or_nothing(path: str, result: Any) -> None:
    """Deleting what is not there is no error, and the input stays as it was."""
    before = repr(DOCUMENT)
    assert paths.delete(DOCUMENT, paths.split(path)) == result
    assert repr(DOCUMENT) == before
    assert paths.delete(DOCUMENT, []) is None


@pytest.mark.parametrize(
    ("a", "b", "verdict"),
    [
        ("a.b", "a.b", True),
        ("a", "a.b", True),
        ("a.b[0]", "a.b", True),
        ("a.b[0]", "a.b[1]", False),
        ("a.b", "a.bc", False),
        ("a.b", "b.a", False),
        ("a.0", "a[0]", False),
    ],
)
def test_paths_conflict_when_one_is_or_contains_the_other(a: str, b: str, verdict: bool) -> None:
    """Equal, ancestor or descendant, in both directions (decision 7)."""
    assert paths.conflict(paths.split(a), paths.split(b)) is verdict
    assert paths.conflict(paths.split(b), paths.split(a)) is verdict
