"""A stand-in for the platform connector: takes health events on a Unix socket and hands them on.

It is for people who try a check out, and for tests of this product. It stores nothing and acts on
nothing. It must not know: how an event is shown.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc  # type: ignore[import-untyped]
from google.protobuf.empty_pb2 import Empty
from google.protobuf.message import DecodeError

from aicr.errors import invalid
from aicr.preflight.health.wire import METHOD, decode
from aicr.preflight.times import ServerTimes

#: A document of an event, and the authorization that came with it ("" for none).
Receiver = Callable[[dict[str, Any], str], None]


class Connector:
    """A server on a Unix socket, from `start` to `stop`.

    Args:
        path: the socket; `unix://` in front is allowed. It must not exist, but for a stale socket.
        receive: called for each event, from a thread of the server.
        refuse: gRPC status that every call gets instead; None takes events.
    """

    def __init__(
        self, path: str, receive: Receiver, *, refuse: grpc.StatusCode | None = None
    ) -> None:
        self.path = path.removeprefix("unix://")
        self._receive, self._refuse = receive, refuse
        self._threads = ThreadPoolExecutor(max_workers=4)
        self._listening = False
        self._server = grpc.server(self._threads)
        service, _, method = METHOD.strip("/").partition("/")
        handler = grpc.unary_unary_rpc_method_handler(self._occurred)
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(service, {method: handler}),)
        )

    def start(self) -> None:
        """Listen.

        Raises:
            AicrError: INVALID_REQUEST when the path is taken, too long, or in no folder that exists.
        """
        place = Path(self.path)
        try:
            mode = os.stat(self.path).st_mode
        except OSError:
            # Nothing there, or nothing that can be seen: listening says which.
            mode = 0
        if stat.S_ISSOCK(mode):
            place.unlink()
        elif mode:
            raise invalid("this file exists and is no socket", where=self.path, hint="name another")
        if len(os.fsencode(self.path)) > 100:
            raise invalid(
                "the path of a socket may have 100 bytes",
                where=self.path,
                hint="name a shorter one",
            )
        if not os.path.isdir(place.parent):
            raise invalid(
                "the folder does not exist", where=str(place.parent), hint="make it first"
            )
        try:
            self._server.add_insecure_port(f"unix:{self.path}")
        except RuntimeError as error:
            raise invalid(
                "cannot listen here", where=self.path, hint="is the folder writable?"
            ) from error
        self._server.start()
        self._listening = True

    def stop(self, grace: float = ServerTimes().connector) -> None:
        """Take nothing more, and remove the socket."""
        self._server.stop(grace).wait()
        self._threads.shutdown()
        if self._listening:
            Path(self.path).unlink(missing_ok=True)

    def _occurred(self, data: bytes, context: grpc.ServicerContext) -> bytes:
        if self._refuse is not None:
            context.abort(self._refuse, "this stand-in refuses every event")
        metadata = dict(context.invocation_metadata() or ())
        try:
            events = decode(data)
        except DecodeError:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "this is no HealthEvents message")
        for event in events:
            self._receive(event, str(metadata.get("authorization", "")))
        return Empty().SerializeToString()
