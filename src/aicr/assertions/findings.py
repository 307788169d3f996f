"""What does not match an assertion, and how it is told: path, expected, actual and a message.

`Finding` is one mismatch, `Judgement` all that a tree says about a document. Paths and values are put
into words here, and only when somebody asks: most findings of a check that waits are never read.

Source: validators spec 8.8.2; messages in the form of Kubernetes' field errors.
"""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple

from aicr.assertions.jmespath.values import kind

#: A path as a chain from its end: ``(path before, segment)``; None is the root.
Trail = tuple[Any, Any] | None

_LONGEST_VALUE: Final = 240


class Item(NamedTuple):
    """A segment of a path that is an element of a loop over a map."""

    key: Any


class Finding:
    """One thing that does not match.

    Attributes:
        expected: the value that was expected.
        actual: the value that was found.
    """

    __slots__ = ("_reason", "_remarks", "_required", "_trail", "actual", "expected")

    def __init__(
        self, trail: Trail, expected: Any, actual: Any, reason: str, *, required: bool = False
    ) -> None:
        self.expected = expected
        self.actual = actual
        self._trail = trail
        self._reason = reason
        self._required = required
        self._remarks: list[str] = []

    @property
    def path(self) -> str:
        """Where, as ``status.conditions[0].type``; empty for the document itself."""
        return path_text(self._trail)

    @property
    def message(self) -> str:
        """What is wrong there, in the form of Kubernetes' field errors."""
        reason = self._reason or f"Expected value: {shown(self.expected)}"
        if self._remarks:
            reason += f" ({'; '.join(self._remarks)})"
        if self._required:
            return f"Required value: {reason}"
        return f"Invalid value: {shown(self.actual)}: {reason}"

    @property
    def without_values(self) -> str:
        """Where and what, without the value that was found (for Secrets)."""
        what = "Required value" if self._required else "Invalid value: <redacted>"
        return f"{self.path}: {what}"

    def remark(self, remarks: list[str]) -> None:
        """Add what helps to understand it."""
        self._remarks += remarks

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self._trail else self.message

    def as_document(self) -> dict[str, Any]:
        """Path, expected, actual and message as a plain map."""
        return {
            "path": self.path,
            "expected": self.expected,
            "actual": self.actual,
            "message": self.message,
        }


class Judgement(NamedTuple):
    """What a tree says about a document: it matches if there are no findings."""

    findings: list[Finding]
    notes: list[str]

    @property
    def passed(self) -> bool:
        """Whether the document matches."""
        return not self.findings

    @property
    def text(self) -> str:
        """All findings in one line."""
        return "; ".join(map(str, self.findings))


def path_text(trail: Trail) -> str:
    """A chain of segments as text."""
    segments: list[Any] = []
    while trail is not None:
        trail, segment = trail
        segments.append(segment)
    text = ""
    for segment in reversed(segments):
        if isinstance(segment, Item):
            text += f"[{segment.key}]"
        elif isinstance(segment, int):
            text += f"[{segment}]"
        else:
            text += f".{segment}" if text else str(segment)
    return text


def shown(value: Any) -> str:
    """A value in a message, as JSON of a readable length."""
    try:
        text = json.dumps(
            value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), default=kind
        )
    except (TypeError, ValueError, RecursionError):
        return f"<{kind(value)}>"
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}..."
