"""``aicr doctor``: what on this machine or cluster keeps each command from working."""

from __future__ import annotations

from aicr.cli.arguments import Parser
from aicr.cli.formats import check_format, render

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Final

    from aicr.cli.console import Console
    from aicr.collectors.doctor import Diagnosis

FORMATS: Final = ("table", "json", "yaml")
#: Status of a look that found something (decision 46).
FOUND: Final = 8
_EXAMPLES = """\
examples:
  aicr doctor
  aicr doctor snapshot validate
  aicr doctor validate --context prod --format json

Names of commands narrow the look to what these need. Nothing is changed on
machine or cluster.

For this command exit status 8 means that a command that was asked about would
not work.
"""


def parser() -> Parser:
    """The parser of this command."""
    found = Parser(
        prog="aicr doctor",
        usage="aicr doctor [COMMAND ...] [flags]",
        description="Say what keeps each command from working here.",
        epilog=_EXAMPLES,
    )
    found.add_argument("commands", nargs="*", metavar="COMMAND", help="commands to look at (all)")
    found.once("--kubeconfig", "-k", metavar="FILE", help="kubeconfig (KUBECONFIG)")
    found.once("--context", metavar="NAME", help="context of the kubeconfig")
    found.once("--output", "-o", metavar="FILE", help="write to a file")
    found.once("--format", "-t", metavar="NAME", help="table (default), json or yaml")
    return found


def execute(arguments: argparse.Namespace, console: Console) -> int:
    """Look, print, and say by the exit status whether all would work."""
    chosen = check_format(arguments.format, FORMATS)
    import asyncio

    from aicr.cli.sources import write_output
    from aicr.collectors import doctor

    commands = doctor.chosen(arguments.commands)
    around = doctor.Surroundings(
        kubeconfig=arguments.kubeconfig or "", context=arguments.context or ""
    )
    found = asyncio.run(doctor.examine(around, commands))
    text = draw(found) if chosen == "table" else render(found.document(), chosen)
    write_output(text, arguments.output or "", console)
    lacking = [name for name, needs in found.lacking.items() if needs]
    console.flush()
    console.say(
        f"doctor: {len(found.lacking) - len(lacking)} of {len(found.lacking)} commands would work"
    )
    return 0 if found.healthy else FOUND


def draw(found: Diagnosis) -> str:
    """The result for people: commands first, then what is missing and what to do."""
    width = max(len(name) for name in found.lacking)
    lines = [
        f"{name:<{width}}  {'works' if not lacking else 'lacks ' + ', '.join(lacking)}".rstrip()
        for name, lacking in found.lacking.items()
    ]
    problems = [need for need in found.needs.values() if need.state != "met"]
    if problems:
        lines.append("")
    for need in problems:
        lines.append(f"{need.name} ({need.state}): {need.says}")
        if need.hint:
            lines.append(f"  next: {need.hint}")
    return "".join(f"{line}\n" for line in lines)
