"""Merging of plain documents: the one rule by which layers of values combine.

Maps merge key by key at every depth; anything else (lists, scalars, a map over a scalar) is
replaced by the later layer. A null in the later layer either deletes the key or is kept, as the
caller says: overlays keep it so that it still deletes later, value resolution deletes (recipe.md
4.1 and 7).

Inputs are never changed and the result shares no container with them, so a layer can be reused for
the next request. The module knows nothing of components or layers, and imports nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


def copy_tree(value: Any) -> Any:
    """A copy of *value* that shares no dict or list with it; scalars are shared."""
    kind = type(value)
    if kind is dict:
        return {
            key: copy_tree(item) if type(item) is dict or type(item) is list else item
            for key, item in value.items()
        }
    if kind is list:
        return [
            copy_tree(item) if type(item) is dict or type(item) is list else item for item in value
        ]
    return value


def is_set(tree: Any, keys: Iterable[str]) -> bool:
    """Whether *tree* has something at a path of keys: a value of any kind, or no map to look further in.

    >>> is_set({"a": {"b": None}}, ["a", "b"]), is_set({"a": 1}, ["a", "b"]), is_set({"a": {}}, ["a", "b"])
    (True, True, False)
    """
    node = tree
    for key in keys:
        if not isinstance(node, dict):
            return True
        if key not in node:
            return False
        node = node[key]
    return True


def deep_merge(dst: dict[str, Any], src: dict[str, Any], *, null_deletes: bool) -> dict[str, Any]:
    """*src* laid over *dst*, as a new tree.

    Args:
        dst: the earlier layer. Its own nulls are values and stay.
        src: the later layer; wins wherever both say something.
        null_deletes: a null in *src* removes the key at any depth and leaves none behind where
            there was nothing to remove (field case B7). When false, the null is stored. Nulls
            inside lists are values either way, because lists are replaced as a whole.

    Returns:
        The keys of *dst* in their order, then the new ones of *src*.
    """
    merged = copy_tree(dst)
    _merge_into(merged, src, null_deletes)
    return merged  # type: ignore[no-any-return]


def _merge_into(target: dict[str, Any], src: dict[str, Any], null_deletes: bool) -> None:
    for key, item in src.items():
        if item is None:
            if null_deletes:
                target.pop(key, None)
            else:
                target[key] = None
        elif type(item) is dict:
            below = target.get(key)
            if type(below) is not dict:
                # Merging onto an empty map, not copying, so that nested nulls obey the same rule.
                below = target[key] = {}
            _merge_into(below, item, null_deletes)
        elif type(item) is list:
            target[key] = copy_tree(item)
        else:
            target[key] = item
