"""Which components of a recipe a bundle holds.

The recipe may have switched a component off, and ``--set <component>:enabled=false`` may do so for
one bundle, as may the ``bundlers`` filter of the library and the server, which names what is wanted.
Switching on what the recipe switched off is refused: its values were never resolved
for use. Whatever depends on a component that is left out keeps the order that component stood for,
by depending on what it depended on (field case F1).

This module works on refs alone; it must not know values, files or deployers.
"""

from __future__ import annotations

from aicr.bundle import dra, owned
from aicr.catalog.dependencies import check_dependencies, effective_dependencies, is_enabled
from aicr.errors import invalid, nearest
from aicr.recipe.coherence import check_duplicates

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Final

    from aicr.bundle.overrides import Override
    from aicr.catalog.types import ComponentRef
    from aicr.recipe.types import RecipeResult

RECIPE_DISABLES: Final = dra.RECIPE_DISABLES
OVERRIDE_REMOVED: Final = "an enabled=false value override removed it"
FILTER_EXCLUDES: Final = "the bundlers filter excludes it"

#: Spellings of a boolean that Go's ParseBool takes (bundler spec 0.4).
_TRUE: Final = frozenset(("1", "t", "T", "true", "TRUE", "True"))
_FALSE: Final = frozenset(("0", "f", "F", "false", "FALSE", "False"))


class Selection:
    """The refs that are rendered, and why each of the others is not.

    ``refs`` are copies whose ``dependencyRefs`` name rendered components only; ``removed`` maps a
    component to its reason; ``notes`` are advisory texts.
    """

    __slots__ = ("notes", "refs", "removed")

    def __init__(self, refs: list[ComponentRef], removed: dict[str, str], notes: list[str]) -> None:
        self.refs = refs
        self.removed = removed
        self.notes = notes


def parse_switch(override: Override) -> bool:
    """The boolean of a ``--set <component>:enabled=…`` flag.

    Raises:
        AicrError: INVALID_REQUEST for any spelling that Go's ParseBool refuses.
    """
    if override.text in _TRUE:
        return True
    if override.text in _FALSE:
        return False
    raise invalid(
        f'invalid --set enabled value "{override.text}" for component "{override.component}"',
        where=override.label,
        hint="write enabled=true or enabled=false",
    )


def select(
    recipe: RecipeResult,
    switches: Iterable[Override],
    *,
    dra_eviction: bool = False,
    bundlers: Sequence[str] = (),
) -> Selection:
    """Filter the recipe's refs (bundler spec 0.4).

    Args:
        recipe: a RecipeResult; not changed.
        switches: the ``enabled`` overrides, one a component.
        dra_eviction: whether the run opted in to the DRA eviction contract, which decides about
            the node labeler (bundler spec 4.5).
        bundlers: the only components that are wanted; none given means all.

    Raises:
        AicrError: INVALID_REQUEST for a switch that is no boolean, a component that cannot be
            switched on, a filter with a name that is unknown, disabled or missing from it although
            the recipe needs it, a dependency that no ref declares, or an empty result.
    """
    refs: list[ComponentRef] = list(recipe.get("componentRefs") or ())
    if not refs:
        raise invalid(
            "the recipe has no component references",
            hint="generate the recipe again, with criteria that match an overlay",
        )
    check_duplicates(refs)
    check_dependencies(refs)
    removed = {ref["name"]: RECIPE_DISABLES for ref in refs if not is_enabled(ref)}
    wishes = [(override, parse_switch(override)) for override in switches]
    off = [override.component for override, wanted in wishes if not wanted]
    left_out = _left_out(recipe, refs, bundlers)
    off += left_out
    dra.select_labeler(refs, removed, off, opted_in=dra_eviction)
    for name in left_out:
        removed.setdefault(name, FILTER_EXCLUDES)
    for override, wanted in wishes:
        if not wanted:
            removed.setdefault(override.component, OVERRIDE_REMOVED)
        elif removed.get(override.component, RECIPE_DISABLES) != RECIPE_DISABLES:
            raise invalid(
                f'component "{override.component}" cannot be enabled with '
                f"--set {override.key}:enabled=true: {removed[override.component]}",
                where=override.label,
                hint="drop the override",
            )
        elif override.component in removed:
            raise invalid(
                f'component "{override.component}" is disabled by the recipe and cannot be '
                f"re-enabled with --set {override.key}:enabled=true",
                where=override.label,
                hint="enable it in an overlay (--data) or choose criteria that include it, then "
                "generate the recipe again",
            )
    _check_wanted(bundlers, removed)
    kept = [ref for ref in refs if ref["name"] not in removed]
    if not kept:
        raise invalid(
            "recipe has no enabled components after filtering",
            hint="keep at least one component in the bundle",
        )
    refs = [_switched_on(ref) if ref["name"] not in removed else ref for ref in refs]
    return Selection(_bridged(refs, removed), removed, _notes(recipe, removed))


