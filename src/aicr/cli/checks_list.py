"""``aicr checks list``: the checks that a recipe can declare. It needs no cluster and no extra."""

from __future__ import annotations

from aicr.cli.arguments import Parser
from aicr.cli.formats import check_format, render
from aicr.cli.sources import write_output
from aicr.errors import invalid, nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Final

    from aicr.cli.console import Console

FORMATS: Final = ("table", "json", "markdown")
_EXAMPLES = """\
examples:
  aicr checks list
  aicr checks list --phase conformance
  aicr checks list --format json

In the order in which a phase runs them. aicr checks show NAME has the details
of one.
"""


def parser() -> Parser:
    """The parser of this command."""
    found = Parser(
        prog="aicr checks list",
        description="List the checks that a recipe can declare.",
        epilog=_EXAMPLES,
    )
    found.once("--phase", metavar="NAME", help="deployment, conformance or performance")
    found.once("--format", "-t", metavar="NAME", help="table (default), json or markdown")
    found.once("--output", "-o", metavar="FILE", help="write to a file")
    return found


def execute(arguments: argparse.Namespace, console: Console) -> int:
    """Print the list."""
    chosen = check_format(arguments.format, FORMATS)
    from aicr.checks import describe, registry
    from aicr.checks.sdk.check import PHASES

    phase = arguments.phase
    if phase is not None and phase not in PHASES:
        near = nearest(phase, list(PHASES))
        raise invalid(
            f'unknown phase "{phase}"',
            where="--phase",
            hint=f"did you mean {near}?" if near else f"phases are {', '.join(PHASES)}",
        )
    checks = [registry.load(name) for name in registry.names(phase or "")]
    if chosen == "json":
        text = render([describe.document(check) for check in checks], "json")
    elif chosen == "markdown":
        text = describe.table(checks)
    else:
        rows = [(check.name, check.phase, check.timeout, check.summary) for check in checks]
        text = _table([("NAME", "PHASE", "TIMEOUT", "SUMMARY"), *rows])
    write_output(text, arguments.output or "", console)
    return 0


def _table(rows: list[tuple[str, str, str, str]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    return "".join(f"{line}\n" for line in lines)
