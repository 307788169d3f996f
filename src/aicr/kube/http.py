"""The transport: `request.Request` over HTTP(S) with aiohttp.

One object a cluster. It keeps connections, presents the credentials of the moment, renews them once
when the server refuses them, waits when the server says when to come back, and turns every failure
into an `AicrError`. It does not interpret what it carries. Nothing is logged here but the target of
a request.

The only module besides `http_errors` that needs aiohttp; `aicr.kube.connect` imports it.
"""

from __future__ import annotations

import asyncio
import io
import random as random_module
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, cast

import aiohttp
import yarl
from aiohttp.connector import NEEDS_CLEANUP_CLOSED

from aicr.errors import SERVICE_UNAVAILABLE, AicrError
from aicr.kube import request as requests
from aicr.kube import status, tls
from aicr.kube.config import ClusterConfig
from aicr.kube.credentials import Login
from aicr.kube.http_errors import connection_error
from aicr.kube.request import Request
from aicr.kube.sockets import Sockets
from aicr.kube.timeouts import Timeouts
from aicr.values import proxy
from aicr.version import __version__

USER_AGENT: Final = f"aicr/{__version__}"
#: Most that is read of an answer that is an error.
LONGEST_ERROR: Final = 64 * 1024
#: A body longer than this is sent piece by piece, so that other tasks get their turn in between.
PIECEMEAL: Final = 512 * 1024

_CONNECTION_FAILURES: Final = (aiohttp.ClientError, OSError, TimeoutError)
#: ValueError: an address or a header that cannot be written, which aiohttp finds when it sends.
_SENDING_FAILURES: Final = (*_CONNECTION_FAILURES, ValueError)


