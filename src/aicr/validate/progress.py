"""What a run tells while it goes on, to whoever watches.

The command line prints it, a test or a server collects it; the engine does not know which. Source:
validators spec 1.7, 4.1 (RESULT echo); V-086 (stderr live).
"""

from __future__ import annotations

from typing import Protocol

from aicr.validate.plan import JobPlan
from aicr.validate.results import CheckResult, PhaseResult


class Progress(Protocol):
    """Receives what happens; must not raise and must not wait."""

    def phase_started(self, phase: str, names: list[str]) -> None:
        """A phase begins, with the names of the checks that it will run."""

    def started(self, planned: JobPlan) -> None:
        """A check begins."""

    def log(self, check: str, line: str) -> None:
        """A check has logged a line."""

    def finished(self, result: CheckResult) -> None:
        """A check has ended."""

    def phase_finished(self, result: PhaseResult) -> None:
        """A phase has ended."""

    def note(self, text: str) -> None:
        """Something a person may want to know."""

    def warn(self, text: str) -> None:
        """Something a person should know."""
