"""``aicr recipe``: criteria in, recipe out."""

from __future__ import annotations

from aicr.cli import criteria
from aicr.cli.arguments import Once, Parser
from aicr.cli.formats import FORMATS, check_format, render
from aicr.cli.sources import write_output

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from aicr.cli.console import Console
    from aicr.recipe.types import RecipeResult

#: Where a recipe stands in a ConfigMap, whatever its format: JSON is YAML too.
_KEY = "recipe.yaml"
_EXAMPLES = """\
examples:
  aicr recipe --service eks --accelerator h100 --intent training --os ubuntu \\
      --platform kubeflow
  aicr recipe --criteria criteria.yaml --os cos -o recipe.yaml
  aicr recipe --snapshot snapshot.yaml --intent inference
  aicr recipe --service eks --intent training --data ./my-recipes --format json
  aicr recipe --service eks --accelerator h100 --intent training --graph svg \\
      -o recipe.svg

What the catalogue has: aicr recipe list
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
    output.add_argument(
        "--graph",
        action=Once,
        metavar="FORM",
        help="print the dependency graph instead of the recipe: mermaid or svg",
    )
    return found


def execute(arguments: argparse.Namespace, console: Console) -> int:
    """Resolve, and print or write the recipe."""
    chosen = check_format(arguments.format)
    draw = None if arguments.graph is None else _drawer(arguments)
    recipe = criteria.resolve_arguments(arguments, console)
    text = render(recipe.document, chosen) if draw is None else draw(recipe.document)
    write_output(text, arguments.output or "", console, key=_KEY if draw is None else "")
    document = recipe.document
    console.say(
        f"recipe: {len(document['deploymentOrder'])} components from "
        f"{len(document['metadata']['appliedOverlays'])} overlays"
        + (f", written to {arguments.output}" if arguments.output not in (None, "", "-") else "")
    )
    return 0


def _drawer(arguments: argparse.Namespace) -> Callable[[RecipeResult], str]:
    """What makes a graph of the chosen form.

    Raises:
        AicrError: INVALID_REQUEST for another form, and for a graph with a format of documents.
    """
    from aicr.errors import invalid, nearest
    from aicr.recipe.graph import FORMS, graph_of, mermaid

    form = arguments.graph
    if form not in FORMS:
        near = nearest(form, list(FORMS))
        raise invalid(
            f'unknown form of graph: "{form}", valid forms are: {", ".join(FORMS)}',
            where="--graph",
            hint=f"did you mean {near}?" if near else "mermaid is text, svg a picture",
        )
    if "format" in getattr(arguments, "_given", ()):
        raise invalid(
            "--graph and --format exclude each other: a graph has no format of documents",
            where="--format",
            hint="drop one of the two",
        )
    if form == "mermaid":
        return lambda document: mermaid(graph_of(document))
    from aicr.recipe.graph_svg import svg

    return lambda document: svg(graph_of(document))
