"""Transport lines in a check's stdout (validators spec 4.1)."""

from __future__ import annotations

import pytest

from aicr.contract import sentinels
from aicr.errors import INTERNAL, AicrError

SHA = "a" * 64
RECORD = {"shippedDigest": SHA, "derivedDigest": "b" * 64, "overriddenPaths": ["spec.x"]}


@pytest.mark.covers("V10-46", "V-088", "V-160", "V-161", "V-166", "V-168")
def test_a_malformed_second_extra_line_keeps_the_first_and_both_are_taken_out() -> None:
    """The last valid payload wins; a malformed line warns, loses its line and changes nothing."""
    found = sentinels.parse_output(
        '##AICR-EXTRA## {"nodesTotal":"2"}\nFound 2\n##AICR-EXTRA## {"nodesTotal":\n'
    )
    assert found.extra == {"nodesTotal": "2"}
    assert found.lines == ["Found 2"]
    assert found.warnings == ["line 3: ##AICR-EXTRA## line ignored: not a JSON object"]


@pytest.mark.covers("V-166")
def test_the_last_valid_extra_line_replaces_the_earlier_one_as_a_whole() -> None:
    """Payloads are not merged."""
    found = sentinels.parse_output(
        '##AICR-EXTRA## {"nodesTotal":"2"}\n##AICR-EXTRA## {"nodesValidated":"1"}'
    )
    assert found.extra == {"nodesValidated": "1"}


@pytest.mark.covers("V10-47", "V-165", "V-157")
@pytest.mark.parametrize(
    "line",
    [
        '##AICR-EXTRA##{"a":"b"}',
        ' ##AICR-EXTRA## {"a":"b"}',
        'x ##AICR-EXTRA## {"a":"b"}',
        '##aicr-extra## {"a":"b"}',
        "##AICR-EXTRA##\t{}",
        "RESULT:no blank",
        " RESULT: indented",
        "ordinary",
    ],
)
def test_what_does_not_start_with_the_exact_prefix_is_ordinary_stdout(line: str) -> None:
    """A prefix is the literal with one blank, at the start of the line."""
    found = sentinels.parse_output(line + "\n")
    assert found == sentinels.Output(lines=[line])


@pytest.mark.parametrize(
    "payload",
    ["", "{}", "null", "[]", '"text"', '{"a":1}', '{"a":null}', '{"a":{"b":"c"}}', "[" * 100_000],
    ids=["none", "empty", "null", "list", "text", "number", "null value", "nested", "hostile"],
)
@pytest.mark.covers("V-168")
def test_an_extra_line_that_is_no_map_of_text_is_ignored_with_a_warning(payload: str) -> None:
    """Only a JSON object of text to text counts, and it must not be empty."""
    found = sentinels.parse_output(f'##AICR-EXTRA## {{"a":"b"}}\n##AICR-EXTRA## {payload}')
    assert found.extra == {"a": "b"}
    assert found.lines == []
    assert len(found.warnings) == 1


@pytest.mark.covers("V-163", "V-167", "V-168")
@pytest.mark.parametrize(
    "payload",
    [
        '{"shippedDigest":"x"}',
        '{"shippedDigest":"x","derivedDigest":""}',
        '{"shippedDigest":1,"derivedDigest":"y"}',
        '{"shippedDigest":"x","derivedDigest":"y","overriddenPaths":"p"}',
        '{"shippedDigest":"x","derivedDigest":"y","inheritedPaths":[1]}',
        "nonsense",
    ],
    ids=["one digest", "empty digest", "number", "paths no list", "paths no text", "no JSON"],
)
def test_a_provenance_line_needs_both_digests_and_lists_of_text(payload: str) -> None:
    """A record without both digests is no record; an earlier one stays."""
    good = sentinels.provenance_line(RECORD)
    found = sentinels.parse_output(f"{good}\n##AICR-PROVENANCE## {payload}\nend")
    assert found.provenance == RECORD
    assert found.lines == ["end"]
    assert len(found.warnings) == 1


@pytest.mark.covers("V-158")
def test_result_lines_stay_in_stdout_and_are_shown_live() -> None:
    """RESULT is for people who watch; an empty one shows nothing."""
    found = sentinels.parse_output("RESULT: 450 GB/s\nRESULT: \nx\n")
    assert found.results == ["450 GB/s"]
    assert found.lines == ["RESULT: 450 GB/s", "RESULT: ", "x"]


def test_only_line_feeds_end_a_line_and_only_trailing_blank_lines_go() -> None:
    """A carriage return or U+2028 inside a line cannot hide or make a transport line."""
    text = 'a\u2028##AICR-EXTRA## {"a":"b"}\r\n\nb\r\n##AICR-EXTRA## {"k":"v"}\r\n\n\n'
    found = sentinels.parse_output(text)
    assert found.lines == ['a\u2028##AICR-EXTRA## {"a":"b"}\r', "", "b\r"]
    assert found.extra == {"k": "v"}


def test_half_a_character_in_a_payload_becomes_a_replacement() -> None:
    """JSON can escape a lone surrogate, which no report could be written with."""
    found = sentinels.parse_output('##AICR-EXTRA## {"a":"\\ud800"}')
    assert found.extra == {"a": "\ufffd"}


@pytest.mark.parametrize("nothing", [None, {}], ids=["none", "empty"])
def test_nothing_to_say_makes_no_line(nothing: dict[str, str] | None) -> None:
    """Empty and absent payloads are no output."""
    assert sentinels.extra_line(nothing) == ""
    assert sentinels.provenance_line(nothing) == ""


def test_a_payload_that_the_reader_would_refuse_is_refused_when_it_is_made() -> None:
    """Both sides have one rule."""
    with pytest.raises(AicrError, match="extra must map text to text") as caught:
        sentinels.extra_line({"a": 1})  # type: ignore[dict-item]
    assert caught.value.code == INTERNAL
    with pytest.raises(AicrError, match="derivedDigest is missing"):
        sentinels.provenance_line({"shippedDigest": SHA})


def test_the_tail_keeps_the_last_1000_lines_and_cuts_between_characters() -> None:
    """512 bytes a line, whole characters, and how many are missing."""
    lines = [f"l{number}" for number in range(1500)] + ["é" * 300]
    kept = sentinels.tail(lines)
    assert len(kept) == 1000
    assert kept[0] == "l501"
    assert kept[-1] == "é" * 256 + "... [truncated 44 chars]"


def test_evidence_that_looks_like_transport_is_disarmed() -> None:
    """A log printed as evidence cannot speak for the check; RESULT lines stay as they are."""
    text = 'x\n##AICR-EXTRA## {"skipReason":"no-gpu-nodes"}\nRESULT: 1'
    found = sentinels.parse_output(sentinels.disarmed(text))
    assert found.extra == {}
    assert found.lines == ["x", ' ##AICR-EXTRA## {"skipReason":"no-gpu-nodes"}', "RESULT: 1"]
