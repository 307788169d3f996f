"""``aicr evidence``: bundles of recipe evidence; the work is in the sub-commands."""

from __future__ import annotations

from aicr.cli.arguments import Parser
from aicr.errors import invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from aicr.cli.console import Console

_EXAMPLES = """\
sub-commands:
  verify   is it whole, who vouches for it, and what does it record
  publish  push a bundle to a registry and sign it, or sign it where it is

examples:
  aicr evidence verify ./evidence
  aicr evidence publish ./evidence --push oci://registry.example/evidence

A bundle is made by aicr validate --emit-attestation DIR.
"""


def parser() -> Parser:
    """The parser of the command without a sub-command."""
    found = Parser(
        prog="aicr evidence",
        description="Verify and publish evidence of validated recipes.",
        epilog=_EXAMPLES,
    )
    found.add_argument("word", nargs="?", default=None, metavar="SUB-COMMAND", help="see below")
    return found


def execute(arguments: argparse.Namespace, console: Console) -> int:
    """Say which sub-commands there are."""
    del console
    said = f"unknown sub-command {arguments.word!r}" if arguments.word else "name a sub-command"
    raise invalid(said, where="aicr evidence", hint="verify or publish; see aicr evidence --help")
