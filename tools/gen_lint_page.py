"""Write the table of rules in ``docs/lint.md`` from the table that the program runs.

The page is written by hand except for what stands between its two markers. A test compares.

Usage: ``python -m tools.gen_lint_page [--check]``
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Final

from aicr.lint.findings import ERROR, WARNING
from aicr.lint.run import ALL_RULES

PAGE: Final = Path(__file__).resolve().parent.parent / "docs" / "lint.md"
START: Final = "<!-- The tables below are written by `python -m tools.gen_lint_page`. -->\n"
END: Final = "<!-- End of the written tables. -->\n"


def tables() -> str:
    """The tables of errors and warnings."""
    parts = []
    for severity, title in ((ERROR, "Errors"), (WARNING, "Warnings")):
        rows = [
            f"| `{rule.id}` | {rule.why.replace('|', chr(92) + '|')} |"
            for rule in ALL_RULES.values()
            if rule.severity == severity
        ]
        parts.append("\n".join([f"### {title}", "", "| rule | why |", "|---|---|", *rows]))
    return "\n\n".join(parts)


def page() -> str:
    """The page with its tables as they should be.

    Raises:
        SystemExit: when the page lost a marker.
    """
    text = PAGE.read_text(encoding="utf-8")
    if text.count(START) != 1 or text.count(END) != 1:
        raise SystemExit(f"{PAGE.name} must hold both markers once")
    before, after = text.split(START)[0], text.split(END)[1]
    return f"{before}{START}\n{tables()}\n\n{END}{after}"


def main() -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description="Write the tables of docs/lint.md.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if stale")
    check: bool = parser.parse_args().check
    text = page()
    if PAGE.read_text(encoding="utf-8") == text:
        print("docs: docs/lint.md is current")
        return 0
    if not check:
        PAGE.write_text(text, encoding="utf-8", newline="\n")
    print(
        f"docs: docs/lint.md {'is stale: run python -m tools.gen_lint_page' if check else 'written'}"
    )
    return 1 if check else 0


if __name__ == "__main__":
    sys.exit(main())
