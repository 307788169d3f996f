"""From results to events, a summary and an exit code. Pure.

Fatal is only a failed test on a GPU of ours whose code has an action. Everything that could not be
tested is told, not fatal, and blames nobody (decision 19).
Source: preflight specification 5.2, 6.3 steps 10 and 11, 6.5; field case K7.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from aicr.fabric import dcgm_codes
from aicr.preflight.checks import exit_codes
from aicr.preflight.checks.dcgm.response import RAN, Answer, GpuResult, RunProblem
from aicr.preflight.health.events import Event, finding, gpu, healthy, notice

PASSED_TEXT: Final = "Test passed"
MIG_TEXT: Final = "DCGM diagnostics do not support MIG: this GPU was not tested"
NOT_RUN_TEXT: Final = "no test of the diagnostic ran on this GPU, so nothing is known about it"


@dataclass(frozen=True)
class Summary:
    """Counts of results; `skipped` is everything that did not run."""

    passed: int
    failed: int
    warned: int
    skipped: int

    def document(self) -> dict[str, int]:
        """The counts and their total, as the log line has them."""
        counts = {
            "passed": self.passed,
            "failed": self.failed,
            "warned": self.warned,
            "skipped": self.skipped,
        }
        return {**counts, "total": sum(counts.values())}


@dataclass(frozen=True)
class Verdict:
    """What an answer comes to."""

    events: tuple[Event, ...]
    summary: Summary
    exit_code: int
    verdict: str
    message: str


def judge(answer: Answer, gpus: Sequence[str]) -> Verdict:
    """Judge an answer for the GPUs that were to be tested.

    Args:
        answer: the results.
        gpus: UUIDs of the GPUs that the diagnostic was to run on.
    """
    events = [event for result in answer.results if (event := of_result(result))]
    events += [of_problem(problem) for problem in answer.problems]
    tested = {result.uuid for result in answer.results if result.status in RAN}
    untested = [uuid for uuid in gpus if uuid not in tested]
    events += [_untested(uuid) for uuid in untested]
    counts = [result.status for result in answer.results]
    passed, failed, warned = (counts.count(word) for word in ("pass", "fail", "warn"))
    summary = Summary(passed, failed, warned, len(counts) - passed - failed - warned)
    fatal = [event for event in events if event.is_fatal]
    unhealthy = [event for event in events if not event.is_healthy]
    if fatal:
        code, word = exit_codes.FAILED, exit_codes.FAIL
        message = f"{_count(fatal, 'test')} failed on a GPU: {_names(fatal)}"
    elif answer.problems:
        code, word = exit_codes.FAILED, exit_codes.FAIL
        message = f"the diagnostic failed: {'; '.join(one.message for one in answer.problems)}"
    elif untested:
        code, word = exit_codes.FAILED, exit_codes.NOT_TESTED
        message = f"no test ran on {', '.join(untested)}"
    elif unhealthy:
        code, word = exit_codes.PASSED, exit_codes.WARNED
        message = f"{_count(unhealthy, 'finding')} without need to act: {_names(unhealthy)}"
    else:
        code, word = exit_codes.PASSED, exit_codes.PASS
        message = f"{_count(counts, 'result')}, none of them bad"
    return Verdict(tuple(events), summary, code, word, message)


def of_result(result: GpuResult) -> Event | None:
    """The event of one result; None for a test that has none (skipped, not run)."""
    name, entity = dcgm_codes.check_name(result.test), gpu(result.uuid)
    if result.status == "pass":
        return healthy(name, PASSED_TEXT, entity)
    codes, action = result.mnemonics[:1], result.action
    if result.status == "warn":
        return notice(name, result.message, *codes, action=action, entities=(entity,))
    if result.status == "fail":
        if action == dcgm_codes.NONE:
            return notice(name, result.message, *codes, entities=(entity,))
        return finding(name, result.message, action, *codes, entities=(entity,))
    return None


def of_problem(problem: RunProblem) -> Event:
    """The event of a failure that names no GPU of ours: told, and nobody is blamed."""
    return notice(
        dcgm_codes.check_name(problem.test),
        problem.message,
        *problem.mnemonics[:1],
        action=problem.action,
    )


def of_run_error(message: str, *codes: str) -> Event:
    """The event of a diagnostic that could not be run (decision 19, against specification 5.2)."""
    return notice(dcgm_codes.check_name(), message, *codes)


def of_mig(uuid: str) -> Event:
    """The event of a GPU that is cut into instances."""
    return notice(dcgm_codes.check_name(), MIG_TEXT, entities=(gpu(uuid),))


def _untested(uuid: str) -> Event:
    return notice(dcgm_codes.check_name(), NOT_RUN_TEXT, entities=(gpu(uuid),))


def _count(items: Sequence[object], word: str) -> str:
    return f"{len(items)} {word}{'' if len(items) == 1 else 's'}"


def _names(events: Sequence[Event]) -> str:
    named = (
        f"{event.check_name} on {event.entities[0].value}" if event.entities else event.check_name
        for event in events
    )
    return ", ".join(named)
