"""Value resolution: what a component's chart gets before any flag (recipe spec 7, decision 51).

Layers, lowest first: the component's own values.yaml, the ref's valuesFile, the inline overrides. A null
in an upper layer deletes the key below, at any depth; where nothing is below, it stays for Helm.
"""

from __future__ import annotations

from aicr.catalog.registry import KUSTOMIZE
from aicr.errors import INTERNAL, NOT_FOUND, AicrError, invalid, nearest
from aicr.values.merge import deep_merge

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from aicr.catalog.tree import Tree
    from aicr.catalog.types import ComponentRef
    from aicr.recipe.recipe import Recipe


def resolve_values(ref: ComponentRef, tree: Tree) -> dict[str, Any]:
    """The values of one component, as a fresh map.

    A Kustomize component has none. A ref without ``valuesFile`` starts from the component's own
    values.yaml if there is one (decision 51).

    Raises:
        AicrError: INTERNAL ``failed to read values file …`` when a named file is absent;
            INVALID_REQUEST when a values file is not a YAML map.
    """
    if ref.get("type") == KUSTOMIZE:
        return {}
    own = f"components/{ref['name']}/values.yaml"
    named = ref.get("valuesFile") or ""
    layers: list[dict[str, Any]] = []
    if named == own or tree.exists(own):
        layers.append(_read(tree, own, "failed to read values file"))
    if named and named != own:
        layers.append(_read(tree, named, "failed to read overlay values file"))
    overrides = ref.get("overrides")
    if overrides:
        layers.append(overrides)
    return layered(*layers)


def layered(*layers: dict[str, Any]) -> dict[str, Any]:
    """Layers of values laid over each other, lowest first, as a fresh map.

    A null removes what is below, else it stays for Helm.

    A null over a key that some lower layer of ours sets deletes that key. Over a key that none sets
    it stays a null, which makes Helm drop the chart's own default; deleting it would silently bring
    that default back (docs/differences.md, field case B7). A second null over the same key changes
    nothing: what a layer of ours set stays deleted, however often that is said.

    >>> layered({"a": 1}, {"a": None, "b": None})
    {'b': None}
    >>> layered({"a": 1}, {"a": None}, {"a": None})
    {}
    """
    merged: dict[str, Any] = {}
    below: list[Any] = []
    for layer in layers:
        merged = deep_merge(merged, layer, null_deletes=True)
        _keep_nulls(below, layer, merged)
        below.append(layer)
    return merged


def _keep_nulls(below: list[Any], layer: dict[str, Any], merged: dict[str, Any]) -> None:
    """Put back the nulls of *layer* over keys that no layer *below* sets."""
    for key, item in layer.items():
        if item is None:
            if all(lower.get(key) is None for lower in below):
                merged[key] = None
        elif isinstance(item, dict):
            inner = [lower[key] for lower in below if isinstance(lower.get(key), dict)]
            _keep_nulls(inner, item, merged[key])


def _read(tree: Tree, path: str, message: str) -> dict[str, Any]:
    try:
        return tree.values(path)
    except AicrError as error:
        if error.code != NOT_FOUND:
            raise
        near = nearest(path, [known for known in tree.paths() if known.endswith(".yaml")])
        raise AicrError(
            INTERNAL,
            f'{message} "{path}"',
            hint=(
                f'did you mean "{near}"? Or ' if near else "correct valuesFile, add the file, or "
            )
            + "pass the --data directory that the recipe was made with",
        ) from error


def hydrate(recipe: Recipe) -> dict[str, Any]:
    """The hydrated document that ``aicr query`` selects from (recipe spec 6.3).

    Every component is hydrated, whatever is asked for later, so a missing values file never hides.

    Raises:
        AicrError: INTERNAL ``failed to hydrate values for component …``; INVALID_REQUEST for
            something that is no recipe.
    """
    document = getattr(recipe, "document", None)
    if document is None:
        raise invalid(
            f"only what aicr.resolve gives can be hydrated, found {type(recipe).__name__}",
            hint="pass the recipe itself: its document does not know the catalogue's values files",
        )
    metadata: dict[str, Any] = dict(document.get("metadata") or {})
    for key in ("appliedOverlays", "excludedOverlays", "constraintWarnings"):
        metadata[key] = list(metadata.get(key) or [])
    criteria = dict(document.get("criteria") or {})
    criteria.setdefault("nodes", 0)
    hydrated: dict[str, Any] = {
        "kind": document["kind"],
        "apiVersion": document["apiVersion"],
        "metadata": metadata,
        "criteria": criteria,
        "constraints": [dict(constraint) for constraint in document.get("constraints") or ()],
        "components": {},
        "deploymentOrder": list(document.get("deploymentOrder") or ()),
    }
    if document.get("configuration"):
        hydrated["configuration"] = document["configuration"]
    for ref in document.get("componentRefs") or ():
        try:
            values = resolve_values(ref, recipe.catalog.tree)
        except AicrError as error:
            inner = AicrError(error.code, f'failed to hydrate values for component "{ref["name"]}"')
            inner.__cause__ = error
            raise AicrError(error.code, "failed to hydrate recipe") from inner
        hydrated["components"][ref["name"]] = _component(ref, values)
    return hydrated


def _component(ref: ComponentRef, values: dict[str, Any]) -> dict[str, Any]:
    fields: dict[str, Any] = ref  # type: ignore[assignment]
    component = {key: fields.get(key, "") for key in ("name", "type", "source")}
    for key in ("namespace", "chart", "version", "tag", "path", "dependencyRefs"):
        if fields.get(key):
            component[key] = fields[key]
    if values:
        component["values"] = values
    return component
