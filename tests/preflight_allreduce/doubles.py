"""Stand-ins for what the check meets outside: time, the board, and workers without torch."""

from __future__ import annotations

import io
import json
import logging
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from aicr.errors import SERVICE_UNAVAILABLE, AicrError
from aicr.preflight.checks.allreduce.board import Board
from aicr.preflight.checks.allreduce.clock import Clock
from aicr.preflight.checks.allreduce.gang import Place
from aicr.preflight.checks.allreduce.run import Run
from aicr.preflight.checks.allreduce.settings import Benchmark
from aicr.preflight.checks.exit_codes import Outcome
from aicr.preflight.checks.times import CheckTimes
from aicr.preflight.health.events import Event


class FakeTime:
    """Seconds that pass only by sleeping; `at` runs something when they have come."""

    def __init__(self) -> None:
        self.now, self.slept = 0.0, 0.0
        self.plans: list[tuple[float, Callable[[], None]]] = []

    def at(self, seconds: float, action: Callable[[], None]) -> None:
        """Run *action* at that time."""
        self.plans.append((seconds, action))

    def sleep(self, seconds: float) -> None:
        """Pass time."""
        self.now += seconds
        due = [plan for plan in self.plans if plan[0] <= self.now]
        self.plans = [plan for plan in self.plans if plan[0] > self.now]
        for _, action in due:
            action()

    @property
    def clock(self) -> Clock:
        """As the product takes it."""
        return Clock(lambda: self.now, self.sleep)


class Words:
    """The lines that workers print, `[rank N] TEXT`: what a test knows of how far they have come.

    A worker says its first word after its steps. As a clock it stands still until so many have, so that
    no time limit is used up while a busy machine starts them.
    """

    def __init__(self, workers: int) -> None:
        self._silent = set(range(workers))
        self._all = threading.Event()
        self._started = time.monotonic()

    def __call__(self, line: str) -> None:
        """Take a line."""
        self._silent.discard(int(line.removeprefix("[rank ").partition("]")[0]))
        if not self._silent and not self._all.is_set():
            self._started = time.monotonic()
            self._all.set()

    def wait(self) -> None:
        """Until every worker has said something."""
        assert self._all.wait(60)

    def now(self) -> float:
        """Seconds since every worker has said something."""
        return time.monotonic() - self._started if self._all.is_set() else 0.0


class MemoryBoard:
    """A board that threads share; `lost` makes it as if rank 0 were gone."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.lost = False
        self.lock = threading.Lock()

    def put(self, name: str, text: str) -> None:
        """See `Board`."""
        self._alive()
        with self.lock:
            self.texts[name] = text

    def get(self, name: str) -> str | None:
        """See `Board`."""
        self._alive()
        with self.lock:
            return self.texts.get(name)

    def _alive(self) -> None:
        if self.lost:
            raise AicrError(SERVICE_UNAVAILABLE, "the store of rank 0 is gone: reset")

    def meet(self, address: str, port: int, *, serves: bool, limit: float, clock: Clock) -> Board:
        """A meeting that always succeeds."""
        return self


#: Long enough for a busy machine; what waits for so long ends as soon as it has come.
ENOUGH: Final = 60.0

#: A worker without torch: it reports what the variable `PLAY` says for its rank, then does as told.
PLAYER = """
import json, os, signal, sys, time
play = json.loads(os.environ["PLAY"]).get(os.environ["RANK"], {})
def tell(document):
    with open(os.environ["AICR_ALLREDUCE_REPORT"], "a") as file:
        file.write(json.dumps(document) + "\\n")
for n in range(play.get("steps", 1)):
    tell({"kind": "step", "n": n + 1, "what": "init" if n == 0 else "benchmark"})
print(play.get("prints", "hello"), flush=True)
# NCCL names its network long before anything is measured.
while play.get("awaits") and not os.path.exists(play["awaits"]):
    time.sleep(0.01)
for document in play.get("tells", []):
    tell(document)
if play.get("hangs"):
    if play["hangs"] == "hard":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(600)
if play.get("dies"):
    os.kill(os.getpid(), signal.SIGKILL)
