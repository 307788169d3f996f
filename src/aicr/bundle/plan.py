"""The plan of a bundle: which components, in which order, with which final values and manifests.

```
recipe + flags ─► route overrides ─► owned paths, --dynamic refusals ─► select
   ─► each component's own values, then what components agree on (drafts)
   ─► rendered manifests ─► readiness tests ─► validations ─► Plan
```

A plan is complete and checked before anything is written, so a refusal leaves the output folder as
it was (bundler spec 0.3). It reads the catalogue and changes neither it nor the recipe. It must
not know folders, what a deployer does, or how a bundle is written.
"""

from __future__ import annotations

from aicr.bundle import (
    dra,
    flag_rules,
    manifests,
    owned,
    selection,
)
from aicr.bundle.component_values import depends_on_dynamic, rendered
from aicr.bundle.deployers import canonical_name
from aicr.bundle.drafts import Draft, agree, make_drafts
from aicr.bundle.options import BundleOptions, parse_scheduling
from aicr.bundle.overrides import RESERVED_KEY, check_conflicts, parse_overrides, route
from aicr.catalog.dependencies import (
    deployment_order,
    effective_dependencies,
    levels,
    toggle_warnings,
)
from aicr.catalog.registry import KUSTOMIZE, apply_defaults
from aicr.errors import invalid
from aicr.recipe.coherence import canonical_type, check_coherence
from aicr.values import paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Final

    from aicr.bundle.chart_facts import ChartFacts
    from aicr.bundle.overrides import Override
    from aicr.bundle.vendor import VendoredChart
    from aicr.catalog.catalog import Catalog
    from aicr.catalog.types import ComponentRef, RegistryEntry
    from aicr.recipe.types import RecipeResult

    Manifests = list[tuple[str, str]]

WARNING: Final = "Warning: "

