"""Waiting until something is well and stays well: one healthy sample in a roll-out proves little.

A sample is a coroutine that returns when all is well and raises an AicrError that says what is not. An
error marked `final` ends the wait, because no time mends it. Everything else is sampled again.
Source: validators spec 6.1 step 4, 11.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from aicr.checks.sdk import Context, failed
from aicr.checks.sdk.outcome import could_not_tell
from aicr.errors import TIMEOUT, AicrError
from aicr.values import durations

Sample = Callable[[], Awaitable[None]]

_FINAL: Final = "final"


def final(error: AicrError) -> AicrError:
    """*error*, marked as one that ends the wait."""
    error.context[_FINAL] = True
    return error


async def until_stable(context: Context, what: str, sample: Sample, limit: float) -> None:
    """Return once *sample* has been well without a break for the window.

    Args:
        context: for clock and times.
        what: subject of the message, for example ``DRA kubelet plugin``.
        sample: takes one look.
        limit: seconds to wait at most; the caller keeps it within the check's budget.

    Raises:
        AicrError: TIMEOUT ``<what> not ready within <limit>``, chained to the last look's error; an error
            that is final as it is.
    """
    times, clock = context.timeouts, context.clock
    started = clock.now()
    since: float | None = None
    last: AicrError | None = None
    while True:
        left = limit - (clock.now() - started)
        try:
            await asyncio.wait_for(sample(), max(left, 0.0))
        except TimeoutError:
            since = None
            last = last or AicrError(TIMEOUT, f"no answer about {what} in time")
        except AicrError as error:
            if error.context.get(_FINAL):
                raise
            last, since = error, None
        else:
            now = clock.now()
            since = now if since is None else since
            if now - since >= times.gpu_readiness_window:
                return
        left = limit - (clock.now() - started)
        if left <= 0:
            raise _late(what, limit, last, since) from last
        await clock.sleep(min(times.gpu_readiness_poll, left))


def _late(what: str, limit: float, last: AicrError | None, since: float | None) -> AicrError:
    message = f"{what} not ready within {said(limit)}"
    if since is not None:
        message += ": it became ready, and has not stayed so for long enough yet"
    elif last is not None:
        message += f": {last.message}"
    hint = last.hint if last is not None else ""
    if since is None and last is not None and could_not_tell(last):
        return AicrError(TIMEOUT, message, hint=hint)
    return failed(message, code=TIMEOUT, hint=hint)


def said(seconds: float) -> str:
    """Seconds as Go prints them."""
    return durations.format(round(seconds * 1000) * durations.MILLISECOND)
