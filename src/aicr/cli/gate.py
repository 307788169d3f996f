"""``aicr gate``: wait until readiness tests have passed for a while; the readiness Job of a bundle runs it.

In a pod it logs JSON lines and leaves its last words in the termination message (decision 45); elsewhere
it talks to a person. Source: validators spec 8.9; decisions 46 and 68.
"""

from __future__ import annotations

import os

from aicr.cli.arguments import Parser
from aicr.errors import invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping
    from typing import Any, Final

    from aicr.assertions.gate import Settings
    from aicr.assertions.gate_loop import Evaluation
    from aicr.assertions.timing import Timing
    from aicr.cli.console import Console

#: Status of a gate that did not open (decision 46).
FOUND: Final = 8
#: Set in every pod.
_IN_POD: Final = "KUBERNETES_SERVICE_HOST"
_EXAMPLES = """\
examples:
  aicr gate --bundle /bundle --namespace gpu-operator
  aicr gate --bundle checks --max-wait 10m --stability-window 1m \\
      --kubeconfig demo.kubeconfig

Every *.yaml of the folder is the test of one component, named as the file. All
are evaluated, each for at most --timeout; after --poll-interval again. The
gate opens when all have passed for --stability-window, and gives up after
--max-wait. A component that fails and one whose state is Unknown hold it
alike.

For this command exit status 8 means that the gate did not open in time.
"""


def parser() -> Parser:
    """The parser of this command."""
    found = Parser(
        prog="aicr gate",
        description="Wait until readiness tests pass, and have passed for a while.",
        epilog=_EXAMPLES,
    )
    found.once("--bundle", metavar="DIR", help="folder with a test for each component")
    found.once(
        "--namespace", "-n", metavar="NAME", help="where to look for what names no namespace"
    )
    found.once("--timeout", metavar="DURATION", help="time for one evaluation (2m)")
    found.once("--poll-interval", metavar="DURATION", help="time between two evaluations (10s)")
    found.once("--stability-window", metavar="DURATION", help="how long all must pass (30s)")
    found.once("--max-wait", metavar="DURATION", help="when to give up; 0 is never (1h30m)")
    found.once(
        "--absent-grace",
        metavar="DURATION",
        help="how long one evaluation waits for an object or kind that is not there (30s)",
    )
    found.once("--kubeconfig", metavar="FILE", help="the cluster (default: that of the pod)")
    found.once("--context", metavar="NAME", help="context of the kubeconfig")
    return found


def execute(arguments: argparse.Namespace, console: Console) -> int:
    """Read the tests, wait for them, and say how it ended; 0 open, 8 not in time."""
    import asyncio

    from aicr import kube
    from aicr.assertions import gate_loop

    if not arguments.bundle:
        raise invalid(
            "flag --bundle is required", where="--bundle", hint="name the folder with the tests"
        )
    settings, timing = times(arguments, os.environ)
    checks = gate_loop.read_bundle(arguments.bundle)
    client = kube.connect(kubeconfig=arguments.kubeconfig or "", context=arguments.context or "")
    namespace = arguments.namespace or ""
    say = speaker(console, os.environ)
    say(f"waits with {client.config.describe()}", {})
    names = [check.component for check in checks]
    say(f"{len(checks)} component(s): {', '.join(names)}", {"components": names})
    _collect_garbage()

    async def watched() -> Evaluation:
        async with client:
            return await gate_loop.watch(
                client,
                checks,
                settings,
                timing=timing,
                namespace=namespace,
                told=lambda evaluation: say(line(evaluation), fields(evaluation)),
            )

    last = asyncio.run(watched())
    failed = gate_loop.failure(last)
    leave_word(last.step.message if failed is None else str(failed), os.environ)
    console.write(f"{last.step.reason}: {last.step.message}\n")
    console.flush()
    if failed is None:
        return 0
    console.error(failed)
    return FOUND


def times(arguments: argparse.Namespace, environ: Mapping[str, str]) -> tuple[Settings, Timing]:
    """The waiting times of the gate and of one evaluation: flags, else the (scaled) defaults."""
    from dataclasses import replace

    from aicr.assertions import gate
    from aicr.checks.sdk.timeouts import Timeouts
    from aicr.cli.check_health import seconds

    every = Timeouts.from_environment(environ)
    base = every.assertions
    settings = gate.Settings(
        poll=seconds(arguments.poll_interval, "--poll-interval", every.gate_poll),
        window=seconds(
            arguments.stability_window, "--stability-window", every.gate_window, zero=True
        ),
        max_wait=seconds(arguments.max_wait, "--max-wait", every.gate_limit, zero=True),
    )
    return settings, replace(
        base,
        budget=seconds(arguments.timeout, "--timeout", every.gate_exec),
        absent_grace=seconds(
            arguments.absent_grace, "--absent-grace", base.absent_grace, zero=True
        ),
    )


def line(evaluation: Evaluation) -> str:
    """One evaluation for people: when, and what holds the gate."""
    from aicr.assertions.gate import duration

    step = evaluation.step
    return f"{duration(evaluation.elapsed)}: {step.reason}: {step.message}"


def fields(evaluation: Evaluation) -> dict[str, Any]:
    """One evaluation for programs that read the log: the condition, and every component."""
    step = evaluation.step
    return {
        "status": step.ready,
        "reason": step.reason,
        "evaluation": evaluation.number,
        "seconds": round(evaluation.elapsed, 3),
        "components": {each.component: each.result for each in evaluation.sample},
    }


def speaker(console: Console, environ: Mapping[str, str]) -> Callable[[str, dict[str, Any]], None]:
    """How to tell what happens: JSON lines in a pod, words elsewhere, on stderr both."""
    if not environ.get(_IN_POD):
        return lambda text, found: console.say(f"gate: {text}")
    from aicr.checks import logs

    log = logs.logger("aicr.gate", environ, console.err)
    return lambda text, found: log.info(text, extra={"fields": found})


def leave_word(text: str, environ: Mapping[str, str]) -> None:
    """In a pod, leave *text* where ``kubectl describe`` shows it; a container may have no such place."""
    if not environ.get(_IN_POD):
        return
    from aicr.contract import container

    try:
        with open(container.TERMINATION_LOG, "r+b") as file:
            file.write(container.fit(text).encode())
    except OSError:
        # The same words are on stderr and in the exit status.
        pass


def _collect_garbage() -> None:
    """Switch the collector on, which commands of milliseconds do without: this one may wait for hours."""
    import gc

    gc.enable()
