"""How checks are run: the port that `run` drives, with three implementations in this package.

`runner_job.JobRunner` makes Jobs, `runner_local.LocalRunner` starts processes of this machine,
and with ``--no-cluster`` there is no runner at all (decision 12). The contract of a check is the
same in each.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from aicr.validate.plan import JobPlan
from aicr.validate.results import CheckResult


class Runner(Protocol):
    """Runs the checks of one run."""

    async def prepare(self, snapshot: str, validation: str) -> None:
        """Get ready; on an error nothing is left.

        Args:
            snapshot, validation: texts of the documents that every check is given.

        Raises:
            AicrError: why no check can run.
        """

    async def check(self, planned: JobPlan) -> CheckResult:
        """Run one check; whatever happens to it is in the result. May run several times at once."""

    async def store_report(self, phase: str, report: Mapping[str, Any]) -> None:
        """Keep a phase's report where this runner keeps such things; never fails."""

    async def close(self, failed: bool) -> None:
        """Remove what the run has made.

        Args:
            failed: whether the run ends with an error already, which is then not replaced.

        Raises:
            AicrError: what is left and should not be.
        """
