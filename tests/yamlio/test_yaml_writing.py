"""How documents are written: layout, quoting, blocks and refusals."""

from __future__ import annotations

from typing import Any

import pytest

from aicr.errors import INTERNAL, INVALID_REQUEST, AicrError
from aicr.yamlio import write

LOOKALIKES = [
    "72225e2",
    "0e1234",
    "0o744",
    "089",
    "y",
    "n",
    "1e-3",
    "1e400",
    "12:30:45",
    "2024-01-02",
    "~",
    "=",
    "Y",
    "N",
    "yes",
    "Yes",
    "YES",
    "no",
    "off",
    "ON",
    "True",
    "FALSE",
    "null",
    "NULL",
    "Null",
    "nUlL",
    "yEs",
    "<<",
    "0",
    "-1",
    "+1",
    "24.10",
    "1.",
    ".5",
    "-.5",
    "+.5e3",
    "1_000",
    "0x10",
    "0X1F",
    "0b11",
    "0O17",
    "-0x1",
    "0x1p-2",
    ".inf",
    "-.Inf",
    "+.INF",
    ".nan",
    ".NAN",
    "1:2:3.5",
    "190:20:30",
    "2001-1-1",
    "2001-12-14T21:59:43Z",
    ".",
    "1e5",
    "12e03",
    "00009",
    "1E+5",
    "9223372036854775808",
    "0.1e-2",
    "1__0",
    "-0",
    "0_1",
]

ORDINARY = [
    "a",
    "v1.2.3",
    "1.2.3",
    "580.95.05",
    "10.0.0.0/8",
    "4f5a9c",
    "100m",
    "5Gi",
    "1.5Gi",
    "nvidia.com/gpu",
    "a:b",
    "http://x:1/y",
    "a#b",
    "-x",
    "--flag=1",
    "--",
    "x",
    "it's",
    "?x",
    ":x",
    "=x",
    'a"b',
    "é",
    "日本",
    "yess",
    "nulls",
    "7d",
    "1.2.3-rc.1",
    "0xyz",
    "e5",
    "_1",
    "v1.33.5-eks-3025e55",
    "$x",
    "(x)",
    "50%",
    "1,000",
    "/a/b",
    "inf",
    "nan",
    "== 24.10",
    "< 1.35",
    "<<x",
]


@pytest.mark.parametrize(
    ("value", "indent", "text"),
    [
        ({"a": {"b": [1, "x"]}}, 2, "a:\n  b:\n    - 1\n    - x\n"),
        ({"a": {"b": [1, "x"]}}, 4, "a:\n    b:\n        - 1\n        - x\n"),
        ([{"a": 1, "b": {"c": 2}}, "x"], 2, "- a: 1\n  b:\n    c: 2\n- x\n"),
        ({"k": [{"a": 1, "b": 2}]}, 4, "k:\n    - a: 1\n      b: 2\n"),
        ([["a", ["b", "c"]], []], 2, "- - a\n  - - b\n    - c\n- []\n"),
        ({"a": {}, "b": [], "c": None, "d": ""}, 2, 'a: {}\nb: []\nc: null\nd: ""\n'),
        ({"a": [{}, None, True]}, 2, "a:\n  - {}\n  - null\n  - true\n"),
        ({}, 2, "{}\n"),
        ([], 2, "[]\n"),
        (None, 2, "null\n"),
        ("two\nlines", 2, '"two\\nlines"\n'),
        (True, 2, "true\n"),
    ],
)
def test_layout_is_block_style_with_lists_below_their_key(
    value: Any, indent: int, text: str
) -> None:
    """Lists are indented below their key, maps in lists start on the dash line, empties are flow."""
    assert write.dump(value, indent=indent) == text


def test_keys_keep_their_order_unless_sorting_is_asked_for() -> None:
    """Order is the document's own, or that of the code points at every depth."""
    document = {"b": 1, "a": {"d": 1, "c": 2}, "B": 3}
    assert write.dump(document) == "b: 1\na:\n  d: 1\n  c: 2\nB: 3\n"
    assert write.dump(document, sort_keys=True) == "B: 3\na:\n  c: 2\n  d: 1\nb: 1\n"


