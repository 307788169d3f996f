"""What collectors see of a machine: its files below a root, and programs that they may run.

Inside the agent's pod the host's ``/proc``, ``/sys``, ``/etc/os-release`` and ``/run/systemd`` lie below
another root than the pod's own, and in tests all of them lie in a folder. So no collector opens an
absolute path; it asks `Files`. Absent and unreadable stay apart: the first is an answer, the second is
an error that says who may not read what.

This module must not know what is read. Source: decision 42 (ports), recipe spec 8.4.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from aicr.collectors.limits import Limits
from aicr.errors import INTERNAL, NOT_FOUND, TIMEOUT, UNAUTHORIZED, AicrError

#: Bytes that are read of one file; readings are short, and a device file may have no end.
LIMIT: Final = 4 * 1024 * 1024
#: Bytes of one read: the kernel refuses to read a setting into a buffer of megabytes.
_PIECE: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class Files:
    """The files of a machine, by their absolute path on it."""

    root: Path = Path("/")

    def place(self, path: str) -> Path:
        """Where *path* of the machine lies here."""
        return self.root / path.lstrip("/")

    def text(self, path: str) -> str | None:
        """What a file says, None if there is none; bytes that are no UTF-8 are replaced.

        Raises:
            AicrError: UNAUTHORIZED if it may not be read, INTERNAL if reading fails.
        """
        try:
            with open(self.place(path), "rb", buffering=0) as file:
                return _content(file).decode("utf-8", "replace")
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise _unreadable(path, error) from error

    def names(self, path: str) -> list[str] | None:
        """Names in a folder, sorted; None if there is no such folder. Raises as `text` does."""
        try:
            return sorted(os.listdir(self.place(path)))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise _unreadable(path, error) from error

    def exists(self, path: str) -> bool:
        """Whether there is something at *path*."""
        return self.place(path).exists()

    def link(self, path: str) -> str:
        """The last name of what a symbolic link leads to, "" if there is no link."""
        try:
            return os.path.basename(os.readlink(self.place(path)))
        except OSError:
            return ""

    def walk(self, path: str, skip: frozenset[str]) -> Iterator[str]:
        """Paths of the plain files below a folder, sorted; links and the folders *skip* are left out."""
        pending = [path]
        while pending:
            folder = pending.pop()
            try:
                entries = sorted(os.scandir(self.place(folder)), key=lambda entry: entry.name)
            except OSError:
                # One subtree that may not be listed is no reason to lose the rest.
                continue
            for entry in entries:
                name = f"{folder}/{entry.name}"
                if entry.is_symlink():
                    continue
                if entry.is_dir(follow_symlinks=False):
                    if name not in skip:
                        pending.append(name)
                elif entry.is_file(follow_symlinks=False):
                    yield name


def _content(file: io.RawIOBase) -> bytes:
    found = bytearray()
    while len(found) < LIMIT:
        piece = file.read(_PIECE)
        if not piece:
            break
        found += piece
    return bytes(found[:LIMIT])


def _unreadable(path: str, error: OSError) -> AicrError:
    denied = isinstance(error, PermissionError)
    return AicrError(
        UNAUTHORIZED if denied else INTERNAL,
        f"cannot read {path}: {error.strerror or error}",
        where=path,
        hint="run as root" if denied else "",
    )


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended: exit status, and what it wrote."""

    status: int
    out: str
    err: str


class Commands(Protocol):
    """Runs programs of the machine."""

    async def run(self, argv: Sequence[str], *, timeout: float) -> Ended:
        """Run a program to its end.

        Raises:
            AicrError: NOT_FOUND if there is no such program, TIMEOUT after *timeout* seconds.
        """


class Programs:
    """`Commands` with the programs on this process's PATH."""

    async def run(self, argv: Sequence[str], *, timeout: float) -> Ended:
        """As `Commands.run`; a program that takes too long is killed."""
        program = shutil.which(argv[0])
        if program is None:
            raise AicrError(NOT_FOUND, f"there is no program {argv[0]}", where=argv[0])
        loop = asyncio.get_running_loop()
        # As `asyncio.create_subprocess_exec`, which keeps the transport to itself.
        transport, protocol = await loop.subprocess_exec(
            lambda: asyncio.subprocess.SubprocessStreamProtocol(limit=_PIECE, loop=loop),
            program,
            *argv[1:],
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "LC_ALL": "C"},
        )
        child = asyncio.subprocess.Process(transport, protocol, loop)
        try:
            out, err = await asyncio.wait_for(child.communicate(), timeout)
        except TimeoutError as error:
            raise AicrError(
                TIMEOUT, f"{argv[0]} gave no answer in {timeout:g} s", where=argv[0]
            ) from error
        finally:
            # Kills it, and closes our ends of its pipes, which a child that it left behind may hold open.
            transport.close()
            # A program that a driver holds in the kernel does not even end by this.
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(child.wait(), Limits().killed)
        return Ended(
            child.returncode or 0, out.decode("utf-8", "replace"), err.decode("utf-8", "replace")
        )


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine that is measured."""

    files: Files
    commands: Commands
