"""The HTML report: what it says about a run, and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest

from aicr.errors import AicrError
from aicr.validate.report_html import duration, page_facts, render


def check(name: str, status: str, phase: str = "deployment", **more: Any) -> dict[str, Any]:
    """One test entry of a report."""
    return {"name": name, "status": status, "duration": 1500, "suite": [phase], **more}


def report(*tests: dict[str, Any]) -> dict[str, Any]:
    """A CTRF report of these entries."""
    summary = {"tests": len(tests), "start": 1_790_000_000_000, "stop": 1_790_000_200_000}
    return {
        "reportFormat": "CTRF",
        "specVersion": "0.0.1",
        "timestamp": "2026-09-21T14:13:20Z",
        "results": {"tool": {"name": "aicr"}, "summary": summary, "tests": list(tests)},
    }


@pytest.mark.parametrize(
    ("tests", "verdict", "headline"),
    [
        ([("a", "passed"), ("b", "passed")], "passed", "2 of 2 checks ran, and all passed"),
        ([("a", "passed"), ("b", "skipped")], "passed", "1 of 2 checks ran, and all passed"),
        ([("a", "skipped")], "skipped", "0 of 1 checks ran: this says nothing about the cluster"),
        ([], "skipped", "0 of 0 checks ran: this says nothing about the cluster"),
        ([("a", "failed"), ("b", "passed")], "failed", "2 of 2 checks ran, 1 failed"),
        (
            [("a", "failed"), ("b", "other")],
            "failed",
            "2 of 2 checks ran, 1 failed and 1 without a verdict",
        ),
        ([("a", "other")], "other", "1 of 1 checks ran, 1 without a verdict"),
    ],
)
@pytest.mark.covers("G1")
def test_the_verdict_is_that_of_the_worst_check_and_never_passed_if_nothing_ran(
    tests: list[tuple[str, str]], verdict: str, headline: str
) -> None:
    """A run in which nothing ran reads skipped, and says so in words."""
    facts = page_facts(report(*(check(*test) for test in tests)), {})
    assert (facts["verdict"], facts["headline"]) == (verdict, headline)
    assert headline in render(report(*(check(*test) for test in tests)))


def test_the_worst_checks_of_a_phase_come_first() -> None:
    """Phases keep the order of the report; inside, failures are on top."""
    facts = page_facts(
        report(
            check("a", "passed"),
            check("b", "failed"),
            check("c", "skipped", "conformance"),
            check("d", "other"),
        ),
        {},
    )
    assert [(phase["name"], phase["state"]) for phase in facts["phases"]] == [
        ("deployment", "failed"),
        ("conformance", "skipped"),
    ]
    assert [row["name"] for row in facts["phases"][0]["rows"]] == ["b", "d", "a"]


@pytest.mark.parametrize(
    ("code", "word"),
    [("UNAUTHORIZED", "could not tell"), ("TIMEOUT", "could not tell"), ("NOT_FOUND", "failed")],
)
def test_a_failure_that_says_nothing_about_the_cluster_is_told_apart(code: str, word: str) -> None:
    """Codes of decision 62 read "could not tell"; the status stays failed."""
    facts = page_facts(report(check("a", "failed", extra={"code": code})), {})
    row = facts["phases"][0]["rows"][0]
    assert (row["status"], row["word"]) == ("failed", word)


def test_what_checks_print_cannot_become_markup() -> None:
    """Names, messages and output of a check are text, whatever they hold."""
    evil = '<script>alert(1)</script><img src=x onerror="alert(1)">'
    page = render(
        report(check(evil, "failed", message=evil, stdout=[evil], extra={"code": evil})),
        {"recipe": evil},
    )
    assert "<script" not in page
    assert "<img" not in page
    assert page.count("&lt;script&gt;") >= 5


def test_the_page_needs_nothing_from_elsewhere() -> None:
    """No address, no script, no import: the file can be mailed and opened behind an air gap."""
    page = render(report(check("a", "passed")))
    for word in ("http:", "https:", "src=", "url(", "@import", "<link", "<script"):
        assert word not in page
    assert "default-src 'none'" in page


def test_the_same_report_gives_the_same_bytes() -> None:
    """Times come from the report, not from the clock."""
    assert render(report(check("a", "passed"))) == render(report(check("a", "passed")))


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"reportFormat": "CTRF"},
        {"reportFormat": "JUnit", "results": {"summary": {}, "tests": [], "tool": {}}},
        {"reportFormat": "CTRF", "results": {"summary": {}, "tool": {}}},
        {"reportFormat": "CTRF", "results": {"summary": {}, "tool": {}, "tests": ["a"]}},
        report(check("a", "green")),
    ],
    ids=["empty", "no-results", "other-format", "no-tests", "text-for-a-test", "unknown-status"],
)
def test_what_is_no_report_is_refused(document: dict[str, Any]) -> None:
    """A page is never made of something that may hide a failure."""
    with pytest.raises(AicrError) as caught:
        render(document)
    assert caught.value.code == "INVALID_REQUEST"
    assert caught.value.hint


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (0, "0.0 s"),
        (1499, "1.5 s"),
        (12_000, "12 s"),
        (59_999, "1 min 0 s"),
        (200_000, "3 min 20 s"),
        (None, ""),
        (True, ""),
    ],
)
def test_durations_read_well(milliseconds: Any, text: str) -> None:
    """Tenths below ten seconds, minutes from sixty; nothing for what is no number."""
    assert duration(milliseconds) == text
