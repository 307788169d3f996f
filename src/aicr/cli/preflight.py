"""``aicr preflight``: the admission webhook and its decision; the work is in the sub-commands."""

from __future__ import annotations

from aicr.cli import subcommands

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from aicr.cli.arguments import Parser
    from aicr.cli.console import Console

_EXAMPLES = """\
  aicr preflight explain -f pod.yaml
  aicr preflight config check config.yaml
"""


def parser() -> Parser:
    """The parser of the command without a sub-command."""
    return subcommands.parser(
        "preflight",
        "Checks of GPUs and fabric that run in a pod before its workload does.",
        _EXAMPLES,
    )


def execute(arguments: argparse.Namespace, console: Console) -> int:
    """Say which sub-commands there are."""
    del console
    subcommands.refuse("preflight", arguments)
