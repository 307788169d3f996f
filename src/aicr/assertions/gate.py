"""The readiness gate as a state machine: from the time and one sample to a condition and the next pause.

```
              any component does not pass              deadline
   ┌──────────────────────────────────────┐   (from either, while not ready)
   ▼                                      │            │
ComponentsFailing ── all pass ──► Stabilizing ─────────┼──► DeadlineExceeded   end, exit 8
                                          │            ▼
                                          └─ for the window ──► AllPass        end, exit 0
```
Pure: no clock, no cluster, no waiting; `aicr.assertions.gate_loop` brings those. A component that fails and
one whose state is unknown hold the gate alike; only the words differ, because they send a person to
different places.

Source: validators spec 8.9 and 11; decision 68.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from aicr.values import durations

PASS: Final = "Pass"
FAIL: Final = "Fail"
UNKNOWN: Final = "Unknown"

COMPONENTS_FAILING: Final = "ComponentsFailing"
STABILIZING: Final = "Stabilizing"
ALL_PASS: Final = "AllPass"
DEADLINE_EXCEEDED: Final = "DeadlineExceeded"

#: Characters of a component's message that are kept (its end), that the summary shows, and of the summary.
_TAIL: Final = 120
_SHOWN: Final = 80
_SUMMARY: Final = 256


@dataclass(frozen=True, slots=True)
class Settings:
    """Waiting times in seconds.

    Attributes:
        poll: between two evaluations.
        window: how long all components must pass without a break.
        max_wait: when to give up; 0 for never.
    """

    poll: float
    window: float
    max_wait: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one evaluation says of one component: `PASS`, `FAIL` or `UNKNOWN`, and why."""

    component: str
    result: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class State:
    """Since when the gate waits, and since when all components pass (None: they do not)."""

    started: float
    passing_since: float | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """What follows from a sample.

    Attributes:
        state: for the next step.
        ready: the condition's status.
        reason: one of the four of the module.
        message: for people.
        requeue: seconds until the next evaluation; meaningless at the end.
        ended: whether this is the end.
    """

    state: State
    ready: bool
    reason: str
    message: str
    requeue: float
    ended: bool


def step(settings: Settings, state: State, now: float, sample: Sequence[Verdict]) -> Step:
    """The condition after *sample*, which was complete at *now* (seconds, monotonic).

    A sample of nothing passes nothing: it is for the caller to refuse a gate without components.
    """
    failing = [verdict for verdict in sample if verdict.result != PASS]
    if failing or not sample:
        found = Step(
            State(state.started), False, COMPONENTS_FAILING, summary(failing), settings.poll, False
        )
    else:
        since = now if state.passing_since is None else state.passing_since
        kept = State(state.started, since)
        remaining = settings.window - (now - since)
        if remaining <= 0:
            stable = duration(now - since)
            message = f"All {len(sample)} component(s) passing (stable for {stable})"
            return Step(kept, True, ALL_PASS, message, 0.0, True)
        message = f"All components passing; stabilizing for {duration(remaining)}"
        requeue = min(settings.poll, remaining + 1.0)
        found = Step(kept, False, STABILIZING, message, requeue, False)
    if settings.max_wait <= 0:
        return found
    left = settings.max_wait - (now - state.started)
    if left <= 0:
        limit = duration(settings.max_wait)
        message = f"Gate did not become Ready within {limit}"
        return Step(found.state, False, DEADLINE_EXCEEDED, message, 0.0, True)
    # Not beyond the deadline, where the next evaluation would come too late to count.
    return Step(found.state, False, found.reason, found.message, min(found.requeue, left), False)


def summary(failing: Sequence[Verdict]) -> str:
    """The components that hold the gate, by name, in one line of at most 256 characters and ``...``."""
    parts = []
    for verdict in sorted(failing, key=lambda each: each.component):
        text = " ".join(verdict.message.split())[:_SHOWN]
        parts.append(f"{verdict.component}: {verdict.result}{f' ({text})' if text else ''}")
    line = f"{len(failing)} component(s) failing: {'; '.join(parts)}"
    return line if len(line) <= _SUMMARY else f"{line[:_SUMMARY]}..."


def tail(text: str) -> str:
    """The end of a component's message, where the cause is."""
    return text[-_TAIL:]


def duration(seconds: float) -> str:
    """Seconds as Go prints them; whole ones from one second on."""
    if seconds >= 1:
        return durations.format(round(seconds) * durations.SECOND)
    return durations.format(round(seconds * 1000) * durations.MILLISECOND)
