"""Child processes of a test control plane: start, stop by pid, kill, start again, measure.

Each child leads a session of its own, so a Ctrl-C meant for the test run does not reach it and the
plane can stop its parts in the right order. `setpriv` ties its life to ours: when the test run is
killed outright the kernel ends the child too.

It must not know: what the programs are.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

STOP_SECONDS: Final = 15.0
#: How much of a log goes into the message about a program that did not start.
TAIL: Final = 3000


class ProcessError(Exception):
    """A program that is missing, or that ended when it should not have."""


class Memory(NamedTuple):
    """Resident memory of a process in bytes: now, and at most."""

    resident: int
    peak: int


class Process:
    """One child: its command, its log, and whether it runs."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        log: Path,
        *,
        environment: Mapping[str, str] | None = None,
        directory: Path | None = None,
    ) -> None:
        self.name, self.log = name, log
        self._command = [*tied_to_us(), *command]
        self._environment = dict(os.environ if environment is None else environment)
        self._directory = directory
        self._child: subprocess.Popen[bytes] | None = None
        self._memory = Memory(0, 0)
        #: Every pid that this process has had, for a check that none is left.
        self.pids: list[int] = []

    @property
    def pid(self) -> int:
        """The pid of the running child; an error when it does not run."""
        if self._child is None:
            raise ProcessError(f"{self.name} is not running")
        return self._child.pid

    def running(self) -> bool:
        """Whether the child runs now."""
        return self._child is not None and self._child.poll() is None

    def start(self) -> None:
        """Start the child with the same command and log as before; its log is appended to."""
        if self.running():
            raise ProcessError(f"{self.name} already runs as pid {self.pid}")
        with self.log.open("ab") as log:
            self._child = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self._environment,
                cwd=self._directory,
                start_new_session=True,
            )
        self.pids.append(self._child.pid)

    def ask_to_stop(self) -> None:
        """Ask the child to end, and do not wait; `stop` waits."""
        self.memory()
        self._signal(signal.SIGCONT)
        self._signal(signal.SIGTERM)

    def stop(self, seconds: float = STOP_SECONDS) -> None:
        """Ask the child to end, and kill it when it has not after *seconds*."""
        if self._child is None:
            return
        self.ask_to_stop()
        try:
            self._child.wait(seconds)
        except subprocess.TimeoutExpired:
            self._signal(signal.SIGKILL)
            self._child.wait()
        self._child = None

    def kill(self) -> None:
        """End the child without warning, as a crash does."""
        self.memory()
        self._signal(signal.SIGKILL)
        if self._child is not None:
            self._child.wait()
        self._child = None

    def pause(self) -> None:
        """Stop the child without ending it, as a hung machine does; no thread of it runs any more.

        SIGSTOP only asks: on a busy machine the other threads run on for 50 ms, and answer meanwhile.
        """
        self.must_run()
        self._signal(signal.SIGSTOP)
        # Reported once the last thread has stopped; what ended instead is told by must_run.
        os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        self.must_run()

    def resume(self) -> None:
        """Let a paused child run on."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if self._child is not None and self._child.poll() is None:
            self._child.send_signal(number)

    def memory(self) -> Memory:
        """Resident memory now and at most; what was last known once the child has ended."""
        if self.running():
            found = {"VmRSS": 0, "VmHWM": 0}
            try:
                for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
                    name, _, rest = line.partition(":")
                    if name in found:
                        found[name] = int(rest.split()[0]) * 1024
                self._memory = Memory(found["VmRSS"], found["VmHWM"])
            except (OSError, ProcessError):
                pass
        return self._memory

    def must_run(self) -> None:
        """Raise ProcessError with the end of the log when the child has ended."""
        if not self.running():
            code = self._child.returncode if self._child is not None else None
            raise ProcessError(
                f"{self.name} ended with {code}; the end of {self.log}:\n{self.log_end()}"
            )

    def log_end(self) -> str:
        """The last lines of the log."""
        try:
            return self.log.read_bytes()[-TAIL:].decode(errors="replace")
        except OSError:
            return ""


def tied_to_us() -> list[str]:
    """Words before a command that make the kernel end it when the starting thread ends."""
    program = shutil.which("setpriv")
    if program is None:
        raise ProcessError("there is no setpriv; install the package util-linux")
    return [program, "--pdeathsig", "KILL", "--"]


def free_ports(count: int, host: str = "127.0.0.1") -> list[int]:
    """Ports of *host* that nothing listens on now, all different."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind((host, 0))
        return [int(one.getsockname()[1]) for one in sockets]
    finally:
        for one in sockets:
            one.close()


def alive(pid: int) -> bool:
    """Whether a process of that pid exists and is not merely waiting to be collected."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] != "Z"


def wait_until_gone(pids: Sequence[int], seconds: float) -> list[int]:
    """Wait for processes to end; returns those that have not after *seconds*."""
    deadline = time.monotonic() + seconds
    while left := [pid for pid in pids if alive(pid)]:
        if time.monotonic() > deadline:
            return left
        time.sleep(0.02)
    return []
