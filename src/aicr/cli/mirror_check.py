"""``aicr mirror check``: what of a bundle would not come up behind an air gap."""

from __future__ import annotations

from aicr.cli import bill_source
from aicr.cli.arguments import Parser
from aicr.cli.formats import check_format, one_line, render

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Final

    from aicr.cli.console import Console

FORMATS: Final = ("text", "json")
#: Status of a run that found something (decision 46).
FOUND: Final = 8
_EXAMPLES = """\
examples:
  aicr mirror check ./bundle --mirror mirror.local/gpu
  aicr mirror check ./bundle --format json

Reports images outside of the mirror, images without a fixed tag, pods that
download something when they start, and charts that could not be looked into.
Without --mirror, where images are is not judged. For this command exit status
8 means that something was found.
"""


def parser() -> Parser:
    """The parser of this command."""
    found = Parser(
        prog="aicr mirror check",
        description="Say what of a bundle would not come up behind an air gap.",
        epilog=_EXAMPLES,
    )
    bill_source.add_flags(found)
    found.once("--mirror", metavar="HOST/PATH", help="where all images must be")
    found.once("--format", "-t", metavar="NAME", help="text (default) or json")
    return found


def execute(arguments: argparse.Namespace, console: Console) -> int:
    """Print the report."""
    from aicr.bundle import airgap

    chosen = check_format(arguments.format or None, FORMATS)
    mirror = "" if arguments.mirror is None else airgap.check_mirror(arguments.mirror)
    bom = bill_source.bill(arguments, console)
    found = airgap.gaps(bom, mirror)
    if chosen == "json":
        console.write(render({"images": len(bom.images), "findings": found}, "json"))
    else:
        for line in found:
            console.write(f"{one_line(line)}\n")
    console.say(f"mirror check: {len(found)} findings, {len(bom.images)} images")
    return FOUND if found else 0