def _left_out(recipe: RecipeResult, refs: list[ComponentRef], bundlers: Sequence[str]) -> list[str]:
    """The components that a filter does not name, in the order of the recipe."""
    if not bundlers:
        return []
    declared = [ref["name"] for ref in refs]
    for name in bundlers:
        if name not in declared:
            near = nearest(name, declared)
            raise invalid(
                f'unknown component "{name}" in bundlers filter; recipe declares: '
                f"{', '.join(sorted(declared))}",
                where="bundlers",
                hint=f'did you mean "{near}"?' if near else "name components of the recipe",
            )
    left_out = [name for name in declared if name not in bundlers]
    owned.check_left_out(recipe, left_out)
    return left_out


def _check_wanted(bundlers: Sequence[str], removed: dict[str, str]) -> None:
    for name in bundlers:
        reason = removed.get(name)
        if reason is not None:
            raise invalid(
                f'component "{name}" is disabled and cannot be selected via the bundlers filter'
                f"{'' if reason == RECIPE_DISABLES else f': {reason}'}",
                where="bundlers",
                hint=f"leave {name} out of the filter, or have it enabled",
            )


def _switched_on(ref: ComponentRef) -> ComponentRef:
    """A rendered ref that the recipe has switched off, switched on: only the labeler can be one."""
    if is_enabled(ref):
        return ref
    return {**ref, "overrides": {**ref["overrides"], "enabled": True}}


def check_present(overrides: Iterable[Override], removed: dict[str, str]) -> None:
    """Refuse an override whose component is not rendered (bundler spec 0.5).

    Scalars are looked at before typed overrides and those before dynamic paths, each in key order;
    the first failure is reported.

    Raises:
        AicrError: INVALID_REQUEST with the reason the component is left out.
    """
    for override in sorted(overrides, key=lambda item: (item.typed, item.key, item.path)):
        reason = removed.get(override.component)
        if reason is not None:
            raise invalid(
                f'{override.label} cannot take effect: component "{override.component}" is not in '
                f"the generated bundle because {reason}. Drop the override, or keep the component "
                f"in the bundle",
                where=override.flag,
            )


def _bridged(refs: list[ComponentRef], removed: dict[str, str]) -> list[ComponentRef]:
    """The kept refs; an edge to a removed component becomes edges to what that one waited for."""
    marked: list[ComponentRef] = [
        {**ref, "overrides": {"enabled": False}} if ref["name"] in removed else ref for ref in refs
    ]
    waits_for = effective_dependencies(marked)
    kept: list[ComponentRef] = []
    for ref in refs:
        if ref["name"] in removed:
            continue
        if any(name in removed for name in ref.get("dependencyRefs") or ()):
            ref = {**ref, "dependencyRefs": waits_for[ref["name"]]}
            if not ref["dependencyRefs"]:
                del ref["dependencyRefs"]
        kept.append(ref)
    return kept


def _notes(recipe: RecipeResult, removed: dict[str, str]) -> list[str]:
    state = (recipe.get("metadata") or {}).get("gpuDriverState")
    if state == "absent" and removed.get("gpu-operator") in (OVERRIDE_REMOVED, FILTER_EXCLUDES):
        return [
            "gpu-operator is left out of this bundle, but the recipe records that the nodes have "
            "no GPU driver; install one by other means or GPU workloads will not start"
        ]
    return []
