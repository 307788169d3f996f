"""Durations as Go writes them: ``1h30m``, ``7m30s``, ``1.5ms``.

Text in, nanoseconds out, and back. Timeouts of recipes, validators and charts are all of this form.
The arithmetic of fractions follows Go's ParseDuration to the last nanosecond, because the same
text is read by Go programs in the cluster. Imports nothing but errors.
"""

from __future__ import annotations

from aicr.errors import invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

NANOSECOND: Final = 1
MICROSECOND: Final = 1_000
MILLISECOND: Final = 1_000_000
SECOND: Final = 1_000_000_000
MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE

_UNITS: Final[dict[str, int]] = {
    "ns": NANOSECOND,
    "us": MICROSECOND,
    "\u00b5s": MICROSECOND,
    "\u03bcs": MICROSECOND,
    "ms": MILLISECOND,
    "s": SECOND,
    "m": MINUTE,
    "h": HOUR,
}
_DIGITS: Final = "0123456789"
_LARGEST: Final = (1 << 63) - 1
_EXAMPLE: Final = "write a number and a unit of ns, us, ms, s, m or h, for example 7m30s"


def parse(text: str) -> int:
    """The duration *text* in nanoseconds; negative with a leading minus.

    Raises:
        AicrError: INVALID_REQUEST for anything that Go's ParseDuration refuses: no unit, an unknown
            unit (there are no days), blanks, no digits, more than about 292 years.
    """
    body = text[1:] if text[:1] in ("+", "-") else text
    negative = text[:1] == "-"
    if body == "0":
        return 0
    if not body:
        raise invalid(f'invalid duration "{text}"', hint=_EXAMPLE)
    total = 0
    position = 0
    while position < len(body):
        whole, position = _digits(body, position)
        fraction = ""
        if body[position : position + 1] == ".":
            fraction, position = _digits(body, position + 1)
        if not whole and not fraction:
            raise invalid(f'invalid duration "{text}"', hint=_EXAMPLE)
        start = position
        while position < len(body) and body[position] not in "." + _DIGITS:
            position += 1
        unit = body[start:position]
        if not unit:
            raise invalid(f'missing unit in duration "{text}"', hint=_EXAMPLE)
        if unit not in _UNITS:
            raise invalid(f'unknown unit "{unit}" in duration "{text}"', hint=_EXAMPLE)
        size = _UNITS[unit]
        total += _number(whole) * size + _fraction(fraction, size)
        if total > _LARGEST + negative:
            raise invalid(
                f'invalid duration "{text[:60]}": it does not fit in 64 bits of nanoseconds',
                hint="the largest duration is 2562047h47m16.854775807s",
            )
    return -total if negative else total


def _digits(text: str, start: int) -> tuple[str, int]:
    end = start
    while end < len(text) and text[end] in _DIGITS:
        end += 1
    return text[start:end], end


def _number(digits: str) -> int:
    """The value of *digits*; anything too long to fit is one step beyond the largest duration."""
    digits = digits.lstrip("0")
    return int(digits or "0") if len(digits) < 20 else _LARGEST + 2


def _fraction(digits: str, size: int) -> int:
    """The nanoseconds of a decimal fraction of a unit, in Go's floating point."""
    value = 0
    scale = 1.0
    for digit in digits:
        grown = value * 10 + int(digit)
        if value > _LARGEST // 10 or grown > _LARGEST + 1:
            break  # Go ignores the digits that no longer fit.
        value = grown
        scale *= 10
    return int(float(value) * (float(size) / scale)) if value else 0


def format(nanoseconds: int) -> str:
    """*nanoseconds* as Go prints a duration: ``0s``, ``1.5ms``, ``7m30s``, ``1h0m0s``."""
    sign = "-" if nanoseconds < 0 else ""
    rest = abs(nanoseconds)
    if rest == 0:
        return "0s"
    if rest < SECOND:
        for unit, size in (("ns", 1), ("\u00b5s", MICROSECOND), ("ms", MILLISECOND)):
            if rest < size * 1000:
                return f"{sign}{_decimal(rest, size)}{unit}"
    hours, rest = divmod(rest, HOUR)
    minutes, rest = divmod(rest, MINUTE)
    seconds = _decimal(rest, SECOND) + "s"
    if hours:
        return f"{sign}{hours}h{minutes}m{seconds}"
    return f"{sign}{minutes}m{seconds}" if minutes else sign + seconds


def _decimal(value: int, size: int) -> str:
    """*value* over *size* (a power of ten) without trailing zeros."""
    whole, fraction = divmod(value, size)
    if not fraction:
        return str(whole)
    return f"{whole}.{str(fraction).rjust(len(str(size)) - 1, '0').rstrip('0')}"