class HttpTransport:
    """See the module. To be used and closed in one event loop.

    Args:
        config: the cluster.
        timeouts: all waiting times.
        sleep: waits while the server is busy.
        clock: seconds, monotonic.
        random: jitter in [0, 1).
    """

    def __init__(
        self,
        config: ClusterConfig,
        *,
        timeouts: Timeouts,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
        random: Callable[[], float] = random_module.random,
    ) -> None:
        self._config = config
        self._timeouts = timeouts
        self._sleep = sleep
        self._clock = clock
        self._random = random
        self._session: aiohttp.ClientSession | None = None
        self._sockets = Sockets()
        self._closed = False
        self._tls: tuple[Login, ssl.SSLContext] | None = None

    async def send(self, request: Request, *, timeout: float | None = None) -> bytes:
        """The body of a 2xx answer, read whole within *timeout* seconds (default: `Timeouts.request`).

        An answer "busy, come back in so many seconds" (429 or 5xx with Retry-After, as in client-go)
        is obeyed for up to `Timeouts.busy` seconds.
        """
        until = self._clock() + self._timeouts.busy
        limit = self._timeouts.request if timeout is None else timeout
        while True:
            http_status, headers, body = await self._exchange(request, limit)
            if 200 <= http_status < 300:
                status.check_success(request, headers.get("Content-Type", ""), body)
                return body
            error = status.error_of(request, http_status, headers, body)
            wait = float(error.context.get("retry_after") or 0)
            if not (wait and (http_status == 429 or http_status >= 500)):
                raise error
            wait *= 1.0 + 0.1 * self._random()
            if self._clock() + wait > until:
                raise error
            await self._sleep(wait)

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[HttpStream]:
        """A 2xx answer to be read as it comes; silent for `Timeouts.idle` seconds, it is a TIMEOUT."""
        times = aiohttp.ClientTimeout(
            total=None, sock_connect=self._timeouts.connect, sock_read=self._timeouts.idle
        )
        response = await self._open(request, times)
        try:
            content_type = response.headers.get("Content-Type", "")
            if not 200 <= response.status < 300:
                body = await self._read(request, response, LONGEST_ERROR)
                raise status.error_of(request, response.status, response.headers, body)
            html = status.media_type(content_type) == "text/html"
            foreign = request.accept == requests.JSON and "json" not in content_type
            if html or foreign:
                status.check_success(
                    request, content_type, await self._read(request, response, LONGEST_ERROR)
                )
            yield HttpStream(self, request, response)
        finally:
            # Not released for reuse: the rest of an endless answer would have to be read first.
            response.close()

    @asynccontextmanager
    async def websocket(
        self, request: Request, protocols: Sequence[str]
    ) -> AsyncIterator[HttpSocket]:
        """A connection upgraded to one of *protocols*."""
        credentials = self._config.credentials
        login = await credentials.current()
        try:
            socket = await self._upgrade(request, login, protocols)
        except aiohttp.WSServerHandshakeError as error:
            if error.status != 401 or not await credentials.renew(login):
                raise await self._handshake_error(request, error) from error
            try:
                socket = await self._upgrade(request, await credentials.current(), protocols)
            except aiohttp.WSServerHandshakeError as again:
                raise await self._handshake_error(request, again) from again
        try:
            yield HttpSocket(self, request, socket)
        finally:
            await socket.close()

    async def close(self) -> None:
        """Close all connections; whoever asks afterwards is refused."""
        self._closed = True
        session, self._session = self._session, None
        if session is not None:
            # First, or a connection that cannot send what it has to would be waited for.
            self._sockets.cut()
            try:
                await session.close()
            finally:
                await self._sockets.closed()

    async def _upgrade(
        self, request: Request, login: Login, protocols: Sequence[str]
    ) -> aiohttp.ClientWebSocketResponse:
        try:
            async with asyncio.timeout(self._timeouts.request):
                socket: aiohttp.ClientWebSocketResponse = await self._session_of().ws_connect(
                    self._url(request),
                    protocols=protocols,
                    headers=self._headers(request, login),
                    timeout=aiohttp.ClientWSTimeout(ws_close=self._timeouts.connect),
                    heartbeat=self._timeouts.connect * 3,
                    max_msg_size=0,
                    **self._route(login),
                )
                return socket
        except aiohttp.WSServerHandshakeError:
            raise
        except _SENDING_FAILURES as error:
            raise connection_error(error, request, self._config) from error

    async def _handshake_error(
        self, request: Request, error: aiohttp.WSServerHandshakeError
    ) -> AicrError:
        """A refused upgrade comes without its reason, which a plain request gets; it runs nothing."""
        try:
            await self.send(request)
        except AicrError as reason:
            if reason.context.get("status") == error.status:
                return reason
        return status.error_of(request, error.status, error.headers or {}, b"")

    async def _exchange(self, request: Request, limit: float) -> tuple[int, Any, bytes]:
        times = aiohttp.ClientTimeout(total=limit, sock_connect=self._timeouts.connect)
        response = await self._open(request, times)
        async with response:
            body = await self._read(request, response)
            return response.status, response.headers, body

    async def _open(self, request: Request, times: aiohttp.ClientTimeout) -> aiohttp.ClientResponse:
        """The answer to *request*; refused credentials are renewed and tried once more."""
        login = await self._config.credentials.current()
        response = await self._attempt(request, login, times)
        if response.status != 401:
            return response
        try:
            renewed = await self._config.credentials.renew(login)
        except BaseException:
            response.close()
            raise
        if not renewed:
            return response
        response.release()
        return await self._attempt(request, await self._config.credentials.current(), times)

    async def _attempt(
        self, request: Request, login: Login, times: aiohttp.ClientTimeout
    ) -> aiohttp.ClientResponse:
        try:
            return await self._session_of().request(
                request.method,
                self._url(request),
                data=_payload(request.body),
                headers=self._headers(request, login),
                allow_redirects=False,
                timeout=times,
                **self._route(login),
            )
        except _SENDING_FAILURES as error:
            raise connection_error(error, request, self._config) from error

    async def _read(
        self, request: Request, response: aiohttp.ClientResponse, most: int = -1
    ) -> bytes:
        """The body; at most *most* bytes of it, since an answer that is a stream may never end."""
        try:
            if most < 0:
                return await response.read()
            parts: list[bytes] = []
            while most > 0 and (part := await response.content.read(most)):
                parts.append(part)
                most -= len(part)
            return b"".join(parts)
        except _CONNECTION_FAILURES as error:
            raise connection_error(error, request, self._config) from error

    def failure(self, error: BaseException, request: Request) -> AicrError:
        """The error for a connection that broke while an answer was read."""
        return connection_error(error, request, self._config)

    def _session_of(self) -> aiohttp.ClientSession:
        if self._closed:
            # A task that goes on would open connections that nobody closes any more.
            raise AicrError(SERVICE_UNAVAILABLE, "the connection to the cluster was closed before")
        if self._session is None:
            self._session = aiohttp.ClientSession(
                # No limit: each watch and followed log holds a connection for minutes.
                # A connection given up on may still be saying good-bye to a server that is paused;
                # where Python does not end that by itself, the connector must when it closes.
                connector=aiohttp.TCPConnector(
                    limit=0,
                    enable_cleanup_closed=NEEDS_CLEANUP_CLOSED,
                    socket_factory=self._sockets.make,
                ),
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={"User-Agent": USER_AGENT},
            )
        return self._session

    def _url(self, request: Request) -> yarl.URL:
        # Encoded already; encoding again would turn %2F into another path.
        return yarl.URL(self._config.server + request.target, encoded=True)

    def _headers(self, request: Request, login: Login) -> list[tuple[str, str]]:
        headers = [("Accept", request.accept), *self._config.headers]
        headers.append(("Accept-Encoding", "gzip" if self._config.compression else "identity"))
        if request.content_type:
            headers.append(("Content-Type", request.content_type))
        if login.authorization:
            headers.append(("Authorization", login.authorization))
        return headers

    def _route(self, login: Login) -> dict[str, Any]:
        """How to get there: TLS context, expected name, proxy."""
        route: dict[str, Any] = {}
        if self._config.proxy:
            # Without its password: aiohttp quotes this address in its errors.
            route["proxy"] = proxy.shown(self._config.proxy)
            known = proxy.authorization(self._config.proxy)
            if known:
                route["proxy_headers"] = {"Proxy-Authorization": known}
        if self._config.server.startswith("https"):
            route["ssl"] = self._tls_context(login)
            if self._config.tls.server_name:
                route["server_hostname"] = self._config.tls.server_name
        return route

    def _tls_context(self, login: Login) -> ssl.SSLContext:
        """The context for *login*; a new one when the certificate has changed, hence new
        connections.
        """
        kept = self._tls
        if kept is None or (kept[0].certificate, kept[0].key) != (login.certificate, login.key):
            made = tls.context(self._config.tls, login.certificate, login.key)
            self._tls = kept = (login, made)
        return kept[1]


