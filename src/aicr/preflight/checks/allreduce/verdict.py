"""From the reports of all nodes to events and one exit code. Pure; done once, on rank 0, for the gang.

| what happened | event | from | fatal |
|---|---|---|---|
| passed, or the threshold is skipped | healthy | rank 0 | |
| too slow, or wrong values, and nodes are isolated | a finding | each isolated node | yes |
| the same in a gang of one node | a finding | that node | yes |
| the same, and nobody is isolated | one notice that says what was found | rank 0 | no |
| a GPU of a node is lost or has memory errors | a finding | that node | yes |
| the benchmark did not start, hung or broke | one notice that names the nodes | rank 0 | no |
| one worker in all | one notice: nothing to test | rank 0 | no |

It must not know: how reports travel, and how events are sent.
Source: preflight specification 5.2 and 7.3, decisions 19, 20, 76 and 77, known bugs S21 and S22.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from aicr.errors import some_of
from aicr.fabric import causes
from aicr.fabric.thresholds import Threshold
from aicr.preflight.checks import exit_codes
from aicr.preflight.checks.allreduce import job as jobs
from aicr.preflight.checks.allreduce.job import Found, Result
from aicr.preflight.health.events import Event, finding, healthy, notice

CHECK_NAME: Final = "NCCLAllReduceTest"
DEGRADED: Final = "NCCL_ALLREDUCE_BW_DEGRADED"
WRONG: Final = "NCCL_ALLREDUCE_WRONG_RESULT"
BROKEN: Final = "NCCL_ALLREDUCE_TIMEOUT"
NOT_STARTED: Final = "NCCL_ALLREDUCE_INIT_FAILED"
NOT_TESTABLE: Final = "NCCL_NOT_TESTABLE"
ONE_WORKER: Final = "not testable on one GPU: an all-reduce needs two or more"
_ACTION: Final = "CONTACT_SUPPORT"

#: Kinds of failure. Of the last two a node is only a victim.
ERROR: Final = "error"
HUNG: Final = "hung"
KILLED: Final = "killed"
STOPPED: Final = "stopped"
LOST: Final = "lost"
#: Causes that can only be the GPU of the node that reports them.
_OWN: Final = frozenset({"uncorrectable-memory", "gpu-lost"})
#: As many nodes are named in a message.
_NAMED: Final = 8


@dataclass(frozen=True)
class Node:
    """A node of the gang."""

    pod: str
    name: str = ""

    def __str__(self) -> str:
        return f"{self.pod} on {self.name}" if self.name else self.pod


@dataclass(frozen=True)
class Failure:
    """Why a node has no result."""

    stage: str
    kind: str
    text: str
    #: Steps that its slowest worker had come to, and what the last one was.
    steps: int = 0
    what: str = ""
    #: Names of known causes, as `aicr.fabric.causes` has them, and one sentence about the next step.
    causes: tuple[str, ...] = ()
    hint: str = ""


@dataclass(frozen=True)
class End:
    """How the benchmark ended on a node: with a result, or a failure."""

    result: Result | None = None
    failure: Failure | None = None

    def document(self) -> dict[str, Any]:
        """As a plain document."""
        return {
            "result": jobs.result_document(self.result) if self.result else None,
            "failure": asdict(self.failure) if self.failure else None,
        }


def parse_end(document: dict[str, Any]) -> End:
    """An end from its document."""
    result, failure = document["result"], document["failure"]
    return End(
        jobs.parse_result(result) if result else None,
        Failure(**{**failure, "causes": tuple(failure["causes"])}) if failure else None,
    )


@dataclass(frozen=True)
class Verdict:
    """What the gang's benchmark came to."""

    exit_code: int
    verdict: str
    message: str
    #: Node rank → the event that it sends.
    events: dict[int, Event] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """As a plain document."""
        return {**asdict(self), "events": {str(n): asdict(e) for n, e in self.events.items()}}


def parse_verdict(document: dict[str, Any]) -> Verdict:
    """A verdict from its document."""
    events = {
        int(node): Event(**{**event, "error_codes": tuple(event["error_codes"]), "entities": ()})
        for node, event in document["events"].items()
    }
    return Verdict(**{**document, "events": events})


