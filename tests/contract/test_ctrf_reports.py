"""CTRF reports: entries, counting, phase status, merging (validators spec 1.10)."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from aicr.contract import ctrf
from aicr.errors import INTERNAL, AicrError


def made(*statuses: str, start: int = 1000, stop: int = 2000, **more: Any) -> dict[str, Any]:
    """A report with a test of each status."""
    tests = [
        ctrf.entry(f"t{number}", status, phase="deployment")
        for number, status in enumerate(statuses)
    ]
    settings: dict[str, Any] = {"timestamp": f"2026-01-01T00:00:0{start // 1000}Z", **more}
    return ctrf.report(tests, start_ms=start, stop_ms=stop, **settings)


def test_a_report_has_the_keys_of_the_format_and_leaves_out_what_is_empty() -> None:
    """Empty message, stdout, extra, provenance, version and environment are absent; tests is a list."""
    full = ctrf.entry(
        *("c", "failed"),
        phase="conformance",
        duration_ms=1500,
        message="why",
        stdout=["a"],
        extra={"nodesTotal": "2"},
        provenance={"shippedDigest": "x"},
    )
    assert full == {
        "name": "c",
        "status": "failed",
        "duration": 1500,
        "suite": ["conformance"],
        "message": "why",
        "stdout": ["a"],
        "extra": {"nodesTotal": "2"},
        "runtimeProvenance": {"shippedDigest": "x"},
    }
    bare = ctrf.entry("c", "passed", phase="deployment")
    assert bare == {"name": "c", "status": "passed", "duration": 0, "suite": ["deployment"]}
    empty = ctrf.report([], start_ms=1, stop_ms=2, timestamp="2026-01-01T00:00:00Z")
    assert empty == {
        "reportFormat": "CTRF",
        "specVersion": "0.0.1",
        "timestamp": "2026-01-01T00:00:00Z",
        "generatedBy": "aicr",
        "results": {
            "tool": {"name": "aicr"},
            "summary": {
                **dict.fromkeys(("tests", "passed", "failed", "skipped", "pending", "other"), 0),
                "start": 1,
                "stop": 2,
            },
            "tests": [],
        },
    }


def test_a_status_that_the_format_does_not_have_is_refused() -> None:
    """A typo in a status would vanish from every counter."""
    with pytest.raises(AicrError, match='status "error"') as caught:
        ctrf.entry("c", "error", phase="deployment")
    assert caught.value.code == INTERNAL


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        ((), "skipped"),
        (("skipped",), "skipped"),
        (("passed", "skipped"), "passed"),
        (("passed", "other"), "other"),
        (("other", "failed"), "failed"),
        (("passed", "pending"), "other"),
        (("passed",), "passed"),
    ],
    ids=["none", "all skipped", "some ran", "other", "failed first", "pending", "passed"],
)
def test_a_phase_in_which_nothing_ran_is_skipped(statuses: tuple[str, ...], expected: str) -> None:
    """failed, then other, then skipped when nothing ran, else passed (decision 8)."""
    assert ctrf.phase_status(made(*statuses)["results"]["summary"]) == expected


def test_coverage_says_how_many_of_how_many_ran() -> None:
    """Skipped ones did not run."""
    assert ctrf.coverage(made("skipped", "skipped")["results"]["summary"]) == "0 of 2 ran"
    assert ctrf.coverage(made("passed", "other", "skipped")["results"]["summary"]) == "2 of 3 ran"


def test_exactly_one_report_is_merged_to_itself() -> None:
    """Returned unchanged."""
    report = made("passed")
    assert ctrf.merge([report]) is report


def test_merging_concatenates_tests_and_adds_counters() -> None:
    """Span is min to max, timestamp of the first with tests, environment of the last that has one."""
    first = made(start=1000, stop=5000, environment={"appName": "a"})
    second = made("passed", "failed", start=3000, stop=4000, version="1.2")
    third = made("skipped", start=4000, stop=9000, environment={"appName": "b", "appVersion": ""})
    parts = [first, second, third]
    before = copy.deepcopy(parts)
    merged = ctrf.merge(parts)
    assert parts == before
    results = merged["results"]
    assert [entry["status"] for entry in results["tests"]] == ["passed", "failed", "skipped"]
    assert results["summary"] == {
        "tests": 3,
        "passed": 1,
        "failed": 1,
        "skipped": 1,
        "pending": 0,
        "other": 0,
        "start": 1000,
        "stop": 9000,
    }
    assert merged["timestamp"] == "2026-01-01T00:00:03Z"
    assert results["environment"] == {"appName": "b"}
    assert results["tool"] == {"name": "aicr", "version": "1.2"}


def test_nothing_to_merge_is_an_error() -> None:
    """There is no report without a phase."""
    with pytest.raises(AicrError, match="no report to merge"):
        ctrf.merge([])
