"""What a comparison finds: changes, each in an area, of a component or of the whole."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, Final

ADDED: Final = "added"
REMOVED: Final = "removed"
CHANGED: Final = "changed"
UPGRADED: Final = "upgraded"
DOWNGRADED: Final = "downgraded"
MOVED: Final = "moved"

#: Areas in the order in which they are shown.
AREAS: Final = (
    "criteria",
    "metadata",
    "configuration",
    "settings",
    "components",
    "versions",
    "dependencies",
    "order",
    "crds",
    "values",
    "manifests",
    "releases",
    "constraints",
    "validation",
    "measurements",
    "files",
)


class _Absent:
    """The side of a change where there is nothing; null is something."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = _Absent()


class Change:
    """One difference.

    Attributes:
        area: one of ``AREAS``.
        component: component, measurement or release that it is about, or "".
        path: what of it, or "" for the whole.
        change: ``added``, ``removed``, ``changed``, ``upgraded``, ``downgraded`` or ``moved``.
        before, after: the two sides; ``ABSENT`` where there is nothing.
    """

    __slots__ = ("after", "area", "before", "change", "component", "path")

    def __init__(
        self,
        area: str,
        *,
        component: str = "",
        path: str = "",
        change: str,
        before: Any = ABSENT,
        after: Any = ABSENT,
    ) -> None:
        self.area = area
        self.component = component
        self.path = path
        self.change = change
        self.before = before
        self.after = after

    def document(self) -> dict[str, Any]:
        """The change as a plain document; a side where there is nothing is left out."""
        made: dict[str, Any] = {"area": self.area}
        if self.component:
            made["component"] = self.component
        if self.path:
            made["path"] = self.path
        made["change"] = self.change
        for side, value in (("before", self.before), ("after", self.after)):
            if value is not ABSENT:
                made[side] = value
        return made


class Comparison:
    """All changes between two things of one kind.

    Attributes:
        kind: ``snapshot``, ``recipe`` or ``bundle``.
        changes: in the order of ``AREAS``, within an area as they were found.
        notes: what could not be compared, and why.
    """

    __slots__ = ("changes", "kind", "notes")

    def __init__(self, kind: str, changes: Iterable[Change], notes: Iterable[str] = ()) -> None:
        self.kind = kind
        # A stable sort keeps components together as they were found.
        self.changes = sorted(changes, key=lambda change: AREAS.index(change.area))
        self.notes = list(notes)

    @property
    def same(self) -> bool:
        """Whether the two mean the same."""
        return not self.changes

    def counts(self) -> dict[str, int]:
        """Number of changes by area, only areas that have one."""
        made: dict[str, int] = {}
        for change in self.changes:
            made[change.area] = made.get(change.area, 0) + 1
        return made

    def document(self, before: str, after: str) -> dict[str, Any]:
        """The comparison as a plain document; *before* and *after* name what was compared."""
        return {
            "kind": self.kind,
            "before": before,
            "after": after,
            "same": self.same,
            "summary": self.counts(),
            "changes": [change.document() for change in self.changes],
            "notes": self.notes,
        }


def of_sides(before: Any, after: Any) -> str:
    """``added``, ``removed`` or ``changed``, by which sides are there."""
    if before is ABSENT:
        return ADDED
    return REMOVED if after is ABSENT else CHANGED
