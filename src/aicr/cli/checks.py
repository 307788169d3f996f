"""``aicr checks``: the checks that a recipe can declare; the work is in the sub-commands."""

from __future__ import annotations

from aicr.cli.arguments import Parser
from aicr.errors import invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from aicr.cli.console import Console

_EXAMPLES = """\
sub-commands:
  list  all checks, or those of one phase
  show  what one check looks at, and when it passes, fails and skips

examples:
  aicr checks list
  aicr checks show operator-health
"""


def parser() -> Parser:
    """The parser of the command without a sub-command."""
    found = Parser(
        prog="aicr checks",
        description="Say which checks there are and what they do.",
        epilog=_EXAMPLES,
    )
    found.add_argument("word", nargs="?", default=None, metavar="SUB-COMMAND", help="see below")
    return found


def execute(arguments: argparse.Namespace, console: Console) -> int:
    """Say which sub-commands there are."""
    del console
    said = f"unknown sub-command {arguments.word!r}" if arguments.word else "name a sub-command"
    raise invalid(said, where="aicr checks", hint="list or show NAME; see aicr checks --help")
