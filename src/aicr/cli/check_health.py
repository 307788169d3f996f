"""``aicr check-health``: health checks of components on a cluster, until they hold or time is up."""

from __future__ import annotations

import os

from aicr.cli.arguments import Parser
from aicr.errors import (
    INVALID_REQUEST,
    SERVICE_UNAVAILABLE,
    TIMEOUT,
    AicrError,
    invalid,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from typing import Any, Final

    from aicr.assertions.timing import Timing
    from aicr.checks.sdk.timeouts import Timeouts
    from aicr.cli.console import Console

FORMATS: Final = ("table", "json", "yaml")
#: Status of a run that found something (decision 46).
FOUND: Final = 8
#: Seconds between two looks. Half of what a gate waits: a person is watching.
_SECOND: Final = 1_000_000_000
_EXAMPLES = """\
examples:
  aicr check-health gpu-operator
  aicr check-health gpu-operator nfd --timeout 10m
  aicr check-health --all -r recipe.yaml --format json -o health.json

Without --recipe the checks are those of the catalogue; --all then means every
component that has one, installed or not. A check that no component links runs
when it is named. Each component is looked at until its check holds, cannot
hold any more, or its time is up.

verdicts: pass; fail; unknown, when the cluster did not say (an outage, a
forbidden read, no answer).

For this command exit status 8 means that a component is not healthy; 2 that a
check cannot be evaluated; 5 or 6 that the state of some component could not be
found out.
"""

_COLOURS: Final = {"pass": "\033[32m", "fail": "\033[31m", "unknown": "\033[35m"}


def parser() -> Parser:
    """The parser of this command."""
    found = Parser(
        prog="aicr check-health",
        usage="aicr check-health COMPONENT... | --all [flags]",
        description="Run the health checks of components against a cluster.",
        epilog=_EXAMPLES,
    )
    found.add_argument("names", nargs="*", metavar="COMPONENT", help="whose health to check")
    found.add_argument(
        "--all",
        action="store_true",
        help="check every component that has a health check",
    )
    found.once("--recipe", "-r", metavar="FILE", help="check the components of this recipe")
    found.once("--data", metavar="DIR", help="directory laid over the built-in catalogue")
    found.once(
        "--namespace",
        "-n",
        metavar="NAME",
        help="where to look for what names no namespace (default: in all)",
    )
    found.once(
        "--timeout", metavar="DURATION", help="time for each component, from its start (7m30s)"
    )
    found.once("--poll-interval", metavar="DURATION", help="time between two looks (2s)")
    found.once("--kubeconfig", metavar="FILE", help="the cluster (default: KUBECONFIG)")
    found.once("--context", metavar="NAME", help="context of the kubeconfig")
    found.once("--output", "-o", metavar="FILE", help="write to a file")
    found.once("--format", "-t", metavar="NAME", help="table (default), json or yaml")
    return found


def execute(arguments: argparse.Namespace, console: Console) -> int:
    """Select checks, run them, print what was found."""
    import asyncio

    from aicr import kube
    from aicr.checks.sdk.timeouts import Timeouts
    from aicr.cli.catalogs import load_catalog
    from aicr.cli.formats import check_format

    chosen = check_format(arguments.format, FORMATS)
    if arguments.all == bool(arguments.names):
        raise invalid(
            "name components, or pass --all"
            if not arguments.all
            else "--all and names exclude each other",
            where="aicr check-health",
            hint="for example: aicr check-health gpu-operator",
        )
    timing = _timing(Timeouts.from_environment(os.environ), arguments)
    checks = _checks(arguments, load_catalog(arguments, console), console)
    client = kube.connect(kubeconfig=arguments.kubeconfig or "", context=arguments.context or "")
    console.say(f"check-health: {client.config.describe()}")
    _collect_garbage()

    async def checked() -> list[dict[str, Any]]:
        from aicr.assertions.runner import run

        async with client:
            # A cluster that cannot be reached at all is said at once, and not after the timeout.
            await client.version()
            return await run(
                client,
                checks,
                timing=timing,
                namespace=arguments.namespace or "",
                told=lambda name, text: console.dim(f"{name}: {text}") if text else None,
                done=lambda result: console.say(line(result)),
            )

    results = asyncio.run(checked())
    _show(results, chosen, client.config.describe(), arguments, console)
    return status_of(results)


def _checks(arguments: argparse.Namespace, catalog: Any, console: Console) -> list[dict[str, str]]:
    from aicr.assertions import selection

    names = None if arguments.all else arguments.names
    if arguments.recipe is None:
        return selection.from_catalog(catalog, names)
    from aicr.cli.sources import read_input
    from aicr.recipe.document import load_recipe

    recipe = load_recipe(
        read_input(arguments.recipe, what="recipe file"), arguments.recipe, catalog
    )
    for warning in recipe.warnings:
        console.warn(warning)
    found = selection.from_recipe(recipe.document, catalog, names)
    if not found:
        raise invalid(
            "no enabled component of the recipe has a health check, so nothing would be checked",
            where=arguments.recipe,
            hint="name a component, or leave --recipe out",
        )
    return found


def _timing(times: Timeouts, arguments: argparse.Namespace) -> Timing:
    from dataclasses import replace

    return replace(
        times.assertions,
        budget=seconds(arguments.timeout, "--timeout", times.assertions.budget),
        retry=seconds(arguments.poll_interval, "--poll-interval", times.health_poll),
    )


def seconds(text: str | None, flag: str, default: float, *, zero: bool = False) -> float:
    """A duration given to a flag, in seconds; *default* when it was not given.

    Raises:
        AicrError: INVALID_REQUEST for what is no duration, negative, or zero without *zero*.
    """
    if text is None:
        return default
    from aicr.values import durations

    try:
        found = durations.parse(text) / _SECOND
    except AicrError as error:
        raise invalid(error.message, where=flag, hint=error.hint) from None
    if found < 0 or (found == 0 and not zero):
        raise invalid(f"{text} is no time to wait", where=flag, hint=f"for example {flag} 30s")
    return found


def line(result: dict[str, Any]) -> str:
    """One result for people, as soon as it is there."""
    words = {"pass": "healthy", "fail": "not healthy", "unknown": "unknown"}[result["verdict"]]
    text = f"{result['component']}: {words} after {result['seconds']:.0f} s"
    return f"{text}: {result['message']}" if result["message"] else text


def status_of(results: Sequence[dict[str, Any]]) -> int:
    """Exit status of results: something unhealthy, else a check that is wrong, else what is unknown."""
    failing = [result for result in results if not result["passed"]]
    if not failing:
        return 0
    if any(each["verdict"] == "fail" and each["code"] != INVALID_REQUEST for each in failing):
        return FOUND
    codes = {INVALID_REQUEST if each["verdict"] == "fail" else each["code"] for each in failing}
    for code in (INVALID_REQUEST, SERVICE_UNAVAILABLE):
        if code in codes:
            return AicrError(code, "").exit_status
    return AicrError(TIMEOUT, "").exit_status


def document(results: Sequence[dict[str, Any]], cluster: str) -> dict[str, Any]:
    """The results as a plain document."""
    counts = {
        verdict: sum(result["verdict"] == verdict for result in results) for verdict in _COLOURS
    }
    return {
        "cluster": cluster,
        "healthy": all(result["passed"] for result in results),
        "summary": {"total": len(results), **counts},
        "components": [
            {
                **{key: result[key] for key in ("component", "verdict", "code", "message")},
                **{key: result[key] for key in ("hint", "where", "output")},
                "seconds": round(result["seconds"], 3),
            }
            for result in results
        ],
    }


def draw(results: Sequence[dict[str, Any]], *, colour: bool = False) -> str:
    """The results for people: a table, then what to do about what failed."""
    from aicr.diff.text import grid

    rows = [
        (
            result["component"],
            result["verdict"],
            f"{result['seconds']:.1f}",
            _short(result["message"]),
        )
        for result in results
    ]
    paints = [_COLOURS[result["verdict"]] if colour else "" for result in results]
    lines = grid(("component", "verdict", "seconds", "why"), rows, paints)
    for result in results:
        if not result["passed"]:
            lines += ["", f"{result['component']}: {_plain(result['message'])}"]
            lines += [f"  where: {_plain(result['where'])}"] if result["where"] else []
            lines += [f"  next: {_plain(result['hint'])}"] if result["hint"] else []
    return "".join(f"{text}\n" for text in lines)


def _short(text: str) -> str:
    plain = _plain(text)
    return plain if len(plain) <= 60 else f"{plain[:59]}…"


def _plain(text: str) -> str:
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def _show(
    results: Sequence[dict[str, Any]],
    chosen: str,
    cluster: str,
    arguments: argparse.Namespace,
    console: Console,
) -> None:
    from aicr.cli.explain_text import wants_colour
    from aicr.cli.formats import render
    from aicr.cli.sources import write_output

    if chosen == "table":
        text = draw(results, colour=wants_colour(console.out) and not arguments.output)
    else:
        text = render(document(results, cluster), chosen)
    write_output(text, arguments.output or "", console)
    console.flush()
    healthy = sum(result["passed"] for result in results)
    console.say(f"check-health: {healthy} of {len(results)} healthy")


def _collect_garbage() -> None:
    """Switch the collector on, which commands of milliseconds do without: this one waits for minutes."""
    import gc

    gc.enable()
