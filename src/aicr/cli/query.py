"""``aicr query``: one value of a hydrated recipe."""

from __future__ import annotations

from aicr.cli import criteria
from aicr.cli.arguments import Once, Parser
from aicr.cli.formats import check_format, render
from aicr.errors import invalid
from aicr.recipe.hydrate import hydrate
from aicr.recipe.query import select

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any, Final

    from aicr.cli.console import Console

#: ``table`` prints what yaml prints, as in the original: a selected value has no columns.
FORMATS: Final = ("yaml", "json", "table")
_EXAMPLES = """\
examples:
  aicr query --service eks --accelerator h100 --intent training --os ubuntu \\
      --selector components.gpu-operator.version
  aicr query --service eks --intent training --selector deploymentOrder \\
      --format json
  aicr query --criteria criteria.yaml --selector components.gpu-operator.values
"""


def parser() -> Parser:
    """The parser of this command."""
    found = Parser(
        prog="aicr query",
        description="Resolve criteria and print one part of the recipe with all values filled in.",
        epilog=_EXAMPLES,
    )
    criteria.add_flags(found)
    output = found.add_argument_group("output")
    output.add_argument(
        "--selector",
        action=Once,
        metavar="PATH",
        help='dotted path into the document, for example components.nfd.version; "" for all',
    )
    output.add_argument(
        "--format", "-t", action=Once, metavar="NAME", help="yaml (default) or json"
    )
    return found


def execute(arguments: argparse.Namespace, console: Console) -> int:
    """Resolve, hydrate, select, print."""
    chosen = check_format(arguments.format, FORMATS)
    if arguments.selector is None:
        raise invalid(
            'Required flag "selector" not set',
            hint='for example --selector components.gpu-operator.version, or --selector ""',
        )
    recipe = criteria.resolve_arguments(arguments, console)
    value = select(hydrate(recipe), arguments.selector)
    console.write(render(_sorted(value), "json") if chosen == "json" else _bare(value))
    return 0


def _bare(value: Any) -> str:
    """Scalars as they are, maps and lists as YAML with sorted keys."""
    if isinstance(value, str):
        return value if value.endswith("\n") else value + "\n"
    if isinstance(value, (dict, list)):
        from aicr.yamlio.write import dump

        return dump(value, sort_keys=True)
    return render(value, "yaml")


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [_sorted(item) for item in value]
    return value
