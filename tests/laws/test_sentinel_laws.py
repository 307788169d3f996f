"""Laws of transport lines: what is written is read, and what is between them never changes."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from aicr.contract import sentinels

TEXT = st.text(st.characters(codec="utf-8"), max_size=30)
EXTRA = st.dictionaries(TEXT, TEXT, min_size=1, max_size=4)
DIGEST = TEXT.filter(bool)
PATHS = st.lists(TEXT, min_size=1, max_size=3)


@st.composite
def records(draw: st.DrawFn) -> dict[str, Any]:
    """A provenance record."""
    made: dict[str, Any] = {"shippedDigest": draw(DIGEST), "derivedDigest": draw(DIGEST)}
    for key in ("overriddenPaths", "inheritedPaths"):
        if draw(st.booleans()):
            made[key] = draw(PATHS)
    return made


#: Lines of evidence, and lines that look like transport and are none.
LINE = st.one_of(
    st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=40),
    st.sampled_from(
        [*("RESULT: 1", "RESULT: ", "##AICR-EXTRA##{}", " ##AICR-EXTRA## {}", "##AICR-", "")]
    ),
).filter(lambda line: not line.startswith((sentinels.EXTRA, sentinels.PROVENANCE)))
GARBLED = st.one_of(st.sampled_from(["{", "[]", "null", '{"a":1}', '{"a":', "{}"]), TEXT).map(
    lambda text: text.replace("\n", " ")
)


@given(EXTRA, records())
def test_a_written_payload_is_read_back(extra: dict[str, str], record: dict[str, Any]) -> None:
    """Round trip, on one line each, in ASCII."""
    lines = [sentinels.extra_line(extra), sentinels.provenance_line(record)]
    assert all("\n" not in line and line.isascii() for line in lines)
    found = sentinels.parse_output("\n".join(lines) + "\n")
    assert (found.extra, found.provenance) == (extra, record)
    assert (found.lines, found.warnings) == ([], [])


@given(
    st.lists(LINE, max_size=8), st.lists(st.tuples(st.integers(0, 8), GARBLED), max_size=4), EXTRA
)
def test_transport_never_touches_evidence_and_garbage_never_touches_payloads(
    lines: list[str], garbage: list[tuple[int, str]], extra: dict[str, str]
) -> None:
    """Whatever garbled lines stand between, evidence, results and the last good payload are the same."""
    text = list(lines)
    text.insert(0, sentinels.extra_line(extra))
    plain = sentinels.parse_output("\n".join(text))
    for place, payload in garbage:
        line = sentinels.EXTRA + payload
        if not sentinels.parse_output(line).extra:
            text.insert(1 + place, line)
    garbled = sentinels.parse_output("\n".join(text))
    assert garbled.lines == plain.lines
    assert garbled.results == plain.results
    assert garbled.extra == plain.extra == extra
    assert len(garbled.warnings) == len(text) - 1 - len(lines)


@given(st.lists(st.one_of(LINE, EXTRA.map(sentinels.extra_line)), max_size=6))
def test_disarmed_text_carries_no_payload(lines: list[str]) -> None:
    """Evidence taken from elsewhere cannot speak for the check, and no line of it is lost."""
    text = "\n".join(lines)
    found = sentinels.parse_output(sentinels.disarmed(text) + "\nend")
    assert (found.extra, found.provenance) == ({}, None)
    assert len(found.lines) == len(text.split("\n")) + 1
    assert sentinels.disarmed(sentinels.disarmed(text)) == sentinels.disarmed(text)


@given(st.text(max_size=300))
def test_any_output_can_be_read(text: str) -> None:
    """No output is an error, and what comes out can be written down."""
    found = sentinels.parse_output(text)
    for line in sentinels.tail(found.lines):
        line.encode("utf-8")
        assert len(line.encode()) <= sentinels.MAX_LINE_BYTES + 40
