"""Laws of YAML in and out, for any document: what is written is what every reader reads."""

from __future__ import annotations

import re
from typing import Any

import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from aicr.errors import AicrError
from aicr.yamlio import canonical, read, scalars, write

LOOKALIKES = [
    *["72225e2", "0e1234", "0o744", "089", "y", "n", "1e-3", "1e400", "12:30:45", "2024-01-02"],
    *["~", "=", "<<", "", "null", "Yes", "oFF", "0x1F", "-0b1", "1_0", ".5", "+.inf", ".NaN", "1."],
    *["-", "--", "---", "...", "- a", "? a", ": a", "a: b", "a #b", "a:", "#", "*a", "&a", "!a"],
    *["|", ">", ">= 1.3", "< 1", "@a", "`a", "%a", "'", '"', "''", "[a]", "{a}", "{{ a }}", "a,b"],
    *["2001-12-14 21:59:43", "1:2", "190:20:30.15", "._5", ".5_0", "é", "a\tb", "\t", " ", " a "],
]
PARTS = "aby019 .:-#'\"\\\n\t_+e[]{}|>*&!%@`?,=<~"
NASTY = st.lists(st.sampled_from(PARTS), max_size=8).map("".join)
CONTROLS = st.text(st.characters(codec="utf-8"), max_size=6)
STRINGS = st.one_of(st.sampled_from(LOOKALIKES), NASTY, CONTROLS)
NUMBERS = st.one_of(
    st.integers(-(2**63), 2**64 - 1), st.floats(allow_nan=False, allow_infinity=False)
)
SCALARS = st.one_of(STRINGS, STRINGS, NUMBERS, st.booleans(), st.none())


def trees_of(strings: st.SearchStrategy[str], scalars: st.SearchStrategy[Any]) -> Any:
    """Documents with these keys and leaves."""
    return st.recursive(
        scalars,
        lambda inner: st.one_of(
            st.lists(inner, max_size=4), st.dictionaries(strings, inner, max_size=4)
        ),
        max_leaves=12,
    )


TREES = trees_of(STRINGS, SCALARS)
INDENTS = st.sampled_from([2, 4, 3, 9])


def same(a: Any, b: Any) -> bool:
    """Equality that tells 1 from 1.0 and True, and minds the order of keys."""
    return repr(a) == repr(b)


@given(TREES, INDENTS)
def test_what_is_written_reads_back_in_both_modes(tree: Any, indent: int) -> None:
    """Dump, then load, is the identity, types and order included."""
    text = write.dump(tree, indent=indent)
    assert same(read.load(text, source="t"), tree)
    assert same(read.load(text, source="t", mode="v3"), tree)


@given(TREES)
def test_a_yaml_1_1_reader_reads_the_same(tree: Any) -> None:
    """PyYAML's own loader, an independent consumer, agrees."""
    assert same(yaml.load(write.dump(tree), yaml.SafeLoader), tree)


@given(TREES, st.booleans())
def test_writing_is_deterministic_and_sorting_changes_only_the_order(tree: Any, sort: bool) -> None:
    """The same document gives the same bytes, and equal content whatever the order."""
    text = write.dump(tree, sort_keys=sort)
    assert text == write.dump(tree, sort_keys=sort)
    assert text.endswith("\n")
    assert read.load(text, source="t") == tree


ORACLE = re.compile(
    r"^[-+]?(\.\d+|\d+(\.\d*)?)([eE][-+]?\d+)?$|^[-+]?0[xob][0-9a-fA-F]+$"
    r"|^(y|n|yes|no|on|off|true|false|null|~|=|<<)$|^\d+(:\d+)+(\.\d*)?$|^\d{4}-\d\d?-\d\d?$",
    re.IGNORECASE,
)


@given(st.lists(STRINGS, min_size=1, max_size=8))
def test_no_string_is_left_plain_that_a_consumer_reads_as_another_type(strings: list[str]) -> None:
    """The oracle of field case C1, on every plain scalar of the output."""
    for line in write.dump(strings).split("\n"):
        written = line.removeprefix("- ")
        if written and written[0] not in "'\"| ":
            assert not ORACLE.match(written[0] + written[1:].replace("_", ""))


ORDINARY_CHARS = st.characters(min_codepoint=32, max_codepoint=126)
ORDINARY = st.one_of(
    st.sampled_from([text for text in LOOKALIKES if text.isprintable()]),
    st.text(ORDINARY_CHARS, max_size=10),
    st.lists(st.text(ORDINARY_CHARS, max_size=6), min_size=2, max_size=4).map("\n".join),
)
ORDINARY_TREES = st.one_of(
    st.dictionaries(ORDINARY, trees_of(ORDINARY, st.one_of(ORDINARY, SCALARS.filter(
        lambda value: not isinstance(value, str)))), max_size=5),
    st.lists(trees_of(ORDINARY, ORDINARY), max_size=4),
)  # fmt: skip


