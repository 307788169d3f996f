"""``aicr mirror``: what an air-gapped site has to hold; the work is in the sub-commands."""

from __future__ import annotations

from aicr.cli.arguments import Parser
from aicr.errors import invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from aicr.cli.console import Console

_EXAMPLES = """\
sub-commands:
  list     the images and charts that a mirror has to hold
  rewrite  the overrides that bring a recipe's images into a mirror
  check    what of a bundle would not come up behind an air gap

examples:
  aicr mirror list ./bundle
  aicr mirror rewrite -r recipe.yaml --mirror mirror.local/gpu
  aicr mirror check ./bundle --mirror mirror.local/gpu
"""


def parser() -> Parser:
    """The parser of the command without a sub-command."""
    found = Parser(
        prog="aicr mirror", description="Prepare an air-gapped installation.", epilog=_EXAMPLES
    )
    found.add_argument("word", nargs="?", default=None, metavar="SUB-COMMAND", help="see below")
    return found


def execute(arguments: argparse.Namespace, console: Console) -> int:
    """Say which sub-commands there are."""
    del console
    said = f"unknown sub-command {arguments.word!r}" if arguments.word else "name a sub-command"
    raise invalid(said, where="aicr mirror", hint="list, rewrite or check; see aicr mirror --help")
