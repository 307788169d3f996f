"""The one client of the platform connector: retries, bearer token, processing strategy.

A send that fails for a passing reason is tried five times, with the pauses of the original; one that
fails for good is given up at once. Once an event has used up its attempts, the ones after it get a
single short one each, until one arrives: a check may have dozens to send, and a connector that is away
must not hold the pod for minutes. The token file is read again for every attempt, because the kubelet
replaces it, and an event is never sent without a token that was asked for. All of it goes through a
`Transport` and a sleep that are handed in. It must not know: what a check does when a send fails.
Source: preflight specification 5.3 (the union of both lists) and 5.4.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from aicr.errors import SERVICE_UNAVAILABLE, TIMEOUT, UNAUTHORIZED, AicrError
from aicr.preflight.health.events import Event, Source
from aicr.preflight.health.transport import CallError, Transport
from aicr.preflight.health.wire import encode
from aicr.values.waiting import Waits

#: Statuses that a later attempt may not meet again.
PASSING: Final = frozenset({"UNAVAILABLE", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED", ""})
#: Texts that mean the same under another status.
PASSING_TEXTS: Final = ("connection reset", "broken pipe", "EOF")
#: Share of a pause that chance adds, so that the checks of a node do not come back together.
JITTER: Final = 0.1
_CODES: Final = {
    "UNAUTHENTICATED": UNAUTHORIZED,
    "PERMISSION_DENIED": UNAUTHORIZED,
    "DEADLINE_EXCEEDED": TIMEOUT,
}


@dataclass(frozen=True, slots=True)
class Attempts(Waits):
    """Health events that a check sends."""

    #: Pauses before the second and further attempts; there is one attempt more than pauses.
    pauses: tuple[float, ...] = (2.0, 3.0, 4.5, 6.75)
    #: One call.
    call: float = 30.0
    #: The only call of an event after one that used up all attempts.
    short: float = 5.0


class HealthClient:
    """Sends the events of one check.

    Args:
        transport: delivers one message; `UnixSocket(path)` outside tests.
        source: who sends.
        token_path: file with the bearer token; "" sends without one.
        attempts: pauses and time limit.
        sleep, now, jitter: the clock and chance, handed in by tests.
        progress: told about every attempt that failed.
    """

    def __init__(
        self,
        transport: Transport,
        source: Source,
        *,
        token_path: str = "",
        attempts: Attempts = Attempts(),
        sleep: Callable[[float], None] = time.sleep,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        jitter: Callable[[], float] = random.random,
        progress: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.source = source
        self._transport, self._token_path, self._attempts = transport, token_path, attempts
        self._sleep, self._now, self._jitter, self._progress = sleep, now, jitter, progress
        self._away = False

    def send(self, event: Event) -> None:
        """Send *event*; it carries the time of this call, however many attempts it takes.

        Raises:
            AicrError: `Failed to send health event after 5 retries` when the connector stays away, or that
                it was away for an earlier event too; UNAUTHORIZED when it refuses, or when the token
                file cannot be used; otherwise the connector's own refusal. The cause is chained.
        """
        data = encode(event, self.source, self._now())
        pauses, limit = self._attempts.pauses, self._attempts.call
        if self._away:
            pauses, limit = (), self._attempts.short
        number = len(pauses) + 1
        for attempt in range(1, number + 1):
            try:
                self._transport(data, self._metadata(), limit)
            except CallError as error:
                if not is_passing(error):
                    # It answers, so it is there.
                    self._away = False
                    raise _refused(error) from error
                self._progress(f"health event: attempt {attempt} of {number} failed: {error}")
                if attempt == number:
                    self._away = True
                    raise AicrError(
                        SERVICE_UNAVAILABLE,
                        f"Failed to send health event after {number} retries"
                        if pauses
                        else "Failed to send health event: the connector was away for an earlier one too",
                        hint="check that the platform connector runs on this node and that its socket "
                        "is mounted",
                        context={"status": error.status},
                    ) from error
                self._sleep(pauses[attempt - 1] * (1 + JITTER * self._jitter()))
            else:
                self._away = False
                return

    def _metadata(self) -> list[tuple[str, str]]:
        if not self._token_path:
            return []
        try:
            # As it is, line feed included: the original does not trim, and the issuer writes none.
            token = Path(self._token_path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise self._no_token("cannot be read") from error
        if not token:
            raise self._no_token("is empty")
        return [("authorization", f"Bearer {token}")]

    def _no_token(self, what: str) -> AicrError:
        return AicrError(
            UNAUTHORIZED,
            f"the connector token {what}, and an event is never sent without it",
            where=self._token_path,
            hint="check the projected volume of the service account token",
        )


def is_passing(error: CallError) -> bool:
    """Whether a later attempt may succeed (preflight specification 5.3)."""
    return error.status in PASSING or any(text in error.details for text in PASSING_TEXTS)


def _refused(error: CallError) -> AicrError:
    return AicrError(
        _CODES.get(error.status, SERVICE_UNAVAILABLE),
        "the platform connector refused the health event",
        context={"status": error.status},
    )
