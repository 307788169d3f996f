"""The flow of preflight-nccl-allreduce on one node: meet, start workers, watch them, report, send.

Rank 0's program judges for the gang and leaves the verdict on the board, so that all containers exit alike
and no event is sent twice; each isolated node sends its own. When rank 0 is gone, a node can only say that
for itself. Everything that touches the world is handed in.
It must not know: variables, torch, how measurements are made.
Source: preflight specification 7.3, decisions 19, 20, 77, known bugs S19 to S22 and S25.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from aicr.errors import AicrError
from aicr.fabric import thresholds
from aicr.fabric.thresholds import Threshold
from aicr.preflight.checks import exit_codes
from aicr.preflight.checks.allreduce import job as jobs
from aicr.preflight.checks.allreduce import verdict as verdicts
from aicr.preflight.checks.allreduce.board import Meeting
from aicr.preflight.checks.allreduce.clock import Clock
from aicr.preflight.checks.allreduce.gang import Place
from aicr.preflight.checks.allreduce.gathering import Card, Gathering, Roster
from aicr.preflight.checks.allreduce.job import Job
from aicr.preflight.checks.allreduce.launch import Started, Workers, ended
from aicr.preflight.checks.allreduce.settings import Benchmark
from aicr.preflight.checks.allreduce.verdict import End, Failure, Node, Verdict, failure_of
from aicr.preflight.checks.environment import Report, as_text, fields
from aicr.preflight.checks.exit_codes import Outcome
from aicr.preflight.checks.times import CheckTimes


@dataclass
class Run:
    """One run on one node.

    Args:
        place: our place in the gang.
        benchmark: how to measure.
        node: name of the node in events.
        argv: starts one worker.
        meeting: the way to the board.
        report: delivers an event, or raises AicrError.
        log: where the run tells what it does.
        environ: variables that workers inherit.
        timeout: seconds that meeting, or one step of the benchmark, may take.
        times: all other waiting.
    """

    place: Place
    benchmark: Benchmark
    node: str
    argv: Sequence[str]
    meeting: Meeting
    report: Report
    log: logging.Logger
    environ: Mapping[str, str]
    timeout: float
    times: CheckTimes = field(default_factory=CheckTimes)
    clock: Clock = field(default_factory=Clock)
    write: Callable[[str], None] = lambda line: None
    thresholds: tuple[Threshold, ...] = ()

    def go(self) -> Outcome:
        """Run to the outcome, events sent.

        Raises:
            Interrupted: a signal came; the workers have been ended, and nothing was sent.
        """
        product = self.benchmark.products[0] if self.benchmark.products else ""
        card = Card(
            self.place.pods[self.place.rank],
            self.node,
            self.benchmark.processes,
            uuid.uuid4().hex,
            self.place.generation,
            product,
        )
        gathering = Gathering(self.place, card, self.meeting, self.clock, self.timeout)
        try:
            roster = gathering.meet()
        except AicrError as error:
            return self._did_not_meet(error)
        self.log.info(
            "Gang has met",
            extra=fields(nodes=len(roster.cards), workers=sum(one.workers for one in roster.cards)),
        )
        job = self._job(roster)
        end = self._measure(gathering, job)
        try:
            verdict = self._agree(gathering, roster, job, end)
        except AicrError as error:
            verdict = self._alone(end, as_text(error))
        outcome = self._ended(verdict)
        if gathering.first:
            try:
                gathering.part(self.times.stay)
            except AicrError as error:
                self.log.warning(
                    "The board was lost at the end", extra=fields(error=as_text(error))
                )
        return outcome

    def _job(self, roster: Roster) -> Job:
        wanted = self.benchmark
        return Job(
            roster.session,
            self.place.master_addr,
            self.place.master_port,
            tuple(card.workers for card in roster.cards),
            wanted.sizes,
            wanted.iterations,
            wanted.warm_up,
            wanted.operation,
            wanted.backend,
            self.timeout,
            wanted.skip,
            wanted.localize,
            wanted.localize_seconds,
        )

    # The workers

    def _measure(self, gathering: Gathering, job: Job) -> End:
        environ = dict(self.environ)
        if self.benchmark.by_fabric:
            # NCCL names the network that it uses only then.
            environ.setdefault("NCCL_DEBUG", "INFO")
        try:
            with Workers(
                self.argv, job, self.place.rank, environ, self.clock, self.write
            ) as workers:
                return _Watch(self, gathering, job, workers).go()
        except AicrError as error:
            return End(failure=failure_of(jobs.INIT, verdicts.ERROR, as_text(error), ""))

    def choose(self, measured: Sequence[jobs.Measured], output: str) -> tuple[Threshold, ...]:
        """On rank 0: the threshold of each size, by the fabric that NCCL named."""
        fabric = thresholds.fabric_of(output, self.environ)
        product = self.benchmark.products[0] if self.benchmark.products else ""
        gpu = thresholds.gpu_name(product)
        self.thresholds = tuple(
            thresholds.choose(
                self.benchmark.threshold, self.benchmark.by_fabric, fabric, gpu, one.size
            )
            for one in measured
        )
        for one, chosen in zip(measured, self.thresholds, strict=True):
            on_record = thresholds.percent(
                one.busbw, thresholds.expected(thresholds.ALLREDUCE, fabric, gpu)
            )
            self.log.info(
                "Bandwidth measured",
                extra=fields(
                    size=one.size,
                    busbw_gbps=round(one.busbw, 4),
                    algbw_gbps=round(one.algbw, 4),
                    threshold_gbps=chosen.gbps,
                    threshold=chosen.chosen,
                    fabric=fabric,
                    wrong=one.wrong,
                    **({"note": chosen.note} if chosen.note else {}),
                    **({"on_record": on_record} if on_record else {}),
                ),
            )
        return self.thresholds

    # The verdict

    def _agree(self, gathering: Gathering, roster: Roster, job: Job, end: End) -> Verdict:
        """What rank 0 comes to, on every node.

        Raises:
            AicrError: rank 0 is gone.
        """
        limit = self.times.gather
        if not gathering.first:
            gathering.put(f"end/{self.place.rank}", end.document())
            # Rank 0 may have to end workers that hang before it gathers, and wait for their output.
            ending = 3 * self.times.end
            return verdicts.parse_verdict(gathering.verdict(2 * limit + ending))
        documents = gathering.ends(end.document(), limit)
        verdict = verdicts.judge(
            [Node(card.pod, card.node) for card in roster.cards],
            [verdicts.parse_end(one) if one else None for one in documents],
            self.thresholds,
            skip=self.benchmark.skip,
            workers=job.world,
            localize=self.benchmark.localize,
        )
        gathering.put("verdict", verdict.document())
        return verdict

    def _did_not_meet(self, error: AicrError) -> Outcome:
        """NCCL was not even started: nothing was tested, and rank 0 says so if it can."""
        told = bool(error.context.get("told"))
        failure = failure_of(jobs.INIT, verdicts.LOST, as_text(error), "")
        verdict = self._alone(End(failure=failure), "")
        return self._ended(replace(verdict, events={}) if told else verdict)

    def _alone(self, end: End, why: str) -> Verdict:
        """A verdict without rank 0's: about this node only, as far as it can be told."""
        failure = end.failure or Failure(jobs.BENCHMARK, verdicts.LOST, why)
        if why and why not in failure.text:
            failure = replace(failure, text=f"{failure.text}; {why}")
        node = Node(self.place.pods[self.place.rank], self.node)
        verdict = verdicts.judge([node], [End(failure=failure)], ())
        (event,) = verdict.events.values()
        return replace(verdict, events={self.place.rank: event})

    def _ended(self, verdict: Verdict) -> Outcome:
        events = tuple(event for node, event in verdict.events.items() if node == self.place.rank)
        unsent = []
        for event in events:
            try:
                self.report(event)
            except AicrError as error:
                unsent.append(as_text(error))
                self.log.error(
                    error.message, extra=fields(error=as_text(error), event=event.document())
                )
        code = max(verdict.exit_code, exit_codes.ALLREDUCE_NOT_SENT if unsent else 0)
        return Outcome(
            exit_codes.NCCL_ALLREDUCE,
            code,
            verdict.verdict,
            verdict.message,
            events,
            tuple(unsent),
            verdict.details,
        )


