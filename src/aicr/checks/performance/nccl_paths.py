"""Two pod templates compared by path: where they differ, and what one inherited from the other.

A path is made of field names; an entry of a list whose entries all have different names is addressed as
``containers[node]``, any other list is one value. Only keys are in it, never a value. Pure.
Source: validators spec 4.4 (grammar and examples), 7.2; requirements V-209, V-222.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: Stands for "not there"; no document holds it.
_ABSENT: Any = object()


def leaves(value: Any, prefix: str = "") -> dict[str, Any]:
    """Path → value of everything in *value* that is no map and no list of named entries."""
    if isinstance(value, Mapping) and value:
        found: dict[str, Any] = {}
        for key, inner in value.items():
            found |= leaves(inner, f"{prefix}.{key}" if prefix else str(key))
        return found
    named = by_name(value)
    if named is not None:
        found = {}
        for name, inner in named.items():
            rest = {key: part for key, part in inner.items() if key != "name"}
            place = f"{prefix}[{name}]"
            # An entry that is only a name still has to be seen.
            found |= leaves(rest, place) if rest else {place: name}
        return found
    return {prefix: value}


def by_name(value: Any) -> dict[str, Mapping[str, Any]] | None:
    """The entries of a list by their names, None if it is no list of differently named maps."""
    if not isinstance(value, list) or not value:
        return None
    named = {str(one["name"]): one for one in value if isinstance(one, Mapping) and one.get("name")}
    return named if len(named) == len(value) else None


def differing(before: Any, after: Any) -> list[str]:
    """The paths at which two templates differ, sorted."""
    old, new = leaves(before), leaves(after)
    return sorted(
        path for path in old.keys() | new.keys() if old.get(path, _ABSENT) != new.get(path, _ABSENT)
    )


def inherited(before: Any, after: Any) -> list[str]:
    """The paths of *before* that *after* has with the same value, sorted."""
    old, new = leaves(before), leaves(after)
    return sorted(path for path, value in old.items() if new.get(path, _ABSENT) == value)