def failure_of(
    stage: str, kind: str, text: str, output: str, steps: int = 0, what: str = ""
) -> Failure:
    """A failure with what is known about its cause."""
    known = causes.find(f"{text}\n{output}")
    return Failure(
        stage,
        kind,
        text,
        steps,
        what,
        tuple(cause.name for cause in known),
        "; ".join(f"{cause.title}: {cause.hint}" for cause in known),
    )


def judge(
    nodes: Sequence[Node],
    ends: Sequence[End | None],
    thresholds: Sequence[Threshold],
    *,
    skip: bool = False,
    workers: int = 2,
    localize: bool = True,
) -> Verdict:
    """The verdict of a gang.

    Args:
        nodes: by rank.
        ends: of each node; None for one that did not report.
        thresholds: for each message size, as rank 0 chose them.
        skip: whether any bandwidth is enough.
        workers: of all nodes together.
        localize: whether the gang was to be localised.
    """
    first = ends[0] if ends else None
    if first is not None and first.result is not None:
        found = _measured(nodes, first.result, thresholds, skip, workers, localize)
        # All workers share a result; one that broke all the same makes it no pass.
        broke = any(
            end.failure is not None and end.failure.kind not in {STOPPED, LOST}
            for end in ends
            if end is not None
        )
        if found.exit_code or not broke:
            return found
    return _failed(nodes, ends)


def _measured(
    nodes: Sequence[Node],
    result: Result,
    thresholds: Sequence[Threshold],
    skip: bool,
    workers: int,
    localize: bool,
) -> Verdict:
    worst, gbps = jobs.worst(result.sizes, [one.gbps for one in thresholds])
    chosen = next(one for size, one in zip(result.sizes, thresholds, strict=True) if size is worst)
    least = min(one.busbw for one in result.sizes)
    details: dict[str, Any] = {
        "nodes": len(nodes),
        "workers": workers,
        "busbwGBps": least,
        "thresholdGBps": gbps,
        "threshold": chosen.chosen,
        "sizes": [asdict(one) for one in result.sizes],
    }
    if chosen.note:
        details["note"] = chosen.note
    if result.found.ran:
        details["localisation"] = localisation(nodes, result.found)
    if worst.wrong:
        text = (
            f"NCCL all-reduce gave {worst.wrong} wrong values for {worst.size} bytes: the data that "
            "arrived is not what was sent"
        )
        return _blamed(nodes, result.found, text, WRONG, details, localize)
    if workers == 1 and not skip:
        event = notice(CHECK_NAME, ONE_WORKER, NOT_TESTABLE)
        return Verdict(exit_codes.PASSED, exit_codes.NOT_TESTED, ONE_WORKER, {0: event}, details)
    if skip or worst.busbw >= gbps:
        shown = (
            f"NCCL all-reduce bus bandwidth {worst.busbw:.2f} GB/s meets threshold {gbps:.2f} GB/s"
        )
        return Verdict(
            exit_codes.PASSED, exit_codes.PASS, shown, {0: healthy(CHECK_NAME, shown)}, details
        )
    text = (
        f"NCCL all-reduce bus bandwidth {worst.busbw:.2f} GB/s is below threshold {gbps:.2f} GB/s"
    )
    return _blamed(nodes, result.found, text, DEGRADED, details, localize)


def _blamed(
    nodes: Sequence[Node],
    found: Found,
    text: str,
    code: str,
    details: dict[str, Any],
    localize: bool,
) -> Verdict:
    """Findings for isolated nodes, or one notice for the gang (decision 20)."""
    isolated = found.nodes or ((0,) if len(nodes) == 1 else ())
    if isolated:
        names = _list(nodes, isolated)
        message = f"{text}; isolated: {names}"
        if found.ran:
            message = f"{message} ({found.reason})"
        events = {
            node: finding(
                CHECK_NAME,
                f"{text}; this node is the cause ({nodes[node]}"
                + (f": {found.reason})" if found.ran else ": the gang has no other)"),
                _ACTION,
                code,
            )
            for node in isolated
        }
        return Verdict(exit_codes.FAILED, exit_codes.FAIL, message, events, details)
    if not localize:
        why = "localisation is off, so no node is blamed"
    elif found.ran:
        why = f"no node was isolated: {localisation(nodes, found)}"
    else:
        why = "no node was isolated"
    message = f"{text}; {why}"
    return Verdict(
        exit_codes.FAILED,
        exit_codes.FAIL,
        message,
        {0: notice(CHECK_NAME, message, code)},
        details,
    )


