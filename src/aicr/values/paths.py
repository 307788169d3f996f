r"""Paths into plain documents: ``a.b\.c[0].d``.

A path is text for people and a list of segments for programs: strings are map keys, integers are
list positions. Dots separate keys, a backslash makes the next ``.``, ``[``, ``]`` or ``\`` part of
the key, and ``[n]`` picks the n-th item of a list. There is no wildcard and no negative position.

Functions on documents return new documents; the input is never changed. A list is never grown by a
path, because a gap would have to be filled with nulls (field case B5).
The module knows nothing of components or flags; callers add that to the errors. Source: decision 6.
"""

from __future__ import annotations

from aicr.errors import invalid, nearest, not_found
from aicr.values.merge import copy_tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    Segment = str | int

_ESCAPABLE: Final = ".[]\\"
#: Without these a path is its segments with dots between them.
_SPECIAL: Final = "[]\\"
_LARGEST_INDEX: Final = 65536
#: No values file is nested this deep, and what is nested deeper than 200 cannot be written.
_MOST_SEGMENTS: Final = 100


class _Missing:
    """Type of the mark for "no default given", so that None can be a default."""


_MISSING: Final = _Missing()


def split(text: str) -> list[Segment]:
    r"""The segments of the path *text*: ``a.b\.c[0]`` gives ``["a", "b.c", 0]``.

    Raises:
        AicrError: INVALID_REQUEST for an empty path or segment, an unterminated or misplaced
            bracket, an index that is not a plain number from 0 to 65536, a backslash that
            escapes nothing, and more than 100 segments.
    """
    segments = _split(text)
    if len(segments) > _MOST_SEGMENTS:
        raise _bad(
            f"{text[:40]}…",
            f"{len(segments)} segments, and at most {_MOST_SEGMENTS} are possible",
            "is it the right path?",
        )
    return segments


def _split(text: str) -> list[Segment]:
    if text and not any(char in text for char in _SPECIAL):
        plain: list[Segment] = [*text.split(".")]
        if "" not in plain:
            return plain
    segments: list[Segment] = []
    key: list[str] = []
    expect_key = True
    position, end = 0, len(text)
    while position < end:
        char = text[position]
        if char == "\\":
            escaped = text[position + 1 : position + 2]
            if not escaped or escaped not in _ESCAPABLE:
                raise _bad(
                    text,
                    f'backslash before "{escaped}"' if escaped else "backslash at the end",
                    r"a backslash may only stand before . [ ] or \ (write \\ for a backslash)",
                )
            key.append(escaped)
            position += 2
        elif char == ".":
            if key:
                segments.append("".join(key))
                key.clear()
            elif expect_key:
                raise _bad(text, "empty segment", r"write \. for a dot that belongs to a key")
            expect_key = True
            position += 1
        elif char == "[":
            if key:
                segments.append("".join(key))
                key.clear()
            elif expect_key and segments:
                raise _bad(text, "empty segment", "an index follows its list directly: a[0]")
            index, position = _index(text, position)
            segments.append(index)
            expect_key = False
        elif char == "]":
            raise _bad(text, 'unexpected "]"', r"write \] for a bracket that belongs to a key")
        else:
            if not expect_key and not key:
                raise _bad(text, f'"{char}" directly after "]"', "put a dot after the bracket")
            key.append(char)
            position += 1
            expect_key = True
    if key:
        segments.append("".join(key))
    elif expect_key:
        raise _bad(text, "empty segment" if text else "empty path", "name at least one key")
    return segments


def _index(text: str, position: int) -> tuple[int, int]:
    """The index in the bracket that opens at *position*, and the position behind the bracket."""
    close = text.find("]", position)
    if close < 0:
        raise _bad(text, 'unterminated "["', r"close the bracket, or write \[ for a key")
    digits = text[position + 1 : close]
    if not (digits.isascii() and digits.isdigit()) or (digits[0] == "0" and len(digits) > 1):
        raise _bad(text, f'index "{digits}" is not a plain number', "indices are 0, 1, 2, ...")
    if len(digits) > 5 or int(digits) > _LARGEST_INDEX:
        raise _bad(text, f"index {digits} is above {_LARGEST_INDEX}", "use an index in the list")
    return int(digits), close + 1


def _bad(text: str, problem: str, hint: str) -> Exception:
    return invalid(f'invalid path "{text}": {problem}', hint=hint)


def join(segments: list[Segment]) -> str:
    """The path text of *segments*; :func:`split` gives them back.

    Raises:
        AicrError: INVALID_REQUEST for no segments, an empty key or an index outside 0 to 65536.
    """
    if not segments:
        raise invalid("a path needs at least one segment")
    out: list[str] = []
    for segment in segments:
        if type(segment) is int:
            if not 0 <= segment <= _LARGEST_INDEX:
                raise invalid(f"index {segment} is not between 0 and {_LARGEST_INDEX}")
            out.append(f"[{segment}]")
            continue
        if not segment:
            raise invalid("an empty key cannot be written in a path")
        key = str(segment)
        for char in "\\.[]":
            key = key.replace(char, "\\" + char)
        out.append("." + key if out else key)
    return "".join(out)


