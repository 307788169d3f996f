"""The server's side of a WebSocket (RFC 6455), as much as exec needs: binary messages, ping, close."""

from __future__ import annotations

import base64
import hashlib
import struct
import threading
from io import BufferedIOBase
from typing import Final

MAGIC: Final = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10


def accept(key: str) -> str:
    """The answer to a client's Sec-WebSocket-Key."""
    return base64.b64encode(hashlib.sha1((key + MAGIC).encode()).digest()).decode()


class WebSocket:
    """Messages over a connection that has switched protocols."""

    def __init__(self, reader: BufferedIOBase, writer: BufferedIOBase) -> None:
        self._reader, self._writer = reader, writer
        self._lock = threading.Lock()

    def send(self, payload: bytes, kind: int = BINARY) -> None:
        """Send one message; any thread may."""
        size = len(payload)
        if size < 126:
            head = struct.pack("!BB", 0x80 | kind, size)
        elif size < 1 << 16:
            head = struct.pack("!BBH", 0x80 | kind, 126, size)
        else:
            head = struct.pack("!BBQ", 0x80 | kind, 127, size)
        with self._lock:
            self._writer.write(head + payload)
            self._writer.flush()

    def receive(self) -> bytes | None:
        """The next message, or None when the client has closed or gone."""
        message = b""
        while True:
            try:
                first, second = self._exactly(2)
                size = second & 0x7F
                if size == 126:
                    (size,) = struct.unpack("!H", self._exactly(2))
                elif size == 127:
                    (size,) = struct.unpack("!Q", self._exactly(8))
                mask = self._exactly(4) if second & 0x80 else b"\0\0\0\0"
                payload = bytes(
                    byte ^ mask[place % 4] for place, byte in enumerate(self._exactly(size))
                )
            except (EOFError, OSError):
                return None
            kind = first & 0x0F
            if kind == CLOSE:
                return None
            if kind == PING:
                self.send(payload, PONG)
            elif kind in {CONTINUATION, TEXT, BINARY}:
                message += payload
                if first & 0x80:
                    return message

    def _exactly(self, count: int) -> bytes:
        data = self._reader.read(count)
        if len(data) < count:
            raise EOFError
        return data

    def close(self) -> None:
        """Say that all is well and over."""
        self.send(struct.pack("!H", 1000), CLOSE)
