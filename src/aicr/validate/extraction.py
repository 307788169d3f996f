"""From what was seen of a Job to a verdict: a result whatever happened.

Three ways lead here: the wait ended as it should (`after_wait`), it ended with an error
(`after_error`), or there never was a Job (`not_deployed`). A verdict comes from a container that
has ended and from nothing else; everything short of that is exit code −1, which reads as
``other``. Two kinds of absence are kept apart: a pod that is gone for sure (the list was read,
and it is not in it), and one that could not be looked for. Pure.

Source: validators spec 3.7; decision 62; field case G4.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from aicr.contract import container
from aicr.contract.sentinels import COULD_NOT_TELL
from aicr.errors import INTERNAL, NOT_FOUND, TIMEOUT, AicrError
from aicr.validate import pods
from aicr.validate.pods import Document
from aicr.values import durations

#: No container has ended, so nothing was decided.
UNDECIDED: Final = -1
_NO_CONTAINER: Final = 'container "validator" not found'


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a check ended: its exit code, or −1; words; and the code of what could not be told."""

    exit_code: int
    message: str = ""
    code: str = ""
    started: str = ""
    duration_ms: int = 0

    @property
    def status(self) -> str:
        """The CTRF status."""
        return container.status_of(self.exit_code)


def after_wait(
    job: Document | None, pod: Document | None, problem: AicrError | None = None, *, name: str = ""
) -> Verdict:
    """The verdict once the wait has ended normally.

    Args:
        job: the Job, None when it cannot be read.
        pod: its pod; None when there is none.
        problem: why there is no pod: NOT_FOUND when that is certain, else what kept it from being
            found.
        name: of the Job, for messages.
    """
    if pod is None:
        return _no_pod(job, problem or _gone(name), name)
    state = (pods.status_of(pod) or {}).get("state")
    if state is None:
        said = pods.explained(pod)
        return Verdict(
            UNDECIDED,
            f"{_NO_CONTAINER} (validator package contract)" + (f"; pod {said}" if said else ""),
            INTERNAL,
        )
    if state.get("terminated"):
        return _terminated(pod, state["terminated"])
    if state.get("waiting"):
        return Verdict(
            UNDECIDED,
            f"{state['waiting'].get('reason', '')}: {state['waiting'].get('message', '')}",
            INTERNAL,
        )
    return Verdict(UNDECIDED, "container still running after wait completed", INTERNAL)


def after_error(
    pod: Document | None, cause: AicrError | None, timeout: str, *, trouble: str = ""
) -> Verdict:
    """The verdict once the wait has ended with an error.

    Args:
        pod: the Job's pod, as it is now.
        cause: the error; None is a deadline.
        timeout: the check's budget as Go writes it.
        trouble: what is wrong with the pod's node; "" if nothing is known.
    """
    timed_out = cause is None or cause.code == TIMEOUT
    code = TIMEOUT if cause is None else _code(cause)
    said = (
        f"timeout: validator did not complete within {timeout}"
        if timed_out
        else f"validation failed: {cause}"
    )
    if trouble:
        trouble = f"; {trouble}"
    if pod is None:
        why = "" if timed_out else f": {cause}"
        return Verdict(UNDECIDED, f"pod never reached running state{why}", code)
    state = (pods.status_of(pod) or {}).get("state")
    why = pods.explained(pod)
    if why:
        trouble = f"; {why}{trouble}"
    if state is None:
        return Verdict(
            UNDECIDED, f"{said} ({_NO_CONTAINER} - validator package contract){trouble}", code
        )
    if state.get("terminated"):
        return _terminated(pod, state["terminated"])
    return Verdict(UNDECIDED, f"{said}{trouble}", code)


def not_deployed(error: AicrError) -> Verdict:
    """The verdict on a check whose Job could not be made."""
    return Verdict(UNDECIDED, f"failed to deploy Job: {error}", _code(error))


def hopeless(found: pods.Hopeless, pod: Document | None) -> Verdict:
    """The verdict when waiting was given up early, unless the container has ended meanwhile."""
    end = pods.terminated(pod) if pod is not None else None
    if pod is not None and end:
        return _terminated(pod, end)
    return Verdict(UNDECIDED, found.message, found.code)


def _terminated(pod: Document, end: Mapping[str, Any]) -> Verdict:
    message = container.cut(str(end.get("message") or ""))
    if end.get("reason") == "OOMKilled":
        message = "Container OOMKilled" + (f": {message}" if message else "")
    elif not message and (pod.get("status") or {}).get("reason"):
        # The pod as a whole was ended, by an eviction for one, and its program could not say so.
        message = f"pod {pods.explained(pod)}"
    started, finished = str(end.get("startedAt") or ""), str(end.get("finishedAt") or "")
    return Verdict(
        exit_code=int(end.get("exitCode", UNDECIDED)),
        message=message,
        started=started,
        duration_ms=_milliseconds(started, finished),
    )


def _no_pod(job: Document | None, problem: AicrError, name: str) -> Verdict:
    end = pods.ended(job) if job is not None else None
    if job is not None and end is not None and problem.code == NOT_FOUND and end[0] == pods.FAILED:
        reason = str(end[1].get("reason") or "")
        said = str(end[1].get("message") or "")
        if reason == pods.DEADLINE_EXCEEDED:
            limit = int((job.get("spec") or {}).get("activeDeadlineSeconds") or 0)
            return Verdict(
                container.FAIL,
                f"validator Job did not complete within its "
                f"{durations.format(limit * durations.SECOND)} deadline; no pod remains for it, so its "
                f"logs are unavailable (Job condition Failed/DeadlineExceeded: {said or reason})",
                TIMEOUT,
            )
        return Verdict(
            UNDECIDED, f"Job {name} failed ({reason}): {said}; pod not found: {problem}", INTERNAL
        )
    return Verdict(UNDECIDED, f"pod not found for Job {name}: {problem}", _code(problem))


def _gone(name: str) -> AicrError:
    return AicrError(NOT_FOUND, f"no pod of Job {name} is left")


def _code(error: AicrError) -> str:
    """The code of an error as a report may state it: one of the closed set, or INTERNAL."""
    return next((link.code for link in error.chain() if link.code in COULD_NOT_TELL), INTERNAL)


def _milliseconds(started: str, finished: str) -> int:
    try:
        span = datetime.fromisoformat(finished) - datetime.fromisoformat(started)
    except ValueError:
        return 0
    return max(0, round(span.total_seconds() * 1000))
