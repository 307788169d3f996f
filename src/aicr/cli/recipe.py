"""``aicr recipe``: criteria in, recipe out."""

from __future__ import annotations

from aicr.cli import criteria
from aicr.cli.arguments import Once, Parser
from aicr.cli.formats import FORMATS, check_format, render
from aicr.cli.sources import write_output

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from aicr.cli.console import Console

_EXAMPLES = """\
examples:
  aicr recipe --service eks --accelerator h100 --intent training --os ubuntu --platform kubeflow
  aicr recipe --criteria criteria.yaml --os cos -o recipe.yaml
  aicr recipe --snapshot snapshot.yaml --intent inference
  aicr recipe --service eks --intent training --data ./my-recipes --format json
"""


def parser() -> Parser:
    """The parser of this command."""
    found = Parser(
        prog="aicr recipe",
        description="Resolve criteria to the components, versions and values that belong together.",
        epilog=_EXAMPLES,
    )
    criteria.add_flags(found)
    output = found.add_argument_group("output")
    output.add_argument("--output", "-o", action=Once, metavar="FILE", help="default: stdout")
    output.add_argument(
        "--format", "-t", action=Once, metavar="NAME", help=f"{', '.join(FORMATS)} (default yaml)"
    )
    return found


def execute(arguments: argparse.Namespace, console: Console) -> int:
    """Resolve, and print or write the recipe."""
    chosen = check_format(arguments.format)
    recipe = criteria.resolve_arguments(arguments, console)
    text = render(recipe.document, chosen)
    write_output(text, arguments.output or "", console)
    document = recipe.document
    console.say(
        f"recipe: {len(document['deploymentOrder'])} components from "
        f"{len(document['metadata']['appliedOverlays'])} overlays"
        + (f", written to {arguments.output}" if arguments.output not in (None, "", "-") else "")
    )
    return 0
