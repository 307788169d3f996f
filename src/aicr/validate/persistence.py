"""One request, again and again while its server is away: for requests that may come twice.

An API server that restarts is no finding about a cluster. What is applied, read or deleted by UID
has the same effect however often it arrives, so it is repeated until it is answered or its time
is up; an answer that is a refusal is never repeated. It must not know what is asked.

Source: decisions 14, 83.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from aicr.errors import NOT_FOUND, RATE_LIMIT_EXCEEDED, SERVICE_UNAVAILABLE, TIMEOUT, AicrError
from aicr.validate.timing import Timing

Answer = TypeVar("Answer")
#: What a server that comes back may answer differently.
PASSING: Final = frozenset({SERVICE_UNAVAILABLE, TIMEOUT, RATE_LIMIT_EXCEEDED})


async def insist(
    ask: Callable[[], Awaitable[Answer]],
    seconds: float,
    *,
    pause: float = Timing().repeat,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> Answer:
    """The answer to *ask*, tried for at most *seconds* (one attempt at least).

    Raises:
        AicrError: what the last attempt raised; TIMEOUT when it had no answer in time.
    """
    deadline = clock() + seconds
    while True:
        try:
            async with asyncio.timeout(max(pause, deadline - clock())):
                return await ask()
        except TimeoutError as error:
            raise AicrError(TIMEOUT, f"no answer within {seconds:g}s") from error
        except AicrError as error:
            if error.code not in PASSING or clock() + pause >= deadline:
                raise
        await sleep(pause)


async def gone(
    ask: Callable[[], Awaitable[object]], seconds: float, *, pause: float = Timing().repeat
) -> None:
    """Make a deletion; what is not there is as good as deleted.

    Raises:
        AicrError: as `insist`.
    """
    try:
        await insist(ask, seconds, pause=pause)
    except AicrError as error:
        if error.code != NOT_FOUND:
            raise
