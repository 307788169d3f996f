"""The plan of a bundle: which components, in which order, with which final values and manifests.

```
recipe + flags ─► route overrides ─► owned paths ─► select ─┐
                                                            ▼
       for each component:  recipe values ─► --set ─► placement, storage ─► --set-file ─► --set-json
                                                            ▼
                            required selectors ─► notes ─► rendered manifests ─► Component
```

A plan is complete and checked before anything is written, so a refusal leaves the output folder as
it was (bundler spec 0.3). It reads the catalogue and changes neither it nor the recipe. It must
not know folders, deployers or how a bundle is written.
"""

from __future__ import annotations

from aicr.bundle import manifests, owned, selection
from aicr.bundle.charts import CHART_VERSION
from aicr.bundle.options import parse_deployer, parse_scheduling
from aicr.bundle.override_values import apply_scalars, apply_typed
from aicr.bundle.overrides import SET_FILE, SET_JSON, check_conflicts, parse_overrides, route
from aicr.bundle.placement import Target, check_required_selectors, write_placement
from aicr.bundle.storage import missing_class_notes, write_storage_classes
from aicr.catalog.dependencies import deployment_order, toggle_warnings
from aicr.catalog.registry import KUSTOMIZE, apply_defaults
from aicr.errors import AicrError, invalid
from aicr.recipe.coherence import canonical_type, check_coherence
from aicr.recipe.hydrate import resolve_values

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Final

    from aicr.bundle.options import BundleOptions, Scheduling
    from aicr.bundle.overrides import Override
    from aicr.catalog.catalog import Catalog
    from aicr.catalog.tree import Tree
    from aicr.catalog.types import ComponentRef, RegistryEntry
    from aicr.recipe.types import RecipeResult

    Manifests = list[tuple[str, str]]

WARNING: Final = "Warning: "

#: Basename of the quota that GKE wants before critical pods run (bundler spec 0.9).
_QUOTA_FILE: Final = "gke-critical-pods-quota.yaml"


class Component:
    """One component as it will be installed.

    Attributes:
        name: component name.
        ref: its recipe ref, with registry defaults and rendered dependencies only.
        entry: its registry entry; empty for a component the registry does not know.
        namespace: release namespace.
        values: final values, without the ``enabled`` switch; empty for a Kustomize source.
        manifests: (basename, rendered text) of what is installed after the chart.
        pre_manifests: the same for what is installed before it.
        changes: one ``component:path: old → new`` line for each override.
    """

    __slots__ = (
        "changes",
        "entry",
        "manifests",
        "name",
        "namespace",
        "pre_manifests",
        "ref",
        "values",
    )

    def __init__(
        self,
        *,
        name: str,
        ref: ComponentRef,
        entry: RegistryEntry,
        namespace: str,
        values: dict[str, Any],
        manifests: Manifests,
        pre_manifests: Manifests,
        changes: list[str],
    ) -> None:
        self.name = name
        self.ref = ref
        self.entry = entry
        self.namespace = namespace
        self.values = values
        self.manifests = manifests
        self.pre_manifests = pre_manifests
        self.changes = changes


class Plan:
    """What a bundle will hold.

    Attributes:
        components: in deployment order.
        notes: advisory texts, each starting with ``Warning: ``.
        recipe: the recipe of this bundle: rendered components only, registry defaults filled in.
        deployer: the output format.
    """

    __slots__ = ("components", "deployer", "notes", "recipe")

    def __init__(
        self,
        *,
        components: list[Component],
        notes: list[str],
        recipe: RecipeResult,
        deployer: str,
    ) -> None:
        self.components = components
        self.notes = notes
        self.recipe = recipe
        self.deployer = deployer

    @property
    def changes(self) -> list[str]:
        """The change lines of all components, in deployment order."""
        return [line for component in self.components for line in component.changes]


def plan(
    recipe: RecipeResult,
    catalog: Catalog,
    options: BundleOptions,
    *,
    read_file: Callable[[str], str] | None = None,
) -> Plan:
    """Plan a bundle (bundler spec 0.3, steps 1 to 7, 13 and 15).

    Args:
        recipe: a RecipeResult; not changed.
        catalog: the registry and the files that the recipe refers to.
        options: the flags.
        read_file: gives the text of a ``--set-file`` file; needed only with that flag.

    Raises:
        AicrError: INVALID_REQUEST for a flag that cannot be read or take effect, a recipe that
        cannot
            be deployed, or a missing manifest; errors of *read_file* and of the values files.
    """
    refs = _with_defaults(recipe, catalog)
    deployer = parse_deployer(options.deployer)
    scheduling = parse_scheduling(options)
    overrides, notes = parse_overrides(
        scalars=options.set,
        files=options.set_file,
        jsons=options.set_json,
        read_file=read_file,
    )
    route(overrides, catalog.registry, [ref["name"] for ref in refs])
    check_conflicts(overrides)
    check_coherence(refs)
    owned.check_configuration(recipe, overrides)

    selected = selection.select(
        {**recipe, "componentRefs": refs}, [item for item in overrides if item.is_switch]
    )
    values_overrides = [item for item in overrides if not item.is_switch]
    selection.check_present(values_overrides, selected.removed)
    _check_have_values(values_overrides, selected.refs)
    notes += toggle_warnings(refs)
    notes += selected.notes
    notes += owned.allocation_notes(overrides)

    order = deployment_order(selected.refs)
    by_name = {ref["name"]: ref for ref in selected.refs}
    by_component: dict[str, list[Override]] = {}
    for override in values_overrides:
        by_component.setdefault(override.component, []).append(override)
    components = [
        _component(by_name[name], by_component.get(name, []), recipe, catalog, scheduling, notes)
        for name in order
    ]
    owned.check_profile(recipe, overrides)
    return Plan(
        components=components,
        notes=[WARNING + note for note in notes],
        recipe={**recipe, "componentRefs": selected.refs, "deploymentOrder": order},
        deployer=deployer,
    )


