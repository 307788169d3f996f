"""``aicr preflight run``: run a check here, as its container would, and show what it found."""

from __future__ import annotations

import os

from aicr.cli.arguments import Parser, Switch
from aicr.cli.formats import check_format, render
from aicr.cli.sources import write_output
from aicr.errors import AicrError, invalid, nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    import logging
    from typing import Any, Final

    from aicr.cli.console import Console
    from aicr.preflight.checks.environment import Report, Reporting
    from aicr.preflight.checks.exit_codes import Outcome

FORMATS: Final = ("text", "json", "yaml")
CHECKS: Final = ("dcgm-diag", "nccl-loopback", "nccl-allreduce")
#: Flag -> variable of the check that it stands for.
_VARIABLES: Final = {
    "dcgm-diag": {
        "hostengine": "DCGM_HOSTENGINE_ADDR",
        "level": "DCGM_DIAG_LEVEL",
        "attempts": "DCGM_DIAG_STATUS_RETRY_MAX_ATTEMPTS",
        "interval": "DCGM_DIAG_STATUS_RETRY_INTERVAL_SECONDS",
    },
    "nccl-loopback": {
        "threshold": "BW_THRESHOLD_GBPS",
        "size_mb": "TEST_SIZE_MB",
        "binary": "NCCL_TEST_BINARY_PATH",
        "skip_bandwidth_check": "SKIP_BANDWIDTH_CHECK",
    },
    "nccl-allreduce": {
        "threshold": "BW_THRESHOLD_GBPS",
        "skip_bandwidth_check": "SKIP_BANDWIDTH_CHECK",
        "sizes": "MESSAGE_SIZES",
        "iterations": "BENCHMARK_ITERS",
        "processes": "NPROCS_PER_NODE",
        "backend": "ALLREDUCE_BACKEND",
        "gang_dir": "GANG_CONFIG_DIR",
        "gang_timeout": "GANG_TIMEOUT_SECONDS",
        "pod": "POD_NAME",
    },
}
_COMMON: Final = {
    "socket": "PLATFORM_CONNECTOR_SOCKET",
    "node": "NODE_NAME",
    "strategy": "PROCESSING_STRATEGY",
    "token_file": "PLATFORM_CONNECTOR_TOKEN_PATH",
}
#: Exit status of a run that found something, and of one that could not test (decision 46).
FOUND: Final = 8
NOT_TESTED: Final = 6
_EXAMPLES = """\
examples:
  aicr preflight run dcgm-diag --hostengine localhost:5555 --level 1
  aicr preflight run nccl-loopback --threshold 15
  aicr preflight run nccl-allreduce --sizes 1G
  aicr preflight run nccl-allreduce --gang-dir ./gang --pod w-1 \\
      --gang-timeout 60
  aicr preflight run nccl-loopback --socket /tmp/connector.sock --node node-1 \\
      --format json

nccl-allreduce runs over the GPUs of this machine, or, with --gang-dir and
--pod, as that member of the gang whose ConfigMap is in the folder: start it on
each machine. It needs torch.

The variables of the check's container hold here as well; a flag goes before
its variable. Without --socket no event is sent, and what would be sent is
shown. With it, events are sent as well, and a node may be cordoned: try it
with `aicr preflight connector --print` first.

For this command exit status 0 means that nothing needs action, 8 that
something was found, and 6 that nothing could be tested or an event was not
sent. The code that the container would exit with is shown.
"""


