"""Write the table of ``docs/validations.md`` from the functions that ship and how they are wired.

What a function checks and what to do about it stand in its docstring, so page and code cannot
disagree. A test compares.

Usage: ``python -m tools.gen_validation_page [--check]``
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import sys
from pathlib import Path
from typing import Final

from aicr.bundle.validations.table import FUNCTIONS
from aicr.catalog.catalog import Catalog

PAGE: Final = Path(__file__).resolve().parent.parent / "docs" / "validations.md"
START: Final = "<!-- The table below is written by `python -m tools.gen_validation_page`. -->\n"
END: Final = "<!-- End of the written table. -->\n"

#: Functions that return errors of their own for what their table of states refuses.
ALWAYS_BLOCK: Final = {
    "CheckNPDNotDuplicatingProviderNPD",
    "CheckMariaDBOperatorOwnershipCoherence",
    "CheckNVSentinelDatastorePrerequisites",
}


def table() -> str:
    """One row a function, in the order of the code's table."""
    wired: dict[str, list[tuple[str, str]]] = {name: [] for name in FUNCTIONS}
    for entry in Catalog.builtin().registry.entries:
        for block in entry.get("validations") or ():
            conditions = "; ".join(
                f"{field} {', '.join(values)}"
                for field, values in (block.get("conditions") or {}).items()
            )
            severity = block.get("severity") or "warning"
            mark = " + errors" if block["function"] in ALWAYS_BLOCK else ""
            wired[block["function"]].append(
                (entry["name"], f"{severity}{mark}" + (f" ({conditions})" if conditions else ""))
            )
    rows = ["| function | component | severity | checks that | remedy |", "|---|---|---|---|---|"]
    for name in FUNCTIONS:
        checks, remedy = words(name)
        places = ", ".join(f"`{component}`" for component, _ in wired[name])
        severities = ", ".join(dict.fromkeys(severity for _, severity in wired[name]))
        rows.append(f"| `{name}` | {places} | {severities} | {checks} | {remedy} |")
    return "\n".join(rows)


def words(name: str) -> tuple[str, str]:
    """What a function checks, and its remedy, in Markdown.

    Raises:
        SystemExit: when its docstring does not say.
    """
    module, function = FUNCTIONS[name]
    found = getattr(importlib.import_module(f"aicr.bundle.validations.{module}"), function)
    paragraphs = [" ".join(part.split()) for part in (inspect.getdoc(found) or "").split("\n\n")]
    remedies = [part.removeprefix("Remedy: ") for part in paragraphs if part.startswith("Remedy: ")]
    if len(remedies) != 1:
        raise SystemExit(f"{module}.{function} needs a docstring with one paragraph `Remedy: …`")
    return (
        paragraphs[0].replace("``", "`").replace("|", "\\|"),
        remedies[0].replace("``", "`").replace("|", "\\|"),
    )


def page() -> str:
    """The page with its table as it should be.

    Raises:
        SystemExit: when the page lost a marker.
    """
    text = PAGE.read_text(encoding="utf-8")
    if text.count(START) != 1 or text.count(END) != 1:
        raise SystemExit(f"{PAGE.name} must hold both markers once")
    before, after = text.split(START)[0], text.split(END)[1]
    return f"{before}{START}\n{table()}\n\n{END}{after}"


def main() -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description="Write the table of docs/validations.md.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if stale")
    check: bool = parser.parse_args().check
    text = page()
    if PAGE.read_text(encoding="utf-8") == text:
        sys.stdout.write("docs: docs/validations.md is current\n")
        return 0
    if not check:
        PAGE.write_text(text, encoding="utf-8", newline="\n")
    sys.stdout.write(f"docs: docs/validations.md {'is stale' if check else 'written'}\n")
    return int(check)


if __name__ == "__main__":
    raise SystemExit(main())