def localisation(nodes: Sequence[Node], found: Found) -> str:
    """What localisation came to, in words, with the names of the nodes."""
    parts = [f"{found.reason} (after {found.rounds} rounds)"]
    if found.nodes:
        parts.append(f"isolated: {_list(nodes, found.nodes)}")
    if found.links:
        links = [f"{nodes[a]} and {nodes[b]}" for a, b in found.links]
        parts.append(f"slow together: {some_of(links, _NAMED)}")
    if found.suspects:
        parts.append(f"suspected: {_list(nodes, found.suspects)}")
    return "; ".join(parts)


def _failed(nodes: Sequence[Node], ends: Sequence[End | None]) -> Verdict:
    failures = {
        node: end.failure for node, end in enumerate(ends) if end is not None and end.failure
    }
    silent = [node for node, end in enumerate(ends) if end is None]
    # Who was stopped because of another is only a victim; unless there is nobody else to name.
    primary = {n: one for n, one in failures.items() if one.kind not in {STOPPED, LOST}}
    # Peers of a killed worker see only that it is gone.
    killed = {n: one for n, one in primary.items() if one.kind == KILLED or _is_own(one)}
    primary = killed or primary or failures
    stage = jobs.INIT if any(one.stage == jobs.INIT for one in primary.values()) else jobs.BENCHMARK
    if any(one.stage == jobs.CONFIG for one in primary.values()):
        text = _told(nodes, primary, silent)
        return Verdict(exit_codes.MISCONFIGURED, exit_codes.NOT_TESTED, text)
    code = NOT_STARTED if stage == jobs.INIT else BROKEN
    head = "Failed to initialize NCCL" if stage == jobs.INIT else "NCCL all-reduce benchmark failed"
    message = f"{head}: {_told(nodes, primary, silent)}"
    own = {node: one for node, one in primary.items() if _is_own(one)}
    events = {
        node: finding(CHECK_NAME, f"{head}: {one.text} ({one.hint})", _ACTION, code)
        for node, one in own.items()
    }
    if events:
        return Verdict(exit_codes.FAILED, exit_codes.FAIL, message, events)
    hints = dict.fromkeys(one.hint for one in primary.values() if one.hint)
    details = {"causes": "; ".join(hints)} if hints else {}
    shown = f"{message} ({'; '.join(hints)})" if hints else message
    return Verdict(
        exit_codes.FAILED,
        exit_codes.NOT_TESTED,
        message,
        {0: notice(CHECK_NAME, shown, code)},
        details,
    )


def _is_own(failure: Failure) -> bool:
    """Whether it can only be the hardware of the node that reports it."""
    return bool(_OWN.intersection(failure.causes))


def _told(nodes: Sequence[Node], failures: dict[int, Failure], silent: list[int]) -> str:
    """The failures, each text once with the nodes that have it, and who lags behind or is silent."""
    by_text: dict[str, list[int]] = {}
    for node, one in failures.items():
        by_text.setdefault(one.text, []).append(node)
    parts = [f"{text} ({_list(nodes, who)})" for text, who in by_text.items()]
    furthest = max((one.steps for one in failures.values()), default=0)
    behind = [node for node, one in failures.items() if one.steps < furthest]
    if behind and len(behind) < len(failures):
        parts.append(f"behind the others: {_list(nodes, behind)}, at {failures[behind[0]].what}")
    if silent:
        parts.append(f"no report from {_list(nodes, silent)}")
    return "; ".join(parts) or "no node reported"


def _list(nodes: Sequence[Node], which: Sequence[int]) -> str:
    if len(which) == len(nodes) > 1:
        return "all nodes"
    return some_of([str(nodes[node]) for node in which], _NAMED)