class _Watch:
    """The time in which the workers of this node run."""

    def __init__(self, run: Run, gathering: Gathering, job: Job, workers: Workers) -> None:
        self.run, self.gathering, self.job, self.workers = run, gathering, job, workers
        self.clock, self.times = run.clock, run.times
        self.moved = self.looked = self.clock.now()
        self.broken_since: float | None = None
        self.trouble = ""
        self.chosen = False

    def go(self) -> End:
        """Until all have ended; then how."""
        while self.workers.running:
            self._listen()
            now = self.clock.now()
            if self.workers.broken:
                self._raise_alarm()
            elif now - self.looked >= self.times.trouble:
                self.looked = now
                self._look_around()
            if self.workers.done and now - self.moved >= self.times.settle:
                break
            since = self.broken_since
            if since is not None and now - since >= self.times.settle:
                break
            if now - self.moved >= 2 * self.job.timeout + self.times.hung:
                self._raise_alarm()
                self.workers.stop()
                self._listen()
                return End(failure=self._hung(now - self.moved))
            self.clock.sleep(self.times.workers_look)
        if self.workers.broken:
            self._raise_alarm()
        self.workers.stop()
        self.workers.drain()
        self._listen()
        return self._end()

    def _listen(self) -> None:
        if self.workers.listen():
            self.moved = self.clock.now()
        first = self.workers.started[0]
        if self.gathering.first and first.measured is not None and not self.chosen:
            self.chosen = True
            measured = jobs.parse_measured(first.measured)
            chosen = self.run.choose(measured, first.output)
            self.gathering.put(jobs.THRESHOLDS, [one.gbps for one in chosen])

    def _raise_alarm(self) -> None:
        """Tell the others, who would otherwise wait for their time limit."""
        if self.broken_since is not None:
            return
        self.broken_since = self.clock.now()
        try:
            self.gathering.put("trouble", self.run.place.pods[self.run.place.rank])
        except AicrError as error:
            self.trouble = as_text(error)

    def _look_around(self) -> None:
        if self.trouble:
            return
        try:
            pod = self.gathering.get("trouble")
        except AicrError as error:
            self.trouble = as_text(error)
        else:
            self.trouble = f"stopped because of {pod}" if pod else ""
        if self.trouble:
            self.broken_since = self.clock.now()

    def _end(self) -> End:
        broken = self.workers.broken
        if not broken:
            first = self.workers.started[0]
            assert first.result is not None
            return End(jobs.parse_result(first.result))
        told = [one for one in broken if one.failed is not None]
        # Who was killed says nothing, and is then the reason for what the others say.
        killed = [one for one in broken if one.failed is None and not _by_us(one)]
        if killed:
            return End(
                failure=self._failure(killed[0], verdicts.KILLED, ended(killed[0].code or 0))
            )
        if told:
            own = [worker for worker in told if not worker.stopped]
            one = min(own or told, key=lambda worker: worker.steps)
            document = one.failed or {}
            kind = verdicts.HUNG if document["hung"] else verdicts.ERROR
            if self.trouble and one.stopped:
                kind = verdicts.STOPPED
            return End(failure=self._failure(one, kind, document["text"], document["stage"]))
        kind = verdicts.LOST if "store" in self.trouble else verdicts.STOPPED
        return End(failure=self._failure(broken[0], kind, self.trouble or "stopped"))

    def _failure(self, worker: Started, kind: str, text: str, stage: str = "") -> Failure:
        steps = min(one.steps for one in self.workers.started)
        what = next(one.what for one in self.workers.started if one.steps == steps)
        stage = stage or (jobs.INIT if what in {"start", "init"} else jobs.BENCHMARK)
        return failure_of(stage, kind, text, worker.output, steps, what)

    def _hung(self, seconds: float) -> Failure:
        slowest = min(self.workers.started, key=lambda worker: worker.steps)
        text = f"no answer within {seconds:.0f} s"
        return self._failure(slowest, verdicts.HUNG, text)


def _by_us(worker: Started) -> bool:
    """Whether it was we who ended it."""
    return worker.code in {-15, -9} and worker.stopped
