"""Two recipes: components, versions, dependencies, order, values, CRDs, and what they demand.

What only says how a document came about (program version, overlays that were tried) is no
difference. Values are compared as the charts get them, so an override that repeats a values file
means nothing; the caller gives the function that works them out. Source: decision 30.
"""

from __future__ import annotations

from aicr.catalog.dependencies import deployment_order, effective_dependencies, is_enabled
from aicr.diff import order, trees
from aicr.diff.changes import (
    ABSENT,
    ADDED,
    CHANGED,
    DOWNGRADED,
    REMOVED,
    UPGRADED,
    Change,
    Comparison,
    of_sides,
)
from aicr.errors import AicrError
from aicr.values import versions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable
    from typing import Any, Final

    Document = dict[str, Any]
    Values = Callable[[Any], dict[str, Any]]

#: Facts about the making of a recipe, not about what it deploys.
_ORIGIN: Final = ("version", "appliedOverlays", "excludedOverlays", "constraintWarnings")
_FIELDS: Final = ("namespace", "type", "source", "chart", "path", "cleanup")
_VERSIONS: Final = ("version", "tag")
_FILES: Final = ("manifestFiles", "preManifestFiles")


def compare(
    before: Document,
    after: Document,
    *,
    values_before: Values | None = None,
    values_after: Values | None = None,
    bring_crds: Collection[str] = (),
) -> Comparison:
    """The differences between two RecipeResult documents.

    Args:
        before, after: the documents, free of dependency circles; not changed.
        values_before, values_after: the final values of a ref; without them only the overrides that
            the recipe holds are compared. When one fails, the component's overrides are compared
            and a note says so.
        bring_crds: components whose chart brings CRDs, for the area ``crds``.
    """
    notes: list[str] = []
    changes: list[Change] = []
    for area in ("criteria", "configuration", "validation"):
        changes += _plain(area, before.get(area) or {}, after.get(area) or {})
    changes += _plain("metadata", _facts(before), _facts(after))
    changes += _constraints(before, after)
    old, new = _refs(before), _refs(after)
    for name in sorted({*old, *new}):
        if name not in new:
            changes.append(_whole(name, REMOVED, old[name]))
        elif name not in old:
            changes.append(_whole(name, ADDED, new[name]))
        else:
            changes += _ref(old[name], new[name], bring_crds)
            changes += _values(old[name], new[name], values_before, values_after, notes)
    changes += _edges(list(old.values()), list(new.values()))
    changes += order.compare(
        deployment_order(list(old.values())), deployment_order(list(new.values()))
    )
    return Comparison("recipe", changes, notes)


def version_change(before: str, after: str) -> str:
    """``upgraded`` or ``downgraded`` where both can be read as versions, else ``changed``."""
    try:
        left, right = versions.parse(before), versions.parse(after)
    except AicrError:
        return CHANGED
    if left.numbers != right.numbers:
        return UPGRADED if left.numbers < right.numbers else DOWNGRADED
    sign = versions.compare(left, right)
    return CHANGED if not sign else UPGRADED if sign < 0 else DOWNGRADED


def _refs(document: Document) -> dict[str, Any]:
    return {ref["name"]: ref for ref in document.get("componentRefs") or ()}


def _facts(document: Document) -> Document:
    metadata = document.get("metadata") or {}
    return {key: value for key, value in metadata.items() if key not in _ORIGIN}


def _plain(area: str, before: Any, after: Any) -> list[Change]:
    return [
        Change(area, path=path, change=of_sides(left, right), before=left, after=right)
        for path, left, right in trees.compare(before, after)
    ]


def _constraints(before: Document, after: Document) -> list[Change]:
    """By name; a name that is constrained twice is compared with all its expressions."""

    def by_name(document: Document) -> dict[str, Any]:
        found: dict[str, list[Any]] = {}
        for item in document.get("constraints") or ():
            found.setdefault(item["name"], []).append(item.get("value"))
        return {name: held[0] if len(held) == 1 else held for name, held in found.items()}

    old, new = by_name(before), by_name(after)
    changes = []
    for name in sorted({*old, *new}):
        left, right = old.get(name, ABSENT), new.get(name, ABSENT)
        if left is ABSENT or right is ABSENT or left != right:
            change = of_sides(left, right)
            changes.append(
                Change("constraints", path=name, change=change, before=left, after=right)
            )
    return changes


def _whole(name: str, change: str, ref: Any) -> Change:
    said = ref.get("version") or ref.get("tag") or ref.get("source") or "manifests"
    side = {"after": said} if change == ADDED else {"before": said}
    return Change("components", component=name, change=change, **side)


def _ref(before: Any, after: Any, bring_crds: Collection[str]) -> list[Change]:
    name = before["name"]
    changes = []

    def note(area: str, path: str, left: Any, right: Any, change: str = "") -> None:
        changes.append(
            Change(
                area,
                component=name,
                path=path,
                change=change or of_sides(left, right),
                before=left,
                after=right,
            )
        )

    if is_enabled(before) != is_enabled(after):
        note("components", "enabled", is_enabled(before), is_enabled(after))
    for field in _FIELDS:
        left, right = before.get(field) or ABSENT, after.get(field) or ABSENT
        if left != right:
            note("components", field, left, right)
    moved = any((before.get(key) or "") != (after.get(key) or "") for key in ("source", "chart"))
    for field in _VERSIONS:
        old, new = before.get(field) or "", after.get(field) or ""
        if old != new:
            moved = True
            change = version_change(old, new) if old and new else ""
            note("versions", field, old or ABSENT, new or ABSENT, change)
    if moved and name in bring_crds:
        note("crds", "of the chart", _chart(before), _chart(after))
    for field in _FILES:
        for path, change in _members(before.get(field), after.get(field)):
            changes.append(
                Change("manifests", component=name, path=f"{field} {path}", change=change)
            )
    return changes


def _chart(ref: Any) -> str:
    return f"{ref.get('chart') or ref['name']} {ref.get('version') or ref.get('tag') or ''}".strip()


def _values(
    before: Any,
    after: Any,
    values_before: Values | None,
    values_after: Values | None,
    notes: list[str],
) -> list[Change]:
    name = before["name"]
    left, right = before.get("overrides") or {}, after.get("overrides") or {}
    if values_before is not None and values_after is not None:
        try:
            left, right = values_before(before), values_after(after)
        except AicrError as error:
            notes.append(
                f"{name}: its values files cannot be used, so only what the recipes themselves say is "
                f"compared: {error.message}"
            )
    left, right = ({k: v for k, v in side.items() if k != "enabled"} for side in (left, right))
    return [
        Change("values", component=name, path=path, change=of_sides(a, b), before=a, after=b)
        for path, a, b in trees.compare(left, right)
    ]


def _edges(before: list[Any], after: list[Any]) -> list[Change]:
    """What each component waits for, through disabled ones; only for those on both sides."""
    old, new = effective_dependencies(before), effective_dependencies(after)
    return [
        Change("dependencies", component=name, path=path, change=change)
        for name in sorted(old.keys() & new.keys())
        for path, change in _members(old[name], new[name])
    ]


def _members(before: Iterable[str] | None, after: Iterable[str] | None) -> list[tuple[str, str]]:
    """(member, added or removed) of what only one of two sets holds."""
    left, right = set(before or ()), set(after or ())
    return [(item, REMOVED if item in left else ADDED) for item in sorted(left ^ right)]
