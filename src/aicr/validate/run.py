"""A validation run: gates, phases in order, and the end of it whatever happens in between.

```
gates ─► runner.prepare ─► deployment ─► conformance ─► performance ─► runner.close
 pure        once              checks in the catalogue's order            always
```

The gates (readiness, names, dependencies) come before the cluster is touched and end a run with
INVALID_REQUEST; what a check finds never does. A report is made for every requested phase, also
for those that a run did not come to.

Source: validators spec 1.5, 1.7; decisions 8, 12, 61, 63.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from aicr.contract import ctrf
from aicr.contract.documents import V1
from aicr.validate import affinity, preflight, readiness, results
from aicr.validate.catalog import Entry, ValidatorCatalog
from aicr.validate.environment import Setting
from aicr.validate.input_document import empty_snapshot, mounted_text, validation_input
from aicr.validate.phases import PERFORMANCE, requested
from aicr.validate.plan import JobPlan, Place, plan, selected
from aicr.validate.progress import Progress
from aicr.validate.results import CheckResult, PhaseResult
from aicr.validate.runner import Runner
from aicr.validate.timing import Timing

#: The largest number of checks at once: each is a pod and two streams.
MOST_PARALLEL: Final = 50


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be validated and how; documents are not changed.

    Attributes:
        recipe, snapshot: documents; the snapshot may be None where nothing needs one.
        catalog: with images resolved.
        phases: None for all.
        skipped: names that are withheld.
        policy: how GPUs are handed out (`gpu_policy`).
        parallel: checks at once in deployment and conformance.
    """

    recipe: Mapping[str, Any]
    snapshot: Mapping[str, Any] | None
    catalog: ValidatorCatalog
    place: Place
    setting: Setting
    timing: Timing
    policy: str
    phases: tuple[str, ...] | None = None
    skipped: Sequence[str] = ()
    fail_fast: bool = False
    parallel: int = 1
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def requested(self) -> tuple[str, ...]:
        """The phases in their order."""
        return requested(self.phases)


@dataclass(frozen=True, slots=True)
class Planned:
    """What a run will do in one phase."""

    phase: str
    jobs: tuple[JobPlan, ...]
    withheld: tuple[Entry, ...]
    every: tuple[Entry, ...]


def check_names(order: Order, progress: Progress) -> None:
    """The gates on names alone, which need no snapshot.

    Raises:
        AicrError: INVALID_REQUEST with every offender.
    """
    preflight.check_declared(order.recipe, order.catalog, order.requested)
    found = preflight.check_skipped(order.recipe, order.catalog, order.requested, order.skipped)
    for warning in found:
        progress.warn(warning)


def gates(order: Order, progress: Progress) -> list[Planned]:
    """Everything that can be decided before a cluster is touched.

    Raises:
        AicrError: INVALID_REQUEST of the first gate that does not open.
    """
    for line in readiness.check_readiness(order.recipe, order.snapshot):
        progress.note(f"readiness: {line}")
    check_names(order, progress)
    chosen = {
        phase: selected(order.catalog, order.recipe, phase, order.skipped)
        for phase in order.requested
    }
    running = [entry for entries, _ in chosen.values() for entry in entries]
    affinities = affinity.resolve(running, order.recipe)
    return [
        Planned(
            phase,
            tuple(
                plan(entry, order.place, order.setting, order.timing, affinities[entry.name])
                for entry in entries
            ),
            tuple(withheld),
            tuple(order.catalog.for_phase(phase)),
        )
        for phase, (entries, withheld) in chosen.items()
    ]


