"""``aicr checks show NAME``: what one check looks at, and when it passes, fails and skips."""

from __future__ import annotations

from aicr.cli.arguments import Parser
from aicr.cli.formats import check_format, render
from aicr.cli.sources import write_output
from aicr.errors import invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Final

    from aicr.cli.console import Console

FORMATS: Final = ("markdown", "json", "yaml")
_EXAMPLES = """\
examples:
  aicr checks show check-nvidia-smi
  aicr checks show inference-perf --format json
"""


def parser() -> Parser:
    """The parser of this command."""
    found = Parser(
        prog="aicr checks show",
        usage="aicr checks show NAME [flags]",
        description="Say what one check looks at, and when it passes, fails and skips.",
        epilog=_EXAMPLES,
    )
    found.add_argument("name", nargs="?", default=None, metavar="NAME", help="of the check")
    found.once("--format", "-t", metavar="NAME", help="markdown (default), json or yaml")
    found.once("--output", "-o", metavar="FILE", help="write to a file")
    return found


def execute(arguments: argparse.Namespace, console: Console) -> int:
    """Print the check."""
    chosen = check_format(arguments.format, FORMATS)
    if not arguments.name:
        raise invalid("name a check", where="aicr checks show", hint="aicr checks list shows all")
    from aicr.checks import describe, registry

    check = registry.load(arguments.name)
    shown = chosen == "markdown"
    text = describe.markdown(check) if shown else render(describe.document(check), chosen)
    write_output(text, arguments.output or "", console)
    return 0
