"""``aicr version``: which build this is."""

from __future__ import annotations

from aicr.cli.arguments import Parser
from aicr.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from aicr.cli.console import Console


def parser() -> Parser:
    """The parser of this command."""
    return Parser(
        prog="aicr version",
        description="Print the version, and the commit it was built from.",
        epilog="examples:\n  aicr version\n",
    )


def execute(arguments: argparse.Namespace, console: Console) -> int:
    """Print the version; an unstamped build says so (decision 40)."""
    del arguments
    try:
        from aicr import _stamp
    except ImportError:
        console.write(f"aicr {__version__} (dev)\n")
    else:
        console.write(f"aicr {__version__} (commit {_stamp.COMMIT}, {_stamp.DATE})\n")
    return 0
