"""What a runner gives back for a check, and how it enters a report.

Source: validators spec 1.6, 1.10, 3.7; decisions 62, 63.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from aicr.contract import ctrf, sentinels
from aicr.validate.catalog import Entry
from aicr.validate.extraction import Verdict
from aicr.validate.preflight import WITHHELD

NO_CLUSTER: Final = "skipped - no-cluster mode"
EARLIER_FAILED: Final = "skipped due to previous phase failure"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One check's end: its verdict and what it wrote."""

    name: str
    phase: str
    verdict: Verdict
    output: sentinels.Output = field(default_factory=sentinels.Output)

    @property
    def status(self) -> str:
        """The CTRF status."""
        return self.verdict.status

    @property
    def extra(self) -> dict[str, str]:
        """Counts and codes: what the check said, and what the runner could not tell."""
        found = dict(self.output.extra)
        if self.verdict.code:
            found.setdefault(sentinels.CODE, self.verdict.code)
        # In one order, whatever order a check has written them in (V-440).
        return dict(sorted(found.items()))

    def entry(self) -> dict[str, Any]:
        """The entry of a report."""
        return ctrf.entry(
            self.name,
            self.status,
            phase=self.phase,
            duration_ms=self.verdict.duration_ms,
            message=self.verdict.message,
            stdout=sentinels.tail(self.output.lines),
            extra=self.extra,
            provenance=self.output.provenance,
        )


def withheld(entry: Entry) -> dict[str, Any]:
    """The report entry of a check that the caller left out: prose, and the code that survives."""
    return ctrf.entry(
        entry.name,
        ctrf.SKIPPED,
        phase=entry.phase,
        message=WITHHELD,
        extra={sentinels.SKIP_REASON: sentinels.NAMED_IN_SKIP_CHECKS},
    )


def not_run(entries: Sequence[Entry], message: str) -> list[dict[str, Any]]:
    """Report entries of checks that a run did not come to."""
    return [
        ctrf.entry(entry.name, ctrf.SKIPPED, phase=entry.phase, message=message)
        for entry in entries
    ]


@dataclass(frozen=True, slots=True)
class PhaseResult:
    """A phase's report, its status and how long it took, in seconds."""

    phase: str
    report: Mapping[str, Any]
    status: str
    seconds: float = 0.0

    @property
    def summary(self) -> Mapping[str, int]:
        """The counts of its report."""
        found: Mapping[str, int] = self.report["results"]["summary"]
        return found
