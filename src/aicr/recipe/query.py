"""Selecting one part of a hydrated recipe by a dotted selector (recipe spec 6.4)."""

from __future__ import annotations

from aicr.errors import nearest, not_found

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def select(document: dict[str, Any], selector: str) -> Any:
    """The value at *selector*; empty or ``.`` is the whole document.

    Only maps are traversed: list entries and keys that hold dots cannot be addressed.

    Raises:
        AicrError: NOT_FOUND for an absent key (with the keys there are), or for a step into a value
            that is no map.
    """
    trail = selector[1:] if selector.startswith(".") else selector
    if not trail:
        return document
    node: Any = document
    for key in trail.split("."):
        if not isinstance(node, dict):
            raise not_found(
                f'selector "{selector}": cannot descend into non-map value at "{key}"',
                hint="lists and scalars can only be selected whole",
            )
        if key not in node:
            available = ", ".join(sorted(node))
            near = nearest(key, list(node))
            raise not_found(
                f'selector "{selector}": key "{key}" not found, available keys: {available}',
                hint=f'did you mean "{near}"?' if near else "name one of these keys",
            )
        node = node[key]
    return node
