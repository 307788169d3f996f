"""The serving certificate: read at the start, read again when its files change, and how long it lives.

New handshakes use what was loaded last; connections that exist go on. A pair that does not fit, as between
the two writes of a rotation, is left alone and tried again. This module must not know HTTP.
Source: preflight spec 1.1 step 5, decision 23.
"""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from aicr.errors import AicrError, invalid, not_found
from aicr.preflight.times import ServerTimes

LOG: Final = logging.getLogger("aicr.preflight.server")
#: Least part of a certificate's life that must be left for the webhook to count as ready.
LEAST_LIFE: Final = 0.05
_CERTIFICATE: Final = "tls.crt"
_KEY: Final = "tls.key"

_SEQUENCE: Final = 0x30
_VERSION: Final = 0xA0
_UTC_TIME: Final = 0x17
_GENERALIZED_TIME: Final = 0x18


@dataclass(frozen=True, slots=True)
class Validity:
    """From when until when a certificate holds, in seconds since 1970."""

    start: float
    end: float

    def problem(self, now: float) -> str:
        """Why the certificate does not do at *now*; "" if it does."""
        if now < self.start:
            return "the certificate is not valid yet"
        if now >= self.end:
            return "the certificate has expired"
        if (self.end - now) / (self.end - self.start) <= LEAST_LIFE:
            return "the certificate has less than 5 % of its life left"
        return ""


class Certificate:
    """The pair in one directory, and the server context that serves it."""

    def __init__(
        self,
        directory: str,
        *,
        loaded: Callable[[bool, Validity], None] = lambda fine, validity: None,
    ) -> None:
        """*loaded* is told of each attempt to read the pair: whether it succeeded, what is served."""
        self._certificate = os.path.join(directory, _CERTIFICATE)
        self._key = os.path.join(directory, _KEY)
        self._loaded = loaded
        self._seen: tuple[object, ...] = ()
        self._complained: tuple[object, ...] = ()
        self.context = server_context()
        self.validity = Validity(0.0, 0.0)

    def load(self) -> None:
        """Read the pair and serve it from now on.

        Raises:
            AicrError: NOT_FOUND or INVALID_REQUEST; what was served before goes on being served.
        """
        seen = self._signature()
        validity = _validity(self._certificate)
        # A context that refuses a pair has kept the half it liked, so it is tried on another first.
        for context in (server_context(), self.context):
            try:
                context.load_cert_chain(self._certificate, self._key)
            except (OSError, ssl.SSLError) as error:
                raise invalid(
                    f"certificate and key do not fit or cannot be read: {error}",
                    where=self._certificate,
                    hint=f"look at {self._key}: it must be the PEM key of that certificate",
                ) from None
        self.validity = validity
        self._seen = seen
        self._loaded(True, validity)

    def refresh(self) -> bool:
        """Load the pair if its files have changed; whether it did."""
        try:
            seen = self._signature()
            if seen == self._seen:
                return False
            self.load()
        except AicrError as error:
            state = self._state()
            if state != self._complained:
                self._complained = state
                self._loaded(False, self.validity)
                LOG.error("Failed to reload certificate", extra={"error": error.message})
            return False
        LOG.info(
            "Reloaded certificate",
            extra={"notAfter": datetime.fromtimestamp(self.validity.end, UTC).isoformat()},
        )
        return True

    async def watch(self, interval: float = ServerTimes().certificate) -> None:
        """Refresh every *interval* seconds until cancelled."""
        while True:
            await asyncio.sleep(interval)
            self.refresh()

    def _state(self) -> tuple[object, ...]:
        """The state of the files, also when there are none; so that each is complained of once."""
        try:
            return self._signature()
        except AicrError as error:
            return (error.message,)

    def _signature(self) -> tuple[object, ...]:
        """What changes when a file is written or replaced, also behind the links of a Secret volume."""
        found: list[object] = []
        for path in (self._certificate, self._key):
            try:
                state = os.stat(path)
            except FileNotFoundError:
                raise not_found(
                    f"there is no {path}", hint="name the directory with tls.crt and tls.key"
                ) from None
            except OSError as error:
                raise invalid(f"cannot read {path}: {error.strerror}") from None
            found += [state.st_ino, state.st_mtime_ns, state.st_size]
        return tuple(found)


def server_context() -> ssl.SSLContext:
    """A context without a certificate: TLS 1.2 or newer, HTTP/1.1."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    made.set_alpn_protocols(["http/1.1"])
    return made


def _validity(path: str) -> Validity:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            text = file.read()
        begin = text.index("-----BEGIN CERTIFICATE-----")
        end = text.index("-----END CERTIFICATE-----") + len("-----END CERTIFICATE-----")
        return validity(ssl.PEM_cert_to_DER_cert(text[begin:end]))
    except OSError as error:
        raise invalid(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, IndexError):
        raise invalid("the file holds no PEM certificate", where=path) from None


def validity(der: bytes) -> Validity:
    """The validity in a certificate's DER (RFC 5280, 4.1: the fifth field after the version).

    Raises:
        ValueError: the bytes are no certificate.
    """
    _, body, _ = _element(der, 0, _SEQUENCE)
    _, body, _ = _element(body, 0, _SEQUENCE)
    at = 0
    if body[0] == _VERSION:
        _, _, at = _element(body, 0)
    for _field in ("serial number", "signature algorithm", "issuer"):
        _, _, at = _element(body, at)
    _, times, _ = _element(body, at, _SEQUENCE)
    kind, start, at = _element(times, 0)
    found = _moment(kind, start)
    kind, end, _ = _element(times, at)
    return Validity(found, _moment(kind, end))


def _element(data: bytes, at: int, expected: int | None = None) -> tuple[int, bytes, int]:
    """Tag, content and end of the DER element at *at*."""
    tag, length = data[at], data[at + 1]
    at += 2
    if length & 0x80:
        size = length & 0x7F
        length = int.from_bytes(data[at : at + size], "big")
        at += size
    if (expected is not None and tag != expected) or at + length > len(data):
        raise ValueError("no certificate")
    return tag, data[at : at + length], at + length


def _moment(kind: int, content: bytes) -> float:
    text = content.decode("ascii")
    if kind == _UTC_TIME:
        # RFC 5280: two digits of a year are 1950 to 2049.
        text = ("19" if int(text[:2]) >= 50 else "20") + text
    elif kind != _GENERALIZED_TIME:
        raise ValueError("no time")
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC).timestamp()
