"""Time for programs that wait without an event loop: seconds, and how to let them pass.

Tests hand in one in which nothing takes time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Clock:
    """Monotonic seconds, and sleeping."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