class Run:
    """One run of planned phases.

    Args:
        order: what was asked for.
        planned: from `gates`.
        progress: who watches.
        wall, clock: seconds since 1970, and of any steady clock.
    """

    def __init__(
        self,
        order: Order,
        planned: Sequence[Planned],
        progress: Progress,
        *,
        wall: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._order, self._planned, self._progress = order, planned, progress
        self._wall, self._clock = wall, clock

    def without_cluster(self) -> list[PhaseResult]:
        """Every check of the requested phases as skipped: nothing is contacted."""
        return [self._not_run(one, results.NO_CLUSTER) for one in self._planned]

    async def with_runner(self, runner: Runner) -> list[PhaseResult]:
        """Run the phases.

        Raises:
            AicrError: why no check could run, or what of the run could not be removed.
        """
        order = self._order
        if not any(one.jobs for one in self._planned):
            # Nothing is to run, so nothing is made and no rights are given to anybody.
            return [self._empty(one) for one in self._planned]
        snapshot = order.snapshot if order.snapshot is not None else empty_snapshot(V1)
        validation = validation_input(order.recipe, order.policy)
        texts = (
            mounted_text(snapshot, "snapshot"),
            mounted_text(validation, "validation input"),
        )
        failed = True
        try:
            await runner.prepare(*texts)
            found = await self._phases(runner)
            failed = False
        finally:
            await asyncio.shield(asyncio.ensure_future(runner.close(failed)))
        return found

    async def _phases(self, runner: Runner) -> list[PhaseResult]:
        found: list[PhaseResult] = []
        for one in self._planned:
            stopped = self._order.fail_fast and any(
                result.status in ctrf.FAILING for result in found
            )
            if stopped:
                found.append(self._not_run(one, results.EARLIER_FAILED))
                continue
            result = await self._phase(runner, one)
            found.append(result)
            await runner.store_report(one.phase, result.report)
        return found

    async def _phase(self, runner: Runner, one: Planned) -> PhaseResult:
        begun, start = self._clock(), self._milliseconds()
        self._progress.phase_started(one.phase, [planned.name for planned in one.jobs])
        ended = await self._checks(runner, one)
        by_name = {result.name: result.entry() for result in ended}
        by_name |= {entry.name: results.withheld(entry) for entry in one.withheld}
        entries = [by_name[entry.name] for entry in one.every if entry.name in by_name]
        return self._result(one.phase, entries, start, self._clock() - begun)

    async def _checks(self, runner: Runner, one: Planned) -> list[CheckResult]:
        """The results in the order of the plan, however many run at once."""
        width = 1 if one.phase == PERFORMANCE else self._order.parallel
        places = asyncio.Semaphore(max(1, width))

        async def run(planned: JobPlan) -> CheckResult:
            async with places:
                self._progress.started(planned)
                result = await runner.check(planned)
                self._progress.finished(result)
                return result

        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(run(planned)) for planned in one.jobs]
        except BaseExceptionGroup as found:
            # What a runner raises is a bug of ours, and one is enough to report.
            raise found.exceptions[0] from None
        return [task.result() for task in tasks]

    def _empty(self, one: Planned) -> PhaseResult:
        """A phase that has no check to run."""
        withheld = [results.withheld(entry) for entry in one.withheld]
        return self._result(one.phase, withheld, self._milliseconds(), 0.0)

    def _not_run(self, one: Planned, message: str) -> PhaseResult:
        """A phase that a run did not come to: every check of the catalogue's phase, skipped."""
        start = self._milliseconds()
        return self._result(one.phase, results.not_run(one.every, message), start, 0.0)

    def _result(
        self, phase: str, entries: list[dict[str, Any]], start: int, seconds: float
    ) -> PhaseResult:
        stop = self._milliseconds()
        report = ctrf.report(
            entries,
            start_ms=start,
            stop_ms=stop,
            timestamp=_timestamp(stop),
            version=self._order.setting.version,
            environment=self._order.environment,
        )
        summary = report["results"]["summary"]
        result = PhaseResult(phase, report, ctrf.phase_status(summary), seconds)
        self._progress.phase_finished(result)
        return result

    def _milliseconds(self) -> int:
        return round(self._wall() * 1000)


def merged(found: Sequence[PhaseResult]) -> dict[str, Any]:
    """The one report of a run."""
    return ctrf.merge([dict(result.report) for result in found])


def failing(found: Sequence[PhaseResult]) -> list[str]:
    """Phases that fail a run."""
    return [result.phase for result in found if result.status in ctrf.FAILING]


def skipped_declared(order: Order, found: Sequence[PhaseResult]) -> list[str]:
    """Declared checks that were skipped, for ``--strict`` (decision 8)."""
    names = []
    for result in found:
        declared = {
            entry.name
            for entries in selected(order.catalog, order.recipe, result.phase)
            for entry in entries
        }
        names += [
            test["name"]
            for test in result.report["results"]["tests"]
            if test["status"] == ctrf.SKIPPED and test["name"] in declared
        ]
    return names


def _timestamp(milliseconds: int) -> str:
    when = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return when.isoformat(timespec="seconds").replace("+00:00", "Z")
