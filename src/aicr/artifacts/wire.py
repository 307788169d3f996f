"""One HTTP exchange with a registry: how it is reached, and what a broken one looks like.

```
Transport (TLS or not, authorities, time limits) --connect--> connection --talk--> Answer
                                                                          | CutError, AicrError
```
A connection that ends early is a ``CutError``, because the caller knows whether and where it can go
on; what no retry mends (a certificate, silence, an answer without end, a proxy that refuses) is an
AicrError at once. The way leads through a proxy where HTTPS_PROXY, HTTP_PROXY and NO_PROXY say so.

It must not know the registry protocol. Source: bundler spec 7.5.
"""

from __future__ import annotations

import dataclasses
import http.client
import os
import ssl
from collections.abc import Mapping
from typing import Final

from aicr.artifacts import locations, proxied
from aicr.artifacts.times import NetworkTimes
from aicr.errors import INTERNAL, SERVICE_UNAVAILABLE, TIMEOUT, AicrError, invalid, not_found
from aicr.values import proxy

_TIMES: Final = NetworkTimes()
CHUNK_BYTES: Final = 8 * 1024 * 1024
MAX_ANSWER: Final = 1024 * 1024
_BLOCK: Final = 1 << 20
_AGENT: Final = "aicr"


@dataclasses.dataclass(frozen=True, slots=True)
class Transport:
    """How a registry is reached.

    Attributes:
        plain_http: without TLS.
        insecure_tls: with TLS, but without checking who answers.
        ca_file: further certificate authorities to believe, "" for the system's alone.
        timeout: seconds without a byte.
        chunk: bytes in one request of an upload.
        pause: seconds before the first retry, doubled each time.
        busy: most seconds that a registry may put one request off.
    """

    plain_http: bool = False
    insecure_tls: bool = False
    ca_file: str = ""
    timeout: float = _TIMES.silence
    chunk: int = CHUNK_BYTES
    pause: float = _TIMES.retry
    busy: float = _TIMES.busy

    def context(self) -> ssl.SSLContext | None:
        """The TLS settings, None for plain HTTP.

        Raises:
            AicrError: INVALID_REQUEST for a file of authorities that cannot be used.
        """
        if self.plain_http:
            return None
        context = ssl.create_default_context()
        if self.ca_file:
            try:
                context.load_verify_locations(self.ca_file)
            except FileNotFoundError as error:
                raise not_found(
                    f"there is no file {self.ca_file} with certificates",
                    where="--ca-file",
                    hint="name a PEM file with the certificate of the authority",
                ) from error
            except OSError as error:
                said = "it holds none" if isinstance(error, ssl.SSLError) else error.strerror
                raise invalid(
                    f"cannot use the certificates in {self.ca_file}: {said}",
                    where="--ca-file",
                    hint="name a PEM file with the certificate of the authority",
                ) from error
        if self.insecure_tls:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context


@dataclasses.dataclass(slots=True)
class Answer:
    """An answer; header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def header(self, name: str) -> str:
        """A header, "" when there is none."""
        return self.headers.get(name.lower(), "")


class CutError(Exception):
    """The connection ended before the answer was whole."""


def connect(
    netloc: str,
    context: ssl.SSLContext | None,
    timeout: float,
    environ: Mapping[str, str] = os.environ,
) -> http.client.HTTPConnection:
    """A connection to a host that is opened with its first request, through a proxy if one is set.

    Raises:
        AicrError: INVALID_REQUEST for a proxy that cannot be used.
    """
    scheme = "http" if context is None else "https"
    through = proxy.from_environment(f"{scheme}://{netloc}", environ)
    if through:
        if context is None:
            return proxied.Forwarded(netloc, through, timeout)
        return proxied.Tunnelled(netloc, through, context, timeout)
    if context is None:
        return http.client.HTTPConnection(netloc, timeout=timeout)
    return http.client.HTTPSConnection(netloc, timeout=timeout, context=context)


def fetch(
    method: str,
    url: str,
    headers: Mapping[str, str],
    body: bytes | None,
    context: ssl.SSLContext | None,
    timeout: float,
    limit: int = MAX_ANSWER,
    into: bytearray | None = None,
) -> Answer:
    """One request to another host than the registry."""
    parts = locations.parts(url)
    if parts.scheme not in ("http", "https") or not parts.netloc or "@" in parts.netloc:
        raise invalid(f"the registry names the address {url!r}, which cannot be used")
    connection = connect(parts.netloc, context, timeout)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        return talk(connection, parts.netloc, method, path, headers, body, limit, into)
    except CutError as error:
        raise CutError(f"{parts.netloc}: {error}") from error
    finally:
        connection.close()


def talk(
    connection: http.client.HTTPConnection,
    host: str,
    method: str,
    path: str,
    headers: Mapping[str, str],
    body: bytes | None,
    limit: int,
    into: bytearray | None,
) -> Answer:
    """Send and receive; with *into*, the body of a success is added to it as it comes."""
    try:
        connection.request(method, path, body=body, headers={"User-Agent": _AGENT, **headers})
        response = connection.getresponse()
        found = {name.lower(): value for name, value in response.getheaders()}
        success = response.status in (200, 206)
        if into is not None and success:
            if response.status == 200:
                # The whole again, whatever was asked for.
                into.clear()
            while block := response.read(min(_BLOCK, limit - len(into) + 1)):
                into += block
                if len(into) > limit:
                    connection.close()
                    return Answer(response.status, found, b"")
            _check_whole(response)
            return Answer(response.status, found, b"")
        data = response.read(limit + 1)
        if len(data) > limit:
            connection.close()
            raise AicrError(INTERNAL, f"{host} answered with more than {limit} bytes")
        _check_whole(response)
        return Answer(response.status, found, data)
    except TimeoutError:
        raise AicrError(
            TIMEOUT,
            f"{host} did not answer in {connection.timeout:g} s",
            hint="check the network and try again",
        ) from None
    except ssl.SSLCertVerificationError as error:
        raise AicrError(
            SERVICE_UNAVAILABLE,
            f"{host} is not who its certificate says: {error.verify_message}",
            hint="name the authority that signed it with --ca-file, or pass --insecure-tls",
        ) from error
    except UnicodeError as error:
        # A name that is no host name, or an address that a registry wrote with other letters.
        raise invalid(
            f"the address {host}{path} cannot be asked: it has characters or a length that no "
            "address has",
            hint="check the address; if the registry named it, tell its owner",
        ) from error
    except (OSError, http.client.HTTPException) as error:
        raise CutError(_words(error)) from error


def _check_whole(response: http.client.HTTPResponse) -> None:
    """Raise when less came than was announced, which reading in blocks does not notice."""
    if response.length:
        raise http.client.IncompleteRead(b"", response.length)


def _words(error: Exception) -> str:
    if isinstance(error, http.client.IncompleteRead):
        return "the connection was cut in the middle of the answer"
    if isinstance(error, http.client.RemoteDisconnected):
        return "the connection was cut before the answer"
    if isinstance(error, ssl.SSLError):
        return f"TLS failed ({error.reason or error})"
    return getattr(error, "strerror", "") or str(error) or type(error).__name__
