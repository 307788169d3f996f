"""Measures the groups that `localise` asks for, on all workers of the gang at once.

Each round makes process groups for disjoint groups of nodes, measures them at the same time, and shares
the answers through the store: the first worker of a group leaves its number, rank 0 collects them and
leaves the whole round, and everybody goes on from that. So all come to the same next round. It ends early
when its time is spent, or when a group cannot be measured: nobody is blamed then.
It must not know: how a plan is made, and what a verdict is good for.
Source: decisions 20 and 77.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from aicr.fabric.nccl_output import bus_bandwidth
from aicr.preflight.checks.allreduce.job import Found
from aicr.preflight.checks.allreduce.localise import decide
from aicr.preflight.checks.allreduce.questions import Answer, Group, Question, Verdict, as_answers

if TYPE_CHECKING:
    from aicr.preflight.checks.allreduce.worker import Worker

#: A probe needs fewer repetitions than the benchmark: it looks for large differences.
WARM_UP: Final = 1
ITERATIONS: Final = 5


class Probing:
    """One localisation, on one worker.

    Args:
        worker: measures.
        size: bytes of a message.
        threshold: GB/s that the gang was to reach.
        now: monotonic seconds.
    """

    def __init__(
        self, worker: Worker, size: int, threshold: float, now: Callable[[], float]
    ) -> None:
        self.worker, self.size, self.now, self.job = worker, size, now, worker.job
        self.question = Question(len(self.job.workers), threshold)
        self.node = self.job.node_of(worker.rank)
        self.store = worker.dist.PrefixStore(f"{self.job.key}/probe", worker.store)
        # Kept until the end: a group that is made again under the same name may find what the first one
        # left in the store. A worker is in one group a round, so there are few.
        self.made: dict[Group, Any] = {}
        self.iterations = min(ITERATIONS, self.job.iterations)
        self.warm_up = min(WARM_UP, self.job.warm_up)

    def go(self) -> Found:
        """Ask and measure until there is a verdict."""
        until = self.now() + self.job.localize_seconds
        history: list[list[Answer]] = []
        while True:
            step = decide(self.question, history)
            if step.verdict is not None:
                return found(step.verdict)
            number = len(history)
            answers, stop = self._round(number, step.groups, until)
            if stop:
                return Found(rounds=number, reason=stop, ran=True)
            history.append(answers)

    def _round(
        self, number: int, groups: tuple[Group, ...], until: float
    ) -> tuple[list[Answer], str]:
        mine = next((place for place, group in enumerate(groups) if self.node in group), None)
        try:
            made = self._make(groups)
            value = None if mine is None else self._measure(made[mine])
            text = json.dumps({"gbps": value})
        except Exception as error:
            text = json.dumps({"failed": str(error) or type(error).__name__})
        if mine is not None and self.worker.rank == self.job.first_rank(groups[mine][0]):
            self.store.set(f"{number}/{mine}", text)
        if self.worker.rank == 0:
            self.store.set(f"{number}", json.dumps(self._collect(number, groups, until)))
        document = json.loads(self._wait(f"{number}"))
        values = dict(zip(groups, document["gbps"], strict=True))
        return as_answers(groups, values), document["stop"]

    def _collect(self, number: int, groups: tuple[Group, ...], until: float) -> dict[str, Any]:
        """On rank 0: the numbers of all groups, and why to stop."""
        values: list[float | None] = []
        stop = ""
        for place, group in enumerate(groups):
            try:
                answer = json.loads(self._wait(f"{number}/{place}"))
            except RuntimeError:
                answer = {"failed": "no answer"}
            values.append(answer.get("gbps"))
            if "failed" in answer and not stop:
                nodes = ", ".join(map(str, group))
                stop = (
                    f"localisation stopped: nodes {nodes} could not be measured: {answer['failed']}"
                )
        if not stop and self.now() >= until:
            stop = f"localisation stopped: its {self.job.localize_seconds:g} s are spent"
        return {"gbps": values, "stop": stop}

    def _wait(self, key: str) -> str:
        # Longer than one measurement may take, which has its own deadlines.
        self.store.wait([key], timedelta(seconds=1.5 * self.job.timeout))
        found = self.store.get(key)
        return found.decode() if isinstance(found, bytes) else str(found)

    def _make(self, groups: tuple[Group, ...]) -> list[Any]:
        """A process group for each group; None for those that this worker need not know of."""
        dist = self.worker.dist
        alone = "use_local_synchronization" in inspect.signature(dist.new_group).parameters
        more = {"use_local_synchronization": True} if alone else {}
        for group in groups:
            # Older releases want everybody to make every group, in the same order.
            if group in self.made or (alone and self.node not in group):
                continue
            self.made[group] = dist.new_group(
                self.job.ranks(group), timeout=timedelta(seconds=self.job.timeout), **more
            )
        return [self.made.get(group) for group in groups]

    def _measure(self, group: Any) -> float:
        worker = self.worker
        seconds = worker.time(self.size, self.warm_up, self.iterations, group)
        wrong = worker.prove(self.size, group)
        (all_wrong,) = worker.shared([float(wrong)], "sum", group)
        ranks = worker.dist.get_world_size(group)
        (busbw,) = worker.shared([bus_bandwidth(self.size, seconds, ranks)[1]], "min", group)
        return 0.0 if all_wrong else busbw


def found(verdict: Verdict) -> Found:
    """A verdict as the report has it."""
    return Found(
        verdict.nodes, verdict.links, verdict.suspects, verdict.rounds, verdict.reason, ran=True
    )
