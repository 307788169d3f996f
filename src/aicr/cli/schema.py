"""``aicr schema``: the JSON Schema of a kind of document, for editors and pipelines."""

from __future__ import annotations

from aicr.cli.arguments import Parser
from aicr.cli.sources import write_output

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from aicr.cli.console import Console

_EXAMPLES = """\
examples:
  aicr schema
  aicr schema RecipeMetadata
  aicr schema ComponentRegistry -o .aicr/schemas/ComponentRegistry.json

How to set up an editor: docs/editors.md.
"""


def parser() -> Parser:
    """The parser of this command."""
    found = Parser(
        prog="aicr schema",
        description="Print the JSON Schema of a kind of document; without a kind, list the kinds.",
        epilog=_EXAMPLES,
    )
    found.add_argument(
        "kind", nargs="?", default="", metavar="KIND", help="for example RecipeMixin"
    )
    found.once("--output", "-o", metavar="FILE", help="default: stdout")
    return found


def execute(arguments: argparse.Namespace, console: Console) -> int:
    """Print the schema, or the kinds that have one."""
    from aicr.lint import schema_files

    if arguments.kind:
        text = schema_files.text(arguments.kind)
    else:
        text = "".join(f"{kind}\n" for kind in schema_files.kinds())
    write_output(text, arguments.output or "", console)
    return 0