def get(document: Any, segments: list[Segment], default: Any = _MISSING) -> Any:
    """The value at *segments*, or *default* if given and there is none.

    Raises:
        AicrError: NOT_FOUND, naming the first segment that is missing and the nearest key, when
            there is no value and no default.
    """
    value = document
    for depth, segment in enumerate(segments):
        if _present(value, segment):
            value = value[segment]
        elif default is not _MISSING:
            return default
        else:
            raise _absent(value, segments, depth)
    return value


def _present(value: Any, segment: Segment) -> bool:
    if type(segment) is int:
        return type(value) is list and 0 <= segment < len(value)
    return type(value) is dict and segment in value


def _absent(value: Any, segments: list[Segment], depth: int) -> Exception:
    place = join(segments[: depth + 1])
    segment = segments[depth]
    if type(value) is dict and type(segment) is str:
        near = nearest(segment, [key for key in value if type(key) is str])
        return not_found(f'no value at "{place}"', hint=f'did you mean "{near}"?' if near else "")
    if type(value) is list and type(segment) is int:
        return not_found(f'no value at "{place}": the list has {len(value)} items')
    return not_found(f'no value at "{place}": the value above it is {a_type(value)}')


def put(document: Any, segments: list[Segment], value: Any) -> Any:
    """A new document in which *segments* holds *value*.

    Maps on the way are made when absent or null.

    Branches that the path does not touch are shared with *document*; *value* is copied.

    Raises:
        AicrError: INVALID_REQUEST when the path leads through something that is not a map
            (recipe.md 8, row 53), when an index is given for something that is not a list, and
            when an index is not in the list.
    """
    if not segments:
        return copy_tree(value)
    return _put(document, segments, 0, copy_tree(value))


def _put(node: Any, segments: list[Segment], depth: int, value: Any) -> Any:
    segment = segments[depth]
    last = depth + 1 == len(segments)
    if isinstance(segment, int):
        if type(node) is not list and node is not None:
            raise invalid(
                f'path segment "{_name(segments, depth)}" exists but is not a list'
                f" (type: {type_name(node)})",
                hint="leave the index out, or replace the whole value",
            )
        items: list[Any] = list(node or ())
        if not 0 <= segment < len(items):
            raise invalid(
                f'index {segment} of "{_name(segments, depth)}" is out of bounds:'
                f" the list has {len(items)} items",
                hint="set the whole list instead; a path does not grow one",
            )
        items[segment] = value if last else _put(items[segment], segments, depth + 1, value)
        return items
    if node is None:
        entries: dict[str, Any] = {}
    elif type(node) is dict:
        entries = dict(node)
    else:
        raise invalid(
            f'path segment "{_name(segments, depth)}" exists but is not a map'
            f" (type: {type_name(node)})",
            hint="use an index such as [0] for a list item, or replace the whole value",
        )
    entries[segment] = value if last else _put(entries.get(segment), segments, depth + 1, value)
    return entries


def _name(segments: list[Segment], depth: int) -> str:
    """The segment above *depth* as it stands in the path (with its index, for a list item)."""
    if depth == 0:
        return "."
    start = depth - 1
    while start > 0 and type(segments[start]) is int:
        start -= 1
    return join(segments[start:depth])


def delete(document: Any, segments: list[Segment]) -> Any:
    """A new document without the value at *segments*; equal to *document* when there is none."""
    if not segments:
        return None
    segment = segments[0]
    if not _present(document, segment):
        return document
    changed = document.copy()
    if len(segments) == 1:
        del changed[segment]
    else:
        changed[segment] = delete(document[segment], segments[1:])
    return changed


def conflict(a: list[Segment], b: list[Segment]) -> bool:
    """Whether setting both touches the same place: equal, ancestor or descendant (decision 7)."""
    shared = min(len(a), len(b))
    return a[:shared] == b[:shared]


def type_name(value: Any) -> str:
    """The word for the type of a document value in messages: map, list, string, integer, ..."""
    return _TYPE_NAMES.get(type(value), type(value).__name__)


def a_type(value: Any) -> str:
    """The same with its article, as a sentence takes it: a map, an integer, null."""
    name = type_name(value)
    if value is None:
        return name
    return f"an {name}" if name[0] in "aeiou" else f"a {name}"


_TYPE_NAMES: Final[dict[type, str]] = {
    dict: "map",
    list: "list",
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    type(None): "null",
}
