"""Glob patterns in Go's dialect (``path.Match``), several at once.

``*`` is any run without ``/``, ``?`` one character but ``/``, ``[a-z]`` and ``[^a]`` are classes, a
backslash escapes. The whole text must match, case counts, and a malformed pattern matches nothing. Python's
``fnmatch`` differs in all of that. Source: preflight spec 2.5.4.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence


class _MalformedError(ValueError):
    """The pattern is none; Go then says "no match"."""


def matcher(patterns: Sequence[str]) -> Callable[[str], object]:
    """A function that is true for texts that any of *patterns* matches."""
    parts: list[str] = []
    for pattern in patterns:
        try:
            parts.append(_expression(pattern))
        except _MalformedError:
            continue
    return re.compile("|".join(parts) if parts else r"(?!)").fullmatch


def _expression(pattern: str) -> str:
    made: list[str] = []
    at = 0
    while at < len(pattern):
        letter = pattern[at]
        at += 1
        if letter == "*":
            made.append("[^/]*")
        elif letter == "?":
            made.append("[^/]")
        elif letter == "[":
            part, at = _class(pattern, at)
            made.append(part)
        else:
            if letter == "\\":
                letter, at = _letter(pattern, at - 1)
            made.append(re.escape(letter))
    return f"(?:{''.join(made)})"


def _class(pattern: str, at: int) -> tuple[str, int]:
    """The class whose ``[`` stands before *at*, and the place after its ``]``."""
    negated = pattern[at : at + 1] == "^"
    at += negated
    ranges: list[str] = []
    count = 0
    while count == 0 or pattern[at : at + 1] != "]":
        low, at = _letter(pattern, at, inside=True)
        high = low
        if pattern[at : at + 1] == "-":
            high, at = _letter(pattern, at + 1, inside=True)
        if low <= high:
            ranges.append(f"{re.escape(low)}-{re.escape(high)}")
        count += 1
    if not ranges:
        return (r"[\s\S]" if negated else r"(?!)"), at + 1
    return f"[{'^' if negated else ''}{''.join(ranges)}]", at + 1


def _letter(pattern: str, at: int, *, inside: bool = False) -> tuple[str, int]:
    """The possibly escaped character at *at*, and the place after it."""
    letter = pattern[at : at + 1]
    if not letter or (inside and letter in "-]"):
        raise _MalformedError
    if letter == "\\":
        at += 1
        letter = pattern[at : at + 1]
        if not letter:
            raise _MalformedError
    return letter, at + 1
