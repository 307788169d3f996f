"""Ports of loopback for programs that are told where to listen.

A port that was merely free a moment ago may be given to anybody before the program takes it: tests run
beside each other. Here a socket that is bound and does not listen keeps the port until this process ends.
The kernel gives it to nobody then, a connection to it is refused, and a server that names it may still
listen there, again and again, because servers set SO_REUSEADDR.
"""

from __future__ import annotations

import socket


def reserved_port() -> int:
    """A port of 127.0.0.1 on which nobody listens but who is told of it."""
    with socket.socket() as kept:
        kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        kept.bind(("127.0.0.1", 0))
        port: int = kept.getsockname()[1]
        # The descriptor stays open without an object that would complain of it.
        kept.detach()
    return port
