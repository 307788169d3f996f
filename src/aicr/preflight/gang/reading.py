"""Groups as just read, without asking for one a thousand times.

A gang of a thousand pods is admitted in seconds, and each admission needs its group. Requests for one
group that overlap are one request, and its answer serves for `Times.shared` seconds more: what is a second
old was true while the pod was being admitted, and a forming gang is looked at again. It must not know what
the answer means.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Final, Generic, TypeVar

from aicr.preflight.times import Times

T = TypeVar("T")

#: Answers kept before old ones are looked for.
_MANY: Final = 1024


class Shared(Generic[T]):
    """See the module. Failures are given to those who waited, and never kept.

    Args:
        clock: seconds, monotonic.
        age: seconds for which an answer serves.
    """

    def __init__(self, clock: Callable[[], float], *, age: float = Times().shared) -> None:
        self._clock = clock
        self._age = age
        self._answers: dict[Hashable, tuple[float, T]] = {}
        self._asked: dict[Hashable, asyncio.Future[T]] = {}

    async def get(self, key: Hashable, ask: Callable[[], Awaitable[T]]) -> T:
        """The answer for *key*, from *ask* if nobody has just asked."""
        kept = self._answers.get(key)
        if kept is not None and self._clock() - kept[0] <= self._age:
            return kept[1]
        asked = self._asked.get(key)
        if asked is None:
            asked = asyncio.ensure_future(ask())
            self._asked[key] = asked
            asked.add_done_callback(lambda done: self._keep(key, done))
        # One who gives up must not take the answer from the others.
        return await asyncio.shield(asked)

    def forget(self, key: Hashable) -> None:
        """Ask again next time."""
        self._answers.pop(key, None)

    def _keep(self, key: Hashable, done: asyncio.Future[T]) -> None:
        self._asked.pop(key, None)
        if done.cancelled() or done.exception() is not None:
            return
        if len(self._answers) >= _MANY:
            oldest = self._clock() - self._age
            self._answers = {key: kept for key, kept in self._answers.items() if kept[0] >= oldest}
        self._answers[key] = (self._clock(), done.result())
