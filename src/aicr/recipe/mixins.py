"""Applying mixins: small additions that may never contradict what overlays said (recipe spec 4.7)."""

from __future__ import annotations

from aicr.catalog.dependencies import is_enabled
from aicr.catalog.fields import REF_ORDER
from aicr.errors import AicrError, invalid, nearest, not_found
from aicr.recipe.merge import union
from aicr.values.merge import copy_tree, deep_merge, is_set

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Final

    from aicr.catalog.catalog import Catalog
    from aicr.catalog.types import ComponentRef, Mixin
    from aicr.recipe.merge import Composition

#: Fields that say what a component is; a mixin may not set them on an existing component. The order
#: is the order in which offenders are reported.
IDENTITY_FIELDS: Final = (
    "chart",
    "type",
    "source",
    "version",
    "tag",
    "path",
    "valuesFile",
    "patches",
    "cleanup",
    "expectedResources",
    "healthCheckAsserts",
    "healthCheckSkip",
)


def apply_mixins(composition: Composition, catalog: Catalog) -> tuple[dict[str, str], list[str]]:
    """Apply all accumulated mixins to *composition*, in place.

    Returns the mixin that brought each new constraint (by constraint name), and warnings.

    Raises:
        AicrError: NOT_FOUND for an unknown mixin, INVALID_REQUEST for every conflict of spec 4.7.
    """
    brought: dict[str, str] = {}
    warnings: list[str] = []
    for name in composition.mixins:
        mixin = catalog.mixins.get(name)
        if mixin is None:
            near = nearest(name, list(catalog.mixins))
            raise not_found(
                f'mixin "{name}" not found in recipes/mixins/',
                where=_asked_by(name, composition, catalog),
                hint=f'did you mean "{near}"?'
                if near
                else f"known: {', '.join(sorted(catalog.mixins)) or 'none'}",
            )
        # Messages name the file as a person finds it, in a data directory as well.
        mixin = {"name": name, "path": catalog.tree.place(mixin["path"]), "spec": mixin["spec"]}
        _add_constraints(composition, mixin, brought)
        for ref in mixin["spec"].get("componentRefs") or ():
            _add_ref(composition, mixin, ref, catalog, warnings)
    return brought, warnings


def _asked_by(name: str, composition: Composition, catalog: Catalog) -> str:
    """The files of the applied overlays that list a mixin."""
    known = {catalog.base["name"]: catalog.base, **catalog.overlays}
    overlays = [known[applied] for applied in composition.applied if applied in known]
    return ", ".join(
        catalog.tree.place(overlay["path"])
        for overlay in overlays
        if name in (overlay["spec"].get("mixins") or ())
    )


def _add_constraints(composition: Composition, mixin: Mixin, brought: dict[str, str]) -> None:
    for constraint in mixin["spec"].get("constraints") or ():
        name = constraint["name"]
        if name in composition.constraints:
            raise invalid(
                f'mixin "{mixin["name"]}" constraint "{name}" conflicts with inheritance chain or '
                f"another mixin",
                where=mixin["path"],
                hint="state the constraint in one place only",
            )
        composition.constraints[name] = constraint.copy()
        brought[name] = mixin["name"]


def _add_ref(
    composition: Composition,
    mixin: Mixin,
    ref: ComponentRef,
    catalog: Catalog,
    warnings: list[str],
) -> None:
    name = ref["name"]
    entry = catalog.registry.get(name)
    allowed = list((entry or {}).get("mixinSafeOverridePaths") or ())
    existing = composition.refs.get(name)
    label = f'mixin "{mixin["name"]}" component "{name}"'
    if existing is None:
        if allowed:
            if ref.get("valuesFile"):
                raise invalid(
                    f"{label} sets valuesFile, but the registry restricts what mixins may set on it",
                    where=mixin["path"],
                    hint=f"allowed override paths: {', '.join(allowed)}",
                )
            _check_allowed(label, ref, allowed, mixin)
        composition.refs[name] = copy_tree(ref)
        return
    present: dict[str, Any] = ref  # type: ignore[assignment]
    for field in IDENTITY_FIELDS:
        if present.get(field):
            raise invalid(
                f'{label} sets identity/sourcing field "{field}" which conflicts with the '
                f"inheritance chain; mixins may only contribute Namespace, ManifestFiles, "
                f"PreManifestFiles, DependencyRefs, or registry-allowlisted Overrides paths to an "
                f"existing component",
                where=mixin["path"],
                hint=f"set {field} in an overlay of the chain instead",
            )
    if not is_enabled(existing):
        warnings.append(f"{label}: the component is disabled, so the mixin has no effect on it")
    _check_allowed(label, ref, allowed, mixin)
    _check_collisions(label, ref, existing, catalog, mixin)
    _contribute(composition, existing, ref)