def parser() -> Parser:
    """The parser of this command."""
    found = Parser(
        prog="aicr preflight run",
        usage="aicr preflight run {dcgm-diag,nccl-loopback,nccl-allreduce} [flags]",
        description="Run a preflight check on the GPUs of this machine.",
        epilog=_EXAMPLES,
    )
    found.add_argument("check", nargs="?", default=None, metavar="CHECK", help=" or ".join(CHECKS))
    found.once("--hostengine", metavar="ADDRESSES", help="dcgm-diag: comma list, tried in order")
    found.once(
        "--level", metavar="N", help="dcgm-diag: 1 short, 2 medium (default), 3 long, 4 xlong"
    )
    found.once("--attempts", metavar="N", help="dcgm-diag: attempts on a DCGM status (10)")
    found.once("--interval", metavar="SECONDS", help="dcgm-diag: pause between attempts (10)")
    found.once(
        "--threshold", metavar="GB/s", help="least bus bandwidth (loopback 150, all-reduce 100)"
    )
    found.once("--size-mb", metavar="N", help="nccl-loopback: message size in MiB (256)")
    found.once("--binary", metavar="FILE", help="nccl-loopback: all_reduce_perf of nccl-tests")
    found.add_argument(
        "--skip-bandwidth-check",
        action=Switch,
        const="true",
        help="nccl-…: pass whatever bandwidth was measured",
    )
    found.once("--sizes", metavar="LIST", help="nccl-allreduce: message sizes (4G,8G)")
    found.once("--iterations", metavar="N", help="nccl-allreduce: timed iterations a size (20)")
    found.once("--processes", metavar="N", help="nccl-allreduce: workers here (one a GPU)")
    found.once(
        "--backend", metavar="NAME", help="nccl-allreduce: nccl (default), or gloo without GPUs"
    )
    found.once("--gang-dir", metavar="DIR", help="nccl-allreduce: files of the gang's ConfigMap")
    found.once("--gang-timeout", metavar="SECONDS", help="nccl-allreduce: wait for the gang (600)")
    found.once("--pod", metavar="NAME", help="nccl-allreduce: which member of the gang this is")
    found.once("--socket", metavar="PATH", help="send events to the platform connector there")
    found.once("--node", metavar="NAME", help="name of the node in events (this host's)")
    found.once("--strategy", metavar="NAME", help="EXECUTE_REMEDIATION (default), STORE_ONLY, …")
    found.once("--token-file", metavar="FILE", help="bearer token for the connector")
    found.once("--format", "-t", metavar="FORMAT", help="text (default), json or yaml")
    found.once("--output", "-o", metavar="FILE", help="write here instead of to stdout")
    return found


def execute(arguments: argparse.Namespace, console: Console) -> int:
    """Run the check and print its outcome."""
    chosen = check_format(arguments.format, FORMATS)
    check = _check(arguments.check)
    environ = _environment(check, arguments)
    run = {"dcgm-diag": _dcgm, "nccl-loopback": _loopback, "nccl-allreduce": _allreduce}[check]
    if check == "nccl-allreduce" and not arguments.gang_dir:
        # A variable alone does not make this machine a member of a gang.
        environ.pop("GANG_CONFIG_DIR", None)
    try:
        outcome = run(environ, console, sends=bool(environ.get("PLATFORM_CONNECTOR_SOCKET")))
    except ModuleNotFoundError as error:
        raise invalid(
            f"this check needs the extra health: {error.name} is not installed",
            where="aicr preflight run",
            hint="pip install 'aicr[health]'",
        ) from error
    document = outcome.document()
    text = draw(document) if chosen == "text" else render(document, chosen)
    write_output(text, arguments.output or "", console)
    console.flush()
    return status_of(outcome)


def status_of(outcome: Outcome) -> int:
    """The exit status of this command for an outcome (decision 46)."""
    from aicr.preflight.checks import exit_codes

    if outcome.verdict == exit_codes.FAIL:
        return FOUND
    return NOT_TESTED if outcome.verdict == exit_codes.NOT_TESTED or outcome.unsent else 0


def draw(document: dict[str, Any]) -> str:
    """The outcome for people."""
    from aicr.preflight.checks.exit_codes import MEANING
    from aicr.preflight.health.events import as_lines

    code = document["exitCode"]
    lines = [
        f"{document['check']}: {document['verdict']}: {document['message']}",
        f"the container would exit with {code}: {MEANING[document['check']][code]}",
    ]
    lines += [f"{name}: {value}" for name, value in document["details"].items()]
    for event in document["events"]:
        lines += ["", *as_lines(event)]
    lines += [f"not sent: {text}" for text in document["unsent"]]
    return "".join(f"{line}\n" for line in lines)


def _check(given: str | None) -> str:
    if given is None:
        raise invalid(
            "name a check", where="aicr preflight run", hint=f"one of {', '.join(CHECKS)}"
        )
    name = given.removeprefix("preflight-")
    if name not in CHECKS:
        near = nearest(name, list(CHECKS))
        raise invalid(
            f"unknown check {given!r}",
            where="aicr preflight run",
            hint=f"did you mean {near}?" if near else f"one of {', '.join(CHECKS)}",
        )
    return name


def _environment(check: str, arguments: argparse.Namespace) -> dict[str, str]:
    """The environment of the check: ours, and the flags over it."""
    environ = dict(os.environ)
    ours = _VARIABLES[check]
    for other, names in _VARIABLES.items():
        for flag in names:
            if getattr(arguments, flag) is not None and flag not in ours:
                raise invalid(
                    f"flag --{flag.replace('_', '-')} is for {other}",
                    where=f"--{flag.replace('_', '-')}",
                    hint=f"leave it out for {check}",
                )
    for flag, variable in ours.items():
        value = getattr(arguments, flag)
        if value is not None:
            environ[variable] = value
    for flag, variable in _COMMON.items():
        value = getattr(arguments, flag)
        if value is not None:
            environ[variable] = value
    if arguments.strategy is not None:
        from aicr.preflight.health.events import check_strategy

        # Checks look at it when they come to report, which not every run does.
        check_strategy(arguments.strategy)
    environ.setdefault("NODE_NAME", os.uname().nodename)
    return environ


