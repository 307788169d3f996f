"""Resolution: from criteria and a catalogue to one recipe (recipe spec 4.10).

The steps, in order: select leaves, merge, mixins, snapshot filters, coverage, profile, typed
configuration, registry defaults, dependency checks, coherence, order. Everything up to the copy that is
handed out depends only on the leaves and the choices made, so it is kept in the catalogue's scratch
cache; the catalogue itself is never changed.
"""

from __future__ import annotations

from aicr.catalog.dependencies import check_dependencies, deployment_order, toggle_warnings
from aicr.catalog.fields import PHASE_KEYS, PHASES
from aicr.catalog.registry import shipped_check
from aicr.contract.documents import V1, V1BETA2
from aicr.errors import AicrError, invalid
from aicr.recipe import configuration as typed
from aicr.recipe import criteria as words
from aicr.recipe import profile as profiles
from aicr.recipe.coherence import check_coherence, check_duplicates, with_defaults
from aicr.recipe.coverage import check_coverage
from aicr.recipe.match import chain, maximal_leaves
from aicr.recipe.merge import Composition, as_written, compose
from aicr.recipe.mixins import apply_mixins
from aicr.recipe.recipe import Recipe
from aicr.values.merge import copy_tree
from aicr.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, Final

    from aicr.catalog.catalog import Catalog
    from aicr.catalog.types import ComponentRef
    from aicr.recipe.criteria import Criteria
    from aicr.recipe.filtering import Verdicts
    from aicr.recipe.types import RecipeMetadataBlock, RecipeResult, SelectedProfile

ONLY_BASE: Final = "no environment-specific overlays matched, using base configuration only"


class _Merged:
    """A composition with its mixins applied."""

    __slots__ = ("brought", "composition", "leaves", "warnings")

    def __init__(
        self,
        composition: Composition,
        leaves: tuple[str, ...],
        brought: dict[str, str],
        warnings: list[str],
    ) -> None:
        self.composition = composition
        self.leaves = leaves
        self.brought = brought
        self.warnings = warnings


class _Body:
    """The finished part of a recipe that depends on leaves and choices only."""

    __slots__ = ("configuration", "constraints", "order", "refs", "selected", "validation")

    def __init__(self) -> None:
        self.refs: list[ComponentRef] = []
        self.constraints: list[Any] = []
        self.order: list[str] = []
        self.validation: dict[str, Any] = {}
        self.selected: SelectedProfile | None = None
        self.configuration: dict[str, Any] = {}


def resolve(
    catalog: Catalog,
    criteria: Criteria,
    *,
    snapshot: Any = None,
    coverage: bool = True,
    profile: str = "",
    configuration: dict[str, Any] | None = None,
    strict: bool = False,
    derived: Iterable[str] = (),
    version: str = __version__,
) -> Recipe:
    """The recipe for *criteria*.

    Args:
        catalog: what there is to combine.
        criteria: what the person has.
        snapshot: a Snapshot document; overlays whose constraints it fails are left out.
        coverage: refuse a recipe that does not cover every stated criterion; switched off only to
            compare with the original's goldens (decision 50).
        profile: ``name=value``, or empty for the declared default.
        configuration: typed choices (recipe spec 4.12).
        strict: accept only criteria values of the built-in catalogue.
        derived: criteria fields that a snapshot implied, not the person; they may be dropped once.
        version: tool version to write into the document.

    Raises:
        AicrError: INVALID_REQUEST for criteria, coverage, merge, profile, configuration or coherence
            problems; NOT_FOUND for an unknown mixin; what a constraint that cannot be evaluated gave.
    """
    words.check(criteria, catalog, strict=strict)
    if snapshot is not None:
        from aicr.snapshot.document import validate

        validate(snapshot, "snapshot")
    options = {
        "snapshot": snapshot,
        "coverage": coverage,
        "profile": profile,
        "configuration": configuration or {},
        "version": version,
    }
    try:
        return _resolve(catalog, criteria, **options)
    except AicrError as error:
        relaxable = _relaxable(error, criteria, set(derived)) if snapshot is not None else []
        if not relaxable:
            raise
    recipe = _resolve(catalog, criteria.replaced(**dict.fromkeys(relaxable, "")), **options)
    recipe.relaxed = relaxable
    recipe.warnings[:0] = [
        f"{field} '{criteria.get(field)}' was read from the snapshot, and no recipe covers it: "
        f"resolved without it"
        for field in relaxable
    ]
    return recipe


