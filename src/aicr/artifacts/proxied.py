"""Connections to a registry, and to files at an address, that lead through an HTTP proxy.

```
https   TCP to the proxy, CONNECT HOST:PORT, then TLS with the registry itself inside the tunnel
http    the whole address in the request line, for the proxy to fetch
```
The proxy's log-in goes to the proxy alone: into CONNECT, or into the header that a proxy takes off. In
errors a proxy is named without it. A proxy that refuses is an error at once, since it would refuse again;
one that says that it cannot reach the registry is a broken connection, which the caller tries again.

It must not know registries, nor which proxy applies (``values.proxy``). Source: RFC 9110 7.6, 9.3.6.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import urllib.request
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from aicr.errors import SERVICE_UNAVAILABLE, TIMEOUT, AicrError, invalid
from aicr.values import proxy

_HINT: Final = "check HTTPS_PROXY and HTTP_PROXY; name hosts that need no proxy in NO_PROXY"
_LOGIN: Final = "put its log-in into the variable: http://USER:PASSWORD@HOST:PORT"
#: What a proxy answers while it cannot reach the host behind it.
_FAR_SIDE: Final = (502, 503, 504)


class Tunnelled(http.client.HTTPSConnection):
    """TLS with *netloc* through a tunnel of the proxy *through*.

    Args:
        netloc: host of the registry, with its port if it has one.
        through: address of the proxy.
        context: TLS settings for the registry.
        timeout: seconds without a byte.

    Raises:
        AicrError: INVALID_REQUEST for a proxy that is itself reached with TLS; when it connects, see
            the module.
    """

    def __init__(self, netloc: str, through: str, context: ssl.SSLContext, timeout: float) -> None:
        super().__init__(netloc, timeout=timeout, context=context)
        _check(through)
        self._through = through
        self._tls = context

    def connect(self) -> None:
        """Open the tunnel, then TLS inside it."""
        channel = _reach(self._through, self.timeout)
        try:
            self._open(channel)
            self.sock = self._tls.wrap_socket(channel, server_hostname=self.host)
        except BaseException:
            channel.close()
            raise

    def _open(self, channel: socket.socket) -> None:
        host = f"[{self.host}]" if ":" in self.host else self.host
        place = f"{host.encode('idna').decode('ascii')}:{self.port}"
        lines = [f"CONNECT {place} HTTP/1.1", f"Host: {place}"]
        login = proxy.authorization(self._through)
        if login:
            lines.append(f"Proxy-Authorization: {login}")
        answer = http.client.HTTPResponse(channel, method="CONNECT")
        try:
            channel.sendall("\r\n".join([*lines, "", ""]).encode("ascii"))
            answer.begin()
        except TimeoutError:
            raise _silent(self._through, self.timeout) from None
        except http.client.RemoteDisconnected:
            raise ConnectionError(f"{_named(self._through)} closed the connection") from None
        except http.client.HTTPException as error:
            raise _unusable(self._through, "does not speak HTTP") from error
        except OSError as error:
            said = error.strerror or str(error)
            raise ConnectionError(f"{_named(self._through)} cut the connection ({said})") from error
        finally:
            answer.close()
        if answer.status in _FAR_SIDE:
            raise ConnectionError(
                f"{_named(self._through)} cannot reach {place} (HTTP {answer.status})"
            )
        if answer.status != 200:
            raise _refused(self._through, place, answer.status)


class Forwarded(http.client.HTTPConnection):
    """Plain HTTP with *netloc*, each request handed to the proxy *through*.

    Arguments and errors are those of ``Tunnelled``.
    """

    def __init__(self, netloc: str, through: str, timeout: float) -> None:
        super().__init__(netloc, timeout=timeout)
        _check(through)
        self._through = through
        self._netloc = netloc

    def connect(self) -> None:
        """Open the connection to the proxy."""
        self.sock = _reach(self._through, self.timeout)

    def putrequest(
        self, method: str, url: str, skip_host: bool = False, skip_accept_encoding: bool = False
    ) -> None:
        """Begin a request, with the whole address and the proxy's log-in."""
        whole = f"http://{self._netloc}{url}"
        super().putrequest(method, whole, skip_host, skip_accept_encoding)
        login = proxy.authorization(self._through)
        if login:
            self.putheader("Proxy-Authorization", login)

    def getresponse(self) -> http.client.HTTPResponse:
        """The answer, unless it is the proxy that asks for a log-in."""
        answer = super().getresponse()
        if answer.status == 407:
            answer.close()
            self.close()
            raise _refused(self._through, self._netloc, answer.status)
        return answer


def opener(environ: Mapping[str, str]) -> urllib.request.OpenerDirector:
    """What opens the address of a file by the same rules; the library's own knows no ranges.

    Raises:
        AicrError: when it opens one, INVALID_REQUEST for a proxy that cannot be used.
    """
    return urllib.request.build_opener(urllib.request.ProxyHandler({}), _Chosen(environ))


class _Chosen(urllib.request.BaseHandler):
    # Before the handlers that connect, as the library's own.
    handler_order = 100

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ

    def http_open(self, request: urllib.request.Request) -> None:
        """Send *request* through the proxy that applies; the next handler connects."""
        through = proxy.from_environment(request.full_url, self._environ)
        if not through:
            return
        _check(through)
        login = proxy.authorization(through)
        if login:
            # Not repeated to whom the server redirects to, who may need no proxy.
            request.add_unredirected_header("Proxy-authorization", login)
        request.set_proxy(urlsplit(proxy.shown(through)).netloc, "http")

    https_open = http_open


def _check(through: str) -> None:
    if urlsplit(through).scheme != "http":
        raise invalid(
            f"{_named(through)} is itself reached with TLS, which is supported for clusters only",
            where="HTTPS_PROXY",
            hint="name its http:// address; TLS with the host behind it is spoken through it either way",
        )


def _reach(through: str, timeout: Any) -> socket.socket:
    parts = urlsplit(through)
    try:
        channel = socket.create_connection((parts.hostname or "", parts.port or 80), timeout)
    except TimeoutError:
        raise _silent(through, timeout) from None
    except (OSError, UnicodeError) as error:
        said = getattr(error, "strerror", None) or str(error)
        raise _unusable(through, f"cannot be reached ({said})") from error
    channel.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return channel


def _named(through: str) -> str:
    return f"the proxy {proxy.shown(through)}"


def _unusable(through: str, what: str) -> AicrError:
    return AicrError(SERVICE_UNAVAILABLE, f"{_named(through)} {what}", hint=_HINT)


def _silent(through: str, timeout: Any) -> AicrError:
    return AicrError(TIMEOUT, f"{_named(through)} did not answer in {timeout:g} s", hint=_HINT)


def _refused(through: str, place: str, status: int) -> AicrError:
    return AicrError(
        SERVICE_UNAVAILABLE,
        f"{_named(through)} refused to connect us to {place} (HTTP {status})",
        hint=_LOGIN if status == 407 else _HINT,
    )
