"""Bounds on how long a step may take.

Two forms, because there are two kinds of steps. A `Deadline` is asked between the parts of a computation.
`within` gives up waiting for a call that cannot be asked, such as a signing service; the call goes on in
a thread that ends with the process. Source: validators spec 9.1, 9.3, 9.5 and 11.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from aicr.errors import TIMEOUT, AicrError

Answer = TypeVar("Answer")


class Deadline:
    """A moment by which a computation must be done.

    Args:
        seconds: from now.
        what: what is being done, for the error.
        now: a monotonic clock in seconds.
    """

    def __init__(
        self, seconds: float, what: str, *, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._seconds, self._what, self._now = seconds, what, now
        self._end = now() + seconds

    def check(self) -> None:
        """Raise when the moment has passed.

        Raises:
            AicrError: TIMEOUT.
        """
        if self._now() > self._end:
            raise late(self._what, self._seconds)


def within(seconds: float, what: str, call: Callable[[], Answer]) -> Answer:
    """The answer of *call*, if it comes in time.

    Raises:
        AicrError: TIMEOUT when it does not; what *call* raises.
    """
    answers: list[Answer] = []
    failures: list[BaseException] = []

    def work() -> None:
        try:
            answers.append(call())
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=work, name=what, daemon=True)
    thread.start()
    thread.join(seconds)
    if failures:
        raise failures[0]
    if not answers:
        raise late(what, seconds)
    return answers[0]


def late(what: str, seconds: float) -> AicrError:
    """The error of a step that took too long."""
    return AicrError(TIMEOUT, f"{what} was not done within {seconds:g} s", hint="try again")
