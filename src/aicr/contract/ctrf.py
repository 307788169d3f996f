"""The report of a run in the Common Test Report Format: building and merging, on plain documents.

Times come in as arguments: milliseconds since 1970 and RFC 3339 text in UTC. The status of a phase is
decided here, because the summary is what decides it: a phase in which nothing ran is ``skipped``, never
``passed`` (decision 8, over the originals). This module must not know checks, Jobs or redaction.
Source: validators spec 1.10 and 1.7 "Phase status derivation"; decisions 8, 44, 62.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from aicr.errors import INTERNAL, AicrError

PASSED: Final = "passed"
FAILED: Final = "failed"
SKIPPED: Final = "skipped"
PENDING: Final = "pending"
OTHER: Final = "other"
STATUSES: Final = (PASSED, FAILED, SKIPPED, PENDING, OTHER)
#: Statuses that make a phase, and so a run, fail.
FAILING: Final = frozenset({FAILED, OTHER})

Test = dict[str, Any]
Report = dict[str, Any]


def entry(
    name: str,
    status: str,
    *,
    phase: str,
    duration_ms: int = 0,
    message: str = "",
    stdout: Sequence[str] = (),
    extra: Mapping[str, str] | None = None,
    provenance: Mapping[str, Any] | None = None,
) -> Test:
    """One entry of ``results.tests``; what is empty is left out.

    Raises:
        AicrError: INTERNAL for a status that the format does not have.
    """
    if status not in STATUSES:
        raise AicrError(INTERNAL, f'a test cannot have status "{status}"', where=name)
    made: Test = {
        "name": name,
        "status": status,
        "duration": max(0, int(duration_ms)),
        "suite": [phase],
    }
    if message:
        made["message"] = message
    if stdout:
        made["stdout"] = list(stdout)
    if extra:
        made["extra"] = dict(extra)
    if provenance:
        made["runtimeProvenance"] = dict(provenance)
    return made


def report(
    tests: Iterable[Test],
    *,
    start_ms: int,
    stop_ms: int,
    timestamp: str,
    version: str = "",
    environment: Mapping[str, str] | None = None,
) -> Report:
    """A report of *tests*; its summary is counted from them.

    Args:
        tests: made by `entry`, in the order in which they ran.
        start_ms, stop_ms: Unix milliseconds.
        timestamp: RFC 3339, UTC.
        version: of the tool; left out when it is not known.
        environment: ``appName``, ``appVersion``, ``testEnvironment``; empty values are left out.
    """
    entries = list(tests)
    tool = {"name": "aicr", "version": version} if version else {"name": "aicr"}
    results: dict[str, Any] = {
        "tool": tool,
        "summary": {**counted(entries), "start": start_ms, "stop": stop_ms},
        "tests": entries,
    }
    stated = {key: value for key, value in (environment or {}).items() if value}
    if stated:
        results["environment"] = stated
    return {
        "reportFormat": "CTRF",
        "specVersion": "0.0.1",
        "timestamp": timestamp,
        "generatedBy": "aicr",
        "results": results,
    }


def counted(tests: Sequence[Test]) -> dict[str, int]:
    """How many tests there are, and how many of each status."""
    found = {"tests": len(tests)}
    for status in (PASSED, FAILED, SKIPPED, PENDING, OTHER):
        found[status] = sum(each["status"] == status for each in tests)
    return found


def ran(summary: Mapping[str, int]) -> int:
    """How many tests came to a verdict or tried to: all but skipped and pending ones."""
    return summary["tests"] - summary[SKIPPED] - summary[PENDING]


def phase_status(summary: Mapping[str, int]) -> str:
    """The status of a phase by the summary of its report.

    Failed before other; nothing ran is skipped (decision 8); a pending test is not done, so a phase
    that has one did not pass.
    """
    if summary[FAILED]:
        return FAILED
    if summary[OTHER] or summary[PENDING]:
        return OTHER
    return PASSED if summary[PASSED] else SKIPPED


def coverage(summary: Mapping[str, int]) -> str:
    """``3 of 5 ran``, for the line that a person reads (decision 8)."""
    return f"{ran(summary)} of {summary['tests']} ran"


def merge(reports: Sequence[Report]) -> Report:
    """One report for several phases; exactly one is returned as it is.

    Tests follow each other in the order given, counters add up, the span covers all; the timestamp is
    that of the first report that has tests, the environment that of the last which states one.

    Raises:
        AicrError: INTERNAL when there is none.
    """
    if not reports:
        raise AicrError(INTERNAL, "there is no report to merge")
    if len(reports) == 1:
        return reports[0]
    tests = [made for each in reports for made in each["results"]["tests"]]
    summaries = [each["results"]["summary"] for each in reports]
    first = next((each for each in reports if each["results"]["tests"]), reports[0])
    environments = [
        each["results"]["environment"] for each in reports if each["results"].get("environment")
    ]
    return report(
        tests,
        start_ms=min((item["start"] for item in summaries if item["start"]), default=0),
        stop_ms=max(item["stop"] for item in summaries),
        timestamp=first["timestamp"],
        version=next(filter(None, (_version(each) for each in reports)), ""),
        environment=environments[-1] if environments else None,
    )


def _version(document: Report) -> str:
    return str(document["results"]["tool"].get("version") or "")
