"""What expected-resources has found: issues, what was not looked at, and the verdict.

Pure but for `out`. Source: validators spec 6.1 step 6; requirement V-385.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from aicr.checks.sdk import failed
from aicr.errors import NOT_FOUND, TIMEOUT, AicrError

#: Where a line comes from, so that two reports on one component can be told apart.
CHAINSAW: Final = "chainsaw"
RESOURCES: Final = "expectedResources"
READINESS: Final = "gpuReadiness"
NAMESPACE: Final = "namespace"

HEALTHY: Final = "All deployment resources and required readiness signals are healthy"


@dataclass(frozen=True, slots=True)
class Issue:
    """One thing that is not as it must be.

    Attributes:
        tag: one of the constants above.
        subject: what it is about.
        message: what is wrong, on one line.
        error: the failure with its code, if there is one.
    """

    tag: str
    subject: str
    message: str
    error: AicrError | None = None

    @classmethod
    def of(cls, tag: str, subject: str, error: AicrError) -> Issue:
        """The issue that an error is."""
        return cls(tag, subject, ": ".join(link.message for link in error.chain()), error)

    @property
    def line(self) -> str:
        """For the report."""
        return f"  [{self.tag}] {self.subject}: {self.message}"


@dataclass
class Report:
    """Everything that one run found, in the order in which it was found."""

    out: Callable[[str], None]
    issues: list[Issue] = field(default_factory=list)

    def add(self, issue: Issue) -> None:
        """Remember an issue."""
        self.issues.append(issue)

    def finish(self) -> None:
        """Print the verdict.

        Raises:
            AicrError: the first issue that carries an error, as that error; NOT_FOUND with all of them
                when none does.
        """
        if not self.issues:
            self.out(HEALTHY)
            return
        self._list()
        for issue in self.issues:
            if issue.error is not None:
                raise issue.error
        raise failed(
            f"expected resource check failed: {len(self.issues)} issue(s): {self._summary()}",
            code=NOT_FOUND,
        )

    def exhausted(self, stage: str, left: list[tuple[str, str]]) -> AicrError:
        """Print what was found and what was never looked at; the error to raise.

        Args:
            stage: in which the budget ended.
            left: (tag, subject) of what was not evaluated.
        """
        if self.issues:
            self._list()
        for tag, subject in left:
            self.out(f"  [{tag}] {subject}: not evaluated — budget exhausted during {stage}")
        error = AicrError(
            TIMEOUT,
            f"deployment validation budget exhausted during {stage} with {len(self.issues)} issue(s) "
            "collected",
            hint="the list above has what was found; the timeout of the catalogue entry gives it longer",
        )
        # A finding is a verdict, whatever else was not looked at.
        first = next((issue.error for issue in self.issues if issue.error is not None), None)
        error.__cause__ = first
        return error

    def _list(self) -> None:
        self.out("Failed resources:")
        for issue in self.issues:
            self.out(issue.line)

    def _summary(self) -> str:
        return "; ".join(f"[{each.tag}] {each.subject}: {each.message}" for each in self.issues)
