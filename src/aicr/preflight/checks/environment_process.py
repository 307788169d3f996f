"""Runs another program to its end or to a time limit, and takes what it printed.

The port is a function, so that tests hand in one that prints real tables. A child gets a process group
of its own: when time is up, or we are asked to end, nothing of it stays behind. It must not know: what
is run.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from aicr.errors import NOT_FOUND, TIMEOUT, AicrError
from aicr.preflight.checks.times import CheckTimes


@dataclass(frozen=True)
class Completed:
    """A program that has ended."""

    returncode: int
    stdout: str
    stderr: str

    @property
    def text(self) -> str:
        """Both streams, for error messages."""
        return "\n".join(part.strip() for part in (self.stdout, self.stderr) if part.strip())

    def failure(self) -> str:
        """How it ended, in words."""
        if self.returncode < 0:
            try:
                name = signal.Signals(-self.returncode).name
            except ValueError:
                name = f"signal {-self.returncode}"
            return f"killed by {name}"
        return f"exit status {self.returncode}"


class Process(Protocol):
    """A way to run a program."""

    def __call__(
        self, argv: Sequence[str], *, timeout: float, environ: Mapping[str, str]
    ) -> Completed:
        """Run *argv* for at most *timeout* seconds.

        Raises:
            AicrError: TIMEOUT when it does not end in time (the context holds what it printed),
                NOT_FOUND when there is no such program, or it cannot be started.
        """


def run(argv: Sequence[str], *, timeout: float, environ: Mapping[str, str]) -> Completed:
    """Run a program of this machine (see `Process`)."""
    try:
        child = subprocess.Popen(
            list(argv),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
            env=dict(environ),
            start_new_session=True,
        )
    except OSError as error:
        raise AicrError(
            NOT_FOUND, f"{argv[0]} cannot be started: {error.strerror or error}"
        ) from None
    with child:
        try:
            out, err = child.communicate(timeout=timeout)
        except subprocess.TimeoutExpired as error:
            out, err = _end(child)
            raise AicrError(
                TIMEOUT,
                f"{os.path.basename(argv[0])} did not end within {timeout:g} s",
                context={"stdout": out, "stderr": err},
            ) from error
        except BaseException:
            # Asked to end ourselves: the child holds the GPUs, so it goes first.
            _end(child)
            raise
    return Completed(child.returncode, out, err)


def _end(child: subprocess.Popen[str]) -> tuple[str, str]:
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(child.pid, number)
        except ProcessLookupError:
            pass
        try:
            return child.communicate(timeout=CheckTimes().end)
        except subprocess.TimeoutExpired:
            continue
    return "", ""
