"""The one error tree: what went wrong, where, why, and what to do next.

```
AicrError            code, message, where, hint, context; str() is "[CODE] message: cause"
```

There is one class on purpose. What differs between failures is data (the code), not type: callers
branch on ``error.code``, the command line maps the code to an exit status, the REST server to an HTTP
status. A cause is chained the Python way (``raise AicrError(...) from inner``), so the text reads from
the outermost statement to the innermost reason.

This module imports nothing and is imported by everything; it must stay that way.
Source of codes and exit statuses: validators spec 0.3 and 0.4, decision 46.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Final

INVALID_REQUEST: Final = "INVALID_REQUEST"
METHOD_NOT_ALLOWED: Final = "METHOD_NOT_ALLOWED"
CONFLICT: Final = "CONFLICT"
NOT_FOUND: Final = "NOT_FOUND"
UNAUTHORIZED: Final = "UNAUTHORIZED"
TIMEOUT: Final = "TIMEOUT"
SERVICE_UNAVAILABLE: Final = "SERVICE_UNAVAILABLE"
RATE_LIMIT_EXCEEDED: Final = "RATE_LIMIT_EXCEEDED"
INTERNAL: Final = "INTERNAL"
CANCELED: Final = "CANCELED"

#: Process exit status of each code; a code that is not here exits 1.
EXIT_STATUS: Final[dict[str, int]] = {
    INVALID_REQUEST: 2,
    METHOD_NOT_ALLOWED: 2,
    CONFLICT: 2,
    NOT_FOUND: 3,
    UNAUTHORIZED: 4,
    TIMEOUT: 5,
    SERVICE_UNAVAILABLE: 6,
    RATE_LIMIT_EXCEEDED: 7,
    INTERNAL: 8,
    CANCELED: 1,
}


class AicrError(Exception):
    """A failure with a code that programs can branch on and words that a person can act on.

    Args:
        code: one of the codes of this module.
        message: what failed and why, in one sentence, with the offending value.
        where: the place, as ``file:line:column``, a component, a flag or a node.
        hint: the next step, for example the flag to pass or the nearest allowed value.
        context: machine-readable details (never needed to understand the message).
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        where: str = "",
        hint: str = "",
        context: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.where = where
        self.hint = hint
        self.context: dict[str, Any] = {} if context is None else context

    def __str__(self) -> str:
        text = f"[{self.code}] {self.where + ': ' if self.where else ''}{self.message}"
        cause = self.__cause__
        return f"{text}: {cause}" if cause is not None else text

    @property
    def exit_status(self) -> int:
        """The process exit status for this error (validators spec 0.4)."""
        return EXIT_STATUS.get(self.code, 1)

    def chain(self) -> list[AicrError]:
        """This error and its AicrError causes, outermost first."""
        found: list[AicrError] = []
        error: BaseException | None = self
        while error is not None:
            if isinstance(error, AicrError):
                found.append(error)
            error = error.__cause__
        return found


def invalid(
    message: str, *, where: str = "", hint: str = "", context: dict[str, Any] | None = None
) -> AicrError:
    """An INVALID_REQUEST error: the caller's input is wrong and can be corrected."""
    return AicrError(INVALID_REQUEST, message, where=where, hint=hint, context=context)


def not_found(
    message: str, *, where: str = "", hint: str = "", context: dict[str, Any] | None = None
) -> AicrError:
    """A NOT_FOUND error: something named by the caller does not exist."""
    return AicrError(NOT_FOUND, message, where=where, hint=hint, context=context)


def nearest(word: str, known: list[str]) -> str:
    """The entry of *known* closest to *word* by edit distance, or "" if none is close.

    "Close" is a distance of at most two, or a third of the word's length for longer words, so that
    a typo is helped and an unrelated word is not. Ties go to the alphabetically first entry.
    """
    limit = max(2, len(word) // 3)
    best = ""
    best_distance = limit + 1
    for entry in sorted(known):
        if abs(len(entry) - len(word)) > limit:
            continue
        distance = edit_distance(word.lower(), entry.lower())
        if distance < best_distance:
            best, best_distance = entry, distance
    return best


def some_of(items: Sequence[str], most: int, joint: str = ", ") -> str:
    """The first *most* of *items* for a message, and how many there are besides.

    >>> some_of(["a", "b", "c", "d"], 2)
    'a, b and 2 more'
    """
    more = len(items) - most
    return joint.join(items[:most]) + (f" and {more} more" if more > 0 else "")


def edit_distance(a: str, b: str) -> int:
    """Levenshtein distance between two strings, in single-character edits."""
    previous = list(range(len(b) + 1))
    for i, left in enumerate(a, 1):
        current = [i]
        for j, right in enumerate(b, 1):
            current.append(
                min(previous[j] + 1, current[j - 1] + 1, previous[j - 1] + (left != right))
            )
        previous = current
    return previous[-1]
