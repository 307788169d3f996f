"""``aicr completion``: the completion script of a shell, generated from the parsers beforehand.

The scripts in ``completions/`` are made by ``tools/make_completions.py`` with shtab, committed, and tested
to be current; printing one costs a file read and no import of any parser.
"""

from __future__ import annotations

import os

from aicr.cli.arguments import Parser
from aicr.errors import invalid, nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Final

    from aicr.cli.console import Console

SHELLS: Final = ("bash", "zsh", "fish", "tcsh")
_EXAMPLES = """\
examples:
  source <(aicr completion bash)
  aicr completion zsh > ~/.zfunc/_aicr
  aicr completion fish > ~/.config/fish/completions/aicr.fish
  aicr completion tcsh > ~/.aicr.tcsh && source ~/.aicr.tcsh
"""


def parser() -> Parser:
    """The parser of this command."""
    found = Parser(
        prog="aicr completion",
        description="Print a completion script for a shell.",
        epilog=_EXAMPLES,
    )
    found.add_argument("shell", nargs="?", default="", help=", ".join(SHELLS))
    return found


def execute(arguments: argparse.Namespace, console: Console) -> int:
    """Print the script."""
    if not arguments.shell:
        raise invalid(
            "name the shell that the script is for",
            hint=f"shells: {', '.join(SHELLS)}; for example: aicr completion bash",
        )
    if arguments.shell not in SHELLS:
        near = nearest(arguments.shell, list(SHELLS))
        raise invalid(
            f"no completion script for shell {arguments.shell!r}",
            hint=f"did you mean {near}?" if near else f"shells: {', '.join(SHELLS)}",
        )
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "completions")
    with open(os.path.join(folder, f"aicr.{arguments.shell}"), encoding="utf-8") as file:
        console.write(file.read())
    return 0
