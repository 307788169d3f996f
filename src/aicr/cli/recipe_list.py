"""``aicr recipe list``: what the catalogue supports, found out and not claimed."""

from __future__ import annotations

from aicr.catalog.criteria_values import FIELDS
from aicr.cli import criteria
from aicr.cli.arguments import Once, Parser
from aicr.cli.catalogs import load_catalog
from aicr.cli.formats import check_format, render
from aicr.recipe.criteria import ANY, normalise

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable
    from typing import Final

    from aicr.cli.console import Console
    from aicr.recipe.listing import Health, Row

FORMATS: Final = ("table", "json", "yaml")
_EXAMPLES = """\
examples:
  aicr recipe list
  aicr recipe list --service eks --intent training
  aicr recipe list --accelerator h100 --format json
  aicr recipe list --data ./my-recipes --no-health

A filter keeps the overlays that state that very word. STATUS tells what `aicr
recipe` with the criteria of the row does: ok; needs-flags: it works once a
flag is given; refused, with the reason below the table. COVERAGE counts the
checks of the phases readiness, deployment, performance, conformance.
"""

_BOLD: Final = "\033[1m"
_DIM: Final = "\033[2m"
_COLOURS: Final = {"ok": "\033[32m", "needs-flags": "\033[33m", "refused": "\033[31m"}
_OFF: Final = "\033[0m"


def parser() -> Parser:
    """The parser of this command."""
    found = Parser(
        prog="aicr recipe list",
        description="List the overlays of the catalogue: their criteria, and whether they resolve.",
        epilog=_EXAMPLES,
    )
    criteria.add_words(found.add_argument_group("filters"))
    criteria.add_catalogue(found)
    output = found.add_argument_group("output")
    output.add_argument(
        "--format",
        "-t",
        action=Once,
        metavar="NAME",
        help="table (default), json or yaml",
    )
    output.add_argument(
        "--no-health",
        "--skip-health",
        action="store_true",
        help="do not resolve the overlays: faster, without components, status and coverage",
    )
    return found


def execute(arguments: argparse.Namespace, console: Console) -> int:
    """Read the catalogue, resolve every row, print."""
    from aicr.recipe.listing import support_matrix

    chosen = _format(arguments.format)
    catalog = load_catalog(arguments, console)
    strict = criteria.is_strict(arguments)
    stated = criteria.words_of(arguments, catalog, strict)
    if "configured" in arguments:
        said = {field: f"--{field} {word}" for field, word in stated.items()}
        for line in arguments.configured.add_criteria(stated, said, catalog, strict):
            console.say(line)
    filters: dict[str, str] = {}
    for field in FIELDS:
        word = normalise(field, stated.get(field, ""))
        if word != ANY:
            filters[field] = word
    rows = support_matrix(catalog, filters=filters, health=not arguments.no_health)
    if chosen != "table":
        console.write(render(rows, chosen))
    elif rows:
        from aicr.cli.explain_text import wants_colour

        console.write(draw(rows, colour=wants_colour(console.out)))
    # The sum comes below the table also where both streams go to one place.
    console.flush()
    console.say(_summary(rows, filters))
    return 0


def _format(text: str | None) -> str:
    """The chosen format; unlike that of a document, the default is the table."""
    return check_format(text, FORMATS)


def draw(rows: list[Row], *, colour: bool = False) -> str:
    """Rows as a table with a header, and the reasons of those that are not ok below it.

    Columns for which no row has anything are left out.
    """
    columns: list[tuple[str, Callable[[Row], str]]] = [("NAME", lambda row: row["name"])]
    for field in FIELDS:
        columns.append((field.upper(), _word(field)))
    columns.append(("IS_LEAF", lambda row: "true" if row["is_leaf"] else "false"))
    if any("health" in row for row in rows):
        columns.append(("STATUS", lambda row: _health(row)["status"]))
        columns.append(("COVERAGE", _coverage))
        columns.append(("COMPONENTS", lambda row: str(row.get("components", "-"))))
    columns.append(("SOURCE", lambda row: row["source"]))
    if any("profile" in row for row in rows):
        columns.append(("PROFILE", _profile))
    cells = [[_clean(read(row)) for _, read in columns] for row in rows]
    heads = [head for head, _ in columns]
    widths = [max(map(len, column)) for column in zip(heads, *cells, strict=True)]
    lines = [_line(heads, widths, [_BOLD] * len(heads) if colour else None)]
    for row in cells:
        styles = [_COLOURS.get(cell, _DIM if cell in (ANY, "-") else "") for cell in row]
        lines.append(_line(row, widths, styles if colour else None))
    return "\n".join(lines) + "\n" + _reasons(rows)


def _line(cells: list[str], widths: list[int], styles: list[str] | None) -> str:
    shown = []
    for index, (cell, width) in enumerate(zip(cells, widths, strict=True)):
        blanks = " " * (width - len(cell)) if index + 1 < len(cells) else ""
        style = styles[index] if styles else ""
        shown.append(f"{style}{cell}{_OFF}{blanks}" if style else cell + blanks)
    return "  ".join(shown)


def _word(field: str) -> Callable[[Row], str]:
    return lambda row: row["criteria"].get(field, ANY)


def _health(row: Row) -> Health:
    return row["health"]


def _coverage(row: Row) -> str:
    from aicr.recipe.listing import compact

    coverage = _health(row).get("coverage")
    return "-" if coverage is None else compact(coverage)


def _profile(row: Row) -> str:
    profile = row.get("profile")
    return f"{profile['name']}={'|'.join(profile['values'])}" if profile else "-"


def _reasons(rows: list[Row]) -> str:
    """A paragraph for each kind of row that is not ok, with the reasons; equal ones are told once."""
    text = ""
    for status in ("needs-flags", "refused"):
        reasons: dict[str, list[str]] = {}
        for row in rows:
            health = row.get("health")
            if health is not None and health["status"] == status:
                words = health.get("reason", "")
                reasons.setdefault(words, []).append(row["name"])
        for words, names in reasons.items():
            text += f"\n{status}: {_clean(', '.join(names))}\n  {_clean(words)}\n"
    return text


def _clean(text: str) -> str:
    """*text* without characters that could write over a terminal; names come from any catalogue."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def _summary(rows: list[Row], filters: dict[str, str]) -> str:
    counts: dict[str, int] = {}
    for row in rows:
        if "health" in row:
            status = _health(row)["status"]
            counts[status] = counts.get(status, 0) + 1
    said = ", ".join(f"{counts[status]} {status}" for status in _COLOURS if status in counts)
    asked = " ".join(f"{field}={word}" for field, word in filters.items())
    about = f" with {asked}" if asked else ""
    overlays = f"{len(rows)} overlay{'' if len(rows) == 1 else 's'}"
    return f"{overlays}{about}" + (f": {said}" if said else "")
