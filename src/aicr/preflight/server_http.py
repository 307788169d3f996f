"""uvicorn's HTTP protocol with one write an answer.

uvicorn writes head and body of an answer one after the other, each a TLS record and a system call of its
own. Here what is written in one turn of the event loop goes out together. Imported by the server alone,
since it needs the extra ``webhook``. It must not know what is served.
"""

from __future__ import annotations

import asyncio
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class Corked:
    """A transport that sends at the end of the loop's turn what was written in it."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._waiting: list[bytes] = []

    def write(self, data: bytes) -> None:
        """Send *data*, soon and in order."""
        if not self._waiting:
            self._loop.call_soon(self._flush)
        self._waiting.append(data)

    def close(self) -> None:
        """Close once everything is sent."""
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._waiting:
            data = b"".join(self._waiting)
            self._waiting.clear()
            self._transport.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class CorkedProtocol(HttpToolsProtocol):
    """uvicorn's protocol on a `Corked` transport."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin with a connection."""
        corked = Corked(cast(asyncio.Transport, transport), asyncio.get_running_loop())
        super().connection_made(cast(asyncio.Transport, corked))
