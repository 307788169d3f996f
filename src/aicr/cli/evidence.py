"""``aicr evidence``: bundles of recipe evidence; the work is in the sub-commands."""

from __future__ import annotations

from aicr.cli import subcommands

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from aicr.cli.arguments import Parser
    from aicr.cli.console import Console

_EXAMPLES = """\
  aicr evidence verify ./evidence
  aicr evidence publish ./evidence --push oci://registry.example/evidence

A bundle is made by aicr validate --emit-attestation DIR.
"""


def parser() -> Parser:
    """The parser of the command without a sub-command."""
    return subcommands.parser(
        "evidence", "Verify and publish evidence of validated recipes.", _EXAMPLES
    )


def execute(arguments: argparse.Namespace, console: Console) -> int:
    """Say which sub-commands there are."""
    del console
    subcommands.refuse("evidence", arguments)
