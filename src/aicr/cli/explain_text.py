"""Explanations drawn for people: aligned columns, the layer in force marked, colour on a terminal only.

Where a table is wider than the terminal, its rows are broken between columns. What goes to a file or a
pipe has one line a row.

Takes the documents of ``aicr.recipe.explain`` and returns text; it decides nothing about recipes.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Final, TextIO

    from aicr.recipe.explain_types import Explanation, Item, OverlayRow, Step

#: Most rows of one table; JSON always has all.
LIMIT: Final = 60
_LONGEST: Final = 56
#: Columns by which the second line of a broken row is set in.
_SET_IN: Final = 8

_BOLD: Final = "\033[1m"
_GREEN: Final = "\033[32m"
_DIM: Final = "\033[2m"
_OFF: Final = "\033[0m"

_MARK: Final = "=>"
_NO_MARK: Final = "  "
_STATES: Final = {"applied": "+", "excluded": "-", "unmatched": " "}


def wants_colour(stream: TextIO) -> bool:
    """Whether a stream is a terminal whose user has not declined colour."""
    return (
        bool(stream.isatty())
        and not os.environ.get("NO_COLOR")
        and os.environ.get("TERM") != "dumb"
    )


def width_of(stream: TextIO) -> int:
    """Columns of a terminal, 0 for any other stream."""
    if not stream.isatty():
        return 0
    import shutil

    return shutil.get_terminal_size().columns


def draw(explanation: Explanation, *, colour: bool = False, width: int = 0) -> str:
    """An explanation as text that ends in a newline; rows wider than *width* are broken; 0 is no limit."""
    parts = []
    if explanation.get("criteria"):
        stated = " ".join(f"{word}={value}" for word, value in explanation["criteria"].items())
        parts.append(f"recipe for {stated}\n")
    if explanation.get("overlays"):
        parts.append(_overlays(explanation["overlays"], colour, width))
    if explanation.get("order"):
        parts.append(_order(explanation, colour, width))
    items = explanation.get("items")
    if items is not None and len(items) == 1:
        parts.append(_item(items[0], colour, width))
    elif items is not None:
        parts.append(_items(items, explanation["about"], colour, width))
    if explanation.get("notes"):
        parts.append("".join(f"{_clean(note)}\n" for note in explanation["notes"]))
    return "\n".join(parts)


def _item(item: Item, colour: bool, width: int) -> str:
    """One thing: the value, then every layer, lowest first."""
    selector = _clean(item["selector"])
    value = f" = {_value(item['value'])}" if "value" in item else " is deleted"
    lines = [_paint(f"{selector}{value}", _BOLD, colour), ""]
    rows = [
        (
            _MARK if step["inForce"] else _NO_MARK,
            _layer(step),
            _said(step),
            _clean(step["where"]),
        )
        for step in item["steps"]
    ]
    for step, line in zip(item["steps"], _aligned(rows, width), strict=True):
        lines.append(_paint(line, _GREEN if step["inForce"] else "", colour))
        if "namedBy" in step:
            by = step["namedBy"]
            text = f"     named by {by['kind']} {by['name']}, {by['where']}"
            lines.append(_paint(_clean(text), _DIM, colour))
    return "\n".join(lines) + "\n"


def _items(items: Sequence[Item], about: str, colour: bool, width: int) -> str:
    """Several things: a line each with the layer in force."""
    if not items:
        return "nothing\n"
    prefix = _prefix([item["selector"] for item in items], about)
    rows = []
    for item in items[:LIMIT]:
        said = [step for step in item["steps"] if step["inForce"]]
        deciding = said[0] if said else None
        rows.append(
            (
                _clean(item["selector"].removeprefix(prefix)),
                _value(item["value"]) if item["state"] == "set" else item["state"],
                _layer(deciding) if deciding else "",
                _clean(deciding["where"]) if deciding else "",
                _over(item["steps"]),
            )
        )
    head = f"{_clean(prefix.rstrip('.'))}: {len(items)} entries"
    lines = _aligned(rows, width, margin=2)
    text = "\n".join([_paint(head, _BOLD, colour), "", *lines])
    if len(items) > LIMIT:
        text += f"\n  … and {len(items) - LIMIT} more: narrow the selector, or take --format json"
    return text + "\n"


def _over(steps: Sequence[Step]) -> str:
    places = [number for number, step in enumerate(steps) if step["inForce"]]
    below = sum(
        step["action"] not in ("repeats", "matches") for step in steps[: max(places or [0])]
    )
    return f"over {below} more" if below else ""


def _prefix(selectors: Sequence[str], about: str) -> str:
    if about != "components":
        return f"{about}."
    first, last = min(selectors), max(selectors)
    length = 0
    while length < min(len(first), len(last)) and first[length] == last[length]:
        length += 1
    cut = first.rfind(".", 0, length)
    while cut > 0 and first[cut - 1] == "\\":
        cut = first.rfind(".", 0, cut)
    return first[: cut + 1]


def _layer(step: Step) -> str:
    # The place of a values file says its name already.
    if step["kind"] in ("component values", "values file", "registry"):
        return step["kind"]
    return _clean(f"{step['kind']} {step['name']}")


def _said(step: Step) -> str:
    value = _value(step["value"]) if "value" in step else ""
    above = f" {_clean(step['at'])}" if step.get("at") else ""
    words = {
        "deletes": f"deletes{above}" if above else "deletes it",
        "replaces": f"replaces{above}" + (f" by {value}" if value else ""),
        "adds": "adds it",
        "repeats": "lists it too",
        "clears": "clears the list",
        "fills": f"{value} (default)",
        "tightens": f"narrows by {value}",
    }
    return words.get(step["action"], value)


def _overlays(rows: Sequence[OverlayRow], colour: bool, width: int) -> str:
    lines = []
    table = [
        tuple(
            map(
                _clean,
                (_STATES[row["state"]], row["overlay"], row["where"], row["because"]),
            )
        )
        for row in rows
    ]
    for row, line in zip(rows, _aligned(table, width), strict=True):
        lines.append(_paint(line, _GREEN if row["state"] == "applied" else "", colour))
        for failure in row.get("failures") or ():
            lines.append(
                _clean(f"      {failure['constraint']}: {failure['reason']}, {failure['where']}")
            )
    return "\n".join(lines) + "\n"


def _order(explanation: Explanation, colour: bool, width: int) -> str:
    rows = [
        (
            f"{row['position']:>3}.",
            _clean(row["component"]),
            f"tier {row['tier']}",
            _clean(f"waits for {', '.join(row['waitsFor'])}") if row["waitsFor"] else "",
        )
        for row in explanation["order"]
    ]
    lines = [_paint(line, _BOLD, colour) for line in _aligned(rows, width)]
    edges = [
        (
            _clean(f"{edge['component']} -> {edge['dependsOn']}"),
            _clean(f"{edge['kind']} {edge['name']}"),
            _clean(edge["where"]),
        )
        for edge in explanation.get("edges") or ()
    ]
    if edges:
        lines += ["", *_aligned(edges, width, margin=2)]
    return "\n".join(lines) + "\n"


def _aligned(rows: Sequence[tuple[str, ...]], width: int, margin: int = 0) -> list[str]:
    """Rows with their columns lined up, each on one line or, where they are too wide, on several.

    The columns that fit are lined up; the cells of the others follow on lines that are set in.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    fitting, used = 0, margin
    for room in widths:
        needed = used + room + (2 if used > margin and room else 0)
        if width and needed > width and used > margin + len(_MARK):
            break
        fitting, used = fitting + 1, needed
    return [
        "\n".join(
            [_lined_up(row, widths[:fitting], margin), *_set_in(row[fitting:], width, margin)]
        )
        for row in rows
    ]


def _lined_up(row: tuple[str, ...], widths: Sequence[int], margin: int) -> str:
    cells = (cell.ljust(room) for cell, room in zip(row, widths, strict=False) if room)
    return f"{' ' * margin}{'  '.join(cells)}".rstrip()


def _set_in(cells: Sequence[str], width: int, margin: int) -> list[str]:
    """Cells on lines of at most *width*, as many as fit on each; one that is longer has a line."""
    place = " " * (margin + _SET_IN)
    lines: list[str] = []
    for cell in filter(None, cells):
        if lines and len(lines[-1]) + 2 + len(cell) <= width:
            lines[-1] += f"  {cell}"
        else:
            lines.append(place + cell)
    return lines


def _value(value: Any) -> str:
    """A value on one line, as JSON, cut where it gets long."""
    import json

    text = _clean(json.dumps(value, ensure_ascii=False))
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _clean(text: str) -> str:
    """*text* without characters that could write over a terminal."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def _paint(text: str, style: str, colour: bool) -> str:
    return f"{style}{text}{_OFF}" if colour and style else text