def _dcgm(environ: dict[str, str], console: Console, *, sends: bool) -> Outcome:
    from aicr.preflight.checks import environment_process, exit_codes
    from aicr.preflight.checks.dcgm import settings as dcgm_settings
    from aicr.preflight.checks.dcgm.bindings import Bindings
    from aicr.preflight.checks.dcgm.run import Run
    from aicr.preflight.checks.environment_gpus import list_gpus

    environ.setdefault(dcgm_settings.ADDRESSES, dcgm_settings.DEFAULT_ADDRESSES)
    settings, reporting = dcgm_settings.read(environ, sends=sends)
    log = _progress(console)
    report = _report(reporting, exit_codes.DCGM_DIAG, "GPU", environ, log)
    gpus = environment_process.run
    return _guarded(
        lambda: Run(settings, Bindings(environ), lambda: list_gpus(gpus, environ), report, log).go()
    )


def _loopback(environ: dict[str, str], console: Console, *, sends: bool) -> Outcome:
    from dataclasses import replace

    from aicr.preflight.checks import (
        environment_process,
        exit_codes,
        loopback,
        loopback_settings,
    )
    from aicr.preflight.checks.environment import as_text
    from aicr.preflight.checks.environment_gpus import product_names

    process = environment_process.run
    settings, reporting = loopback_settings.read(
        environ, lambda: product_names(process, environ), sends=sends
    )
    log = _progress(console)
    for note in settings.notes:
        log.warning(note)
    outcome = _guarded(lambda: loopback.judge(settings, process, environ, log))
    report = _report(reporting, exit_codes.NCCL_LOOPBACK, loopback.COMPONENT_CLASS, environ, log)
    try:
        for event in outcome.events:
            report(event)
    except AicrError as error:
        return replace(outcome, exit_code=exit_codes.LOOPBACK_NOT_SENT, unsent=(as_text(error),))
    return outcome


def _allreduce(environ: dict[str, str], console: Console, *, sends: bool) -> Outcome:
    import sys

    from aicr.preflight.checks import environment, environment_process
    from aicr.preflight.checks.allreduce import settings as allreduce_settings
    from aicr.preflight.checks.allreduce.__main__ import World, by_hand
    from aicr.preflight.checks.environment_gpus import product_names

    environ.setdefault("POD_NAME", environ["NODE_NAME"])
    process = environment_process.run
    settings = allreduce_settings.read_gang(environ)
    benchmark = allreduce_settings.read_benchmark(environ, lambda: product_names(process, environ))
    reporting = environment.reporting(environ) if sends else None
    log = _progress(console)
    for note in benchmark.notes:
        log.warning(note)
    return _guarded(
        lambda: by_hand(
            benchmark,
            settings,
            reporting,
            environ,
            log,
            World(),
            lambda line: print(line, file=sys.stderr),
            alone="GANG_CONFIG_DIR" not in environ,
        )
    )


def _report(
    reporting: Reporting | None,
    agent: str,
    component_class: str,
    environ: dict[str, str],
    log: logging.Logger,
) -> Report:
    if reporting is None:
        return lambda event: None
    return reporting.client(agent, component_class, environ, log.warning).send


def _guarded(run: Any) -> Outcome:
    """Run with signals turned into an end that stops the test first; KeyboardInterrupt afterwards."""
    from aicr.preflight.checks.environment import Interrupted, interruptible

    try:
        with interruptible():
            outcome: Outcome = run()
            return outcome
    except Interrupted as interrupted:
        import signal

        if interrupted.signal == signal.SIGINT:
            raise KeyboardInterrupt from interrupted
        raise SystemExit(128 + interrupted.signal) from interrupted


def _progress(console: Console) -> logging.Logger:
    """A log that speaks to the person at the terminal."""
    import logging

    class Speaker(logging.Handler):
        """Writes lines for people."""

        def emit(self, record: logging.LogRecord) -> None:
            """Write one."""
            found = getattr(record, "fields", {})
            details = ", ".join(f"{key} {value}" for key, value in found.items())
            text = f"{record.getMessage()}{': ' if details else ''}{details}"
            (console.warn if record.levelno >= logging.WARNING else console.say)(text)

    log = logging.Logger("preflight", logging.INFO)
    log.addHandler(Speaker())
    return log
