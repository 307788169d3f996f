"""Whether a plain document has the shape of a TypedDict, and which of its keys nobody knows.

A wrong type is an error with the path to it. An unknown key is only collected: files written for
another version must work, and a mistyped key must not pass in silence. This module must not know
which documents there are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints, is_typeddict

import msgspec

from aicr.errors import invalid, nearest

_AT = re.compile(r" - (?:key )?at `(?:key )?\$(?P<path>[^`]*)`$")


def conform(document: object, shape: Any, *, where: str = "") -> None:
    """Check that *document* has the types of *shape*, a TypedDict.

    Raises:
        AicrError: INVALID_REQUEST that names the path, what is expected there and what is there.
    """
    try:
        msgspec.convert(document, shape, strict=True)
    except msgspec.ValidationError as error:
        text = str(error)
        found = _AT.search(text)
        path = found["path"].lstrip(".") if found else ""
        said = text[: found.start()] if found else text
        said = said.replace("`", "")
        raise invalid(
            f"{path}: {said}" if path else said,
            where=where,
            hint="quote it" if said.startswith("Expected str") else "",
            context={"path": _steps(path)},
        ) from None


def unknown_keys(document: Mapping[str, Any], shape: Any, path: str = "") -> Iterator[str]:
    """One sentence for each key of *document* that *shape* does not have, in document order."""
    hints = get_type_hints(shape)
    for key, value in document.items():
        place = f"{path}.{key}" if path else key
        if key not in hints:
            near = nearest(key, list(hints))
            yield f"unknown key {place}" + (f": did you mean {near}?" if near else "")
            continue
        yield from _below(value, hints[key], place)


def _steps(path: str) -> tuple[str | int, ...]:
    """*path* as keys and indices, as far as it names them."""
    steps: list[str | int] = []
    for name, index in re.findall(r"([^.\[\]]+)|\[(\d+)\]", path.partition("[...]")[0]):
        steps.append(name or int(index))
    return tuple(steps)


def _below(value: object, hint: Any, path: str) -> Iterator[str]:
    origin = get_origin(hint)
    if is_typeddict(hint):
        if isinstance(value, dict):
            yield from unknown_keys(value, hint, path)
    elif origin in (Union, UnionType):
        for option in get_args(hint):
            yield from _below(value, option, path)
    elif origin is list and isinstance(value, list):
        (item,) = get_args(hint)
        for index, entry in enumerate(value):
            yield from _below(entry, item, f"{path}[{index}]")
