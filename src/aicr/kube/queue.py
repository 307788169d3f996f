"""Keys to reconcile: each once, never two at a time, later again if it failed.

As controller-runtime's queue: a key that is added while it waits is one piece of work; one that is
added while it is worked on comes again afterwards. Failures come back after a pause that doubles.
`work` is the loop that takes keys and calls a `Reconciler`. It must not know what keys mean.
"""

from __future__ import annotations

import asyncio
import logging
import random as random_module
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from aicr.errors import INTERNAL, AicrError
from aicr.kube.backoff import delay
from aicr.kube.timeouts import Timeouts

K = TypeVar("K", bound=Hashable)
LOG = logging.getLogger(__name__)

_TIMES: Final = Timeouts()


@dataclass(frozen=True, slots=True)
class Result:
    """What a reconciler answers: done, or done for now and again after so many seconds."""

    requeue_after: float = 0.0


DONE: Final = Result()

Reconciler = Callable[[K], Awaitable[Result]]


class Queue(Generic[K]):
    """See the module. To be used in one event loop.

    Args:
        first, longest: pauses after failures.
        random: jitter in [0, 1).
    """

    def __init__(
        self,
        *,
        first: float = _TIMES.queue_first,
        longest: float = _TIMES.queue_longest,
        random: Callable[[], float] = random_module.random,
    ) -> None:
        self._first = first
        self._longest = longest
        self._random = random
        self._waiting: deque[K] = deque()
        #: Keys that have to be worked on: those waiting, and those to come again after the work on
        #: them.
        self._dirty: set[K] = set()
        self._working: set[K] = set()
        self._failures: dict[K, int] = {}
        self._timers: dict[K, asyncio.TimerHandle] = {}
        self._ready = asyncio.Condition()
        self._open = True
        self._wakers: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, key: K) -> None:
        """Work on *key* as soon as may be. A pause that it is in ends."""
        self._cancel_timer(key)
        if not self._open or key in self._dirty:
            return
        self._dirty.add(key)
        if key not in self._working:
            self._waiting.append(key)
            self._wake()

    def add_after(self, key: K, seconds: float) -> None:
        """Add *key* in *seconds*; of several such wishes the earliest counts."""
        if not self._open:
            return
        if seconds <= 0:
            self.add(key)
            return
        loop = asyncio.get_running_loop()
        timer = self._timers.get(key)
        if timer is not None and timer.when() <= loop.time() + seconds:
            return
        self._cancel_timer(key)
        self._timers[key] = loop.call_later(seconds, self.add, key)

    def add_failed(self, key: K) -> float:
        """Add *key* after the pause that its failures have earned; the pause in seconds."""
        attempt = self._failures.get(key, 0)
        self._failures[key] = attempt + 1
        pause = delay(attempt, base=self._first, cap=self._longest, random=self._random, jitter=0.1)
        self.add_after(key, pause)
        return pause

    def forget(self, key: K) -> None:
        """*key* succeeded: its next failure counts as the first."""
        self._failures.pop(key, None)

    def failures(self, key: K) -> int:
        """How often *key* has failed in a row."""
        return self._failures.get(key, 0)

    async def get(self) -> K | None:
        """The next key, which nobody else gets until `done`; None once the queue is shut and empty."""
        async with self._ready:
            await self._ready.wait_for(lambda: self._waiting or not self._open)
            if not self._waiting:
                return None
            key = self._waiting.popleft()
            self._dirty.discard(key)
            self._working.add(key)
            return key

    def done(self, key: K) -> None:
        """The work on *key* is over; if it was added meanwhile, it waits again."""
        self._working.discard(key)
        if key in self._dirty:
            self._waiting.append(key)
            self._wake()

    def shut(self) -> None:
        """Take nothing more; what waits is still handed out."""
        self._open = False
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._wake()

    def _cancel_timer(self, key: K) -> None:
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()

    def _wake(self) -> None:
        task = asyncio.get_running_loop().create_task(self._notify())
        self._wakers.add(task)
        task.add_done_callback(self._wakers.discard)

    async def _notify(self) -> None:
        async with self._ready:
            self._ready.notify_all()


async def work(queue: Queue[K], reconcile: Reconciler[K], *, workers: int = 1) -> None:
    """Reconcile keys until the queue is shut and empty, *workers* at a time.

    A failure is logged and the key comes again. What is not an `AicrError` is a mistake in the
    program, and ends the work as INTERNAL: going on would hide it.
    """
    async with asyncio.TaskGroup() as group:
        for _ in range(workers):
            group.create_task(_worker(queue, reconcile))


async def _worker(queue: Queue[K], reconcile: Reconciler[K]) -> None:
    while (key := await queue.get()) is not None:
        try:
            result = await reconcile(key)
        except AicrError as error:
            pause = queue.add_failed(key)
            LOG.warning("%s failed, again in %.3g s: %s", key, pause, error)
        except Exception as error:
            raise AicrError(INTERNAL, f"reconciling {key} failed: {error!r}") from error
        else:
            queue.forget(key)
            if result.requeue_after > 0:
                queue.add_after(key, result.requeue_after)
        finally:
            queue.done(key)
