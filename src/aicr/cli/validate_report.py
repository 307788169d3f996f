"""What ``aicr validate`` shows: live lines while checks run, and a table at the end; all on stderr.

The report itself is JSON and goes to stdout. On a terminal the table is drawn by rich, if it is
installed; everywhere else it is plain text in columns. NO_COLOR is respected.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Final

    from aicr.cli.console import Console
    from aicr.validate.plan import JobPlan
    from aicr.validate.results import CheckResult, PhaseResult

_COLOURS: Final = {"passed": "green", "failed": "red", "other": "red", "skipped": "yellow"}
_HEADINGS: Final = ("PHASE", "CHECK", "STATUS", "TIME", "WHY")
#: Longest reason in the table, in characters; the report has all of it.
_LONGEST_WHY: Final = 100


class Live:
    """Prints what happens as it happens (`aicr.validate.progress.Progress`)."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def phase_started(self, phase: str, names: list[str]) -> None:
        """Say how much is to be done."""
        count = f"{len(names)} check{'' if len(names) == 1 else 's'}"
        self._console.say(f"phase {phase}: {count if names else 'no checks declared'}")

    def started(self, planned: JobPlan) -> None:
        """Say which check begins, and how long it may take."""
        self._console.say(f"  {planned.name}: started (at most {planned.timeout_text})")

    def log(self, check: str, line: str) -> None:
        """Show a line of a check's log."""
        self._console.dim(f"  {check} | {line}")

    def finished(self, result: CheckResult) -> None:
        """Show the results that a check measured, and its verdict."""
        for text in result.output.results:
            self._console.say(f"  {result.name}: RESULT {text}")
        why = _first_line(result.verdict.message)
        self._console.say(f"  {result.name}: {result.status}" + (f" - {why}" if why else ""))

    def phase_finished(self, result: PhaseResult) -> None:
        """Nothing here: the phases are summed up together, once all are done."""

    def note(self, text: str) -> None:
        """Show a detail."""
        self._console.dim(text)

    def warn(self, text: str) -> None:
        """Show a warning."""
        self._console.warn(text)


def show(found: Sequence[PhaseResult], console: Console) -> None:
    """The table of all checks, and one line for each phase."""
    rows = [_row(result.phase, test) for result in found for test in _tests(result)]
    if rows and not (_wants_rich(console) and _rich_table(rows, console)):
        for line in plain_table(rows):
            console.say(line)
    from aicr.contract import ctrf

    for result in found:
        console.say(
            f"phase result: {result.phase} {result.status}, {ctrf.coverage(dict(result.summary))}, "
            f"{result.seconds:.1f}s"
        )


def _tests(result: PhaseResult) -> list[dict[str, Any]]:
    tests: list[dict[str, Any]] = result.report["results"]["tests"]
    return tests


def _row(phase: str, test: dict[str, Any]) -> tuple[str, ...]:
    code = (test.get("extra") or {}).get("code", "")
    why = _first_line(test.get("message", ""))
    if code and code not in why:
        why = f"[{code}] {why}"
    if len(why) > _LONGEST_WHY:
        why = f"{why[: _LONGEST_WHY - 1]}…"
    return phase, test["name"], test["status"], f"{test['duration'] / 1000:.1f}s", why


def _first_line(text: str) -> str:
    line = text.strip().partition("\n")[0]
    # A check's text must not be able to write over a terminal.
    return "".join(c if c.isprintable() else "?" for c in line)


def plain_table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """The rows in columns, with headings."""
    every = [_HEADINGS, *rows]
    widths = [max(len(row[index]) for row in every) for index in range(len(_HEADINGS) - 1)]
    return [
        "  ".join(
            [*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]]
        ).rstrip()
        for row in every
    ]


def _wants_rich(console: Console) -> bool:
    environ = os.environ
    return bool(console.err.isatty()) and not (
        environ.get("NO_COLOR") or environ.get("TERM") == "dumb"
    )


def _rich_table(rows: Sequence[tuple[str, ...]], console: Console) -> bool:
    """Draw the table; False when rich is not installed."""
    try:
        from rich.console import Console as Terminal
        from rich.table import Table
        from rich.text import Text
    except ImportError:
        return False
    table = Table(box=None, pad_edge=False)
    for heading in _HEADINGS:
        table.add_column(heading, overflow="fold")
    for row in rows:
        style = _COLOURS.get(row[2], "")
        table.add_row(*(Text(cell, style=style if cell is row[2] else "") for cell in row))
    Terminal(file=console.err).print(table)
    return True
