"""What documents read as: scalars of both modes, merge keys, several documents, positions."""

from __future__ import annotations

from typing import Any

import pytest

from aicr.errors import INTERNAL, AicrError
from aicr.yamlio import read, read_fast, read_fast_all

# Text and value as kubectl 1.37 (sigs.k8s.io/yaml) printed it for `label --local -o json`.
AS_KUBECTL: list[tuple[str, Any]] = [
    ("014", 12),
    ("089", 89.0),
    ("0o14", 12),
    ("0O17", 15),
    ("1e3", 1000.0),
    ("1E5", 100000.0),
    ("1e400", "1e400"),
    ("1e", "1e"),
    ("1_000", 1000),
    ("1__0", 10),
    ("1_0.5", 10.5),
    ("12:30:45", "12:30:45"),
    ("2001-12-14", "2001-12-14"),
    ("2001-12-14T10:00:00Z", "2001-12-14T10:00:00Z"),
    ("=", "="),
    ("<<", "<<"),
    (".5", 0.5),
    (".5_0", 0.5),
    ("._5", "._5"),
    ("-.5", -0.5),
    ("+.5", 0.5),
    ("+5", 5),
    ("+0x1F", 31),
    ("0x", "0x"),
    ("0XfF", 255),
    ("-0b101", -5),
    ("0B11", 3),
    ("1.", 1.0),
    ("-0", 0),
    ("00", 0),
    ("00.5", 0.5),
    ("18446744073709551615", 18446744073709551615),
    ("18446744073709551616", 18446744073709551616.0),
    ("~", None),
    ("Null", None),
    ("nULL", "nULL"),
    ("TRUE", True),
    ("yEs", "yEs"),
]


@pytest.mark.parametrize(("text", "value"), AS_KUBECTL)
def test_plain_scalars_mean_what_kubectl_reads(text: str, value: Any) -> None:
    """Numbers, nulls and text agree with the Go reader, in both modes, type included."""
    for mode in ("helm", "v3"):
        found = read.load(f"k: {text}\n", source="t", mode=mode)["k"]
        assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("text", "value"),
    [(word, True) for word in ["y", "Y", "yes", "Yes", "YES", "on", "On", "ON"]]
    + [(word, False) for word in ["n", "N", "no", "No", "NO", "off", "Off", "OFF"]],
)
def test_yaml_1_1_booleans_depend_on_the_mode(text: str, value: bool) -> None:
    """Helm reads them as booleans, yaml.v3 as text (decisions 4 and 43)."""
    assert read.load(f"- {text}", source="t", mode="helm") == [value]
    assert read.load(f"- {text}", source="t", mode="v3") == [text]
    assert read_fast(f"- {text}\n", source="t", mode="helm") == [value]
    assert read_fast(f"- {text}\n", source="t", mode="v3") == [text]


@pytest.mark.parametrize("text", ["yes", "1e3", "null", "2001-12-14", ".inf", "<<", ""])
def test_quoted_scalars_are_always_text(text: str) -> None:
    """Quotes end every question of type, for keys as well."""
    assert read.load(f"\"{text}\": '{text}'", source="t") == {text: text}


@pytest.mark.parametrize(
    "text", ["", "\n\n", "# only a comment\n", "---\n", "---\n---\n", "\ufeff"]
)
def test_text_without_content_is_none(text: str) -> None:
    """An empty document is None, and no document for the reader of several."""
    assert read.load(text, source="t") is None
    assert read.load_all(text, source="t") == []
    assert read_fast(text, source="t") is None
    assert read_fast_all(text, source="t") == []


def test_a_byte_order_mark_is_not_part_of_the_document() -> None:
    """Editors on Windows put one in front; the first key is still the first key."""
    assert read.load("\ufeffa: 1\n", source="t") == {"a": 1}


def test_several_documents_come_in_order_without_the_empty_ones() -> None:
    """Empty and null documents are dropped."""
    text = "---\n# nothing\n---\na: 1\n---\nnull\n---\n- b\n...\n"
    assert read.load_all(text, source="t") == [{"a": 1}, ["b"]]


def test_an_empty_second_document_does_not_make_two() -> None:
    """A closing separator is common and harmless."""
    assert read.load("a: 1\n---\n", source="t") == {"a": 1}


def test_json_is_read_as_the_yaml_it_is() -> None:
    """JSON text, tabs between tokens included, needs no reader of its own."""
    assert read.load('{\n\t"a": [1, 2.5, null, "y"]\n}', source="t") == {"a": [1, 2.5, None, "y"]}


def test_merge_keys_work_as_helm_reads_them() -> None:
    """Helm applies the merge where it stands; yaml.v3 lets every explicit key win."""
    text = "b: &b {x: 1, w: z}\nlate: {x: 9, <<: *b}\nearly: {<<: *b, x: 9}\n"
    helm = read.load(text, source="t")
    assert helm["late"] == {"x": 1, "w": "z"}
    assert helm["early"] == {"x": 9, "w": "z"}
    v3 = read.load(text, source="t", mode="v3")
    assert v3["late"] == v3["early"] == {"x": 9, "w": "z"}


def test_the_first_of_several_merged_maps_wins() -> None:
    """In a merge list, earlier maps take precedence."""
    text = "a: &a {x: 1}\nb: &b {x: 2, z: 2}\nc:\n  <<: [*a, *b]\n"
    assert read.load(text, source="t")["c"] == {"x": 1, "z": 2}