@pytest.mark.covers("C1")
@pytest.mark.parametrize(
    "text",
    LOOKALIKES,
)
def test_strings_that_look_like_another_type_are_in_double_quotes(text: str) -> None:
    """What any of YAML 1.1, 1.2, go-yaml and HCL reads as another type is quoted, keys too."""
    assert write.dump({text: text}) == f'"{text}": "{text}"\n'
    assert write.dump([text]) == f'- "{text}"\n'


@pytest.mark.parametrize(
    "text",
    [
        *[
            ">= 1.32.4",
            "*x",
            "&x",
            "!x",
            "%x",
            "@x",
            "`x",
            "- x",
            "? x",
            ": x",
            "a: b",
            "a #b",
            " a",
            "a ",
            "a:",
            "'x",
            '"x',
            "#x",
            ",x",
            "[x",
            "]x",
            "{x",
            "}x",
            "|x",
        ],
        "|",
        "---",
        "--- x",
        "...",
        "-",
        "?",
        ":",
        "{{ .Values.x }}",
        "it's: so",
    ],
)
def test_strings_that_the_syntax_forbids_plain_are_in_single_quotes(text: str) -> None:
    """Quotes that only the syntax needs are single ones."""
    quoted = "'" + text.replace("'", "''") + "'"
    assert write.dump({"k": text}) == f"k: {quoted}\n"
    assert write.dump({text: "v"}) == f"{quoted}: v\n"


@pytest.mark.parametrize(
    "text",
    ORDINARY,
)
def test_ordinary_strings_stay_plain(text: str) -> None:
    """No quotes where no reader needs them."""
    assert write.dump({"k": text, text: 1}) == f"k: {text}\n{text}: 1\n"


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("a\tb", '"a\\tb"'),
        ("\x00\x07\x08\x0b\x0c\r\x1b", '"\\0\\a\\b\\v\\f\\r\\e"'),
        ('\x01"\\', '"\\x01\\"\\\\"'),
        ("\x7f\x85\u2028\u2029\ufeff\uffff", '"\\x7F\\N\\L\\P\\uFEFF\\uFFFF"'),
        ("\U0001f600", '"\\U0001F600"'),
        ("a\r\nb", '"a\\r\\nb"'),
        ("é\x01", '"é\\x01"'),
    ],
)
def test_characters_that_may_not_stand_in_a_file_are_escaped(text: str, written: str) -> None:
    """Control characters, line separators and characters beyond U+FFFF are escapes."""
    assert write.dump({"k": text}) == f"k: {written}\n"


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("a\nb\n", "|\n  a\n  b\n"),
        ("a\nb", "|-\n  a\n  b\n"),
        ("a\n\n", "|+\n  a\n\n"),
        ("a\n\nb\n", "|\n  a\n\n  b\n"),
        (" a\nb", "|2-\n   a\n  b\n"),
        ("\na\n", "|2\n\n  a\n"),
        ("\ta\nb\n", "|2\n  \ta\n  b\n"),
        ("a\n\tb\n", "|\n  a\n  \tb\n"),
        ("# a\n- b: c\n", "|\n  # a\n  - b: c\n"),
        ("---\n...\n", "|\n  ---\n  ...\n"),
        ("a \nb\n", '"a \\nb\\n"\n'),
        ("a\n \nb", '"a\\n \\nb"\n'),
        ("\n", '"\\n"\n'),
        ("\n\n", '"\\n\\n"\n'),
        ("a\n\x01", '"a\\n\\x01"\n'),
        ("a\r\nb\n", '"a\\r\\nb\\n"\n'),
    ],
)
def test_text_of_several_lines_is_a_literal_block_when_that_is_faithful(
    text: str, written: str
) -> None:
    """Chomping and indentation indicators as needed; escapes when a block would lose something."""
    assert write.dump({"k": text}) == f"k: {written}"


