"""Output formats of documents: yaml, json, and a flat table."""

from __future__ import annotations

from aicr.errors import invalid, nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Final

FORMATS: Final = ("yaml", "json", "table")
_CELL: Final = 100


def check_format(text: str | None, allowed: tuple[str, ...] = FORMATS) -> str:
    """The chosen format; the first of *allowed* when none was chosen.

    Raises:
        AicrError: INVALID_REQUEST listing the valid formats.
    """
    chosen = allowed[0] if text is None else text
    if chosen not in allowed:
        near = nearest(chosen, list(allowed))
        raise invalid(
            f'unknown output format: "{chosen}", valid formats are: {", ".join(allowed)}',
            where="--format",
            hint=f"did you mean {near}?" if near else f"leave --format out for {allowed[0]}",
        )
    return chosen


def render(document: Any, chosen: str) -> str:
    """A document in a format, ending in a newline."""
    if chosen == "json":
        from aicr.yamlio.jsontext import dump_json

        return dump_json(document)
    if chosen == "table":
        return _table(document)
    from aicr.yamlio.write import dump

    return dump(document)


def one_line(text: str) -> str:
    """*text* on one line of printable signs, for reports that quote names and words of a stranger.

    A file can be called anything, also ``x``, a line feed and ``verify: PASSED``.

    >>> one_line("x\\nverify: PASSED")
    'x\\\\nverify: PASSED'
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def _table(document: Any) -> str:
    rows = sorted(_flatten(document, ""))
    width = max([5, *(len(name) for name, _ in rows)])
    lines = [f"{'FIELD':<{width}}  VALUE", f"{'-' * 5:<{width}}  {'-' * 5}"]
    lines += [f"{name:<{width}}  {value}".rstrip() for name, value in rows]
    return "\n".join(lines) + "\n"


def _flatten(node: Any, trail: str) -> Iterator[tuple[str, str]]:
    if isinstance(node, dict) and node:
        for key, item in node.items():
            name = str(key)[:1].upper() + str(key)[1:]
            yield from _flatten(item, f"{trail}.{name}" if trail else name)
    elif isinstance(node, list) and node:
        for index, item in enumerate(node):
            yield from _flatten(item, f"{trail}.[{index}]")
    else:
        yield trail, _cell(node)


def _cell(value: Any) -> str:
    if value is None or value in ({}, []):
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    first, _, rest = str(value).partition("\n")
    if rest.strip() or len(first) > _CELL:
        return f"{first[:_CELL]} …"
    return first
