"""The form of a command that is nothing without a sub-command: its help lists them, running it names them.

The list is that of the entry point, so that it cannot say less than there is. It must not know what a
sub-command does.
"""

from __future__ import annotations

from aicr.cli.arguments import Parser
from aicr.errors import invalid, nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import NoReturn


def parser(name: str, description: str, examples: str) -> Parser:
    """The parser of ``aicr <name>`` without a sub-command; *examples* ends its help."""
    known = _lines(name)
    width = max(len(word) for word in known)
    lines = "".join(f"  {word:<{width}}  {line}\n" for word, line in known.items())
    found = Parser(
        prog=f"aicr {name}",
        usage=f"aicr {name} SUB-COMMAND [flags]",
        description=description,
        epilog=f"sub-commands, each with --help:\n{lines}\nexamples:\n{examples}",
    )
    found.add_argument(
        "word", nargs="?", default=None, metavar="SUB-COMMAND", help="one of those below"
    )
    return found


def refuse(name: str, arguments: argparse.Namespace) -> NoReturn:
    """Say which sub-commands there are.

    Raises:
        AicrError: INVALID_REQUEST, always.
    """
    known, word = list(_lines(name)), arguments.word
    near = nearest(word, known) if word else ""
    raise invalid(
        f"unknown sub-command {word!r}" if word else "name a sub-command",
        where=f"aicr {name}",
        hint=f"did you mean {near}?" if near else f"sub-commands: {', '.join(known)}",
    )


def _lines(name: str) -> dict[str, str]:
    """Second word -> what it does."""
    from aicr.cli.main import SUBCOMMANDS

    return {
        second.partition(" ")[2]: line
        for second, (_, line) in SUBCOMMANDS.items()
        if second.startswith(f"{name} ")
    }
