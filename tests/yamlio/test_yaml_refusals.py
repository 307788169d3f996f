"""What the reader refuses: code, place, words and the next step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from aicr.errors import INVALID_REQUEST, AicrError
from aicr.yamlio import decode, read, read_fast, read_fast_all


def refused(text: str, mode: str = "helm") -> AicrError:
    """The error that every entry point gives for *text*."""
    with pytest.raises(AicrError) as caught:
        read.load(text, source="f.yaml", mode=mode)
    assert caught.value.code == INVALID_REQUEST
    assert caught.value.hint
    with pytest.raises(AicrError) as fast:
        read_fast(text, source="f.yaml", mode=mode)
    assert str(fast.value) == str(caught.value)
    return caught.value


@pytest.mark.covers("C3")
@pytest.mark.parametrize(
    ("text", "where", "words"),
    [
        (
            'driver: {enabled: true}\ntoolkit: {enabled: true}\ndriver: {version: "580.95.05"}\n',
            "f.yaml:3:1",
            'duplicate key "driver": already set on line 1, again on line 3',
        ),
        ("a:\n  b: 1\n  'b': 2\n", "f.yaml:3:3", "already set on line 2, again on line 3"),
        ("- {a: 1, a: 2}", "f.yaml:1:10", "already set on line 1"),
        ('{"a":1,"a":2}', "f.yaml:1:8", 'duplicate key "a"'),
        ("x: &a {k: 1, k: 2}\ny: {<<: *a}\n", "f.yaml:1:14", 'duplicate key "k"'),
        ("<<: {a: 1}\n<<: {b: 1}\n", "f.yaml:2:1", 'duplicate key "<<"'),
    ],
)
def test_duplicate_keys_are_refused_with_both_lines(text: str, where: str, words: str) -> None:
    """A later key never silently replaces an earlier one, also inside an anchored map."""
    error = refused(text)
    assert error.where == where
    assert words in error.message


@pytest.mark.covers("A8")
@pytest.mark.parametrize(
    ("written", "words", "hint"),
    [
        (">= 1.32.4", "block scalar", "'>= 1.32.4'"),
        ("> 1.32", "block scalar", "'> 1.32'"),
        ("|| x", "block scalar", "'|| x'"),
        ("!example.com/plugin", 'a leading "!" is a YAML tag', "'!example.com/plugin'"),
        ("!foo bar # c", 'a leading "!" is a YAML tag', "'!foo bar'"),
        ("!!str 1", 'a leading "!" is a YAML tag', "'!!str 1'"),
        ("!", 'a leading "!" is a YAML tag', "'!'"),
        ("!a!b", "undefined tag handle", "'!a!b'"),
        ("!{x", "tag", "'!{x'"),
        ("@x", "cannot start any token", "'@x'"),
        ("`x", "cannot start any token", "'`x'"),
        ("%x", "cannot start any token", "'%x'"),
        ("*x", 'alias "*x" has no anchor', "'*x'"),
        ("* x", "alias", "'* x'"),
        ("b: c", "mapping values are not allowed", "'b: c'"),
        ("{{ .Values.x }}", "cannot be a mapping key", "template"),
        ("{{ x", "cannot be a mapping key", "template"),
        ("{ x", "flow", "close the bracket"),
        ("[1, 2", "flow", "close the bracket"),
        ("'x", "quoted scalar", "close the quotes"),
        ('"x', "quoted scalar", "close the quotes"),
        ('"\\q"', "unknown escape", "single quotes"),
    ],
)
def test_forgotten_quotes_are_answered_with_the_quoted_form(
    written: str, words: str, hint: str
) -> None:
    """The most common mistake gets its repair in the hint, at the line and column of the value."""
    error = refused(f"a: 1\nvalue: {written}\n")
    assert words in error.message
    assert hint in error.hint
    assert error.where.startswith("f.yaml:2:")
    assert int(error.where.split(":")[2]) >= 8


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("a:\n\tb: 1\n", "f.yaml:2:1"),
        ("a: 1\n\t\nb: 2\n", "f.yaml:2:1"),
        ("\t", "f.yaml:1:1"),
        ("-\ta: 1\n", "f.yaml:1:2"),
        ("a: |\n\tb\n", "f.yaml:1:4"),
        ("a:\n  - x\n  -\t- y\n", "f.yaml:3:4"),
    ],
)
def test_tabs_as_indentation_are_refused(text: str, where: str) -> None:
    """Readers disagree on the column of what stands behind a tab."""
    error = refused(text)
    assert error.where == where
    assert "tab" in error.hint or "spaces" in error.hint


def test_tabs_inside_text_are_text() -> None:
    """Only indentation minds tabs."""
    text = 'a: "x\ty"\nb: |\n  x\n  \ty\nc: x # a\tb\n'
    assert read.load(text, source="t") == {"a": "x\ty", "b": "x\n\ty\n", "c": "x"}


@pytest.mark.parametrize(
    ("key", "hint"),
    [("8080", '"8080"'), ("true", '"true"'), ("y", '"y"'), ("~", '"~"'), ("1.5", '"1.5"')],
)
def test_keys_that_are_not_strings_are_refused(key: str, hint: str) -> None:
    """A number or boolean as a key changes on its way through JSON."""
    error = refused(f"a:\n  {key}: x\n")
    assert error.message == f"mapping key {key} is not a string"
    assert error.where == "f.yaml:2:3"
    assert hint in error.hint


def test_the_key_y_is_text_in_v3_mode() -> None:
    """Kit documents were written by yaml.v3."""
    assert read.load("y: 1", source="t", mode="v3") == {"y": 1}


@pytest.mark.parametrize("text", ["? [a]\n: b\n", "? {a: 1}\n: b\n", "x: &x a\n*x : b\n", ": x\n"])
def test_keys_that_are_no_plain_words_are_refused(text: str) -> None:
    """Lists, maps, aliases and nothing at all are no keys."""
    assert "key" in refused(text).message


def test_a_second_document_is_refused_where_one_is_expected() -> None:
    """The error stands at the second document."""
    error = refused("a: 1\n---\nb: 2\n---\nc: 3\n")
    assert error.message == "expected one YAML document, found 3"
    assert error.where == "f.yaml:2:1"


@pytest.mark.parametrize("number", [".nan", ".inf", "-.INF", "+.Inf", ".NaN"])
def test_numbers_that_json_lacks_are_refused(number: str) -> None:
    """Kubernetes documents are JSON in the end."""
    error = refused(f"a: {number}\n")
    assert error.where == "f.yaml:1:4"
    assert f'"{number}"' in error.hint


def test_an_alias_bomb_is_refused_before_it_expands() -> None:
    """A few lines must not become gigabytes."""
    lines = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    for name, below in zip("bcdefghij", "abcdefghi", strict=True):
        lines.append(f"{name}: &{name} [{', '.join(['*' + below] * 9)}]")
    error = refused("\n".join(lines))
    assert "aliases expand to more than" in error.message


def test_a_merge_bomb_is_refused_too() -> None:
    """Merge keys count like aliases."""
    lines = ["a: &a {" + ", ".join(f"k{i}: [x, x, x, x]" for i in range(200)) + "}"]
    lines += [f"b{i}: {{<<: *a}}" for i in range(200)]
    assert "aliases expand" in refused("\n".join(lines)).message


@pytest.mark.parametrize("text", ["a: &x [*x]", "a: &x {b: *x}", "a: &x\n  <<: *x\n"])
def test_an_alias_of_its_own_container_is_refused(text: str) -> None:
    """There are no cyclic documents."""
    assert 'alias "*x" contains itself' in refused(text).message


@pytest.mark.parametrize(
    "text", ["[" * 5000, "[" * 300 + "]" * 300, "{a: " * 300 + "1" + "}" * 300]
)
def test_deep_nesting_is_refused_not_overflowed(text: str) -> None:
    """The stack is not the limit."""
    error = refused(text)
    assert "nested more than 200 deep" in error.message or "nesting depth" in error.message
    assert error.hint == "flatten the document"


@pytest.mark.parametrize(
    "text", ["<<: 3\n", "<<: [1]\n", "x: &x [a]\n<<: *x\n", "<<: [[{a: 1}]]\n", "<<:\n"]
)
def test_a_merge_key_takes_only_maps(text: str) -> None:
    """Nothing else can be merged into a map."""
    assert "needs a map or a list of maps" in refused(text).message


@pytest.mark.parametrize(
    "char", ["\x00", "\x01", "\x1b", "\x7f", "\x80", "\ufeff", "\ufffe", "\ud800"]
)
def test_characters_that_yaml_forbids_are_refused_with_their_place(char: str) -> None:
    """The code point is named, because it cannot be seen."""
    error = refused(f"a: é\nb: é{char}\n")
    assert f"U+{ord(char):04X}" in error.message
    assert error.where == "f.yaml:2:5"


@pytest.mark.parametrize("directive", ["%FOO bar", "%YAML 3.0", "%YAML", "%TAG ! x"])
def test_directives_that_change_reading_are_refused(directive: str) -> None:
    """A document says nothing about how to read it."""
    with pytest.raises(AicrError) as caught:
        read.load(f"{directive}\n---\na: !x 1\n", source="t")
    assert caught.value.code == INVALID_REQUEST


def failure(reader: Callable[..., Any], text: str) -> AicrError | None:
    """How *reader* refuses *text*; any exception but ours fails the test."""
    try:
        reader(text, source="f")
    except AicrError as error:
        return error
    return None


def test_no_parser_exception_leaks_from_broken_text() -> None:
    """Every prefix of a document with all features reads or is refused in our words."""
    text = (
        "%YAML 1.1\n---\na: &x {b: [1, 'two', \"th\\u00e9\"], <<: {c: d}}\n? e\n: |2-\n   f\n"
        "g: >+\n  h\n\ni: *x\nj: !t k\n- l\n...\n"
    )
    for end in range(len(text)):
        for piece in (text[:end], text[end:], text[: end // 2] + text[end:]):
            for reader in (read.load_all, read_fast_all):
                error = failure(reader, piece)
                if error is not None:
                    assert error.code == INVALID_REQUEST
                    assert error.where.startswith("f:")


def test_bytes_that_are_not_utf_8_are_refused_with_their_place() -> None:
    """Line and column count characters, not bytes."""
    with pytest.raises(AicrError) as caught:
        decode("a: 1\nbé: ".encode() + b"\xff\n", source="f.yaml")
    assert caught.value.code == INVALID_REQUEST
    assert caught.value.where == "f.yaml:2:5"
    assert "0xff" in caught.value.message
    assert decode("é".encode(), source="f") == "é"
