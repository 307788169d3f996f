"""Component values on their way: each component's own layers, then what several must say alike.

```
each component:  component_values, switches of manifests (toggles), Slurm's volumes (slurm_volumes)
all together:    DRA driver and GPU operator (dra), sources of the gateway (exposure)
```
The second step comes after every override of the user and wins over it, as far as it is about a
contract between components (bundler spec 0.2, layer 7; components seed, the narrow exception).
Modules about single components are loaded only where these are in the bundle.

It must not know recipes as a whole, folders or deployers.
"""

from __future__ import annotations

from aicr.bundle import dra
from aicr.bundle.component_values import final_values
from aicr.catalog.registry import KUSTOMIZE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from aicr.bundle.options import Scheduling
    from aicr.bundle.overrides import Override
    from aicr.catalog.catalog import Catalog
    from aicr.catalog.types import ComponentRef, RegistryEntry

#: The components with a switch for a manifest, with shared volumes, and the one that lets traffic in.
_SWITCHED: Final = "dynamo-platform"
_SHARING: Final = "slinky-slurm"
_GATEWAY: Final = "agentgateway"


class Draft:
    """A component whose values may still change; fields as in ``plan.Component``.

    ``made_before`` holds (basename, text) of pre-manifests that no file of the catalogue has.
    """

    __slots__ = ("changes", "dynamic", "entry", "made_before", "name", "notes", "ref", "values")

    def __init__(self, ref: ComponentRef, entry: RegistryEntry) -> None:
        self.name = ref["name"]
        self.ref = ref
        self.entry = entry
        self.values: dict[str, Any] = {}
        self.changes: list[str] = []
        self.notes: list[str] = []
        self.dynamic: list[list[str | int]] = []
        self.made_before: list[tuple[str, str]] = []


def make_drafts(
    refs: list[ComponentRef],
    order: list[str],
    overrides: list[Override],
    deferred: list[Override],
    catalog: Catalog,
    scheduling: Scheduling,
) -> list[Draft]:
    """The rendered components with their own values.

    Args:
        refs: their refs.
        order: their names, in deployment order.
        overrides: overrides with a value, routed.
        deferred: dynamic paths, routed.
        catalog: registry and files.
        scheduling: the placement and storage flags.

    Raises:
        AicrError: INVALID_REQUEST for an override or dynamic path that cannot take effect.
    """
    by_name = {ref["name"]: ref for ref in refs}
    wishes: dict[str, bool] = {}
    if _SWITCHED in by_name:
        from aicr.bundle import toggles

        wishes, overrides = toggles.take(overrides)
        toggles.take(deferred)
    by_component: dict[str, list[Override]] = {}
    for override in overrides:
        by_component.setdefault(override.component, []).append(override)
    open_paths: dict[str, list[Override]] = {}
    for override in deferred:
        open_paths.setdefault(override.component, []).append(override)
    drafts = []
    for name in order:
        entry: RegistryEntry = catalog.registry.get(name) or {}
        draft = Draft(by_name[name], entry)
        drafts.append(draft)
        if draft.ref.get("type") == KUSTOMIZE:
            continue
        own = open_paths.get(name)
        if own:
            from aicr.bundle import dynamic

            dynamic.check_placement(own, entry, draft.ref.get("overrides") or {})
            draft.dynamic = dynamic.by_component(own)[name]
        draft.values, draft.changes, draft.notes = final_values(
            draft.ref, entry, by_component.get(name, []), draft.dynamic, catalog.tree, scheduling
        )
        if name == _SWITCHED:
            draft.ref, draft.values, said = toggles.apply(draft.ref, draft.values, wishes)
            draft.notes += said
        if name == _SHARING:
            from aicr.bundle import slurm_volumes

            slurm_volumes.check_dynamic(own or ())
            draft.values, draft.made_before, said = slurm_volumes.materialise(
                draft.values, draft.ref.get("namespace") or name
            )
            draft.notes += said
        if own:
            dynamic.check_reachable(draft.values, own)
    return drafts


def agree(
    drafts: list[Draft], deferred: list[Override], label: tuple[str, str] | None
) -> list[str]:
    """Write what several components must say alike, into the drafts; notes for the user.

    Args:
        drafts: all rendered components.
        deferred: dynamic paths, routed.
        label: key and value of ``--dra-eviction-node-label``, or None.

    Raises:
        AicrError: INVALID_REQUEST for values of a shape that cannot take it, or a dynamic path that
            would take it out of the bundle.
    """
    by_name = {draft.name: draft for draft in drafts}
    values = {draft.name: draft.values for draft in drafts}
    pair = dra.Pair(by_name)
    if pair:
        version = dra.operator_version({draft.name: draft.ref for draft in drafts}, values)
        dra.check_dynamic(deferred, by_name, opted_in=label is not None, annotated=bool(version))
        for name in pair.drivers:
            if version:
                draft = by_name[name]
                written = dra.annotate(draft.values, version)
                draft.changes += dra.overridden(
                    name, dra.ANNOTATIONS, draft.values, written, "the GPU operator's version"
                )
                draft.values = written
        if label is not None:
            _write_label(by_name, pair, label)
    notes = dra.notes(by_name, values, label)
    if _GATEWAY in by_name:
        from aicr.bundle import exposure

        exposure.check_dynamic(deferred)
        gateway = by_name[_GATEWAY]
        gateway.values, said = exposure.restrict(_GATEWAY, gateway.values)
        notes += said
    return notes


def _write_label(by_name: dict[str, Draft], pair: dra.Pair, label: tuple[str, str]) -> None:
    for name in pair.drivers:
        draft = by_name[name]
        written = dra.write_label(draft.values, label)
        draft.changes.append(dra.change_line(name, dra.SELECTOR, draft.values, written))
        draft.values = written
    for name in pair.operators:
        draft = by_name[name]
        written = dra.write_env(draft.values, label[0])
        draft.changes.append(dra.change_line(name, dra.ENV, draft.values, written))
        draft.values = written
    if dra.LABELER in by_name:
        labeler = by_name[dra.LABELER]
        written = dra.labeler_values(labeler.values, label)
        labeler.changes += dra.overridden(
            dra.LABELER, (["labelKey"], ["labelValue"]), labeler.values, written, dra.FLAG
        )
        labeler.values = written
