"""preflight-nccl-loopback: one all-reduce over the GPUs of this container, with nccl-tests.

The benchmark is a process behind a port; what it prints is read by `fabric.nccl_output` and judged by
`fabric.thresholds`. Fatal is a bandwidth below the threshold, wrong results, and a benchmark that fails or
hangs without a known reason. What fails for a reason in the surroundings, or prints what cannot be read,
was not tested: that is told, holds the pod, and blames no node (decision 19). One GPU has no peer, so
there is nothing to test and the pod starts (decision 76).

``python -m aicr.preflight.checks.loopback`` is the program.
Source: preflight specification 7.1, preflight known bugs S27 and S28, decisions 19 and 76.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping
from typing import Any, Final, TextIO

from aicr.errors import INTERNAL, TIMEOUT, AicrError
from aicr.fabric import causes, nccl_output, thresholds
from aicr.fabric.nccl_output import Output, Row
from aicr.preflight import names
from aicr.preflight.checks import environment, environment_process, exit_codes, loopback_settings
from aicr.preflight.checks.ending import guarded
from aicr.preflight.checks.environment import Report, as_text, fields
from aicr.preflight.checks.environment_gpus import product_names
from aicr.preflight.checks.environment_process import Completed, Process
from aicr.preflight.checks.exit_codes import Outcome
from aicr.preflight.checks.loopback_settings import Settings
from aicr.preflight.health.events import Event, finding, healthy, notice

#: Name in logs (preflight specification 10).
MODULE: Final = "nccl-loopback"
COMPONENT_CLASS: Final = "Node"
CHECK_NAME: Final = "NCCLLoopbackTest"
TEST_ERROR: Final = "NCCL_TEST_ERROR"
DEGRADED: Final = "NCCL_BW_DEGRADED"
NOT_TESTABLE: Final = "NCCL_NOT_TESTABLE"
ONE_GPU: Final = "not testable on one GPU: an all-reduce needs two or more"
_ACTION: Final = "CONTACT_SUPPORT"


def judge(
    settings: Settings, process: Process, environ: Mapping[str, str], log: logging.Logger
) -> Outcome:
    """Run the benchmark and judge it; sends nothing.

    Args:
        settings: how.
        process: runs the benchmark.
        environ: variables that it gets.
        log: where the run tells what it does.
    """
    ranks = len(settings.products)
    details: dict[str, Any] = {"gpus": ranks, "sizeBytes": settings.size}
    if ranks == 1 and not settings.skip:
        event = notice(CHECK_NAME, ONE_GPU, NOT_TESTABLE)
        return _outcome(exit_codes.PASSED, exit_codes.NOT_TESTED, event, details)
    log.info("Running all_reduce_perf", extra=fields(gpus=ranks, size_mb=settings.size_mb))
    try:
        output = _measure(settings, process, environ)
        row = output.row(settings.size)
    except AicrError as error:
        return _failed(error, details, log)
    found = output.wrong
    if found:
        event = _error(
            f"{found} wrong values: the data that arrived is not what was sent", fatal=True
        )
        return _outcome(exit_codes.FAILED, exit_codes.FAIL, event, {**details, "wrong": found})
    return _judge_bandwidth(settings, row, details, log)


def _measure(settings: Settings, process: Process, environ: Mapping[str, str]) -> Output:
    size = f"{settings.size_mb}M"
    argv = [settings.binary, "-b", size, "-e", size, "-g", str(len(settings.products))]
    # Without its warnings NCCL says only that something failed.
    child = {"NCCL_DEBUG": "WARN", **environ}
    try:
        done = process(argv, timeout=settings.limit, environ=child)
    except AicrError as error:
        if error.code != TIMEOUT:
            raise
        printed = f"{error.context.get('stdout', '')}\n{error.context.get('stderr', '')}"
        raise AicrError(
            TIMEOUT,
            f"all_reduce_perf timed out after {in_go(settings.limit)}",
            context={"printed": printed, "fatal": True},
        ) from error
    output = nccl_output.parse(done.stdout)
    if done.returncode and not output.wrong:
        raise _exit_error(done)
    if not output.ranks:
        raise AicrError(
            "INTERNAL", "could not determine number of GPUs from output", context=_tail(done)
        )
    return output


def _judge_bandwidth(
    settings: Settings, row: Row, details: dict[str, Any], log: logging.Logger
) -> Outcome:
    gpu = thresholds.gpu_name(settings.products[0])
    threshold = thresholds.choose(
        settings.threshold, settings.by_fabric, settings.fabric, gpu, settings.size
    )
    record = thresholds.percent(
        row.busbw, thresholds.expected(thresholds.LOOPBACK, settings.fabric, gpu)
    )
    details = {
        **details,
        "busbwGBps": row.busbw,
        "algbwGBps": row.algbw,
        "thresholdGBps": threshold.gbps,
        "threshold": threshold.chosen,
    }
    for name, text in (("note", threshold.note), ("onRecord", record)):
        if text:
            details[name] = text
    log.info("Bandwidth measured", extra=fields(**details))
    if settings.skip:
        event = healthy(
            CHECK_NAME,
            f"NCCL all-reduce completed successfully with bus bandwidth {row.busbw:.2f} GB/s "
            "(threshold check skipped)",
        )
    elif threshold.is_met(row.busbw):
        event = healthy(
            CHECK_NAME,
            f"NCCL all-reduce bus bandwidth {row.busbw:.2f} GB/s meets threshold "
            f"{threshold.gbps:.2f} GB/s",
        )
    else:
        event = finding(
            CHECK_NAME,
            f"NCCL all-reduce bus bandwidth {row.busbw:.2f} GB/s is below threshold "
            f"{threshold.gbps:.2f} GB/s",
            _ACTION,
            DEGRADED,
        )
        log.warning(
            "Check that the threshold fits the interconnect before acting on the node",
            extra=fields(nvlink=150, pcie=15),
        )
        return _outcome(exit_codes.FAILED, exit_codes.FAIL, event, details)
    return _outcome(exit_codes.PASSED, exit_codes.PASS, event, details)


def _failed(error: AicrError, details: dict[str, Any], log: logging.Logger) -> Outcome:
    """The benchmark did not run, or what it printed cannot be read."""
    printed = str(error.context.get("printed", ""))
    known = causes.find(printed)
    surroundings = causes.could_not_test(printed)
    fatal = bool(error.context.get("fatal")) and not surroundings
    text = error.message if error.context.get("printed") is not None else as_text(error)
    if known:
        text = f"{text} ({'; '.join(cause.title for cause in known)})"
        details = {**details, "causes": [cause.name for cause in known]}
        for cause in known:
            log.error(cause.title, extra=fields(next=cause.hint))
    if tail := nccl_output.tail(printed or str(error.context.get("tail", ""))):
        log.error("Last lines of the benchmark", extra=fields(output=tail))
    word = exit_codes.FAIL if fatal else exit_codes.NOT_TESTED
    return _outcome(exit_codes.FAILED, word, _error(text, fatal=fatal), details)


def _exit_error(done: Completed) -> AicrError:
    return AicrError(
        INTERNAL,
        f"all_reduce_perf failed: {done.failure()}: {nccl_output.tail(done.text)}",
        context={"printed": done.text, "fatal": True},
    )


def _error(text: str, *, fatal: bool) -> Event:
    message = f"NCCL loopback test failed: {text}"
    if fatal:
        return finding(CHECK_NAME, message, _ACTION, TEST_ERROR)
    return notice(CHECK_NAME, message, TEST_ERROR)


def _outcome(code: int, word: str, event: Event, details: Mapping[str, Any]) -> Outcome:
    return Outcome(exit_codes.NCCL_LOOPBACK, code, word, event.message, (event,), details=details)


def _tail(done: Completed) -> dict[str, Any]:
    return {"tail": nccl_output.tail(done.text)}


def in_go(seconds: float) -> str:
    """A duration as Go prints it, which the message of a timeout quotes: 300 → `5m0s`."""
    minutes, rest = divmod(seconds, 60)
    return f"{minutes:.0f}m{rest:g}s" if minutes else f"{rest:g}s"


def main(
    environ: Mapping[str, str],
    stream: TextIO,
    *,
    process: Process = environment_process.run,
    report: Report | None = None,
) -> int:
    """Run the check as the program does, and return its exit code.

    Args:
        environ: the variables.
        stream: where the log goes.
        process, report: what tests replace.
    """
    log = environment.plain_log(MODULE, stream)
    return guarded(
        lambda: _run(environ, stream, process, report),
        log,
        interrupted="the benchmark was ended",
        strategy=environ.get(names.STRATEGY, ""),
    )


def _run(
    environ: Mapping[str, str], stream: TextIO, process: Process, report: Report | None
) -> int:
    log = environment.plain_log(MODULE, stream)
    try:
        log = environment.log_for(MODULE, environ, stream)
        settings, reporting = loopback_settings.read(
            environ, lambda: product_names(process, environ)
        )
    except AicrError as error:
        log.error(
            "Configuration error",
            extra=fields(error=as_text(error), next=error.hint or "see the settings of the check"),
        )
        return exit_codes.MISCONFIGURED
    assert reporting is not None
    for note in settings.notes:
        log.warning(note)
    outcome = judge(settings, process, environ, log)
    code = outcome.exit_code
    tell = log.info if code == exit_codes.PASSED else log.error
    tell(outcome.message, extra=fields(verdict=outcome.verdict))
    send = report or (
        reporting.client(exit_codes.NCCL_LOOPBACK, COMPONENT_CLASS, environ, log.warning).send
    )
    try:
        for event in outcome.events:
            send(event)
    except AicrError as error:
        log.error(
            error.message,
            extra=fields(error=as_text(error), events=[one.document() for one in outcome.events]),
        )
        code = exit_codes.LOOPBACK_NOT_SENT
    return exit_codes.gate(code, reporting.strategy, log.warning)


if __name__ == "__main__":
    sys.exit(main(os.environ, sys.stderr))
