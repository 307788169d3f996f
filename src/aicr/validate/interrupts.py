"""Lets a run be interrupted without leaving anything behind.

Ctrl-C and a request to end cancel the run's coroutine, which cleans up while it unwinds; then the
interruption goes on as the command line knows it. A second signal during the cleanup is answered,
and does not cut it off. It must not know what runs.

Source: decision 13; field pains on leftovers of runs.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

Answer = TypeVar("Answer")


def run(
    main: Coroutine[Any, Any, Answer], *, say: Callable[[str], None] = lambda text: None
) -> Answer:
    """The result of *main*.

    Args:
        main: what to run; it is cancelled by SIGINT or SIGTERM and may take its time to clean up.
        say: is told that an interruption was heard.

    Raises:
        KeyboardInterrupt, SystemExit: once *main* has unwound, for SIGINT and SIGTERM.
    """
    heard: list[int] = []

    async def watched() -> Answer:
        task = asyncio.ensure_future(main)
        loop = asyncio.get_running_loop()

        def hear(number: int) -> None:
            if heard:
                say("still cleaning up; this ends by itself")
                return
            heard.append(number)
            say("interrupted; removing what this run has made")
            task.cancel()

        before = {}
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                handler = signal.getsignal(number)
                if handler is not signal.SIG_IGN:
                    before[number] = handler
                    loop.add_signal_handler(number, hear, number)
        try:
            return await task
        finally:
            for number, handler in before.items():
                loop.remove_signal_handler(number)
                signal.signal(number, handler)

    try:
        return asyncio.run(watched())
    except asyncio.CancelledError:
        if not heard:
            raise
    if heard[0] == signal.SIGINT:
        raise KeyboardInterrupt
    raise SystemExit(128 + heard[0])
