"""Pieces of YAML that stand on one line, for the fast reader: plain, quoted and flow.

Each function reads one complete piece or raises :class:`Fallback`; none looks at other lines. What a
plain scalar means is decided here only where all readers agree, everything else is left to them.
It must not know the structure of documents, and imports nothing but what scalars mean (``scalars``).
Source: stack-study 3.3.
"""

from __future__ import annotations

from aicr.yamlio.scalars import WORDS, misread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final


class Fallback(Exception):  # noqa: N818 - it says what the caller does, and is no failure.
    """The text is beyond this reader; ask :mod:`aicr.yamlio.read`."""


#: Readers stop looking for the colon of a one-line key after 1024 characters.
LONGEST_KEY: Final = 1000

_DIGITS: Final = frozenset("0123456789")
_LETTERS: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
#: Characters that occur in no number of any reader (all but hexadecimal digits and o, p, x).
_NOT_NUMERIC: Final = frozenset("ghijklmnqrstuvwyzGHIJKLMNQRSTUVWYZ/%@")
#: First characters that make a scalar something else than plain text.
_INDICATORS: Final = frozenset(",[]{}#&*!|>'\"%@`")
#: The empty word is left out: a piece that is not there is for the reader of lines.
CONSTANTS: Final[dict[str, Any]] = {word: value for word, value in WORDS.items() if word}
#: Booleans to some readers and text to others; which one depends on the mode.
_DISPUTED: Final = frozenset(("y", "n", "yes", "no", "on", "off"))
_ESCAPES: Final = {
    "0": "\0",
    "a": "\a",
    "b": "\b",
    "t": "\t",
    "n": "\n",
    "v": "\v",
    "f": "\f",
    "r": "\r",
    "e": "\x1b",
    '"': '"',
    "\\": "\\",
    "/": "/",
    "N": "\x85",
    "L": "\u2028",
    "P": "\u2029",
}
_HEX_ESCAPES: Final = {"x": 2, "u": 4, "U": 8}
_HEX: Final = frozenset("0123456789abcdefABCDEF")


def plain_value(text: str) -> Any:
    """The value of a plain scalar that is neither a constant nor followed by anything."""
    first = text[0]
    if first in _LETTERS:
        if len(text) < 6 and text.lower() in _DISPUTED:
            raise Fallback
        return text
    if first in _DIGITS:
        return _number(text)
    if first in _INDICATORS:
        raise Fallback
    second = text[1:2]
    if first == "-" and second and second in _DIGITS:
        value = _number(text[1:])
        if isinstance(value, str):
            return text
        if type(value) is int and value > 1 << 63:
            raise Fallback
        return -value
    if (first in "-?:" and second in (" ", "")) or text[:3] == "---" or misread(text):
        raise Fallback
    return text


def _number(text: str) -> int | float | str:
    """The value of an unsigned plain scalar that starts with a digit."""
    if text.isdigit() and text.isascii():
        if (text[0] != "0" or text == "0") and len(text) < 20:
            return int(text)
        raise Fallback
    if not _NOT_NUMERIC.isdisjoint(text):
        return text
    whole, dot, fraction = text.partition(".")
    if dot and text.isascii() and whole.isdigit() and (whole[0] != "0" or whole == "0"):
        mantissa, mark, exponent = fraction.partition("e")
        signed = exponent[:1] in ("+", "-") and exponent[1:].isdigit()
        if mantissa.isdigit() and (signed or not mark):
            value = float(text)
            if value - value == 0:
                return value
    if misread(text):
        raise Fallback
    return text


def closing_quote(text: str) -> int:
    """The position of the quote that closes the scalar that *text* starts with."""
    mark = text[0]
    end = text.find(mark, 1)
    if mark == '"':
        while end > 0 and text[end - 1] == "\\":
            behind = end - 1
            while text[behind] == "\\":
                behind -= 1
            if (end - behind) % 2:
                break  # An even number of backslashes escapes itself, not the quote.
            end = text.find(mark, end + 1)
    else:
        while text[end + 1 : end + 2] == mark and end > 0:
            end = text.find(mark, end + 2)
    if end < 0:
        raise Fallback
    return end


def unquoted(text: str) -> str:
    """The value of a complete quoted scalar, quotes included."""
    body = text[1:-1]
    if text[0] == "'":
        return body.replace("''", "'") if "'" in body else body
    if "\\" not in body:
        return body
    out: list[str] = []
    parts = body.split("\\")
    out.append(parts[0])
    position = 1
    while position < len(parts):
        part = parts[position]
        if not part:  # Two backslashes: the second one is text, and so is what follows it.
            position += 1
            if position >= len(parts):
                raise Fallback
            out.append("\\" + parts[position])
        elif part[0] in _ESCAPES:
            out.append(_ESCAPES[part[0]] + part[1:])
        elif part[0] in _HEX_ESCAPES:
            width = _HEX_ESCAPES[part[0]]
            digits = part[1 : width + 1]
            if len(digits) < width or not _HEX.issuperset(digits):
                raise Fallback
            code = int(digits, 16)
            if code > 0x10FFFF or 0xD800 <= code < 0xE000:
                raise Fallback
            out.append(chr(code) + part[width + 1 :])
        else:
            raise Fallback
        position += 1
    return "".join(out)


_FLOW_WORD: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./ ")


def flow_value(text: str, at: int, depth: int) -> tuple[Any, int]:
    """The flow collection that opens at *at*, and the position behind it."""
    if depth > 20:
        raise Fallback
    sequence = text[at] == "["
    close = "]" if sequence else "}"
    items: list[Any] = []
    entries: dict[str, Any] = {}
    at = _skip(text, at + 1)
    while text[at] != close:
        if sequence:
            value, at = _flow_item(text, at, depth)
            items.append(value)
        else:
            key, at = _flow_item(text, at, depth)
            if type(key) is not str or key in entries or text[at] != ":":
                raise Fallback
            if text[at + 1 : at + 2] != " ":
                raise Fallback
            entries[key], at = _flow_item(text, _skip(text, at + 1), depth)
        if text[at] == ",":
            at = _skip(text, at + 1)
            if text[at] == close:
                raise Fallback
        elif text[at] != close:
            raise Fallback
    return (items if sequence else entries), at + 1


def _flow_item(text: str, at: int, depth: int) -> tuple[Any, int]:
    """The value at *at* inside a flow collection, and the position of what follows it."""
    first = text[at]
    if first in "[{":
        value, end = flow_value(text, at, depth + 1)
    elif first in "\"'":
        end = at + closing_quote(text[at:]) + 1
        value = unquoted(text[at:end])
    else:
        end = at
        while end < len(text) and text[end] in _FLOW_WORD:
            end += 1
        word = text[at:end].rstrip(" ")
        if not word or (word[0] == "-" and len(word) == 1):
            raise Fallback
        value = CONSTANTS[word] if word in CONSTANTS else plain_value(word)
    return value, _skip(text, end)


def _skip(text: str, at: int) -> int:
    """The position of the next character that is not a blank."""
    while text[at : at + 1] == " ":
        at += 1
    if at >= len(text):
        raise Fallback
    return at
