"""``aicr mirror list``: the images and charts that a mirror has to hold."""

from __future__ import annotations

from aicr.cli import bill_source
from aicr.cli.arguments import Parser
from aicr.cli.formats import check_format, render

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from aicr.cli.console import Console

_EXAMPLES = """\
examples:
  aicr mirror list ./bundle
  aicr mirror list -r recipe.yaml --format hauler > hauler.yaml
  aicr recipe --service eks --accelerator h100 --intent training --os ubuntu |
      aicr mirror list -r - --format json

A chart that is not in the bundle is not rendered; what that hides is a warning
on stderr. Bundle with --vendor-charts for a list that is whole.
"""


def parser() -> Parser:
    """The parser of this command."""
    found = Parser(
        prog="aicr mirror list",
        description="List the images and charts that a mirror has to hold.",
        epilog=_EXAMPLES,
    )
    bill_source.add_flags(found)
    found.once("--format", "-t", metavar="NAME", help="yaml (default), json, hauler or zarf")
    return found


def execute(arguments: argparse.Namespace, console: Console) -> int:
    """Print the list; say where it may be short."""
    from aicr.bundle import mirror

    chosen = check_format(arguments.format or None, mirror.FORMATS)
    bom = bill_source.bill(arguments, console)
    if chosen == "hauler":
        console.write("---\n".join(render(document, "yaml") for document in mirror.hauler(bom)))
    elif chosen == "zarf":
        console.write(render(mirror.zarf(bom), "yaml"))
    else:
        console.write(render(mirror.listing(bom), chosen))
    for warning in mirror.warnings(bom):
        console.warn(warning)
    return 0