def _relaxable(error: AicrError, criteria: Criteria, derived: set[str]) -> list[str]:
    """Dimensions that may be dropped after a coverage error (recipe spec 1.10), or none."""
    uncovered = error.context.get("uncovered") or []
    fields = [entry["dimension"] for entry in uncovered]
    if not fields or any(entry["constraintExcluded"] for entry in uncovered):
        return []
    if not set(fields) <= derived or not set(criteria.stated()) - set(fields):
        return []
    return fields


def _resolve(
    catalog: Catalog,
    criteria: Criteria,
    *,
    snapshot: Any,
    coverage: bool,
    profile: str,
    configuration: dict[str, Any],
    version: str,
) -> Recipe:
    selection = profiles.parse_selection(profile)
    typed.check_configuration(configuration, criteria)
    leaves = maximal_leaves(catalog, criteria.stated())
    verdicts: Verdicts | None = None
    if snapshot is None:
        merged = _merge(catalog, leaves)
    else:
        merged, verdicts = _merge_filtered(catalog, leaves, snapshot)
    applied = merged.composition.applied
    if coverage:
        check_coverage(
            catalog,
            criteria,
            applied,
            excluded=verdicts.excluded if verdicts else None,  # type: ignore[arg-type]
            warnings=verdicts.warnings if verdicts else None,  # type: ignore[arg-type]
        )
    body = _finish(catalog, criteria, merged, selection, configuration)
    if snapshot is not None and body.selected is not None:
        chosen = profiles.choose(merged.composition, selection)
        if chosen is not None:
            profiles.check_against_snapshot(*chosen, snapshot)
    warnings = [*merged.warnings]
    if applied == ["base"]:
        warnings.append(ONLY_BASE)
    warnings += toggle_warnings(body.refs)
    document = _document(criteria, applied, body, verdicts, snapshot, version)
    return Recipe(document, catalog, warnings=warnings)


def _merge(catalog: Catalog, leaves: tuple[str, ...]) -> _Merged:
    cache: dict[tuple[str, ...], _Merged] = catalog.cache.setdefault("merged", {})
    found = cache.get(leaves)
    if found is None:
        chains = [chain(catalog, leaf) for leaf in leaves]
        specs = {name: catalog.overlays[name]["spec"] for members in chains for name in members}
        composition = compose(catalog.base["spec"], chains, specs)
        brought, warnings = apply_mixins(composition, catalog)
        found = _Merged(composition, leaves, brought, warnings)
        cache[leaves] = found
    return found


def _merge_filtered(
    catalog: Catalog, leaves: tuple[str, ...], snapshot: Any
) -> tuple[_Merged, Verdicts]:
    from aicr.recipe.filtering import Verdicts, filter_by_mixins, filter_leaves

    verdicts = Verdicts()
    before = _declarations(catalog, leaves)
    kept = filter_leaves(catalog, leaves, snapshot, verdicts)
    merged = _merge(catalog, kept)
    remaining = filter_by_mixins(
        catalog,
        kept,
        merged.brought,
        merged.composition.constraints,
        snapshot,
        verdicts,
    )
    if remaining != kept:
        merged = _merge(catalog, remaining)
    for name in before:
        if name not in merged.composition.applied:
            raise invalid(
                f'profile declaration from overlay "{name}" was removed by snapshot constraint '
                f"filtering",
                context={
                    "excludedOverlays": verdicts.excluded,
                    "constraintWarnings": verdicts.warnings,
                },
            )
    return merged, verdicts


def _declarations(catalog: Catalog, leaves: tuple[str, ...]) -> list[str]:
    return [
        name
        for leaf in leaves
        for name in chain(catalog, leaf)
        if catalog.overlays[name]["spec"].get("profile") is not None
    ]