def _with_defaults(recipe: RecipeResult, catalog: Catalog) -> list[ComponentRef]:
    """Copies of the recipe's refs with empty fields filled from the registry."""
    refs: list[ComponentRef] = []
    for ref in recipe.get("componentRefs") or ():
        copied = ref.copy()
        if copied.get("type"):
            copied["type"] = canonical_type(copied["type"])
        entry = catalog.registry.get(ref["name"])
        if entry is not None:
            apply_defaults(copied, entry)
        refs.append(copied)
    return refs


def _check_have_values(overrides: list[Override], refs: list[ComponentRef]) -> None:
    kustomize = {ref["name"] for ref in refs if ref.get("type") == KUSTOMIZE}
    for override in overrides:
        if override.component in kustomize:
            raise invalid(
                f'{override.label} cannot take effect: component "{override.component}" is a '
                f"Kustomize source, which has no values",
                where=override.flag,
                hint="patch the source's kustomization instead, or drop the override",
            )


def _component(
    ref: ComponentRef,
    overrides: list[Override],
    recipe: RecipeResult,
    catalog: Catalog,
    scheduling: Scheduling,
    notes: list[str],
) -> Component:
    name = ref["name"]
    entry: RegistryEntry = catalog.registry.get(name) or {}
    namespace = ref.get("namespace") or name
    values: dict[str, Any] = {}
    changes: list[str] = []
    if ref.get("type") != KUSTOMIZE:
        values, changes = _final_values(ref, entry, overrides, catalog.tree, scheduling, notes)
    rendered = [
        _rendered(path, ref, namespace, values, catalog.tree)
        for path in ref.get("manifestFiles") or ()
    ]
    before = [
        _rendered(path, ref, namespace, values, catalog.tree)
        for path in ref.get("preManifestFiles") or ()
    ]
    criteria = recipe.get("criteria") or {}
    if entry.get("gkeCriticalPriority") and criteria.get("service") == "gke":
        quota = manifests.gke_critical_pods_quota(namespace, criteria.get("nodes") or 0)
        before.append((_QUOTA_FILE, quota))
    return Component(
        name=name,
        ref=ref,
        entry=entry,
        namespace=namespace,
        values=values,
        manifests=rendered,
        pre_manifests=before,
        changes=changes,
    )


def _final_values(
    ref: ComponentRef,
    entry: RegistryEntry,
    overrides: list[Override],
    tree: Tree,
    scheduling: Scheduling,
    notes: list[str],
) -> tuple[dict[str, Any], list[str]]:
    """The values of one component through every layer (bundler spec 0.2)."""
    scalars = [item for item in overrides if not item.typed]
    resolved = resolve_values(ref, tree)
    values = {key: value for key, value in resolved.items() if key != "enabled"}
    values, changes = apply_scalars(values, scalars)

    target = Target(ref["name"], entry, ref.get("overrides") or {}, values, scalars)
    write_placement(target, scheduling)
    write_storage_classes(target, scheduling)
    for flag in (SET_FILE, SET_JSON):
        typed = [item for item in overrides if item.flag == flag]
        target.values, lines, typed_notes = apply_typed(target.values, typed)
        changes += lines
        target.notes += typed_notes

    check_required_selectors(target)
    notes += target.notes
    notes += missing_class_notes(target)
    return target.values, changes


def _rendered(
    path: str, ref: ComponentRef, namespace: str, values: dict[str, Any], tree: Tree
) -> tuple[str, str]:
    name = ref["name"]
    if not tree.exists(path):
        raise invalid(
            f'component "{name}" lists the manifest {path}, which the catalogue does not have',
            where=path,
            hint="regenerate the recipe with this version of the catalogue, or pass the --data "
            "directory it was generated with",
        )
    try:
        text = manifests.render_manifest(
            tree.read_text(path),
            component=name,
            values=values,
            namespace=namespace,
            chart_name=(ref.get("chart") or name).rpartition("/")[2],
            # Without a chart of its own, the chart is the local one that the manifest goes into.
            chart_version=ref.get("version") or CHART_VERSION,
            source=path,
        )
        return path.rpartition("/")[2], manifests.strip_hooks(text, source=path)
    except AicrError as error:
        raise AicrError(
            error.code,
            f'cannot render the manifest {path} of component "{name}"',
            where=error.where,
            hint=error.hint,
        ) from error