sys.exit(play.get("code", 0))
"""


def measured(busbw: float, size: int = 1 << 20, wrong: int = 0) -> dict[str, Any]:
    """One size as a worker reports it."""
    return {"size": size, "seconds": 0.01, "algbw": busbw, "busbw": busbw, "wrong": wrong}


def plays(busbw: float, found: Mapping[str, Any] | None = None, wrong: int = 0) -> dict[str, Any]:
    """A worker that measures and has a result."""
    sizes = [measured(busbw, wrong=wrong)]
    no = {"nodes": [], "links": [], "suspects": [], "rounds": 0, "reason": "", "ran": False}
    result = {"kind": "result", "sizes": sizes, "found": {**no, **(found or {})}}
    return {"steps": 3, "tells": [{"kind": "measured", "sizes": sizes}, result]}


def fails(
    text: str, stage: str = "benchmark", *, hung: bool = False, code: int = 1
) -> dict[str, Any]:
    """A worker that reports a failure."""
    told = {"kind": "failed", "stage": stage, "text": text, "hung": hung}
    return {"steps": 1 if stage == "init" else 2, "tells": [told], "code": code}


@dataclass
class Node:
    """What one node of a played gang came to."""

    outcome: Outcome | None = None
    error: BaseException | None = None
    events: list[Event] = field(default_factory=list)
    log: io.StringIO = field(default_factory=io.StringIO)


def play(
    parts: Mapping[int, Mapping[str, Any]],
    nodes: int = 2,
    *,
    workers: int = 1,
    refuses: Sequence[int] = (),
    absent: Sequence[int] = (),
    board: MemoryBoard | None = None,
    timeout: float = 60.0,
    factor: float = 0.01,
    settle: float = ENOUGH,
    now: Callable[[], float] = time.monotonic,
    write: Callable[[str], None] = lambda line: None,
    environ: Mapping[str, str] | None = None,
    **benchmark: Any,
) -> list[Node]:
    """Run the program of every node in a thread, with workers that play their parts.

    Args:
        parts: rank of a worker → what it does.
        nodes, workers: how many, and workers on each.
        refuses: nodes whose connector takes nothing.
        absent: nodes that do not run at all.
        board: the board they share.
        timeout, factor, now, write: see `Run`.
        settle: seconds that workers which hang are given; those that end are not waited for.
        environ: more variables of the workers.
        benchmark: settings.
    """
    shared = board or MemoryBoard()
    pods = tuple(f"w-{n}" for n in range(nodes))
    made = [Node() for _ in range(nodes)]
    variables = {"PLAY": json.dumps({str(rank): part for rank, part in parts.items()})}
    wanted = {"sizes": (1 << 20,), "backend": "gloo", "processes": workers, **benchmark}

    def run(number: int) -> None:
        node = made[number]

        def report(event: Event) -> None:
            if number in refuses:
                raise AicrError(SERVICE_UNAVAILABLE, "Failed to send health event after 5 retries")
            node.events.append(event)

        log = logging.Logger(f"node-{number}", logging.INFO)
        log.addHandler(logging.StreamHandler(node.log))
        try:
            node.outcome = Run(
                Place("gang", 1, number, pods, "127.0.0.1", 29500),
                Benchmark(**wanted),
                f"node-{number}",
                (sys.executable, "-c", PLAYER),
                shared.meet,
                report,
                log,
                {**variables, **(environ or {})},
                timeout,
                replace(CheckTimes().scaled(factor), gather=ENOUGH, settle=settle),
                Clock(now, lambda seconds: time.sleep(min(seconds, 0.02))),
                write,
            ).go()
        except BaseException as error:
            node.error = error

    threads = [threading.Thread(target=run, args=(n,)) for n in range(nodes) if n not in absent]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for node in made:
        if node.error is not None:
            raise node.error
    return made


def codes(made: Sequence[Node]) -> list[int | None]:
    """Exit codes by node."""
    return [node.outcome.exit_code if node.outcome else None for node in made]


def write_files(path: Path, data: Mapping[str, str]) -> None:
    """Files of a ConfigMap without the kubelet's link, as a person may write them."""
    path.mkdir(exist_ok=True)
    for key, text in data.items():
        (path / key).write_text(text)
