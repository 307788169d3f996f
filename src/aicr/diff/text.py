"""A comparison drawn for people: a table for each area, colour on a terminal only.

It decides nothing about what is a difference; JSON has every change in full.
"""

from __future__ import annotations

from aicr.diff.changes import ABSENT, ADDED, DOWNGRADED, REMOVED, UPGRADED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any, Final

    from aicr.diff.changes import Change, Comparison

#: Most rows of one area.
LIMIT: Final = 100
_LONGEST: Final = 44
_PATH: Final = 90

_BOLD: Final = "\033[1m"
_OFF: Final = "\033[0m"
_COLOURS: Final[dict[str, str]] = {
    ADDED: "\033[32m",
    REMOVED: "\033[31m",
    UPGRADED: "\033[36m",
    DOWNGRADED: "\033[35m",
}
_OTHER: Final = "\033[33m"

#: Heading of an area -> words for its first column; an area without one has none.
_FIRST: Final[dict[str, str]] = {"measurements": "measurement", "releases": "release"}


def draw(comparison: Comparison, before: str, after: str, *, colour: bool = False) -> str:
    """The comparison as text that ends in a newline."""
    total = len(comparison.changes)
    count = "no differences" if comparison.same else f"{total} difference{'s' * (total != 1)}"
    head = f"{comparison.kind}: {_clean(before)} → {_clean(after)}: {count}"
    lines = [_paint(head, _BOLD, colour)]
    for area in comparison.counts():
        held = [change for change in comparison.changes if change.area == area]
        lines += ["", _paint(f"{area} ({len(held)})", _BOLD, colour)]
        lines += _table(area, held[:LIMIT], colour)
        if len(held) > LIMIT:
            lines.append(f"  … and {len(held) - LIMIT} more; --format json has all")
    if comparison.notes:
        lines += ["", *(f"note: {_clean(note)}" for note in comparison.notes)]
    return "\n".join(lines) + "\n"


def grid(head: Sequence[str], rows: Sequence[Sequence[str]], paints: Iterable[str]) -> list[str]:
    """A drawn table: headings, a rule, a line for each row in its colour ("" for none)."""
    shown = [
        index for index in range(len(head)) if any(row[index] for row in rows) or head[index] == ""
    ]
    widths = {index: max(len(head[index]), *(len(row[index]) for row in rows)) for index in shown}

    def line(cells: Sequence[str], between: str) -> str:
        return between.join(cells[index].ljust(widths[index]) for index in shown).rstrip()

    lines = [f"  {line(head, ' │ ')}", f"  {'─┼─'.join('─' * widths[index] for index in shown)}"]
    for row, paint in zip(rows, paints, strict=True):
        text = line(row, " │ ")
        lines.append(f"  {paint}{text}{_OFF}" if paint else f"  {text}")
    return lines


def _table(area: str, changes: Sequence[Change], colour: bool) -> list[str]:
    rows = [
        (
            _clean(change.component),
            _short(change.path, _PATH),
            change.change,
            _value(change.before),
            _value(change.after),
        )
        for change in changes
    ]
    head = (_FIRST.get(area, "component"), "what", "change", "before", "after")
    paints = [_COLOURS.get(change.change, _OTHER) if colour else "" for change in changes]
    return grid(head, rows, paints)


def _value(value: Any) -> str:
    if value is ABSENT:
        return ""
    if isinstance(value, str):
        return _short(value, _LONGEST) if value else '""'
    from aicr.yamlio.jsontext import dump_json

    # One line: JSON of a list or map spans several.
    return _short(" ".join(dump_json(value).split()), _LONGEST)


def _short(text: str, longest: int) -> str:
    line = _clean(text)
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


def _clean(text: str) -> str:
    """*text* on one line and without control characters, which could write over a terminal."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def _paint(text: str, code: str, colour: bool) -> str:
    return f"{code}{text}{_OFF}" if colour else text