@given(ORDINARY_TREES, INDENTS)
@example({"a": -0.0, "b": [-(2**63), 1e300, 5e-324], "c": {"k: v": ["x"]}}, 2)
def test_the_fast_reader_takes_everything_ordinary_that_we_write(tree: Any, indent: int) -> None:
    """No fall-back on our own output, and the same values."""
    try:
        found = canonical.parse(write.dump(tree, indent=indent))
    except canonical.Fallback:
        big = [n for n in numbers_in(tree) if type(n) is int and abs(n) >= 10**19]
        assert big, f"fell back on {write.dump(tree)!r}"
        return
    assert same(found, tree)


def numbers_in(tree: Any) -> list[Any]:
    """All leaves of a document."""
    if isinstance(tree, dict):
        return [leaf for item in tree.values() for leaf in numbers_in(item)]
    if isinstance(tree, list):
        return [leaf for item in tree for leaf in numbers_in(item)]
    return [tree]


VALUES = st.sampled_from(
    [
        *[text for text in LOOKALIKES if "\n" not in text],
        *[
            "a",
            "x y",
            "1",
            "-1",
            "01",
            "1.0",
            "1.2.3",
            "7d",
            "5Gi",
            "true",
            "|-",
            "|+",
            "|2",
            "|2-",
        ],
        *[
            "a #c",
            "'a'",
            "'a''b'",
            "'a: b'",
            '"a\\n"',
            '"\\\\"',
            '"a\\"b"',
            "'a",
            "'a' #c",
            "'a'#c",
        ],
        *[
            "[]",
            "{}",
            "[a, b]",
            "{a: b}",
            "{a: b, a: c}",
            "[a,b]",
            '{"a":1}',
            '{"a": 1}',
            "[1, 01]",
        ],
        *["[ ]", "{ a: [b, {c: d}] }", "[a: b]", "[a, ]", "{a}", "&a b", "!t x", "-c", "--f=a:b"],
        *["b: c", "'a': b", '"a": b', "y: 1", "1: 2", "true: x", "a : b", "<<: {}", "50%", "a  b"],
    ]
)
KEYS = st.sampled_from(
    ["a", "b", "c", "a.b/c", '"k"', "'k l'", "k l", "-k", ":k", "?k", "<k", "1k"]
)
MARGINS = st.sampled_from(["", "", "", " ", "  ", "  ", "   ", "    ", "      "])
LINES = st.one_of(
    st.builds("{}{}: {}".format, MARGINS, KEYS, VALUES),
    st.builds("{}{}:".format, MARGINS, KEYS),
    st.builds("{}- {}".format, MARGINS, VALUES),
    st.builds("{}- {}: {}".format, MARGINS, KEYS, VALUES),
    st.builds("{}- {}:".format, MARGINS, KEYS),
    st.builds("{}- - {}".format, MARGINS, VALUES),
    st.builds("{}{}".format, MARGINS, VALUES),
    st.builds("{}-".format, MARGINS),
    st.builds("{}# c".format, MARGINS),
    st.sampled_from(["", "  ", "---", "--- "]),
)
ENDS = st.sampled_from(["\n", "\n", "", "\n\n", " \n"])


@given(st.lists(LINES, max_size=7).map("\n".join), ENDS)
def test_whatever_the_fast_reader_accepts_the_full_reader_reads_the_same(
    body: str, end: str
) -> None:
    """For any text, in both modes: equal values, or a fall-back, never an error of its own."""
    text = body + end
    for fast, full in ((canonical.parse, read.load), (canonical.parse_all, read.load_all)):
        try:
            found = fast(text)
        except canonical.Fallback:
            continue
        for mode in ("helm", "v3"):
            assert same(full(text, source="t", mode=mode), found)


@given(st.text(max_size=30) | st.lists(LINES, max_size=6).map("\n".join))
def test_any_text_reads_or_is_refused_in_our_words(text: str) -> None:
    """No exception of the parser below ever reaches a caller."""
    error = refusal(text)
    if error is not None:
        assert error.code == "INVALID_REQUEST"
        assert error.where.startswith("t:")
        assert error.hint


def refusal(text: str) -> AicrError | None:
    """How the full reader refuses a text, if it does."""
    try:
        read.load_with_positions(text, source="t")
    except AicrError as error:
        return error
    return None


@given(st.text("0123456789.-+_:eExXoObBaFfnNiITZ ", max_size=9))
def test_what_no_consumer_misreads_is_text_to_the_reader(text: str) -> None:
    """The writer's question is wider than the reader's answer."""
    if not scalars.misread(text):
        assert scalars.resolve(text) == text
