"""Overrides on values: the types texts get, what is refused, and the change lines."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from aicr.bundle.override_values import apply_scalars, apply_typed
from aicr.bundle.overrides import Override, parse_overrides
from aicr.bundle.typed_values import typed, typed_at
from aicr.bundle.value_files import MAX_VALUE_FILE, read_value_file
from aicr.errors import INVALID_REQUEST, NOT_FOUND, AicrError


def overrides(*texts: str, json: bool = False) -> list[Override]:
    """Overrides of component c."""
    found, _ = parse_overrides(
        scalars=() if json else texts, files=(), jsons=texts if json else (), read_file=None
    )
    for override in found:
        override.component = "c"
    return found


def scalar(values: dict[str, Any], *texts: str) -> tuple[dict[str, Any], list[str]]:
    """Apply `--set` texts."""
    return apply_scalars(values, overrides(*texts))


def with_json(values: dict[str, Any], *texts: str) -> tuple[dict[str, Any], list[str], list[str]]:
    """Apply `--set-json` texts."""
    return apply_typed(values, overrides(*texts, json=True))


@pytest.mark.covers("B2", "B10-15")
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("false", False),
        ("TRUE", "TRUE"),
        ("True", "True"),
        ("null", None),
        ("NULL", "NULL"),
        ("0", 0),
        ("8", 8),
        ("-5", -5),
        ("+5", "+5"),
        ("-0", "-0"),
        ("007", "007"),
        ("08", "08"),
        ("00009", "00009"),
        ("1.5", 1.5),
        ("-0.5", -0.5),
        ("1.10", "1.10"),
        ("24.10", "24.10"),
        ("3.20", "3.20"),
        ("1.0", "1.0"),
        (".5", ".5"),
        ("5.", "5."),
        ("0.00001", "0.00001"),
        ("0.12345678901234567890", "0.12345678901234567890"),
        ("1e5", "1e5"),
        ("72225e2", "72225e2"),
        ("12e03", "12e03"),
        ("9223372036854775807", 9223372036854775807),
        ("9223372036854775808", "9223372036854775808"),
        ("-9223372036854775808", -9223372036854775808),
        ("-9223372036854775809", "-9223372036854775809"),
        ("nan", "nan"),
        ("inf", "inf"),
        ("infinity", "infinity"),
        ("0x10", "0x10"),
        ("0x1p-2", "0x1p-2"),
        ("1_000", "1_000"),
        ("１", "１"),
        ("1\n", "1\n"),
        ("", ""),
        ("yes", "yes"),
    ],
)
def test_only_text_that_survives_a_round_trip_gets_a_type(text: str, value: Any) -> None:
    """Everything that would come back spelled differently stays a string."""
    found = typed(text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.covers("B2")
@pytest.mark.parametrize(
    ("last", "current", "text", "value"),
    [
        ("x", "text", "8", "8"),
        ("x", "", "true", "true"),
        ("version", None, "24", "24"),
        ("driverVersion", None, "580", "580"),
        ("tag", None, "12345678", "12345678"),
        ("imageTag", 7, "12345678", "12345678"),
        ("imageRegistry", None, "5000", "5000"),
        ("digest", None, "1", "1"),
        ("x", 3, "8", 8),
        ("x", True, "false", False),
        ("imageScan", True, "false", False),
        ("x", 3, "many", "many"),
        ("x", "text", "null", None),
        (0, None, "8", 8),
    ],
)
def test_a_path_that_holds_text_or_names_a_version_keeps_text(
    last: str | int, current: Any, text: str, value: Any
) -> None:
    """What is there now and what the path is called decide before the text does."""
    found = typed_at(text, last, current)
    assert found == value
    assert type(found) is type(value)


def test_every_scalar_leaves_a_change_line_and_the_input_alone() -> None:
    """The line shows component, path, old and new value; values are never changed in place."""
    values = {"a": {"b": 1, "keep": [1]}}
    changed, lines = scalar(values, "c:a.b=2", "c:new.deep.key=x", "c:flag=true")
    assert changed == {"a": {"b": 2, "keep": [1]}, "new": {"deep": {"key": "x"}}, "flag": True}
    assert values == {"a": {"b": 1, "keep": [1]}}
    assert lines == ["c:flag: (unset) → true", "c:a.b: 1 → 2", 'c:new.deep.key: (unset) → "x"']


def test_the_change_line_shows_the_path_as_it_was_typed() -> None:
    """An escaped dot stays escaped, so the line can be pasted back."""
    _, lines = scalar({}, r"c:nodeSelector.kubernetes\.io/os=linux")
    assert lines == [r'c:nodeSelector.kubernetes\.io/os: (unset) → "linux"']


@pytest.mark.covers("B1", "C-069")
@pytest.mark.parametrize(
    ("current", "kind"),
    [(["10.0.0.0/8"], "list"), ([], "list"), ({"a": 1}, "map"), ({}, "map")],
)
def test_a_scalar_never_replaces_a_list_or_a_map(current: Any, kind: str) -> None:
    """A chart would skip its template and fall back to an open default."""
    with pytest.raises(AicrError) as caught:
        scalar({"gateway": {"ranges": current}}, "c:gateway.ranges=192.0.2.0/30")
    assert caught.value.code == INVALID_REQUEST
    assert kind in caught.value.message
    assert "--set-json 'c:gateway.ranges=" in caught.value.hint


@pytest.mark.covers("R11-53")
@pytest.mark.parametrize(
    ("values", "kind"),
    [({"a": [1]}, "list"), ({"a": "x"}, "string"), ({"a": 1}, "integer"), ({"a": True}, "boolean")],
)
def test_a_path_through_something_else_than_a_map_is_refused(
    values: dict[str, Any], kind: str
) -> None:
    """The message names the segment and its type."""
    with pytest.raises(AicrError) as caught:
        scalar(values, "c:a.b=1")
    assert f'path segment "a" exists but is not a map (type: {kind})' in str(caught.value)
    assert "failed to apply map overrides" in str(caught.value)
    assert caught.value.exit_status == 2


@pytest.mark.covers("B5")
def test_an_index_changes_an_element_that_exists() -> None:
    """Indices work within the bounds of a list."""
    changed, lines = scalar({"t": [{"key": "a"}, {"key": "b"}]}, "c:t[1].key=x")
    assert changed == {"t": [{"key": "a"}, {"key": "x"}]}
    assert lines == ['c:t[1].key: "b" → "x"']


@pytest.mark.covers("B5")
@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"t": [{}]}, "c:t[1].key=x"),
        ({"t": [{}]}, "c:t[2]=x"),
        ({"t": []}, "c:t[0]=x"),
        ({}, "c:t[0].key=x"),
        ({"t": {"a": 1}}, "c:t[0]=x"),
        ({"t": "abc"}, "c:t[0]=x"),
    ],
)
def test_an_index_never_grows_a_list_or_makes_a_key(values: dict[str, Any], text: str) -> None:
    """Out of bounds, or on something that is no list, is an error."""
    before = repr(values)
    with pytest.raises(AicrError) as caught:
        scalar(values, text)
    assert caught.value.code == INVALID_REQUEST
    assert repr(values) == before


@pytest.mark.covers("B5")
@pytest.mark.parametrize("text", ["{a,b}", "{}", "{a"])
def test_list_literals_of_helm_are_refused_in_favour_of_json(text: str) -> None:
    """A string with braces where a list is meant would break the chart."""
    with pytest.raises(AicrError, match="lists are not written") as caught:
        scalar({}, f"c:l={text}")
    assert "--set-json" in caught.value.hint


def test_a_template_is_not_a_list_literal() -> None:
    """Double braces are text for charts that evaluate templates in values."""
    assert scalar({}, "c:a={{ .Release.Name }}")[0] == {"a": "{{ .Release.Name }}"}


@pytest.mark.covers("B7", "B2")
def test_a_scalar_null_is_written_for_helm_whether_the_recipe_sets_the_key_or_not() -> None:
    """A written null makes Helm drop the chart's own default, which a deletion could not."""
    changed, lines = scalar({"a": {"b": "x", "c": 1}}, "c:a.b=null", "c:chartDefault=null")
    assert changed == {"a": {"b": None, "c": 1}, "chartDefault": None}
    assert lines == ["c:chartDefault: (unset) → null", 'c:a.b: "x" → null']