def test_literal_blocks_are_indented_from_their_collection() -> None:
    """In lists and with a wide indent, the indicator counts from the enclosing collection."""
    document = {"a": [" x\ny", {"b": " x\ny"}]}
    assert write.dump(document, indent=4) == (
        "a:\n    - |4-\n         x\n        y\n    - b: |4-\n           x\n          y\n"
    )


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1.0, "1.0"),
        (24.1, "24.1"),
        (1e21, "1.0e+21"),
        (1.5e-7, "1.5e-07"),
        (1e-7, "1.0e-07"),
        (-0.0, "-0.0"),
        (0, "0"),
        (-(2**63), "-9223372036854775808"),
        (2**64 - 1, "18446744073709551615"),
        (False, "false"),
    ],
)
def test_numbers_read_back_as_the_same_type_everywhere(number: float, text: str) -> None:
    """Floats keep a dot, also with an exponent, because YAML 1.1 needs it; a bool is no integer."""
    assert write.dump({"k": number}) == f"k: {text}\n"


@pytest.mark.parametrize(
    ("value", "code", "message"),
    [
        ({"k": float("nan")}, INVALID_REQUEST, "cannot write the number nan"),
        ([float("-inf")], INVALID_REQUEST, "cannot write the number -inf"),
        ({"k": 2**64}, INVALID_REQUEST, "64 bits"),
        ([-(2**63) - 1], INVALID_REQUEST, "64 bits"),
        ({"k": "\ud800"}, INVALID_REQUEST, "lone surrogate U+D800"),
        ({"k" * 2000: 1}, INVALID_REQUEST, "mapping key of 2000 characters"),
        ({1: "x"}, INTERNAL, "keys must be strings"),
        ({None: "x", "a": "y"}, INTERNAL, "keys must be strings"),
        ({"k": b"x"}, INTERNAL, "a value of type bytes"),
        ({"k": ("x",)}, INTERNAL, "a value of type tuple"),
        ({"k": object()}, INTERNAL, "a value of type object"),
        ({"k": {1, 2}}, INTERNAL, "a value of type set"),
    ],
)
def test_what_yaml_cannot_carry_is_refused(value: Any, code: str, message: str) -> None:
    """Numbers without a YAML form are the caller's mistake, other types are ours."""
    for sort_keys in (False, True):
        with pytest.raises(AicrError) as caught:
            write.dump(value, sort_keys=sort_keys)
        assert caught.value.code == code
        assert message in caught.value.message


def test_the_place_of_a_refused_value_is_named() -> None:
    """The key or list position of a value that cannot be written is in the error."""
    with pytest.raises(AicrError) as caught:
        write.dump({"a": {"limit": float("inf")}})
    assert caught.value.where == "key limit"
    with pytest.raises(AicrError) as caught:
        write.dump({"a": [1, b""]})
    assert caught.value.where == "item 1"


@pytest.mark.parametrize("kind", [dict, list])
def test_nesting_beyond_the_limit_is_refused_not_overflowed(kind: type) -> None:
    """A cyclic or absurdly deep document is an INTERNAL error, not a crash."""
    document: Any = "x"
    for _ in range(write.MAX_DEPTH + 1):
        document = {"k": document} if kind is dict else [document]
    with pytest.raises(AicrError, match="nested more than 200 deep") as caught:
        write.dump(document)
    assert caught.value.code == INTERNAL


@pytest.mark.parametrize("indent", [0, 1, 10])
def test_an_indent_that_yaml_cannot_express_is_refused(indent: int) -> None:
    """Indentation indicators have one digit, so the step is 2 to 9."""
    with pytest.raises(AicrError, match="indent"):
        write.dump({"a": 1}, indent=indent)


def test_shared_containers_are_written_twice() -> None:
    """There are no anchors or aliases in what we write."""
    shared = {"x": [1]}
    assert write.dump({"a": shared, "b": shared}) == "a:\n  x:\n    - 1\nb:\n  x:\n    - 1\n"


@pytest.mark.parametrize(
    ("text", "quoted"), [("x", "x"), ("y", '"y"'), (">= 1", "'>= 1'"), ("a\nb", '"a\\nb"')]
)
def test_quote_gives_a_scalar_for_one_line(text: str, quoted: str) -> None:
    """The same quoting is available for texts with a YAML line of their own."""
    assert write.quote(text) == quoted


def test_a_text_that_is_both_key_and_value_has_the_right_form_in_each_place() -> None:
    """A key with a line break is escaped, the same text as a value is still a block."""
    text = "a\nb\n"
    assert write.dump({text: text}) == '"a\\nb\\n": |\n  a\n  b\n'
