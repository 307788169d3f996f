"""The sockets of one transport, so that none is open once it is closed.

A connection whose making was given up in the moment in which it was made, and one that has still to send
what its server does not take, belong to nobody: they would be open until the server answers, and beyond
the end of the event loop. So every socket is known from its birth, and is cut in the end. It must not know
what is said on them.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import weakref
from typing import Any, Final

#: Rounds of the event loop in which a connection that was cut is noticed and closed; four are needed.
ROUNDS: Final = 16


class Sockets:
    """See the module."""

    def __init__(self) -> None:
        self._made: weakref.WeakSet[socket.socket] = weakref.WeakSet()

    def make(self, address: tuple[Any, ...]) -> socket.socket:
        """A socket for one of the answers of `socket.getaddrinfo`."""
        family, kind, protocol = address[:3]
        made = socket.socket(family=family, type=kind, proto=protocol)
        self._made.add(made)
        return made

    def cut(self) -> int:
        """End all connections, as if their servers had; how many sockets are not closed yet.

        They are not closed here: the event loop must see them end, and close what it has of them.
        """
        left = [made for made in self._made if made.fileno() >= 0]
        for made in left:
            with contextlib.suppress(OSError):  # not connected yet, or not any more
                made.shutdown(socket.SHUT_RDWR)
        return len(left)

    async def closed(self) -> None:
        """Cut, and wait until the event loop has closed what was cut."""
        for _ in range(ROUNDS):
            if not self.cut():
                return
            await asyncio.sleep(0)
