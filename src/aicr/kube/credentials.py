"""Who we are to a server: tokens and client certificates, and how they are renewed.

`Credentials` is the interface: `current` before each request, `renew` after the server refused what
`current` gave. Here are credentials that are fixed or lie in files; those that a program makes are
in `exec_plugin`, those of the auth-provider of a kubeconfig in `config`. Nothing here prints a
secret: their reprs are empty.

It must not know requests or TLS contexts.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from aicr.errors import UNAUTHORIZED, AicrError

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Login:
    """What is presented: an Authorization header, a client certificate (PEM), both or nothing."""

    authorization: str = field(default="", repr=False)
    certificate: bytes = field(default=b"", repr=False)
    key: bytes = field(default=b"", repr=False)


class Credentials(Protocol):
    """A source of logins."""

    async def current(self) -> Login:
        """What to present now; UNAUTHORIZED if it cannot be had."""

    async def renew(self, refused: Login) -> bool:
        """The server refused *refused*: get another. False if there is none to be had."""


def bearer(token: str) -> str:
    """The Authorization header of a token; UNAUTHORIZED if it would not fit into a header."""
    token = token.strip()
    if not token:
        return ""
    if not token.isascii() or not token.isprintable():
        raise AicrError(
            UNAUTHORIZED,
            "the token has characters that no token has",
            hint="it was perhaps copied with a line break, or is base64-encoded twice",
        )
    return f"Bearer {token}"


class Fixed:
    """Credentials that never change."""

    def __init__(self, login: Login = Login()) -> None:
        self._login = login

    async def current(self) -> Login:
        """The login."""
        return self._login

    async def renew(self, refused: Login) -> bool:
        """There is no other."""
        return False


class Beside:
    """A token that a program makes, beside a client certificate that the kubeconfig has.

    A certificate of the program's own goes before the other, as in client-go.
    """

    def __init__(self, made: Credentials, own: Credentials) -> None:
        self._made = made
        self._own = own

    async def current(self) -> Login:
        """Both as of now."""
        return _beside(await self._made.current(), await self._own.current())

    async def renew(self, refused: Login) -> bool:
        """Renew either; True if together they now hold something else than was refused."""
        own = await self._own.current()
        made = await self._made.current()
        if _beside(made, own) == refused:
            await self._made.renew(made)
            await self._own.renew(own)
        return await self.current() != refused


def _beside(made: Login, own: Login) -> Login:
    if made.certificate:
        return made
    return replace(made, certificate=own.certificate, key=own.key)


class Files:
    """Credentials in files that something else keeps fresh (projected tokens, rotated certificates).

    Read again when older than *max_age* seconds and after a refusal. What cannot be read any more
    is used as it was last, since the writer may be in the middle of its work; only what was never
    read is an error.

    Args:
        login: what is fixed; a token in it is used while *token_file* cannot be read.
        clock: seconds, monotonic.
        max_age: seconds.
    """

    def __init__(
        self,
        login: Login = Login(),
        *,
        token_file: str = "",
        certificate_file: str = "",
        key_file: str = "",
        clock: Callable[[], float],
        max_age: float,
    ) -> None:
        self._login = login
        self._token_file = token_file
        self._certificate_file = certificate_file
        self._key_file = key_file
        self._clock = clock
        self._max_age = max_age
        self._read_at: float | None = None

    async def current(self) -> Login:
        """The login as of the last reading, read again if that is too long ago."""
        if self._read_at is None or self._clock() - self._read_at >= self._max_age:
            self._read()
        return self._login

    async def renew(self, refused: Login) -> bool:
        """Read the files; True if they now hold something else than was refused."""
        self._read()
        return self._login != refused

    def _read(self) -> None:
        found = self._login
        if self._token_file:
            token = self._content(self._token_file, found.authorization != "").decode(
                "utf-8", "replace"
            )
            if token.strip():
                found = replace(found, authorization=bearer(token))
            elif not found.authorization:
                raise AicrError(UNAUTHORIZED, "the token file is empty", where=self._token_file)
        if self._certificate_file and self._key_file:
            usable = bool(found.certificate)
            certificate = self._content(self._certificate_file, usable)
            key = self._content(self._key_file, usable)
            # Two files are not replaced in one instant; half a pair is of no use.
            if certificate and key:
                found = replace(found, certificate=certificate, key=key)
        self._login = found
        self._read_at = self._clock()

    def _content(self, path: str, usable_without: bool) -> bytes:
        try:
            return Path(path).read_bytes()
        except OSError as error:
            if usable_without:
                LOG.warning(
                    "%s cannot be read (%s); using what it held before", path, error.strerror
                )
                return b""
            raise AicrError(
                UNAUTHORIZED, f"credentials cannot be read: {error.strerror}", where=path
            ) from error
