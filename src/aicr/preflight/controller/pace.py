"""How often a forming gang's ConfigMap is written: soon for few changes, rarely for many.

Until a membership is complete, what is written only tells people who is missing; each write makes
every kubelet with a member read the object again. So the pause between such writes doubles, up to a
limit that grows with the gang. A thousand pods whose addresses come over ten minutes are some twenty
writes. Writes that somebody could act wrongly without are not paced. Pure, but for the clock.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from aicr.preflight.times import Times


class Pace:
    """Pauses by key."""

    def __init__(self, clock: Callable[[], float], times: Times | None = None) -> None:
        self._clock = clock
        self._times = times or Times()
        self._writes: dict[Hashable, tuple[int, float]] = {}

    def pause(self, key: Hashable, members: int) -> float:
        """Seconds until *key*, with so many members, may be written again; 0 if it may now."""
        count, last = self._writes.get(key, (0, 0.0))
        if not count:
            return 0.0
        times = self._times
        cap = min(times.pace_most, max(times.pace_least, times.pace_member * members))
        pause: float = min(cap, times.pace * 2.0 ** min(count - 1, 16))
        return max(0.0, last + pause - self._clock())

    def wrote(self, key: Hashable, *, anew: bool) -> None:
        """*key* was written; *anew*: its next change is as urgent as the first."""
        count = 0 if anew else self._writes.get(key, (0, 0.0))[0]
        self._writes[key] = (count + 1, self._clock())

    def forget(self, key: Hashable) -> None:
        """*key* is of no interest any more."""
        self._writes.pop(key, None)