def test_a_null_that_is_there_already_stays() -> None:
    """Deleting it would bring back the chart's default."""
    assert scalar({"a": None}, "c:a=null")[0] == {"a": None}


@pytest.mark.covers("B10-22", "B7")
@pytest.mark.parametrize(
    ("base", "text", "expected"),
    [
        ({"m": {"k": 1, "j": 2}}, 'c:m={"k":null}', {"m": {"j": 2}}),
        (
            {"env": {"A": "1", "B": {"C": "2", "D": None}}},
            'c:env={"A":null,"B":{"C":null,"E":null}}',
            {"env": {"B": {"D": None}}},
        ),
        ({"m": {"a": {"b": 1}}}, 'c:m={"a":{"c":2}}', {"m": {"a": {"b": 1, "c": 2}}}),
        ({"l": [1, 2]}, "c:l=[3]", {"l": [3]}),
        ({"l": [1, 2]}, 'c:l={"a":null,"b":1}', {"l": {"b": 1}}),
        ({"m": {"a": 1}}, "c:m=5", {"m": 5}),
        ({"m": {"a": 1}}, "c:m=[]", {"m": []}),
        ({"m": {"a": 1, "b": 2}}, "c:m.a=null", {"m": {"b": 2}}),
        ({}, 'c:a.b={"x":{"y":null}}', {"a": {"b": {"x": {}}}}),
        ({"version": "1"}, "c:version=2", {"version": 2}),
    ],
)
def test_typed_overrides_merge_maps_replace_the_rest_and_delete_with_null(
    base: dict[str, Any], text: str, expected: dict[str, Any]
) -> None:
    """The rule is the same at every depth, and no null is left behind."""
    assert with_json(base, text)[0] == expected


