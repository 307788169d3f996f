"""The D-Bus wire format, as far as asking for properties needs it: one call out, its answer in.

Pure: bytes in and out. Values become plain Python ones; a variant becomes its value, a dictionary a
dict, a struct a list. Only little-endian messages are written, both orders are read. It must not know
sockets or systemd. Source: D-Bus specification, marshalling and message format.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from aicr.errors import INTERNAL, AicrError

CALL: Final = 1
RETURN: Final = 2
ERROR: Final = 3

#: Header fields.
PATH: Final = 1
INTERFACE: Final = 2
MEMBER: Final = 3
ERROR_NAME: Final = 4
REPLY_SERIAL: Final = 5
DESTINATION: Final = 6
SIGNATURE: Final = 8

#: Bytes before the header's fields: byte order, type, flags, version, lengths, serial.
FIXED: Final = 16
#: The specification's own limit of a message.
LARGEST: Final = 128 * 1024 * 1024
_MAX_DEPTH: Final = 64

#: Type code → (format of `struct`, alignment).
_NUMBERS: Final = {
    "y": ("B", 1),
    "b": ("I", 4),
    "n": ("h", 2),
    "q": ("H", 2),
    "i": ("i", 4),
    "u": ("I", 4),
    "x": ("q", 8),
    "t": ("Q", 8),
    "d": ("d", 8),
    "h": ("I", 4),
}
_ALIGNMENT: Final = {
    **{code: size for code, (_, size) in _NUMBERS.items()},
    "s": 4,
    "o": 4,
    "g": 1,
    "a": 4,
    "(": 8,
    "{": 8,
    "v": 1,
}


@dataclass(frozen=True, slots=True)
class Message:
    """A message that came in: its type, which call it answers, an error's name, and its arguments."""

    type: int
    reply_to: int
    error: str
    arguments: list[Any]


def call(
    serial: int,
    path: str,
    interface: str,
    member: str,
    *,
    destination: str,
    text: str | None = None,
) -> bytes:
    """A method call with at most one argument, a string."""
    fields = [(PATH, "o", path), (INTERFACE, "s", interface), (MEMBER, "s", member)]
    if destination:
        fields.append((DESTINATION, "s", destination))
    body = b""
    if text is not None:
        fields.append((SIGNATURE, "g", "s"))
        body = _string(text)
    entries = bytearray()
    for code, kind, value in fields:
        entries += b"\0" * (-len(entries) % 8)
        entries += bytes([code, 1]) + kind.encode() + b"\0"
        if kind == "g":
            entries += bytes([len(value)]) + value.encode() + b"\0"
        else:
            # Strings are aligned to 4; the entry began at 8 and has 4 bytes so far.
            entries += _string(value)
    head = struct.pack("<BBBBIII", ord("l"), CALL, 0, 1, len(body), serial, len(entries))
    head += bytes(entries)
    return head + b"\0" * (-len(head) % 8) + body


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<I", len(data)) + data + b"\0"


def remaining(fixed: bytes) -> int:
    """How many bytes follow the first `FIXED` of a message.

    Raises:
        AicrError: INTERNAL if these bytes do not begin a message.
    """
    order = {ord("l"): "<", ord("B"): ">"}.get(fixed[0] if fixed else 0)
    if order is None or len(fixed) < FIXED:
        raise _broken("it does not begin with a byte order")
    body, _, fields = struct.unpack_from(f"{order}III", fixed, 4)
    if body + fields > LARGEST:
        raise _broken("it is longer than a message may be")
    return int(fields + (-fields % 8) + body)


def parse(data: bytes) -> Message:
    """A whole message.

    Raises:
        AicrError: INTERNAL if it is none.
    """
    remaining(data[:FIXED])
    reader = _Reader(data, "<" if data[0] == ord("l") else ">")
    try:
        reader.at = 12
        fields = {entry[0]: entry[1] for entry in reader.value("a(yv)", 0)}
        reader.align(8)
        arguments = [reader.value(kind, 0) for kind in single_types(str(fields.get(SIGNATURE, "")))]
    except (struct.error, IndexError, UnicodeDecodeError, ValueError) as error:
        raise _broken(str(error)) from error
    return Message(
        data[1], int(fields.get(REPLY_SERIAL, 0)), str(fields.get(ERROR_NAME, "")), arguments
    )


def single_types(signature: str) -> Sequence[str]:
    """The complete types that a signature is made of; ValueError if it is none."""
    found = []
    at = 0
    while at < len(signature):
        end = _type_end(signature, at)
        found.append(signature[at:end])
        at = end
    return found


def _type_end(signature: str, at: int) -> int:
    code = signature[at]
    if code == "a":
        return _type_end(signature, at + 1)
    if code in ("(", "{"):
        closing = ")" if code == "(" else "}"
        at += 1
        while signature[at] != closing:
            at = _type_end(signature, at)
        return at + 1
    if code not in _ALIGNMENT:
        raise ValueError(f"unknown type {code!r}")
    return at + 1


class _Reader:
    """Reads values from a message at a moving position."""

    def __init__(self, data: bytes, order: str) -> None:
        self._data, self._order = data, order
        self.at = 0

    def align(self, size: int) -> None:
        """Move to the next multiple of *size*."""
        self.at += -self.at % size

    def value(self, kind: str, depth: int) -> Any:
        """The value of a complete type at the current position."""
        if depth > _MAX_DEPTH:
            raise ValueError("nested too deeply")
        code = kind[0]
        if code in _NUMBERS:
            form, size = _NUMBERS[code]
            number = self._number(form, size)
            return bool(number) if code == "b" else number
        if code in "so":
            return self._text(self._number("I", 4))
        if code == "g":
            return self._text(self._number("B", 1))
        if code == "v":
            (inner,) = single_types(self._text(self._number("B", 1)))
            return self.value(inner, depth + 1)
        if code == "a":
            return self._array(kind[1:], depth + 1)
        self.align(8)
        return [self.value(part, depth + 1) for part in single_types(kind[1:-1])]

    def _number(self, form: str, size: int) -> Any:
        self.align(size)
        (number,) = struct.unpack_from(self._order + form, self._data, self.at)
        self.at += size
        return number

    def _text(self, length: int) -> str:
        end = self.at + length
        if end >= len(self._data):
            raise IndexError("a text runs over the end")
        text = self._data[self.at : end].decode()
        self.at = end + 1
        return text

    def _array(self, element: str, depth: int) -> Any:
        length = self._number("I", 4)
        self.align(_ALIGNMENT[element[0]])
        end = self.at + length
        if end > len(self._data):
            raise IndexError("a list runs over the end")
        if element == "y":
            found = self._data[self.at : end]
            self.at = end
            return list(found)
        values = []
        while self.at < end:
            values.append(self.value(element, depth))
        if element[0] == "{":
            return {entry[0]: entry[1] for entry in values}
        return values


def _broken(why: str) -> AicrError:
    return AicrError(INTERNAL, f"the answer is no D-Bus message: {why}", where="D-Bus")