def _finish(
    catalog: Catalog,
    criteria: Criteria,
    merged: _Merged,
    selection: tuple[str, str],
    configuration: dict[str, Any],
) -> _Body:
    plain = not configuration and criteria.platform != "slurm"
    key = (merged.leaves, selection)
    cache: dict[Any, _Body] = catalog.cache.setdefault("bodies", {})
    if plain and key in cache:
        return cache[key]
    composition = merged.composition.fork()
    body = _Body()
    chosen = profiles.choose(composition, selection)
    if chosen is not None:
        body.selected = profiles.apply_profile(composition, *chosen)
    body.configuration = typed.apply_configuration(composition.refs, configuration, criteria)
    body.refs = _finished_refs(catalog, composition)
    check_duplicates(body.refs)
    try:
        check_dependencies(body.refs)
    except AicrError as error:
        raise AicrError(error.code, "merged recipe validation failed", hint=error.hint) from error
    check_coherence(body.refs)
    body.order = deployment_order(body.refs)
    body.constraints = [composition.constraints[name] for name in sorted(composition.constraints)]
    body.validation = _finished_phases(composition)
    if plain:
        cache[key] = body
    return body


def _finished_refs(catalog: Catalog, composition: Composition) -> list[ComponentRef]:
    finished = []
    for name in sorted(composition.refs):
        entry = catalog.registry.get(name)
        ref: Any = with_defaults(composition.refs[name], entry)
        if entry is not None:
            _hydrate_asserts(ref, entry, catalog)
        ref.setdefault("source", "")
        finished.append(as_written(ref))
    return finished


def _hydrate_asserts(ref: Any, entry: Any, catalog: Catalog) -> None:
    """Put the text of the registry's assert file into the ref (recipe spec 3.5)."""
    if ref.get("healthCheckAsserts"):
        return
    try:
        text = shipped_check(ref, entry, catalog.tree)
    except AicrError as error:
        file = entry["healthCheck"]["assertFile"]
        raise AicrError(
            error.code,
            f'failed to read healthCheck.assertFile for component "{ref["name"]}" from "{file}"',
        ) from error
    if text is not None:
        ref["healthCheckAsserts"] = text


def _finished_phases(composition: Composition) -> dict[str, Any]:
    phases = {}
    for name in PHASES:
        found: dict[str, Any] = composition.validation.get(name) or {}  # type: ignore[assignment]
        block = {key: found[key] for key in PHASE_KEYS if found.get(key)}
        if block:
            phases[name] = block
    return phases


def _document(
    criteria: Criteria,
    applied: list[str],
    body: _Body,
    verdicts: Verdicts | None,
    snapshot: Any,
    version: str,
) -> RecipeResult:
    metadata: RecipeMetadataBlock = {}
    if version:
        metadata["version"] = version
    metadata["appliedOverlays"] = list(applied)
    if verdicts is not None:
        if verdicts.excluded:
            metadata["excludedOverlays"] = verdicts.excluded
        if verdicts.warnings:
            metadata["constraintWarnings"] = verdicts.warnings
    states: RecipeMetadataBlock = {}
    if snapshot is not None:
        from aicr.recipe import cluster_state

        states = cluster_state.read(snapshot)
    if "gpuDriverState" in states:
        metadata["gpuDriverState"] = states["gpuDriverState"]
    if body.selected is not None:
        metadata["selectedProfile"] = copy_tree(body.selected)
    metadata.update(states)
    beta = body.selected is not None or bool(body.configuration)
    document: RecipeResult = {
        "kind": "RecipeResult",
        "apiVersion": V1BETA2 if beta else V1,
        "metadata": metadata,
        "criteria": criteria.document(),
    }
    if body.configuration:
        document["configuration"] = copy_tree(body.configuration)
    if body.constraints:
        document["constraints"] = [constraint.copy() for constraint in body.constraints]
    document["componentRefs"] = copy_tree(body.refs)
    document["deploymentOrder"] = list(body.order)
    if body.validation:
        document["validation"] = copy_tree(body.validation)
    return document
