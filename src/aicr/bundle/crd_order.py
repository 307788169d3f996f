"""The dry check "every custom resource has its CRD earlier" (field case F5).

A Helm release whose objects are of a kind that the cluster does not serve yet fails at once, and
formats that install independent components side by side fail only now and then, which is worse. So
before a bundle is written, each kind of custom resource in it is looked up:

* its CRD is in the bundle, in a folder that surely comes earlier: fine;
* its CRD is in the bundle, but nothing makes it come earlier: refused, with the edge to add;
* a chart that is not at hand is known to bring the API group, and nothing makes it come earlier: a
  note;
* nothing in the bundle brings it: the cluster may have it, so nothing is said.

It must not know what a deployer writes, only whether a format installs one folder after another.
"""

from __future__ import annotations

from aicr.bundle import objects
from aicr.bundle.crd_groups import CRD_GROUPS
from aicr.errors import invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Final

    from aicr.bundle.layout import Folder
    from aicr.bundle.plan import Plan

#: Formats in which the folder numbers are the order.
LINEAR: Final = ("helm", "fleet")


def check(plan: Plan, folders: list[Folder]) -> list[str]:
    """Refuse custom resources whose CRD comes with the bundle, but not surely earlier.

    Returns:
        Notes on custom resources of charts that are not at hand.

    Raises:
        AicrError: INVALID_REQUEST naming the kind, both components and the edge that is missing.
    """
    defined: dict[str, list[int]] = {}
    used: list[tuple[int, str]] = []
    facts = {component.name: component.facts for component in plan.components}
    for index, folder in enumerate(folders):
        text = _templates(folder)
        for kind in objects.defined_types(text):
            defined.setdefault(kind, []).append(index)
        used += [(index, kind) for kind in sorted(objects.custom_types(text))]
        known = facts[folder.parent] if folder.phase == "primary" else None
        if known is not None:
            for kind in known.crds:
                defined.setdefault(kind, []).append(index)
            # What a chart uses of its own CRDs is the business of its authors.
            used += [(index, kind) for kind in sorted(known.custom - known.crds)]
    order = _Order(plan, folders)
    notes = []
    for index, kind in used:
        if kind in defined:
            if not any(order.before(provider, index) for provider in defined[kind]):
                raise _refusal(kind, folders[index], folders[defined[kind][0]])
            continue
        note = _unsure(kind, index, folders, order)
        if note and note not in notes:
            notes.append(note)
    return notes


class _Order:
    """Which folder surely comes before which."""

    def __init__(self, plan: Plan, folders: list[Folder]) -> None:
        self._folders = folders
        self._linear = plan.serial or plan.deployer in LINEAR
        self._earlier: dict[str, set[str]] = {}
        for component in plan.components:
            waits_for = plan.dependencies.get(component.name, ())
            earlier = set(waits_for)
            for name in waits_for:
                earlier |= self._earlier.get(name, set())
            self._earlier[component.name] = earlier

    def before(self, first: int, second: int) -> bool:
        """Whether the folder at *first* is installed when the one at *second* starts."""
        one, two = self._folders[first], self._folders[second]
        if self._linear or one.parent == two.parent:
            return first < second
        return one.parent in self._earlier[two.parent]


def _templates(folder: Folder) -> str:
    return "\n---\n".join(
        content.decode()
        for path, (content, _) in folder.files.items()
        if path.startswith("templates/") and not path.endswith(".txt")
    )


def _refusal(kind: str, user: Folder, provider: Folder) -> Exception:
    shown = kind.partition("/")[2]
    if user.dir == provider.dir:
        return invalid(
            f"folder {user.dir} holds both objects of kind {shown} and their CRD in one release; "
            f"helm looks all kinds up before it creates anything, so the first install fails",
            where=user.parent,
            hint="move the CRD to preManifestFiles, or to a component of its own",
        )
    if user.parent == provider.parent:
        hint = "move the objects to manifestFiles, or the CRD to preManifestFiles"
    else:
        hint = f"add {provider.parent} to dependencyRefs of {user.parent} in the recipe's overlay"
    return invalid(
        f"folder {user.dir} holds objects of kind {shown}, whose CRD comes with {provider.dir}, "
        f"and nothing makes {provider.parent} come first",
        where=user.parent,
        hint=hint,
    )


def _unsure(kind: str, index: int, folders: list[Folder], order: _Order) -> str:
    group, _, shown = kind.partition("/")
    places = [at for at, folder in enumerate(folders) if group in CRD_GROUPS.get(folder.parent, ())]
    if not places or any(_counts(at, folders) and order.before(at, index) for at in places):
        return ""
    names = _unique(folders[at].parent for at in places)
    user = folders[index].parent
    return (
        f"{user} holds objects of kind {shown} ({group}), whose CRD comes with "
        f"{' or '.join(names)}, and nothing makes that come first; add it to dependencyRefs of "
        f"{user}"
    )


def _counts(at: int, folders: list[Folder]) -> bool:
    return folders[at].phase == "primary"


def _unique(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))
