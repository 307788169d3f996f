"""Commands in containers: the websocket protocols ``v5.channel.k8s.io`` and ``v4.channel.k8s.io``.

Each message begins with the number of its channel. The last one on the error channel is a Status
that holds the exit code; only with it has the command ended, so a connection that ends before is an
error and never "exit 0". Frames are pure functions; `run` puts them on a `port.Socket`. It must not
know what commands do.

Source: Kubernetes, apimachinery remotecommand constants; KEP-4006.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from aicr.errors import INVALID_REQUEST, SERVICE_UNAVAILABLE, TIMEOUT, AicrError, invalid
from aicr.kube import request
from aicr.kube.kinds import POD
from aicr.kube.port import ExecResult, Socket, Transport
from aicr.kube.request import Request
from aicr.kube.status import from_status

V5: Final = "v5.channel.k8s.io"
V4: Final = "v4.channel.k8s.io"
PROTOCOLS: Final = (V5, V4)

STDIN: Final = 0
STDOUT: Final = 1
STDERR: Final = 2
ERROR: Final = 3
CLOSE: Final = 255

#: Bytes of stdin in one message.
PIECE: Final = 32 * 1024


def exec_request(
    name: str, command: Sequence[str], namespace: str, container: str = "", stdin: bool = False
) -> Request:
    """The request to upgrade. RBAC asks for ``create`` on pods/exec."""
    if isinstance(command, str) or not command:
        raise invalid("a command is a list of at least one word")
    query = [("command", str(word)) for word in command]
    if container:
        query.append(("container", container))
    query += [("stdout", "true"), ("stderr", "true")]
    if stdin:
        query.append(("stdin", "true"))
    path = request.path_of(POD, namespace=namespace, name=name, subresource="exec")
    return Request(
        *("create", "GET", path, tuple(query)),
        resource=POD,
        namespace=namespace,
        name=name,
        subresource="exec",
    )


def input_frames(data: bytes) -> list[bytes]:
    """Messages that carry *data* to stdin."""
    pieces = range(0, len(data), PIECE)
    return [bytes([STDIN]) + data[start : start + PIECE] for start in pieces]


def close_input_frame(protocol: str) -> bytes:
    """The message that ends stdin; INVALID_REQUEST if the server's protocol has none (before v5)."""
    if protocol != V5:
        raise AicrError(
            INVALID_REQUEST,
            "this server cannot be told where the input of a command ends",
            hint="it needs Kubernetes 1.30 or later; pass the input as arguments instead",
        )
    return bytes([CLOSE, STDIN])


def exit_code(asked: Request, document: Mapping[str, Any]) -> int:
    """The exit code in the final Status; raises if the command could not be run at all."""
    if document.get("status") == "Success":
        return 0
    if document.get("reason") == "NonZeroExitCode":
        for cause in (document.get("details") or {}).get("causes") or ():
            if cause.get("reason") == "ExitCode":
                return int(cause["message"])
    raise from_status(asked, document)


class Output:
    """Collects the messages of one command. Pure."""

    def __init__(self, asked: Request) -> None:
        self._asked = asked
        self._parts: dict[int, list[bytes]] = {STDOUT: [], STDERR: [], ERROR: []}

    def take(self, message: bytes) -> ExecResult | None:
        """Add a message; the result once the command has ended."""
        if not message:
            return None
        channel, data = message[0], message[1:]
        if channel in self._parts:
            self._parts[channel].append(data)
        if channel != ERROR or not data:
            return None
        try:
            document = msgspec.json.decode(b"".join(self._parts[ERROR]))
        except msgspec.DecodeError:
            return None  # the Status may come in pieces
        code = exit_code(self._asked, document)
        return ExecResult(code, b"".join(self._parts[STDOUT]), b"".join(self._parts[STDERR]))

    def cut(self) -> AicrError:
        """The error if the connection ends before the command."""
        shown = b"".join(self._parts[ERROR]).decode("utf-8", "replace")[:200]
        return AicrError(
            SERVICE_UNAVAILABLE,
            f"cannot {self._asked.verb} {self._asked.subject}: the connection ended before the command"
            + (f": {shown}" if shown else ""),
            hint="whether the command went on is unknown; look before repeating it",
        )


async def run(
    transport: Transport, asked: Request, *, stdin: bytes | None, timeout: float
) -> ExecResult:
    """Run a command to its end. TIMEOUT after *timeout* seconds; the command may then still run."""
    try:
        async with asyncio.timeout(timeout):
            async with transport.websocket(asked, PROTOCOLS) as socket:
                return await _converse(socket, asked, stdin)
    except TimeoutError as error:
        raise AicrError(
            TIMEOUT,
            f"cannot {asked.verb} {asked.subject}: the command did not end within {timeout:g} s",
            hint="it may still be running in the container",
        ) from error


async def _converse(socket: Socket, asked: Request, stdin: bytes | None) -> ExecResult:
    output = Output(asked)
    # Closing frame first: a server that cannot close the input must not get any.
    closing = close_input_frame(socket.protocol) if stdin is not None else b""
    sending = asyncio.create_task(_send_all(socket, stdin or b"", closing))
    try:
        while True:
            message = await socket.receive()
            if message is None:
                raise output.cut()
            result = output.take(message)
            if result is not None:
                return result
    finally:
        sending.cancel()
        # A command may end without reading its input; its result is what counts then.
        with contextlib.suppress(asyncio.CancelledError, AicrError):
            await sending


async def _send_all(socket: Socket, stdin: bytes, closing: bytes) -> None:
    for frame in input_frames(stdin):
        await socket.send(frame)
    if closing:
        await socket.send(closing)
