"""The final values of one component, and its manifests rendered with them.

```
recipe values ─► --set ─► placement, storage ─► --set-file ─► --set-json ─► required selectors
```

What several components have to agree on comes after that and is not written here (see ``dra``).
It must not know recipes as a whole, folders or deployers. Source: bundler spec 0.2, 0.9, 2.7.
"""

from __future__ import annotations

from aicr.bundle import manifests
from aicr.bundle.charts import CHART_VERSION
from aicr.bundle.override_values import apply_scalars, apply_typed, secret_notes
from aicr.bundle.overrides import SET_FILE, SET_JSON
from aicr.bundle.placement import (
    Target,
    check_kinds,
    check_required_selectors,
    write_placement,
)
from aicr.bundle.storage import missing_class_notes, write_storage_classes
from aicr.errors import AicrError, invalid
from aicr.recipe.hydrate import resolve_values

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from aicr.bundle.options import Scheduling
    from aicr.bundle.overrides import Override
    from aicr.catalog.tree import Tree
    from aicr.catalog.types import ComponentRef, RegistryEntry

    Segments = list[str | int]


def final_values(
    ref: ComponentRef,
    entry: RegistryEntry,
    overrides: list[Override],
    dynamic: Sequence[Segments],
    tree: Tree,
    scheduling: Scheduling,
) -> tuple[dict[str, Any], list[str], list[str]]:
    """The values of one component through every layer that is its own (bundler spec 0.2).

    Args:
        ref: its recipe ref, with registry defaults.
        entry: its registry entry.
        overrides: its ``--set``, ``--set-file`` and ``--set-json`` overrides.
        dynamic: its paths that are given at install time; no flag is written there.
        tree: the files of the catalogue.
        scheduling: the placement and storage flags.

    Returns:
        Values, one line for each override, and notes.

    Raises:
        AicrError: INVALID_REQUEST for an override that cannot be applied, a selector or toleration
            list that is none, or a required selector that is missing.
    """
    scalars = [item for item in overrides if not item.typed]
    resolved = resolve_values(ref, tree)
    values = {key: value for key, value in resolved.items() if key != "enabled"}
    values, changes = apply_scalars(values, scalars)

    inline = ref.get("overrides") or {}
    target = Target(ref["name"], entry, inline, values, scalars, dynamic)
    write_placement(target, scheduling)
    write_storage_classes(target, scheduling)
    for flag in (SET_FILE, SET_JSON):
        typed = [item for item in overrides if item.flag == flag]
        target.values, lines, typed_notes = apply_typed(target.values, typed)
        changes += lines
        target.notes += typed_notes

    check_kinds(target)
    check_required_selectors(target)
    target.notes += secret_notes(ref["name"], overrides)
    return target.values, changes, target.notes + missing_class_notes(target)


def rendered(
    path: str, ref: ComponentRef, namespace: str, values: dict[str, Any], tree: Tree
) -> tuple[str, str]:
    """(basename, text) of one manifest of a component, rendered, without sync hooks.

    Raises:
        AicrError: INVALID_REQUEST for a manifest that the catalogue lacks or that cannot be
            rendered.
    """
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


def depends_on_dynamic(
    path: str, component: tuple[ComponentRef, str, dict[str, Any], Sequence[Segments]], tree: Tree
) -> bool:
    """Whether a manifest comes out differently when the dynamic values of its component change.

    Such a manifest is rendered when the bundle is made, so a value given at install time reaches
    the chart and not the manifest.

    Args:
        path: the manifest.
        component: its ref, namespace, final values, and dynamic paths.
        tree: the files of the catalogue.
    """
    from aicr.values import paths

    ref, namespace, values, dynamic = component
    changed = values
    for segments in dynamic:
        changed = paths.put(changed, segments, "aicr-dynamic-probe")
    try:
        return rendered(path, ref, namespace, values, tree) != rendered(
            path, ref, namespace, changed, tree
        )
    except AicrError:
        return True
