"""Exec over a WebSocket: a command in a running container, its streams as numbered channels.

Speaks `v5.channel.k8s.io` and `v4.channel.k8s.io`: first byte of a message is the channel; 255, in v5
only, closes the channel that its second byte names.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import struct
import subprocess
import termios
import threading
from dataclasses import dataclass
from typing import Final

from tests.controlplane.agent.handlers import Place
from tests.controlplane.agent.websocket import WebSocket
from tests.controlplane.client import Document

PROTOCOLS: Final = ("v5.channel.k8s.io", "v4.channel.k8s.io")
STDIN, STDOUT, STDERR, ERROR, RESIZE, SHUT = 0, 1, 2, 3, 4, 255


@dataclass(frozen=True)
class Wanted:
    """What the client asked for."""

    argv: list[str]
    stdin: bool
    stdout: bool
    stderr: bool
    tty: bool


def run(socket: WebSocket, place: Place, wanted: Wanted) -> None:
    """Run the command, pass its streams on, and end with a status on the error channel."""
    # An empty message tells the client that the connection works before there is any output.
    socket.send(bytes([STDOUT if wanted.stdout else STDERR]))
    try:
        command = _with_terminal if wanted.tty else _with_pipes
        code = command(socket, place, wanted)
    except OSError as error:
        status = _failure("InternalError", str(error), None)
    else:
        status = {"metadata": {}, "status": "Success"} if code == 0 else _exit_status(code)
    with contextlib.suppress(OSError):
        socket.send(bytes([ERROR]) + json.dumps(status).encode())
        socket.close()


def _exit_status(code: int) -> Document:
    code = 128 - code if code < 0 else code
    text = f"command terminated with non-zero exit code: exit status {code}"
    return _failure(
        "NonZeroExitCode", text, {"causes": [{"reason": "ExitCode", "message": str(code)}]}
    )


def _failure(reason: str, message: str, details: Document | None) -> Document:
    status: Document = {"metadata": {}, "status": "Failure", "reason": reason, "message": message}
    return status if details is None else {**status, "details": details}


def _with_pipes(socket: WebSocket, place: Place, wanted: Wanted) -> int:
    child = subprocess.Popen(
        place.command(wanted.argv),
        stdin=subprocess.PIPE if wanted.stdin else subprocess.DEVNULL,
        stdout=subprocess.PIPE if wanted.stdout else subprocess.DEVNULL,
        stderr=subprocess.PIPE if wanted.stderr else subprocess.DEVNULL,
        env=dict(place.environment),
        start_new_session=True,
    )
    pumps = [
        threading.Thread(target=_pump, args=(socket, channel, stream.fileno()), daemon=True)
        for channel, stream in ((STDOUT, child.stdout), (STDERR, child.stderr))
        if stream is not None
    ]
    entry = None if child.stdin is None else child.stdin.fileno()
    feeder = threading.Thread(target=_feed, args=(socket, child, entry, None), daemon=True)
    for thread in [*pumps, feeder]:
        thread.start()
    for pump in pumps:
        pump.join()
    code = child.wait()
    for stream in (child.stdin, child.stdout, child.stderr):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()
    return code


def _with_terminal(socket: WebSocket, place: Place, wanted: Wanted) -> int:
    ours, theirs = pty.openpty()
    try:
        child = subprocess.Popen(
            place.command(wanted.argv),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={"TERM": "xterm", **place.environment},
            start_new_session=True,
        )
    finally:
        os.close(theirs)
    entry = ours if wanted.stdin else None
    threading.Thread(target=_feed, args=(socket, child, entry, ours), daemon=True).start()
    _pump(socket, STDOUT, ours)
    code = child.wait()
    os.close(ours)
    return code


def _pump(socket: WebSocket, channel: int, source: int) -> None:
    """Send what can be read from *source* until there is no more; a terminal ends with an error."""
    with contextlib.suppress(OSError):
        while data := os.read(source, 1 << 15):
            socket.send(bytes([channel]) + data)


def _feed(
    socket: WebSocket, child: subprocess.Popen[bytes], entry: int | None, terminal: int | None
) -> None:
    """Write what the client sends into the command; end the command when the client goes."""
    pipe = child.stdin
    while (message := socket.receive()) is not None:
        channel, data = (message[0], message[1:]) if message else (STDIN, b"")
        with contextlib.suppress(OSError, ValueError, KeyError):
            if channel == STDIN and entry is not None and data:
                _write_all(entry, data)
            elif channel == SHUT and data[:1] == bytes([STDIN]) and pipe is not None:
                entry = None
                pipe.close()
            elif channel == RESIZE and terminal is not None:
                size = json.loads(data)
                fcntl.ioctl(
                    terminal,
                    termios.TIOCSWINSZ,
                    struct.pack("HHHH", size["Height"], size["Width"], 0, 0),
                )
    if child.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, 9)


def _write_all(target: int, data: bytes) -> None:
    while data:
        data = data[os.write(target, data) :]
