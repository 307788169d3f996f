"""What a worker is told, and what it reports: plain documents, so that the worker needs nothing else.

The program writes a `Job` into one variable, and reads lines of JSON that the worker appends to a file:
`step` lines while it goes on, `measured` when the sizes are done, then one `result` or `failed` line.
It must not know: processes, torch.
Source: preflight specification 7.3.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from aicr.errors import invalid
from aicr.preflight.checks.times import CheckTimes

#: Variables of a worker, beside the ones that torchrun sets.
JOB: Final = "AICR_ALLREDUCE_JOB"
REPORT: Final = "AICR_ALLREDUCE_REPORT"

STEP: Final = "step"
MEASURED: Final = "measured"
RESULT: Final = "result"
FAILED: Final = "failed"

#: Text on the board, under the job's key: GB/s for each size. The program on rank 0 leaves it when it has
#: seen what was measured and which fabric NCCL named.
THRESHOLDS: Final = "thresholds"

#: Stages of a failure.
CONFIG: Final = "config"
INIT: Final = "init"
BENCHMARK: Final = "benchmark"


@dataclass(frozen=True)
class Job:
    """One benchmark over all workers of all nodes."""

    #: Prefix of the keys in the store: a membership of the gang.
    key: str
    address: str
    port: int
    #: Workers of each node, by node rank.
    workers: tuple[int, ...]
    sizes: tuple[int, ...]
    iterations: int
    warm_up: int
    operation: str
    backend: str
    #: Seconds that one step may take.
    timeout: float
    skip: bool = False
    localize: bool = True
    localize_seconds: float = CheckTimes().localise

    @property
    def world(self) -> int:
        """Number of workers."""
        return sum(self.workers)

    def first_rank(self, node: int) -> int:
        """Rank of the first worker of a node."""
        return sum(self.workers[:node])

    def node_of(self, rank: int) -> int:
        """The node of a worker."""
        before = 0
        for node, count in enumerate(self.workers):
            before += count
            if rank < before:
                return node
        raise invalid(f"there is no worker {rank}")

    def ranks(self, nodes: Sequence[int]) -> list[int]:
        """All workers of some nodes, ascending."""
        return [
            self.first_rank(node) + local
            for node in sorted(nodes)
            for local in range(self.workers[node])
        ]

    def text(self) -> str:
        """The job as JSON."""
        return json.dumps(asdict(self))


def parse_job(text: str) -> Job:
    """A job from its JSON."""
    document = json.loads(text)
    document["workers"], document["sizes"] = tuple(document["workers"]), tuple(document["sizes"])
    return Job(**document)


@dataclass(frozen=True)
class Measured:
    """One message size, over all workers."""

    size: int
    seconds: float
    algbw: float
    busbw: float
    #: Elements that arrived wrong on some worker.
    wrong: int = 0


@dataclass(frozen=True)
class Found:
    """What localisation came to; node ranks."""

    nodes: tuple[int, ...] = ()
    links: tuple[tuple[int, int], ...] = ()
    suspects: tuple[int, ...] = ()
    rounds: int = 0
    reason: str = ""
    #: Whether it was run at all.
    ran: bool = False


@dataclass(frozen=True)
class Result:
    """A benchmark that was completed."""

    sizes: tuple[Measured, ...]
    found: Found = field(default_factory=Found)


def worst(sizes: Sequence[Measured], thresholds: Sequence[float]) -> tuple[Measured, float]:
    """The size that is furthest from what it must be, wrong values first, and its threshold."""
    pairs = zip(sizes, thresholds, strict=True)
    return min(pairs, key=lambda pair: (not pair[0].wrong, pair[0].busbw / pair[1]))


def measured_document(sizes: Sequence[Measured]) -> dict[str, Any]:
    """What was measured, as a plain document."""
    return {"kind": MEASURED, "sizes": [asdict(one) for one in sizes]}


def parse_measured(document: Mapping[str, Any]) -> tuple[Measured, ...]:
    """What was measured, from its document."""
    return tuple(Measured(**one) for one in document["sizes"])


def result_document(result: Result) -> dict[str, Any]:
    """A result as a plain document."""
    return {"kind": RESULT, **asdict(result)}


def parse_result(document: Mapping[str, Any]) -> Result:
    """A result from its document."""
    found = document["found"]
    return Result(
        parse_measured(document),
        Found(
            tuple(found["nodes"]),
            tuple((link[0], link[1]) for link in found["links"]),
            tuple(found["suspects"]),
            found["rounds"],
            found["reason"],
            found["ran"],
        ),
    )