def test_typed_overrides_report_old_and_new_as_json() -> None:
    """Maps and lists appear on one line with sorted keys."""
    _, lines, notes = with_json({"m": {"b": 1}}, 'c:m={"a":[true,null]}', 'c:s="é"')
    assert lines == ['c:m: {"b": 1} → {"a": [true, null], "b": 1}', 'c:s: (unset) → "é"']
    assert notes == []


@pytest.mark.parametrize(
    ("text", "shown"),
    [('a"b', '"a\\"b"'), ("a\\b", '"a\\\\b"'), ("a\nb", '"a\\nb"'), ("é →", '"é →"')],
)
def test_a_change_stays_on_one_line(text: str, shown: str) -> None:
    """Quotes, backslashes and line breaks are escaped as in JSON."""
    assert scalar({}, f"c:a={text}")[1] == [f"c:a: (unset) → {shown}"]


def test_deleting_nothing_is_mentioned() -> None:
    """A mistyped path in a deletion would otherwise pass for a success."""
    values, lines, notes = with_json({"a": 1}, "c:b=null")
    assert (values, lines) == ({"a": 1}, [])
    assert notes == ["--set-json c:b=null deletes nothing: there is no value there"]


def test_a_list_element_is_not_deleted_by_null() -> None:
    """Later elements would move, which the other overrides do not expect."""
    with pytest.raises(AicrError, match="list element"):
        with_json({"l": [1, 2]}, "c:l[0]=null")


@pytest.mark.covers("B10-23")
def test_a_missing_value_file_is_not_found(tmp_path: Path) -> None:
    """The command ends with the exit status of NOT_FOUND."""
    for path in (tmp_path / "nope", tmp_path / "file" / "below"):
        (tmp_path / "file").touch()
        with pytest.raises(AicrError) as caught:
            read_value_file(str(path))
        assert caught.value.code == NOT_FOUND
        assert caught.value.exit_status == 3


@pytest.mark.covers("B10-23")
def test_only_small_readable_regular_utf8_files_are_value_files(tmp_path: Path) -> None:
    """Directories, pipes, large files, other encodings and impossible names are refused."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large").write_bytes(b"a" * (MAX_VALUE_FILE + 1))
    (tmp_path / "latin").write_bytes(b"a: \xe9\n")
    for path in (
        str(tmp_path),
        *(str(tmp_path / name) for name in ("pipe", "large", "latin")),
        "\0",
    ):
        with pytest.raises(AicrError) as caught:
            read_value_file(path)
        assert caught.value.code == INVALID_REQUEST


def test_the_byte_order_mark_of_a_value_file_is_no_part_of_its_text(tmp_path: Path) -> None:
    """Some editors put one first; the values are the same."""
    (tmp_path / "f").write_bytes(b"\xef\xbb\xbfa: 1\n")
    assert read_value_file(str(tmp_path / "f")) == "a: 1\n"


def test_a_value_file_is_read_whole(tmp_path: Path) -> None:
    """A file of exactly the allowed size is fine."""
    (tmp_path / "f").write_text("é" * (MAX_VALUE_FILE // 2), encoding="utf-8")
    assert len(read_value_file(str(tmp_path / "f"))) == MAX_VALUE_FILE // 2


@pytest.mark.parametrize("old", [{}, {"k": "y" * 500}], ids=["new", "replaced"])
def test_a_long_value_is_shown_by_its_beginning_and_length(old: dict[str, Any]) -> None:
    """What a run prints stays readable when a value is a whole file."""
    values, changes = scalar(old, f"c:k={'x' * 1000}")
    assert values == {"k": "x" * 1000}
    before = f'"{"y" * 399}… (502 characters)' if old else "(unset)"
    assert changes == [f'c:k: {before} → "{"x" * 399}… (1002 characters)']
