"""How overlays combine: constraints and components by name, phases by field (recipe spec 4.4, 4.5).

Merging is pure: inputs are never changed, and no part of an input is shared with the result's maps.
Nulls in overrides are kept here; they delete later, when values are resolved (recipe spec 7).
"""

from __future__ import annotations

from aicr.catalog.fields import REF_LISTS, REF_ORDER
from aicr.values.merge import copy_tree, deep_merge

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, Final

    from aicr.catalog.types import ComponentRef, Constraint, OverlaySpec, Phase, Profile

#: Fields of a ref that are written even when empty (recipe spec 4.1).
_ALWAYS_WRITTEN: Final = ("name", "type", "source")


class Composition:
    """What a chain of overlays adds up to, before order, defaults and checks.

    Attributes:
        applied: names of the overlays merged, in merge order.
        constraints: by name.
        refs: component refs by name.
        validation: phases by name.
        mixins: names in the order first listed.
        profiles: ``(overlay name, profile)`` of every declaration met.
    """

    __slots__ = ("applied", "constraints", "mixins", "profiles", "refs", "validation")

    def __init__(self) -> None:
        self.applied: list[str] = []
        self.constraints: dict[str, Constraint] = {}
        self.refs: dict[str, ComponentRef] = {}
        self.validation: dict[str, Phase] = {}
        self.mixins: list[str] = []
        self.profiles: list[tuple[str, Profile]] = []

    def fork(self) -> Composition:
        """A composition that can be changed entry by entry without touching this one."""
        forked = Composition()
        forked.applied = list(self.applied)
        forked.constraints = dict(self.constraints)
        forked.refs = dict(self.refs)
        forked.validation = dict(self.validation)
        forked.mixins = list(self.mixins)
        forked.profiles = list(self.profiles)
        return forked

    def add(self, name: str, spec: OverlaySpec) -> None:
        """Lay one overlay over what is there."""
        self.applied.append(name)
        for constraint in spec.get("constraints") or ():
            self.constraints[constraint["name"]] = constraint.copy()
        for ref in spec.get("componentRefs") or ():
            inherited = self.refs.get(ref["name"])
            self.refs[ref["name"]] = (
                copy_tree(ref) if inherited is None else merge_ref(inherited, ref)
            )
        for phase, block in (spec.get("validation") or {}).items():
            present = self.validation.get(phase)
            self.validation[phase] = (
                copy_tree(block) if present is None else merge_phase(present, block)
            )
        for mixin in spec.get("mixins") or ():
            if mixin not in self.mixins:
                self.mixins.append(mixin)
        profile = spec.get("profile")
        if profile is not None:
            self.profiles.append((name, profile))


def merge_ref(inherited: ComponentRef, overlay: ComponentRef) -> ComponentRef:
    """One component ref laid over another of the same name (field rules of recipe spec 4.1).

    >>> merge_ref({"name": "a", "dependencyRefs": ["x"]}, {"name": "a", "dependencyRefs": ["y"]})
    {'name': 'a', 'dependencyRefs': ['x', 'y']}
    """
    below: dict[str, Any] = inherited  # type: ignore[assignment]
    above: dict[str, Any] = overlay  # type: ignore[assignment]
    merged: Any = {}
    for field in REF_ORDER:
        old, new = below.get(field), above.get(field)
        if new is None or new == "" or new is False or (new == [] and field != "overrides"):
            if old is not None:
                merged[field] = copy_tree(old)
        elif field == "overrides":
            merged[field] = deep_merge(old or {}, new, null_deletes=False)
        elif field in REF_LISTS and field != "patches":
            merged[field] = union(old or (), new)
        else:
            merged[field] = copy_tree(new)
    return merged  # type: ignore[no-any-return]


def as_written(ref: ComponentRef) -> ComponentRef:
    """A ref in wire order; empty fields are left out, except those that are always written.

    >>> as_written({"source": "", "name": "a", "dependencyRefs": []})
    {'name': 'a', 'type': '', 'source': ''}
    """
    fields: dict[str, Any] = ref  # type: ignore[assignment]
    return {  # type: ignore[return-value]
        key: fields.get(key, "") for key in REF_ORDER if fields.get(key) or key in _ALWAYS_WRITTEN
    }


def union(first: Iterable[str], second: Iterable[str]) -> list[str]:
    """Both lists in order, each entry once."""
    return list(dict.fromkeys([*first, *second]))


def merge_phase(inherited: Phase, overlay: Phase) -> Phase:
    """One validation phase laid over another.

    Checks unite; constraints unite by name, the overlay's entry in the inherited place; a present
    empty list clears (recipe spec 4.5).
    """
    merged: Phase = copy_tree(inherited)
    if "checks" in overlay:
        merged["checks"] = (
            union(inherited.get("checks") or (), overlay["checks"]) if overlay["checks"] else []
        )
    if "constraints" in overlay:
        if overlay["constraints"]:
            by_name = {c["name"]: c.copy() for c in inherited.get("constraints") or ()}
            by_name.update((c["name"], c.copy()) for c in overlay["constraints"])
            merged["constraints"] = list(by_name.values())
        else:
            merged["constraints"] = []
    if overlay.get("timeout"):
        merged["timeout"] = overlay["timeout"]
    if overlay.get("infrastructure"):
        merged["infrastructure"] = overlay["infrastructure"]
    if overlay.get("nodeSelection") is not None:
        merged["nodeSelection"] = copy_tree(overlay["nodeSelection"])
    return merged


def compose(
    base: OverlaySpec, leaves: Iterable[tuple[str, ...]], specs: dict[str, OverlaySpec]
) -> Composition:
    """Merge the base and the inheritance chains of the leaves, each overlay once.

    Args:
        base: spec of the base recipe.
        leaves: chains (root first, base left out) in merge order.
        specs: spec of every overlay by name.
    """
    composition = Composition()
    composition.add("base", base)
    seen = set()
    for members in leaves:
        for name in members:
            if name not in seen:
                seen.add(name)
                composition.add(name, specs[name])
    return composition
