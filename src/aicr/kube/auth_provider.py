"""Tokens of ``users[].user.auth-provider``, which the official client's loader makes and refreshes.

Only for old kubeconfigs: exec plugins have replaced these. The loader may ask an identity provider
over the network, so it runs beside the event loop. It must not know what the loader does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from aicr.errors import UNAUTHORIZED, AicrError
from aicr.kube.credentials import Login

SUPPORTED: Final = ("oidc", "gcp")


class AuthProvider:
    """Asks the loader when there is no token, when the last is older than *max_age*, and after a
    refusal.
    """

    def __init__(
        self,
        name: str,
        file: str,
        token: Callable[[], str],
        *,
        clock: Callable[[], float],
        max_age: float,
    ) -> None:
        self._name = name
        self._file = file
        self._token = token
        self._clock = clock
        self._max_age = max_age
        self._login = Login()
        self._asked_at = 0.0
        self._lock = asyncio.Lock()

    async def current(self) -> Login:
        """The token, refreshed by the loader if it has expired."""
        async with self._lock:
            if not self._login.authorization or self._clock() - self._asked_at >= self._max_age:
                await self._ask()
            return self._login

    async def renew(self, refused: Login) -> bool:
        """Ask the loader again."""
        async with self._lock:
            if self._login == refused:
                await self._ask()
            return self._login != refused

    async def _ask(self) -> None:
        try:
            header = await asyncio.to_thread(self._token)
        except Exception as error:  # whatever the loader and the identity provider come up with
            raise self._failed(f"failed ({type(error).__name__})") from error
        if not header:
            raise self._failed("gave no token")
        self._login = Login(header)
        self._asked_at = self._clock()

    def _failed(self, what: str) -> AicrError:
        return AicrError(
            UNAUTHORIZED,
            f'the auth-provider "{self._name}" {what}',
            where=self._file,
            hint="log in again with the tool that wrote this kubeconfig",
        )