def test_aliases_are_copies() -> None:
    """Changing one place of a document never changes another."""
    document = read.load("a: &x {k: [1]}\nb: *x\nc: {<<: *x}\n", source="t")
    assert document["a"] == document["b"] == document["c"]
    document["a"]["k"].append(2)
    assert document["b"] == {"k": [1]}
    assert document["c"] == {"k": [1]}


def test_anchors_work_on_scalars_keys_and_per_document() -> None:
    """Any node can be anchored; a second document starts without anchors."""
    assert read.load("&k a: &v x\nb: *v\nc: *k\n", source="t") == {"a": "x", "b": "x", "c": "a"}
    with pytest.raises(AicrError, match='alias "\\*v" has no anchor'):
        read.load_all("a: &v x\n---\nb: *v\n", source="t")


def test_block_scalars_read_with_their_chomping() -> None:
    """Literal and folded blocks, kept, clipped and stripped."""
    text = "a: |\n  x\n\nb: |-\n  x\nc: |+\n  x\n\nd: >\n  x\n  y\ne: |2\n    x\n"
    assert read.load(text, source="t") == {
        "a": "x\n",
        "b": "x",
        "c": "x\n\n",
        "d": "x y\n",
        "e": "  x\n",
    }


def test_an_unknown_mode_is_our_own_mistake() -> None:
    """There are two modes."""
    with pytest.raises(AicrError) as caught:
        read.load("a: 1", source="t", mode="yaml12")
    assert caught.value.code == INTERNAL


POSITIONED = """\
# header
kind: X
spec:
  items:
    - name: a
      value: 24.10
    - {name: b, port: "1"}
  text: |
    x
"""


@pytest.mark.parametrize(
    ("path", "where"),
    [
        ((), "t:2:1"),
        (("kind",), "t:2:7"),
        (("spec",), "t:3:1"),
        (("spec", "items"), "t:4:3"),
        (("spec", "items", 0), "t:5:7"),
        (("spec", "items", 0, "value"), "t:6:14"),
        (("spec", "items", 1), "t:7:7"),
        (("spec", "items", 1, "name"), "t:7:14"),
        (("spec", "items", 1, "missing", "deep"), "t:7:7"),
        (("spec", "text"), "t:8:9"),
        (("nowhere",), "t:2:1"),
    ],
)
def test_every_value_knows_its_line_and_column(path: tuple[str | int, ...], where: str) -> None:
    """Scalars and items are found at themselves, containers at their key, others at the nearest."""
    _, positions = read.load_with_positions(POSITIONED, source="t")
    assert positions.where(path) == where


def test_keys_have_positions_of_their_own() -> None:
    """An error about a key points at the key."""
    value, positions = read.load_with_positions(POSITIONED, source="t")
    assert value["spec"]["items"][1] == {"name": "b", "port": "1"}
    assert positions.key(("spec", "items", 0, "value")) == "t:6:7"
    assert positions.key(("spec", "gone")) == "t:3:1"
    assert positions.plain(("spec", "items", 0, "value")) == "24.10"
    assert positions.plain(("spec", "items", 1, "port")) is None
    assert positions.plain(("spec",)) is None


def test_positions_of_empty_text_point_at_its_start() -> None:
    """There is always a place to name."""
    value, positions = read.load_with_positions("", source="t")
    assert value is None
    assert positions.where(("a",)) == "t:1:1"


@pytest.mark.parametrize(
    ("written", "problem", "hint"),
    [
        ("24.10", "f must be a string, not a number (24.10)", 'quote it: "24.10"'),
        ("yes", "f must be a string, not a boolean (yes)", 'quote it: "yes"'),
        ("~", "f must be a string, not null (~)", 'quote it: "~"'),
        ("", "f must be a string, not null", "write a string in quotes"),
        ("[a]", "f must be a string, not a list", "write a string in quotes"),
        ("{a: b}", "f must be a string, not a map", "write a string in quotes"),
        ("2024-01-02", "f: unquoted 2024-01-02 is not a string to every YAML reader", "quote"),
        ("12:30", "f: unquoted 12:30 is not a string to every YAML reader", 'quote it: "12:30"'),
        ("1e400", "f: unquoted 1e400 is not a string to every YAML reader", 'quote it: "1e400"'),
    ],
)
@pytest.mark.covers("A8")
def test_string_slots_refuse_what_readers_disagree_on(
    written: str, problem: str, hint: str
) -> None:
    """An unquoted scalar that some reader takes for another type must be quoted (decision 43)."""
    value, positions = read.load_with_positions(f"a:\n  v: {written}\n", source="t")
    with pytest.raises(AicrError) as caught:
        read.require_string(value["a"]["v"], positions, ("a", "v"), "f")
    assert caught.value.message == problem
    assert caught.value.hint.startswith(hint)
    assert caught.value.where == {"": "t:2:5", "[": "t:2:3", "{": "t:2:3"}.get(written[:1], "t:2:6")


def test_v3_text_that_helm_reads_as_a_boolean_is_refused_in_a_string_slot() -> None:
    """The strict reading holds in both modes."""
    value, positions = read.load_with_positions("v: off\n", source="t", mode="v3")
    with pytest.raises(AicrError, match="unquoted off"):
        read.require_string(value["v"], positions, ("v",), "f")


@pytest.mark.parametrize("written", ['"24.10"', "'yes'", "v1.2.3", "< 1.35.0", "== 24.10", '""'])
def test_string_slots_accept_what_is_surely_text(written: str) -> None:
    """Quoted text and plain words pass."""
    value, positions = read.load_with_positions(f"v: {written}\n", source="t")
    assert read.require_string(value["v"], positions, ("v",), "f") == written.strip("\"'")
