"""The waiting times of the engine in one object, and the clock that it waits by.

Tests shorten all times by one factor or bring a clock of their own; the defaults are asserted.
Source: validators spec 8.4, 8.5 and 11; decisions 67 and 68.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from aicr.values.waiting import Waits


@dataclass(frozen=True, slots=True)
class Timing(Waits):
    """Health checks of components."""

    #: All of one component: documents, steps, operations and retries.
    budget: float = 450.0
    #: Between two looks.
    retry: float = 5.0
    #: How long an asserted object, or its kind, may be absent before it has ever been seen.
    absent_grace: float = 30.0


def _loop_time() -> float:
    return asyncio.get_running_loop().time()


@dataclass(frozen=True, slots=True)
class Clock:
    """Seconds, monotonic, and how to let them pass; by default those of the running event loop."""

    now: Callable[[], float] = _loop_time
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
