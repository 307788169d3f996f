"""A systemd for tests: speaks D-Bus on a socket of a fake machine, and answers GetAll.

It writes messages with code of its own, so that reader and writer of the product do not only agree with
each other.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

#: One property: name, signature, and its value in wire form at an offset that is a multiple of 8.
Property = tuple[str, str, bytes]


def text(value: str) -> bytes:
    """A string at an aligned place."""
    data = value.encode()
    return struct.pack("<I", len(data)) + data + b"\0"


def pad(data: bytes, size: int) -> bytes:
    """*data* filled up to a multiple of *size*."""
    return data + b"\0" * (-len(data) % size)


def properties(entries: Mapping[str, tuple[str, bytes, int]]) -> bytes:
    """A dictionary of variants: name → (signature, value, alignment of the value)."""
    body = b"\0" * 8  # length, and the gap before the first entry
    for name, (signature, value, alignment) in entries.items():
        body = pad(body, 8) + text(name)
        body += bytes([len(signature)]) + signature.encode() + b"\0"
        body = pad(body, alignment) + value
    return struct.pack("<I", len(body) - 8) + body[4:]


def reply(serial: int, signature: str, body: bytes, *, error: str = "") -> bytes:
    """A method return, or an error of that name."""
    fields = b""
    entries = [(5, "u", struct.pack("<I", serial)), (8, "g", b"")]
    if error:
        entries.append((4, "s", text(error)))
    for code, kind, value in entries:
        fields = pad(fields, 8) + bytes([code, 1]) + kind.encode() + b"\0"
        fields += bytes([len(signature)]) + signature.encode() + b"\0" if kind == "g" else value
    head = struct.pack("<cBBBII", b"l", 3 if error else 2, 1, 1, len(body), 77)
    return pad(head + struct.pack("<I", len(fields)) + fields, 8) + body


Answer = Callable[[int, bytes], bytes]


@asynccontextmanager
async def systemd(
    root: Path, answer: Answer, *, login: bytes = b"OK 1234\r\n"
) -> AsyncIterator[list[str]]:
    """Serve on the private socket of the machine in *root*; yields the paths that were asked for."""
    asked: list[str] = []
    place = root / "run/systemd/private"
    place.parent.mkdir(parents=True, exist_ok=True)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readline()
            writer.write(login)
            await writer.drain()
            await reader.readline()
            while True:
                fixed = await reader.readexactly(16)
                body, serial, fields = struct.unpack_from("<III", fixed, 4)
                rest = await reader.readexactly(fields + -fields % 8 + body)
                (length,) = struct.unpack_from("<I", rest, 4)
                asked.append(rest[8 : 8 + length].decode())
                writer.write(answer(serial, rest))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_unix_server(serve, str(place))
    try:
        yield asked
    finally:
        server.close()