def _contribute(composition: Composition, existing: ComponentRef, ref: ComponentRef) -> None:
    merged: Any = copy_tree(existing)
    added: Any = ref
    if added.get("namespace"):
        merged["namespace"] = added["namespace"]
    for field in ("dependencyRefs", "manifestFiles", "preManifestFiles"):
        if added.get(field):
            merged[field] = union(merged.get(field) or (), added[field])
    if added.get("overrides"):
        merged["overrides"] = deep_merge(
            merged.get("overrides") or {}, added["overrides"], null_deletes=False
        )
    composition.refs[ref["name"]] = {key: merged[key] for key in REF_ORDER if key in merged}  # type: ignore[assignment]


def leaf_paths(value: Any, trail: str = "") -> Iterator[str]:
    """Dotted paths of the leaves of an overrides map; lists are leaves."""
    for key, item in (value or {}).items():
        path = f"{trail}.{key}" if trail else str(key)
        if isinstance(item, dict):
            yield from leaf_paths(item, path)
        else:
            yield path


def _check_shape(label: str, value: Any, mixin: Mixin, trail: str = "") -> None:
    for key, item in value.items():
        path = f"{trail}.{key}" if trail else key
        if not key or "." in key:
            raise invalid(
                f'{label} has override key "{key}", which is empty or holds a dot',
                where=mixin["path"],
                hint="nest maps instead of joining keys by dots",
            )
        if isinstance(item, dict):
            if not item:
                raise invalid(
                    f'{label} sets an empty map at overrides path "{path}"',
                    where=mixin["path"],
                    hint="leave the key out, or set something in it",
                )
            _check_shape(label, item, mixin, path)


def _check_allowed(label: str, ref: ComponentRef, allowed: list[str], mixin: Mixin) -> None:
    overrides = ref.get("overrides")
    if overrides is None:
        return
    if not overrides:
        raise invalid(
            f"{label} sets an empty overrides map",
            where=mixin["path"],
            hint="leave overrides out, or set something in it",
        )
    _check_shape(label, overrides, mixin)
    for path in leaf_paths(overrides):
        if not any(path == safe or path.startswith(safe + ".") for safe in allowed):
            raise invalid(
                f'{label} sets overrides path "{path}", which is not in the component\'s '
                f"registry-declared mixinSafeOverridePaths allowlist [{', '.join(allowed)}]",
                where=mixin["path"],
                hint="set it in an overlay instead",
            )


def _check_collisions(
    label: str,
    ref: ComponentRef,
    existing: ComponentRef,
    catalog: Catalog,
    mixin: Mixin,
) -> None:
    """Refuse override paths that are taken; what earlier mixins set is in *existing* already."""
    wanted = list(leaf_paths(ref.get("overrides")))
    if not wanted:
        return
    taken: list[Any] = [existing.get("overrides") or {}]
    own_values = f"components/{ref['name']}/values.yaml"
    for file in (own_values, existing.get("valuesFile") or ""):
        if file and catalog.tree.exists(file):
            taken.append(catalog.tree.values(file))
    for path in wanted:
        if any(is_set(tree, path.split(".")) for tree in taken):
            raise invalid(
                f'{label} collides with path "{path}" already set by the leaf\'s own chain or '
                f"another mixin",
                where=mixin["path"],
                hint="set the path in one place only",
            )


__all__ = ["AicrError", "apply_mixins", "leaf_paths"]
