"""The program `preflight-nccl-allreduce`: ``python -m aicr.preflight.checks.allreduce``.

The gang stage waits for the mounted gang and ends with 2 or 3 on its own, which STORE_ONLY never masks;
then comes the benchmark, whose codes 1 and 4 it does mask. A signal ends the workers; no event is sent.
Source: preflight specification 7.2 to 7.4.
"""

from __future__ import annotations

import logging
import os
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TextIO

from aicr.errors import AicrError, invalid
from aicr.preflight import names
from aicr.preflight.checks import environment, environment_process, exit_codes
from aicr.preflight.checks.allreduce import gang, verdict
from aicr.preflight.checks.allreduce import settings as allreduce_settings
from aicr.preflight.checks.allreduce.board import Meeting, meet
from aicr.preflight.checks.allreduce.clock import Clock
from aicr.preflight.checks.allreduce.gang import Place, Refusal
from aicr.preflight.checks.allreduce.run import Run
from aicr.preflight.checks.allreduce.settings import Benchmark, GangSettings
from aicr.preflight.checks.ending import guarded
from aicr.preflight.checks.environment import Report, Reporting, as_text, fields
from aicr.preflight.checks.environment_gpus import product_names
from aicr.preflight.checks.environment_process import Process
from aicr.preflight.checks.exit_codes import Outcome
from aicr.preflight.checks.times import CheckTimes
from aicr.preflight.health.events import notice

#: Name in logs (preflight specification 10).
MODULE: Final = "nccl-allreduce"
COMPONENT_CLASS: Final = "Node"
WORKER: Final = (sys.executable, "-u", "-m", "aicr.preflight.checks.allreduce.worker")


@dataclass(frozen=True)
class World:
    """What the program meets outside, and tests replace."""

    process: Process = environment_process.run
    meeting: Meeting = meet
    worker: Sequence[str] = WORKER
    clock: Clock = field(default_factory=Clock)
    #: Delivers events instead of the connector.
    report: Report | None = None


def main(environ: Mapping[str, str], stream: TextIO, world: World = World()) -> int:
    """Run the check as the program does, and return its exit code.

    Args:
        environ: the variables.
        stream: where the log and the output of the workers go.
        world: what tests replace.
    """
    log = environment.plain_log(MODULE, stream)
    return guarded(
        lambda: _run(environ, stream, world),
        log,
        interrupted="the workers were ended",
        strategy=environ.get(names.STRATEGY, ""),
    )


def _run(environ: Mapping[str, str], stream: TextIO, world: World) -> int:
    log = environment.plain_log(MODULE, stream)
    try:
        log = environment.log_for(MODULE, environ, stream)
        settings = allreduce_settings.read_gang(environ)
        benchmark = allreduce_settings.read_benchmark(
            environ, lambda: product_names(world.process, environ)
        )
        for note in benchmark.notes:
            log.warning(note)
        found = gang.wait(
            settings,
            lambda: gang.read(Path(settings.directory)),
            world.clock,
            log.info,
        )
        if isinstance(found, Refusal):
            return _refused(found, settings, environ, log, world.report)
        log.info(
            "Gang is complete",
            extra=fields(
                gang=found.gang_id, generation=found.generation, rank=found.rank, nodes=found.nodes
            ),
        )
        if settings.timeout < 1:
            raise invalid(f"{names.GANG_TIMEOUT} must be at least 1, got {settings.timeout}")
        reporting = environment.reporting(environ)
    except AicrError as error:
        log.error(
            "Configuration error",
            extra=fields(error=as_text(error), next=error.hint or "see the settings of the check"),
        )
        return exit_codes.MISCONFIGURED
    outcome = run_for(
        found, benchmark, settings, reporting, environ, log, world, _writer(stream)
    ).go()
    tell = log.info if outcome.exit_code == exit_codes.PASSED else log.error
    tell(
        f"Check {outcome.verdict}",
        extra=fields(reason=outcome.message, unsent=len(outcome.unsent), **outcome.details),
    )
    if outcome.exit_code == exit_codes.MISCONFIGURED:
        return outcome.exit_code
    return exit_codes.gate(outcome.exit_code, reporting.strategy, log.warning)


def run_for(
    place: Place,
    benchmark: Benchmark,
    settings: GangSettings,
    reporting: Reporting | None,
    environ: Mapping[str, str],
    log: logging.Logger,
    world: World,
    write: Callable[[str], None],
) -> Run:
    """The run of a gang that has formed; without *reporting* no event is sent."""
    report = world.report
    if report is None:
        report = _sender(reporting, environ, log)
    return Run(
        place,
        benchmark,
        reporting.node if reporting else environ.get(names.NODE_NAME, ""),
        world.worker,
        world.meeting,
        report,
        log,
        environ,
        settings.timeout * settings.factor,
        CheckTimes().scaled(settings.factor),
        world.clock,
        write,
    )


def by_hand(
    benchmark: Benchmark,
    settings: GangSettings,
    reporting: Reporting | None,
    environ: Mapping[str, str],
    log: logging.Logger,
    world: World,
    write: Callable[[str], None],
    *,
    alone: bool,
) -> Outcome:
    """Run the check for a person: as a gang of this machine *alone*, or as a member of a gang.

    Raises:
        AicrError: what is missing for it.
    """
    if alone:
        place = Place("by-hand", 1, 0, (settings.pod,), "127.0.0.1", _free_port())
    else:
        if not os.path.isdir(settings.directory):
            raise invalid(
                "the folder of the gang's ConfigMap is not there",
                where=settings.directory,
                hint="name one that holds expected_count, peers and master_addr",
            )
        found = gang.wait(
            settings, lambda: gang.read(Path(settings.directory)), world.clock, log.info
        )
        if isinstance(found, Refusal):
            event = notice(verdict.CHECK_NAME, found.message, found.code)
            return Outcome(
                exit_codes.NCCL_ALLREDUCE,
                found.exit_code,
                exit_codes.NOT_TESTED,
                found.message,
                (event,),
            )
        place = found
    return run_for(place, benchmark, settings, reporting, environ, log, world, write).go()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _refused(
    found: Refusal,
    settings: GangSettings,
    environ: Mapping[str, str],
    log: logging.Logger,
    report: Report | None,
) -> int:
    """The gang stage ends: its event is told and never changes the code (preflight specification 7.2)."""
    log.error(found.message, extra=fields(code=found.code))
    event = notice(verdict.CHECK_NAME, found.message, found.code)
    if report is None and settings.reporting is None:
        log.warning(
            "No event is sent: PLATFORM_CONNECTOR_SOCKET or NODE_NAME is not set",
            extra=fields(event=event.document()),
        )
        return found.exit_code
    try:
        (report or _sender(settings.reporting, environ, log))(event)
    except AicrError as error:
        log.error(error.message, extra=fields(error=as_text(error), event=event.document()))
    return found.exit_code


def _sender(reporting: Reporting | None, environ: Mapping[str, str], log: logging.Logger) -> Report:
    if reporting is None:
        return lambda event: None
    return reporting.client(exit_codes.NCCL_ALLREDUCE, COMPONENT_CLASS, environ, log.warning).send


def _writer(stream: TextIO) -> Callable[[str], None]:
    def write(line: str) -> None:
        stream.write(f"{line}\n")

    return write


if __name__ == "__main__":
    sys.exit(main(os.environ, sys.stderr))
