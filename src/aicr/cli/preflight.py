"""``aicr preflight``: the admission webhook and its decision; each sub-command has a module of its own."""

from __future__ import annotations

from aicr.cli.arguments import Parser
from aicr.errors import invalid, nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from aicr.cli.console import Console

_EXAMPLES = """\
examples:
  aicr preflight explain -f pod.yaml
  aicr preflight config check config.yaml

sub-commands, each with --help:
{lines}
"""


def parser() -> Parser:
    """The parser of this command."""
    known = _subcommands()
    width = max(len(name) for name in known)
    lines = "\n".join(f"  {name:<{width}}  {line}" for name, line in known.items())
    found = Parser(
        prog="aicr preflight",
        usage="aicr preflight SUB-COMMAND [flags]",
        description="Checks of GPUs and fabric that run in a pod before its workload does.",
        epilog=_EXAMPLES.format(lines=lines),
    )
    found.add_argument("word", nargs="?", default=None, help="a sub-command")
    return found


def execute(arguments: argparse.Namespace, console: Console) -> int:
    """Nothing is done without a sub-command."""
    del console
    known = list(_subcommands())
    word = arguments.word
    near = nearest(word, known) if word else ""
    raise invalid(
        f"unknown sub-command {word!r}" if word else "name a sub-command",
        where="aicr preflight",
        hint=f"did you mean {near}?" if near else f"sub-commands: {', '.join(known)}",
    )


def _subcommands() -> dict[str, str]:
    """Second word -> what it does."""
    from aicr.cli.main import SUBCOMMANDS

    return {
        name.partition(" ")[2]: line
        for name, (_, line) in SUBCOMMANDS.items()
        if name.startswith("preflight ")
    }
