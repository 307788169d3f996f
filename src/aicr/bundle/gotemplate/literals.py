"""Read Go's literals: quoted strings, character constants and numbers.

It must not know where a literal stands; the parser adds the place to an error.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_SIMPLE: Final = {
    "a": b"\a", "b": b"\b", "f": b"\f", "n": b"\n", "r": b"\r", "t": b"\t", "v": b"\v",
    "\\": b"\\",
}  # fmt: skip
_HEX_DIGITS: Final = {"x": 2, "u": 4, "U": 8}


class LiteralError(Exception):
    """A literal that Go would not accept; the text says why. Never leaves the package."""


def string(literal: str) -> str:
    """The value of an interpreted string literal with its double quotes."""
    body = literal[1:-1]
    if "\\" not in body:
        return body
    return _text(_unescape(body, '"', literal), literal)


def rune(literal: str) -> int:
    """The code point of a character constant with its single quotes."""
    body = literal[1:-1]
    text = _text(_unescape(body, "'", literal), literal)
    if len(text) != 1:
        raise LiteralError(f"malformed character constant: {literal}")
    return ord(text)


def number(literal: str) -> int | float:
    """The value of a number: a float if it has a point or an exponent, else a 64-bit integer."""
    digits = literal.lstrip("+-")
    lowered = digits.lower()
    try:
        if lowered[:2] in ("0x", "0b", "0o"):
            value: int | float = int(lowered, 0)
        elif any(mark in lowered for mark in ".e"):
            value = float(lowered)
        elif lowered[0] == "0" and len(lowered) > 1:
            value = int(lowered.lstrip("0_") or "0", 8)
        else:
            value = int(lowered)
    except ValueError:
        raise LiteralError(f"bad number syntax: {literal!r}") from None
    if literal[0] == "-":
        value = -value
    if isinstance(value, float):
        if value in (float("inf"), float("-inf")):
            raise LiteralError(f"{literal} overflows a float")
    elif not -(2**63) <= value < 2**63:
        raise LiteralError(f"{literal} overflows int")
    return value


def _unescape(body: str, quote: str, literal: str) -> bytes:
    """The bytes of a literal's body; ``\\x`` and octal escapes are bytes, ``\\u`` code points."""
    out = bytearray()
    at = 0
    while at < len(body):
        character = body[at]
        at += 1
        if character != "\\":
            out += character.encode("utf-8", "surrogatepass")
            continue
        escape = body[at : at + 1]
        at += 1
        if escape == quote:
            out += quote.encode()
        elif escape in _SIMPLE:
            out += _SIMPLE[escape]
        elif escape in _HEX_DIGITS:
            size = _HEX_DIGITS[escape]
            code = _digits(body[at : at + size], size, 16, literal)
            at += size
            if escape == "x":
                # In a character constant Go takes the number as the code point itself.
                out += chr(code).encode() if quote == "'" else bytes((code,))
            elif code > 0x10FFFF or 0xD800 <= code < 0xE000:
                raise LiteralError(f"invalid code point in {literal}")
            else:
                out += chr(code).encode()
        elif escape and escape in "01234567":
            code = _digits(body[at - 1 : at + 2], 3, 8, literal)
            at += 2
            if code > 0xFF:
                raise LiteralError(f"octal escape above 255 in {literal}")
            out += chr(code).encode() if quote == "'" else bytes((code,))
        else:
            raise LiteralError(f"unknown escape \\{escape} in {literal}")
    return bytes(out)


def _digits(text: str, size: int, base: int, literal: str) -> int:
    """The number written by exactly *size* digits."""
    allowed = "0123456789abcdef"[:base]
    if len(text) != size or any(digit not in allowed for digit in text.lower()):
        raise LiteralError(f"malformed escape in {literal}")
    return int(text, base)


def _text(raw: bytes, literal: str) -> str:
    """The text of a literal; bytes that are not UTF-8 cannot stand in a manifest."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        raise LiteralError(f"{literal} is not UTF-8 text") from None
