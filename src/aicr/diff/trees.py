"""Differences between two plain documents, path by path.

Maps are compared key by key. A list whose items all carry a `name` of their own is compared by name,
so that an item in another place is no difference; other lists of equal length item by item; lists of
different length as a whole, because which item became which would be a guess. Numbers are equal when
they are equal in value; a text is never equal to a number or boolean.
"""

from __future__ import annotations

from aicr.diff.changes import ABSENT
from aicr.values import paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    Found = tuple[list[str | int], Any, Any]


def compare(before: Any, after: Any) -> list[tuple[str, Any, Any]]:
    """(path, before, after) of every difference, sorted by place; the path of the root is "".

    A side where there is nothing is ``ABSENT``.
    """
    return [(_text(trail), left, right) for trail, left, right in _walk(before, after, [])]


def equal(before: Any, after: Any) -> bool:
    """Whether two documents mean the same."""
    return next(_walk(before, after, []), None) is None


def _text(trail: list[str | int]) -> str:
    # An empty key cannot be written in a path; a document may have one all the same.
    return paths.join([part if part != "" else '""' for part in trail]) if trail else ""


def _walk(before: Any, after: Any, trail: list[str | int]) -> Iterator[Found]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted({*before, *after}, key=str):
            here = [*trail, str(key)]
            yield from _sides(before.get(key, ABSENT), after.get(key, ABSENT), here)
    elif isinstance(before, list) and isinstance(after, list):
        left, right = _by_name(before), _by_name(after)
        if left is not None and right is not None:
            for name in [*left, *(name for name in right if name not in left)]:
                here = [*trail, name]
                yield from _sides(left.get(name, ABSENT), right.get(name, ABSENT), here)
        elif len(before) == len(after):
            for index, (one, other) in enumerate(zip(before, after, strict=True)):
                yield from _walk(one, other, [*trail, index])
        else:
            yield trail, before, after
    elif isinstance(before, bool) or isinstance(after, bool):
        if before is not after:
            yield trail, before, after
    elif before != after:
        yield trail, before, after


def _sides(before: Any, after: Any, trail: list[str | int]) -> Iterator[Found]:
    if before is ABSENT or after is ABSENT:
        # A whole subtree that comes or goes is shown leaf by leaf: that is what somebody changed.
        present = after if before is ABSENT else before
        for inner, leaf in _leaves(present, trail):
            yield (inner, ABSENT, leaf) if before is ABSENT else (inner, leaf, ABSENT)
    else:
        yield from _walk(before, after, trail)


def _leaves(value: Any, trail: list[str | int]) -> Iterator[tuple[list[str | int], Any]]:
    if isinstance(value, dict) and value:
        for key in sorted(value, key=str):
            yield from _leaves(value[key], [*trail, str(key)])
    else:
        yield trail, value


def _by_name(items: list[Any]) -> dict[str, Any] | None:
    """The items by name, None when some item has none or two share one."""
    named: dict[str, Any] = {}
    for item in items:
        name = item.get("name") if isinstance(item, dict) else None
        if not isinstance(name, str) or name in named:
            return None
        named[name] = item
    return named
