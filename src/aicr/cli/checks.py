"""``aicr checks``: the checks that a recipe can declare; the work is in the sub-commands."""

from __future__ import annotations

from aicr.cli import subcommands

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from aicr.cli.arguments import Parser
    from aicr.cli.console import Console

_EXAMPLES = """\
  aicr checks list
  aicr checks show operator-health
"""


def parser() -> Parser:
    """The parser of the command without a sub-command."""
    return subcommands.parser("checks", "Say which checks there are and what they do.", _EXAMPLES)


def execute(arguments: argparse.Namespace, console: Console) -> int:
    """Say which sub-commands there are."""
    del console
    subcommands.refuse("checks", arguments)
