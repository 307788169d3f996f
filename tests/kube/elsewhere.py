"""A fake API server in a thread of its own, so that the event loop of a client can end without it."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, TypeVar, cast

from aiohttp import web
from tests.kube.fakeapi import Respond

T = TypeVar("T")

#: Seconds after which a thing that was to happen at once has not happened.
PATIENCE = 30.0


class Elsewhere:
    """Serves what *made* gives, which is called in the thread's event loop."""

    def __init__(
        self, made: Callable[[], Coroutine[Any, Any, Respond]], tls: ssl.SSLContext | None = None
    ) -> None:
        self._made, self._tls = made, tls
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self.address = ""

    def __enter__(self) -> Elsewhere:
        self._thread.start()
        self.run(self._start())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.run(self._runner.cleanup())
        self.run(self._rounds())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE)
        self._loop.close()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """What *coroutine* gives in the server's event loop."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(PATIENCE)

    def frozen(self) -> threading.Event:
        """Answer nothing, as a process that was stopped, until the event is set."""
        thawed = threading.Event()
        self._loop.call_soon_threadsafe(thawed.wait, PATIENCE)
        return thawed

    def left_open(self) -> list[str]:
        """The connections that the client has not ended; waits for those that it has."""
        return self.run(self._left_open())

    async def _start(self) -> None:
        self._server = web.Server(cast("Any", await self._made()))
        self._runner = web.ServerRunner(self._server, shutdown_timeout=0.2)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=self._tls).start()
        scheme = "https" if self._tls else "http"
        self.address = f"{scheme}://127.0.0.1:{self._runner.addresses[0][1]}"

    async def _left_open(self) -> list[str]:
        until = self._loop.time() + PATIENCE / 2
        while True:
            # A handler that still sleeps has no connection any more.
            left = [repr(one) for one in self._server.connections if one.transport is not None]
            if not left or self._loop.time() > until:
                await self._rounds()
                return left
            await asyncio.sleep(0.002)

    async def _rounds(self) -> None:
        """Let connections that ended before they were counted be noticed."""
        for _ in range(10):
            await asyncio.sleep(0)
