"""Two snapshots: what was measured, by type, subtype and key.

When and where a snapshot was taken is no difference. Items of a list of readings are told apart by
their name, else by what they are about (context), else by place; of two entries of one name the
first counts, as everywhere (recipe spec 8.1). Source: bundler spec 9.4, decision 59.
"""

from __future__ import annotations

from aicr.diff import trees
from aicr.diff.changes import Change, Comparison, of_sides

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def compare(before: dict[str, Any], after: dict[str, Any]) -> Comparison:
    """The differences between two Snapshot documents of valid shape."""
    old, new = _readings(before), _readings(after)
    changes = []
    for name in sorted({*old, *new}):
        for path, left, right in trees.compare(_held(old, name), _held(new, name)):
            changes.append(
                Change(
                    "measurements",
                    component=name,
                    path=path,
                    change=of_sides(left, right),
                    before=left,
                    after=right,
                )
            )
        if (name in old) != (name in new) and not (_held(old, name) or _held(new, name)):
            # Nothing was read there, but that it was looked at is a difference.
            change = "added" if name in new else "removed"
            changes.append(Change("measurements", component=name, change=change))
    return Comparison("snapshot", changes)


def _held(readings: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = readings.get(name, {})
    return found


def _readings(snapshot: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """`Type.subtype` -> its readings."""
    found: dict[str, dict[str, Any]] = {}
    seen: set[str] = set()
    for measurement in snapshot.get("measurements") or ():
        kind = measurement["type"]
        if kind in seen:
            continue
        seen.add(kind)
        for subtype in measurement.get("subtypes") or ():
            name = subtype.get("subtype")
            if name is None or f"{kind}.{name}" in found:
                continue
            held: dict[str, Any] = dict(subtype.get("data") or {})
            for index, item in enumerate(subtype.get("items") or ()):
                held[_item_name(item, index)] = item.get("data") or {}
            found[f"{kind}.{name}"] = held
    return found


def _item_name(item: dict[str, Any], index: int) -> str:
    name = item.get("name")
    if isinstance(name, str) and name:
        return f"item {name}"
    context = item.get("context") or {}
    if context:
        return "item " + ",".join(f"{key}={context[key]}" for key in sorted(context, key=str))
    return f"item {index}"