def _payload(body: bytes) -> bytes | io.BytesIO | None:
    return (io.BytesIO(body) if len(body) > PIECEMEAL else body) or None


class HttpStream:
    """An answer being read; see `port.Stream`."""

    def __init__(
        self, transport: HttpTransport, request: Request, response: aiohttp.ClientResponse
    ) -> None:
        self._transport = transport
        self._request = request
        self._response = response

    async def batches(self) -> AsyncIterator[list[bytes]]:
        """Complete lines as they arrive. A last line without an end is given when the answer ends
        well.
        """
        tail: list[bytes] = []
        content = self._response.content
        while True:
            try:
                chunk = await content.readany()
            except _CONNECTION_FAILURES as error:
                raise self._transport.failure(error, self._request) from error
            if not chunk:
                break
            lines = chunk.split(b"\n")
            if len(lines) == 1:
                tail.append(chunk)
                continue
            if tail:
                tail.append(lines[0])
                lines[0] = b"".join(tail)
                tail.clear()
            last = lines.pop()
            if last:
                tail.append(last)
            yield lines
        if tail:
            yield [b"".join(tail)]


class HttpSocket:
    """A websocket; see `port.Socket`."""

    def __init__(
        self, transport: HttpTransport, request: Request, socket: aiohttp.ClientWebSocketResponse
    ) -> None:
        self._transport = transport
        self._request = request
        self._socket = socket

    @property
    def protocol(self) -> str:
        """The subprotocol that the server chose, "" if none."""
        return self._socket.protocol or ""

    async def send(self, data: bytes) -> None:
        """Send one binary message."""
        try:
            await self._socket.send_bytes(data)
        except _CONNECTION_FAILURES as error:
            raise self._transport.failure(error, self._request) from error

    async def receive(self) -> bytes | None:
        """The next message; None once the other side has closed in good order."""
        message = await self._socket.receive()
        if message.type in (aiohttp.WSMsgType.BINARY, aiohttp.WSMsgType.TEXT):
            data = message.data
            return data.encode() if isinstance(data, str) else cast("bytes", data)
        if message.type is aiohttp.WSMsgType.ERROR:
            cause = self._socket.exception() or ConnectionError("websocket failed")
            raise self._transport.failure(cause, self._request) from cause
        if self._socket.close_code not in (None, 1000):
            raise AicrError(
                SERVICE_UNAVAILABLE,
                f"cannot {self._request.verb} {self._request.subject}: the connection was cut "
                f"(websocket {self._socket.close_code})",
                hint="try again",
            )
        return None
