"""``aicr bom``: the components, charts and images of a bundle, a recipe or the catalogue."""

from __future__ import annotations

import os

from aicr.cli import bill_source
from aicr.cli.arguments import Parser
from aicr.errors import invalid, nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Final

    from aicr.bundle.bom import Bom
    from aicr.cli.console import Console

FORMATS: Final = ("cyclonedx", "markdown")
#: Status of a run that found something (decision 46).
FOUND: Final = 8
_SHOWN: Final = 20
_EXAMPLES = """\
examples:
  aicr bom ./bundle -o bom.json
  aicr bom -r recipe.yaml --format markdown
  aicr bom ./bundle --strict
  aicr bom --format markdown -o docs/container-images.md
  aicr bom --check docs/container-images.md

Without a bundle or a recipe, the bill is of the whole catalogue. Charts that
are in the bundle (aicr bundle --vendor-charts) are rendered with helm; of
others only values and manifests are seen, and they read "rendered: no (not
pulled)".

For this command exit status 8 means that a chart was not looked into
(--strict), or that a page is out of date (--check).
"""


def parser() -> Parser:
    """The parser of this command."""
    found = Parser(
        prog="aicr bom",
        description="List components, charts and container images.",
        epilog=_EXAMPLES,
    )
    bill_source.add_flags(found)
    found.once("--format", "-t", metavar="NAME", help="cyclonedx (JSON, default) or markdown")
    found.once(
        "--output",
        "-o",
        metavar="FILE",
        help="file to write; of a page, only the part between the marks changes",
    )
    found.add_argument("--strict", action="store_true", help="fail if a chart was not looked into")
    found.once("--check", metavar="FILE", help="compare versions and components with this page")
    found.add_argument("--full", action="store_true", help="with --check: compare every line")
    found.add_argument(
        "--validate",
        action="store_true",
        help="hold the JSON against the CycloneDX schema (extra bom)",
    )
    return found


def execute(arguments: argparse.Namespace, console: Console) -> int:
    """Make the bill, print, write or compare it."""
    chosen = _format(arguments)
    bill = _bill(arguments, console)
    if arguments.check is not None:
        return _check(arguments, bill, console)
    if chosen == "markdown":
        text = _page(arguments, bill)
    else:
        from aicr.artifacts import cyclonedx
        from aicr.bundle import bom
        from aicr.yamlio.jsontext import dump_json

        text = dump_json(cyclonedx.document(bom.NAME, bill.version, bom.parts(bill)))
        if arguments.validate:
            cyclonedx.validate(text)
    from aicr.cli.sources import write_output

    write_output(text, arguments.output or "", console)
    console.say(
        f"{len(bill.entries)} components, {len(bill.images)} images, "
        f"{len(bill.unrendered)} charts not looked into"
    )
    if arguments.strict and bill.unrendered:
        for entry in bill.unrendered:
            console.say(f"  {entry.name}: rendered: {entry.rendered}")
        return FOUND
    return 0


def _format(arguments: argparse.Namespace) -> str:
    chosen = arguments.format or "cyclonedx"
    if chosen not in FORMATS:
        near = nearest(chosen, list(FORMATS))
        raise invalid(
            f'unknown output format: "{chosen}", valid formats are: {", ".join(FORMATS)}',
            where="--format",
            hint=f"did you mean {near}?" if near else "leave --format out for CycloneDX",
        )
    if arguments.check is not None and (arguments.output or arguments.format):
        flag = "--output" if arguments.output else "--format"
        raise invalid(
            f"--check compares and writes nothing, so {flag} has no use",
            where=flag,
            hint="drop one of the two",
        )
    if arguments.full and arguments.check is None:
        raise invalid("--full is for --check", where="--full", hint="name the page with --check")
    if arguments.validate and chosen != "cyclonedx":
        raise invalid("--validate is for CycloneDX", where="--validate", hint="drop --format")
    return chosen


def _bill(arguments: argparse.Namespace, console: Console) -> Bom:
    if bill_source.is_named(arguments):
        return bill_source.bill(arguments, console)
    if arguments.set:
        raise invalid("--set goes with a recipe", where="--set", hint="name one with --recipe")
    from aicr.bundle import bom
    from aicr.cli.catalogs import load_catalog
    from aicr.version import __version__

    return bom.of_catalog(load_catalog(arguments, console), version=__version__)


def _page(arguments: argparse.Namespace, bill: Bom) -> str:
    from aicr.bundle import bom_page
    from aicr.cli.sources import read_input

    before = None
    if arguments.output and arguments.output != "-" and os.path.isfile(arguments.output):
        before = read_input(arguments.output, what="page")
    title = f"Container images of the {bill.subject}"
    return bom_page.page(bill, title=title, before=before, source=arguments.output or "")


def _check(arguments: argparse.Namespace, bill: Bom, console: Console) -> int:
    from aicr.bundle import bom_page
    from aicr.cli.sources import read_input

    text = read_input(arguments.check, what="page")
    found = bom_page.stale(text, bill, full=arguments.full, source=arguments.check)
    for line in found[:_SHOWN]:
        console.write(f"{line}\n")
    if len(found) > _SHOWN:
        console.write(f"and {len(found) - _SHOWN} more\n")
    if found:
        console.say(
            f"{arguments.check} is out of date; write it with: aicr bom --format markdown "
            f"-o {arguments.check}"
        )
        return FOUND
    console.say(f"{arguments.check} is current")
    return 0
