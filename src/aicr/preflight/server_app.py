"""The webhook's two ASGI applications: admissions with probes, and metrics.

``POST /mutate`` answers admissions, ``/healthz`` says that the process serves, ``/readyz`` that it can be
relied on. Needs no extra: an ASGI server calls it. It must not know TLS, sockets or signals.
Source: preflight spec 2.1, 2.3; decisions 23 and 75.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final, Protocol

from aicr.errors import AicrError
from aicr.preflight.logs import text_of
from aicr.preflight.times import ServerTimes

LOG: Final = logging.getLogger("aicr.preflight.server")
#: Bytes of one AdmissionReview. The API server takes objects of 3 MB; a review may hold one twice.
LARGEST_BODY: Final = 16 * 1024 * 1024

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

_JSON: Final = (b"content-type", b"application/json")
_TEXT: Final = (b"content-type", b"text/plain; charset=utf-8")
_CLOSE: Final = (b"connection", b"close")


class Reviewer(Protocol):
    """Answers one AdmissionReview."""

    async def review(self, body: bytes) -> bytes:
        """The reply to *body*; AicrError if it is none."""


class _GoneError(Exception):
    """The client went away before its request was whole."""


class _RefusedError(Exception):
    """The request is not answered with a review."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


class WebhookApp:
    """Admissions and probes.

    Attributes:
        draining: set when the process is about to end: it is no longer ready, answers all the same,
            and asks clients to connect elsewhere.
    """

    def __init__(
        self,
        reviewer: Reviewer,
        *,
        unready: Callable[[], str],
        read_timeout: float = ServerTimes().read,
    ) -> None:
        """*unready* says why the webhook cannot be relied on; "" if it can."""
        self._reviewer = reviewer
        self._unready = unready
        self._read_timeout = read_timeout
        self.draining = False

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        path = scope["path"]
        if path == "/mutate":
            await self._mutate(receive, send)
        elif path == "/healthz":
            await self._send(send, 200, b"ok")
        elif path == "/readyz":
            problem = "shutting down" if self.draining else self._unready()
            await self._send(send, 503 if problem else 200, (problem or "ok").encode())
        else:
            await self._send(send, 404, b"not found")

    async def _mutate(self, receive: Receive, send: Send) -> None:
        try:
            reply = await self._reviewer.review(await self._body(receive))
        except _GoneError:
            return
        except _RefusedError as refused:
            await self._send(send, refused.status, refused.text.encode())
        except AicrError as error:
            LOG.warning("Malformed admission review", extra={"error": text_of(error)})
            await self._send(send, 400, error.message.encode())
        except Exception:
            # A bug of ours must not be an admission: 500 is judged by the failure policy.
            LOG.exception("Admission failed")
            await self._send(send, 500, b"internal error")
        else:
            await self._send(send, 200, reply, _JSON)

    async def _body(self, receive: Receive) -> bytes:
        try:
            async with asyncio.timeout(self._read_timeout):
                message = await self._next(receive)
                parts: list[bytes] = [message.get("body", b"")]
                size = len(parts[0])
                while message.get("more_body") and size <= LARGEST_BODY:
                    message = await self._next(receive)
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
        except TimeoutError:
            raise _RefusedError(400, "failed to read request body") from None
        if size > LARGEST_BODY:
            raise _RefusedError(413, "the admission review is too large")
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def _next(self, receive: Receive) -> Message:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _GoneError
        return message

    async def _send(
        self, send: Send, status: int, body: bytes, kind: tuple[bytes, bytes] = _TEXT
    ) -> None:
        headers = [kind, (b"content-length", b"%d" % len(body))]
        if self.draining or status in (400, 413):
            headers.append(_CLOSE)
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


class MetricsApp:
    """``/metrics`` alone."""

    def __init__(self, text: Callable[[], tuple[bytes, str]]) -> None:
        """*text* gives the series and their content type."""
        self._text = text

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request."""
        del receive
        if scope["type"] != "http":
            return
        status, (body, kind) = 200, (b"not found", "text/plain")
        if scope["path"] == "/metrics":
            body, kind = self._text()
        else:
            status = 404
        headers = [
            (b"content-type", kind.encode()),
            (b"content-length", b"%d" % len(body)),
        ]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})
