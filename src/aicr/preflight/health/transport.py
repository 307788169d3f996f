"""One call to the platform connector on its Unix socket, without encryption.

Every call opens a channel of its own, so that a connector that was restarted behind the same path is
found again. Failures become `CallError`, which says the status by name: nothing above this module
imports gRPC. It must not know: retries, tokens, what is sent.
Source: preflight specification 5.1 and 5.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import grpc  # type: ignore[import-untyped]

from aicr.preflight.health.wire import METHOD


class CallError(Exception):
    """A call failed; `status` is a name such as UNAVAILABLE, or "" when the failure has none."""

    def __init__(self, status: str, details: str) -> None:
        super().__init__(f"{status}: {details}" if status else details)
        self.status = status
        self.details = details


class Transport(Protocol):
    """A way to deliver one message."""

    def __call__(self, data: bytes, metadata: Sequence[tuple[str, str]], timeout: float) -> None:
        """Deliver *data* within *timeout* seconds, or raise CallError."""


class UnixSocket:
    """Delivers to a Unix socket."""

    def __init__(self, path: str) -> None:
        self.path = path.removeprefix("unix://")

    def __call__(self, data: bytes, metadata: Sequence[tuple[str, str]], timeout: float) -> None:
        """Deliver *data* within *timeout* seconds.

        Raises:
            CallError: the connector is not there, does not answer in time, or refuses.
        """
        # Variables for proxies are for networks; a socket of this machine has none on its way.
        options = [("grpc.enable_http_proxy", 0)]
        with grpc.insecure_channel(f"unix:{self.path}", options=options) as channel:
            call = channel.unary_unary(METHOD, request_serializer=None, response_deserializer=None)
            try:
                call(data, timeout=timeout, metadata=list(metadata))
            except grpc.RpcError as error:
                code = error.code() if isinstance(error, grpc.Call) else None
                details = error.details() if isinstance(error, grpc.Call) else str(error)
                raise CallError(code.name if code else "", details or "") from error
