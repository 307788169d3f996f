"""The workers of one node: started, listened to, watched and ended.

torchrun says only that some worker failed, and ends with 1. Here each worker's exit, report and output is
known, so that the container's code is the spec's (known bug S20). What they print goes to our log as it
comes; its beginning, where NCCL names its network, and its end are kept.
It must not know: what a report means beyond steps, results and failures.
Source: preflight specification 7.3.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, Self

from aicr.errors import SERVICE_UNAVAILABLE, AicrError
from aicr.preflight.checks.allreduce import job as jobs
from aicr.preflight.checks.allreduce.clock import Clock
from aicr.preflight.checks.allreduce.job import Job
from aicr.preflight.checks.times import CheckTimes

#: Lines of output that are kept, from the beginning and from the end.
HEAD: Final = 500
TAIL: Final = 100
_TIMES: Final = CheckTimes()


@dataclass
class Started:
    """One worker."""

    rank: int
    process: subprocess.Popen[str]
    path: Path
    head: list[str] = field(default_factory=list)
    tail: deque[str] = field(default_factory=lambda: deque(maxlen=TAIL))
    steps: int = 0
    what: str = "start"
    measured: dict[str, Any] | None = None
    result: dict[str, Any] | None = None
    failed: dict[str, Any] | None = None
    read: int = 0
    #: Whether we have told it to end.
    stopped: bool = False

    @property
    def code(self) -> int | None:
        """How it ended, or None."""
        return self.process.poll()

    @property
    def output(self) -> str:
        """What is kept of its output."""
        return "\n".join([*self.head, *self.tail])


class Workers:
    """All workers of this node, for the time of a `with` block; none outlives it.

    Args:
        argv: starts one worker.
        job: what they do.
        node: our rank.
        environ: variables that they inherit.
        clock: time and sleeping.
        write: takes a line of their output.
    """

    def __init__(
        self,
        argv: Sequence[str],
        job: Job,
        node: int,
        environ: Mapping[str, str],
        clock: Clock,
        write: Callable[[str], None],
    ) -> None:
        self.argv, self.job, self.node, self.environ = list(argv), job, node, environ
        self.clock, self.write = clock, write
        self.started: list[Started] = []
        self._threads: list[threading.Thread] = []
        self._folder = tempfile.TemporaryDirectory(prefix="allreduce-")

    def __enter__(self) -> Self:
        try:
            for local in range(self.job.workers[self.node]):
                self._start(local)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _start(self, local: int) -> None:
        rank = self.job.first_rank(self.node) + local
        path = Path(self._folder.name) / f"worker-{local}.jsonl"
        path.touch()
        environ = {
            # Without its warnings NCCL says only that something failed.
            "NCCL_DEBUG": "WARN",
            **self.environ,
            "RANK": str(rank),
            "LOCAL_RANK": str(local),
            "GROUP_RANK": str(self.node),
            "WORLD_SIZE": str(self.job.world),
            "LOCAL_WORLD_SIZE": str(self.job.workers[self.node]),
            "MASTER_ADDR": self.job.address,
            "MASTER_PORT": str(self.job.port),
            "PYTHONUNBUFFERED": "1",
            jobs.JOB: self.job.text(),
            jobs.REPORT: str(path),
        }
        try:
            process = subprocess.Popen(
                self.argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                encoding="utf-8",
                errors="replace",
                env=environ,
                start_new_session=True,
            )
        except OSError as error:
            raise AicrError(
                SERVICE_UNAVAILABLE, f"{self.argv[0]} cannot be started: {error.strerror or error}"
            ) from error
        worker = Started(rank, process, path)
        self.started.append(worker)
        assert process.stdout is not None
        thread = threading.Thread(
            target=self._forward, args=(worker, process.stdout), name=f"rank-{rank}", daemon=True
        )
        thread.start()
        self._threads.append(thread)

    def _forward(self, worker: Started, stream: IO[str]) -> None:
        for line in stream:
            text = line.rstrip()
            if len(worker.head) < HEAD:
                worker.head.append(text)
            else:
                worker.tail.append(text)
            self.write(f"[rank {worker.rank}] {text}")

    def listen(self) -> bool:
        """Read what is new in the reports; whether anything was."""
        news = False
        for worker in self.started:
            with worker.path.open(encoding="utf-8") as file:
                file.seek(worker.read)
                text = file.read()
            # A line that is still being written has no end yet.
            whole = text[: text.rfind("\n") + 1]
            worker.read += len(whole.encode())
            for line in whole.splitlines():
                self._heard(worker, json.loads(line))
                news = True
        return news

    def _heard(self, worker: Started, document: dict[str, Any]) -> None:
        kind = document["kind"]
        if kind == jobs.STEP:
            worker.steps, worker.what = document["n"], document["what"]
        elif kind == jobs.MEASURED:
            worker.measured = document
        elif kind == jobs.RESULT:
            worker.result = document
        else:
            worker.failed = document

    @property
    def running(self) -> bool:
        """Whether one of them is."""
        return any(worker.code is None for worker in self.started)

    @property
    def broken(self) -> list[Started]:
        """The ones that ended without a result, or badly after it and not because of us."""
        return [
            worker
            for worker in self.started
            if worker.code is not None
            and (worker.result is None or (worker.code != 0 and not worker.stopped))
        ]

    @property
    def done(self) -> bool:
        """Whether all have their result, be it that they have trouble leaving."""
        return all(worker.result is not None for worker in self.started)

    def signal(self, number: int) -> None:
        """Send a signal to all that run."""
        for worker in self.started:
            if worker.code is None:
                # One that has told of a failure is no victim of whoever made us stop it.
                worker.stopped = worker.stopped or worker.failed is None
                try:
                    os.killpg(worker.process.pid, number)
                except ProcessLookupError:
                    continue

    def stop(self) -> None:
        """End all that run."""
        self.listen()
        for number in (signal.SIGTERM, signal.SIGKILL):
            self.signal(number)
            deadline = self.clock.now() + _TIMES.end
            while self.running and self.clock.now() < deadline:
                self.clock.sleep(_TIMES.end_look)
            if not self.running:
                return

    def drain(self) -> None:
        """Until all that ended workers have printed is here."""
        for thread in self._threads:
            # A grandchild may hold the pipe open.
            thread.join(timeout=_TIMES.end)

    def close(self) -> None:
        """End all, and leave nothing behind."""
        self.stop()
        for worker in self.started:
            worker.process.wait()
        self.drain()
        for worker in self.started:
            if worker.process.stdout is not None and not worker.process.stdout.closed:
                worker.process.stdout.close()
        self._folder.cleanup()


def ended(code: int) -> str:
    """How a process ended, in words."""
    if code >= 0:
        return f"ended with exit status {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"