#: Formats that read ``--set deployer:…`` themselves (bundler spec 1.4).
_RESERVED_KEY_READERS: Final = ("argocd", "argocd-helm")
#: Components of Slurm's accounting; what is checked of them is loaded only with them.
ACCOUNTING: Final = ("slinky-slurm", "slurm-accounting-mariadb")
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
        dynamic: paths whose values are given at install time, sorted, each once. ``values`` still
            holds what the recipe says there; ``dynamic.split`` takes them apart.
        readiness: (place, text) of the test that its readiness gate runs, or None.
        vendored: its chart, when charts are put into the bundle; set by ``vendor``.
        facts: what its chart renders, when the chart is at hand; set by ``vendor``.
    """

    __slots__ = (
        "changes",
        "dynamic",
        "entry",
        "facts",
        "manifests",
        "name",
        "namespace",
        "pre_manifests",
        "readiness",
        "ref",
        "values",
        "vendored",
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
        dynamic: list[list[str | int]] | None = None,
        readiness: tuple[str, str] | None = None,
    ) -> None:
        self.name = name
        self.ref = ref
        self.entry = entry
        self.namespace = namespace
        self.values = values
        self.manifests = manifests
        self.pre_manifests = pre_manifests
        self.changes = changes
        self.dynamic = dynamic or []
        self.readiness = readiness
        self.vendored: VendoredChart | None = None
        self.facts: ChartFacts | None = None


class Plan:
    """What a bundle will hold.

    Attributes:
        components: in deployment order.
        notes: advisory texts, each starting with ``Warning: ``.
        advice: what validations of severity ``info`` found; told only when asked (``--debug``).
        recipe: the recipe of this bundle: rendered components only, registry defaults filled in.
        deployer: the output format.
        options: the flags of the run.
        dependencies: for each component, the components of the bundle that it waits for, sorted;
            through those that were removed.
        levels: tiers of components whose dependencies all lie in earlier tiers, each sorted.
        serial: whether components come strictly one after another.
    """

    __slots__ = (
        "advice",
        "components",
        "dependencies",
        "deployer",
        "levels",
        "notes",
        "options",
        "recipe",
        "serial",
    )

    def __init__(
        self,
        *,
        components: list[Component],
        notes: list[str],
        recipe: RecipeResult,
        deployer: str,
        options: BundleOptions | None = None,
        advice: list[str] | None = None,
    ) -> None:
        refs = [component.ref for component in components]
        self.advice: list[str] = advice or []
        self.components = components
        self.notes = notes
        self.recipe = recipe
        self.deployer = deployer
        self.options = options if options is not None else BundleOptions(deployer=deployer)
        self.dependencies: dict[str, list[str]] = effective_dependencies(refs)
        self.levels: list[list[str]] = levels(refs)
        self.serial = self.options.serial

    @property
    def tiers(self) -> dict[str, int]:
        """The place of each component's tier in ``levels``."""
        return {name: number for number, names in enumerate(self.levels) for name in names}

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
    """Plan a bundle (bundler spec 0.3, steps 1 to 16).

    Args:
        recipe: a RecipeResult; not changed.
        catalog: the registry and the files that the recipe refers to.
        options: the flags.
        read_file: gives the text of a ``--set-file`` file; needed only with that flag.

    Raises:
        AicrError: INVALID_REQUEST for a flag that cannot be read or take effect, a recipe that
            cannot be deployed, or a missing manifest; errors of *read_file* and of the values
            files.
    """
    refs = _with_defaults(recipe, catalog)
    deployer = canonical_name(options.deployer)
    notes = flag_rules.check(options, deployer)
    scheduling = parse_scheduling(options)
    label = dra.parse_label(options.dra_eviction_node_label)
    overrides, read_notes = parse_overrides(
        scalars=options.set,
        files=options.set_file,
        jsons=options.set_json,
        read_file=read_file,
    )
    notes += read_notes
    if deployer in _RESERVED_KEY_READERS:
        overrides = [item for item in overrides if item.key != RESERVED_KEY]
    deferred: list[Override] = []
    names = [ref["name"] for ref in refs]
    route(overrides, catalog.registry, names)
    check_conflicts(overrides)
    if options.dynamic:
        from aicr.bundle import dynamic

        deferred = dynamic.parse_dynamic(options.dynamic)
        route(deferred, catalog.registry, names)
        dynamic.check_conflicts(deferred, overrides)
    check_coherence(refs)
    owned.check_configuration(recipe, [*overrides, *deferred])

    selected = selection.select(
        {**recipe, "componentRefs": refs},
        [item for item in overrides if item.is_switch],
        dra_eviction=label is not None,
        bundlers=options.bundlers,
    )
    values_overrides = [item for item in overrides if not item.is_switch]
    selection.check_present(values_overrides, selected.removed)
    selection.check_present(deferred, selected.removed)
    _check_have_values([*values_overrides, *deferred], selected.refs)
    if deferred:
        dynamic.check_decided_now(deferred)
    notes += toggle_warnings(refs)
    notes += selected.notes
    notes += owned.allocation_notes(overrides)

    order = deployment_order(selected.refs)
    drafts = make_drafts(selected.refs, order, values_overrides, deferred, catalog, scheduling)
    for draft in drafts:
        notes += draft.notes
    if any(name in ACCOUNTING for name in names):
        from aicr.bundle import accounting

        notes += accounting.check(recipe, {draft.name: draft.values for draft in drafts})
    notes += agree(drafts, deferred, label)
    owned.check_profile(recipe, [*overrides, *deferred])
    components = [_component(draft, recipe, catalog, notes) for draft in drafts]
    if options.readiness_hooks:
        from aicr.bundle import readiness

        notes += readiness.attach(components, catalog.tree)
    advice: list[str] = []
    if any(component.entry.get("validations") for component in components):
        from aicr.bundle.validations import engine

        outcome = engine.run(
            recipe=recipe,
            refs=refs,
            removed=selected.removed,
            components=components,
            options=options,
            scheduling=scheduling,
            tree=catalog.tree,
        )
        notes += outcome.notes
        advice = list(outcome.advice)
    return Plan(
        advice=advice,
        components=components,
        notes=[WARNING + note for note in notes],
        recipe={**recipe, "componentRefs": selected.refs, "deploymentOrder": order},
        deployer=deployer,
        options=options,
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


def _component(draft: Draft, recipe: RecipeResult, catalog: Catalog, notes: list[str]) -> Component:
    ref, tree = draft.ref, catalog.tree
    name, values = draft.name, draft.values
    namespace = ref.get("namespace") or name
    after = list(ref.get("manifestFiles") or ())
    before = list(ref.get("preManifestFiles") or ())
    made = [rendered(path, ref, namespace, values, tree) for path in after]
    made_before = [rendered(path, ref, namespace, values, tree) for path in before]
    made_before += draft.made_before
    if draft.dynamic:
        from aicr.bundle.dynamic import DYNAMIC

        if not ref.get("source"):
            raise invalid(
                f"{DYNAMIC} {name}:{paths.join(draft.dynamic[0])} cannot take effect: the "
                f"component has no chart that a value could reach at install time, and its "
                f"manifests are rendered when the bundle is made",
                where=DYNAMIC,
                hint="give the value now, with --set or --set-json",
            )
        facts = (ref, namespace, values, draft.dynamic)
        notes += [
            f"{path} of {name} uses a value that --dynamic leaves to the installation, but is "
            f"rendered now with the recipe's value; what is filled in reaches the chart alone"
            for path in [*before, *after]
            if depends_on_dynamic(path, facts, tree)
        ]
    criteria = recipe.get("criteria") or {}
    if draft.entry.get("gkeCriticalPriority") and criteria.get("service") == "gke":
        quota = manifests.gke_critical_pods_quota(namespace, criteria.get("nodes") or 0)
        made_before.append((_QUOTA_FILE, quota))
    return Component(
        name=name,
        ref=ref,
        entry=draft.entry,
        namespace=namespace,
        values=values,
        manifests=made,
        pre_manifests=made_before,
        changes=draft.changes,
        dynamic=draft.dynamic,
    )
