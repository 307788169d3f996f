"""``aicr mirror``: what an air-gapped site has to hold; the work is in the sub-commands."""

from __future__ import annotations

from aicr.cli import subcommands

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from aicr.cli.arguments import Parser
    from aicr.cli.console import Console

_EXAMPLES = """\
  aicr mirror list ./bundle
  aicr mirror rewrite -r recipe.yaml --mirror mirror.local/gpu
  aicr mirror check ./bundle --mirror mirror.local/gpu
"""


def parser() -> Parser:
    """The parser of the command without a sub-command."""
    return subcommands.parser("mirror", "Prepare an air-gapped installation.", _EXAMPLES)


def execute(arguments: argparse.Namespace, console: Console) -> int:
    """Say which sub-commands there are."""
    del console
    subcommands.refuse("mirror", arguments)
