"""Where every part of a recipe comes from: the answers behind ``aicr explain`` (decision 28).

``explain(recipe, selector)`` finds the part that a selector names and returns a plain document: the
final value and every layer that had a say, lowest first, each with ``file:line``. It reads the recipe's
metadata and the catalogue, and resolves nothing anew; provenance follows the merge as it is
(``provenance``). Selectors are those of ``aicr query`` and a few more (docs/explain.md). Not on any hot
path. It must not know flags of a bundle or how an answer is drawn.
"""

from __future__ import annotations

from aicr.catalog.fields import REF_ORDER
from aicr.catalog.registry import KUSTOMIZE
from aicr.errors import AicrError, invalid, nearest, not_found
from aicr.recipe import explain_order, explain_overlays, explain_policy, explain_refs
from aicr.recipe.explain_values import absent, explain_path
from aicr.recipe.provenance import Origins
from aicr.values import paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Final

    from aicr.recipe.explain_types import Explanation, Item
    from aicr.recipe.provenance import Stack
    from aicr.recipe.recipe import Recipe

    #: Lays further layers (flags of a bundle) over the values of a component, in place.
    Extend = Callable[[str, Stack], None]

#: What a selector may start with.
PARTS: Final = (
    "components",
    "constraints",
    "criteria",
    "deploymentOrder",
    "metadata",
    "overlays",
    "validation",
)
_APPLIED: Final = "appliedOverlays"
_EXCLUDED: Final = "excludedOverlays"


def explain(recipe: Recipe, selector: str = "", *, extend: Extend | None = None) -> Explanation:
    """Why a part of *recipe* is what it is.

    Args:
        recipe: what ``resolve`` returned.
        selector: a dotted path as docs/explain.md lists them; ``component:path`` as ``--set`` takes
            it; empty for a summary.
        extend: lays further layers over the values of a component.

    Raises:
        AicrError: NOT_FOUND, with the nearest name, for what the recipe does not have;
            INVALID_REQUEST for a selector that cannot be read.
    """
    origins = Origins(recipe)
    keys = _split(selector, recipe)
    head: Explanation = {"about": keys[0] if keys else "summary", "selector": selector}
    if not keys:
        return {**head, **explain_overlays.summary(origins)}
    part, rest = keys[0], keys[1:]
    if part == "components":
        return {**head, **_components(origins, rest, extend)}
    if part == "constraints":
        return {**head, "items": _constraints(origins, rest)}
    if part == "criteria":
        return {**head, "items": _criteria(origins, rest)}
    if part == "deploymentOrder":
        return {**head, **_order(origins, rest, selector)}
    if part == "validation":
        found = explain_policy.phase(origins, rest) if rest else explain_policy.phases(origins)
        return {**head, "items": found}
    if part == "metadata" and rest and rest[0] == _EXCLUDED:
        return {**head, **_excluded(origins, rest[1:])}
    if part == "metadata" and rest and rest[0] == _APPLIED:
        rows = explain_overlays.applied(origins)
        return {**head, "overlays": _named(origins, rest[1:]) or rows}
    if part == "overlays":
        return {**head, "overlays": _named(origins, rest) or explain_overlays.everything(origins)}
    wanted = rest[0] if rest else ""
    near = nearest(wanted, [_APPLIED, _EXCLUDED])
    raise not_found(
        f'selector "{selector}": of metadata, {_APPLIED} and {_EXCLUDED} can be explained',
        hint=f'did you mean "metadata.{near or _APPLIED}"?',
    )


def _split(selector: str, recipe: Recipe) -> list[str]:
    """The keys of a selector; ``component:path`` is short for the path of a value."""
    text = selector.removeprefix(".").strip()
    if not text:
        return []
    component, colon, path = text.partition(":")
    short = bool(colon) and "." not in component
    try:
        segments = paths.split(path if short else text)
    except AicrError as error:
        raise invalid(
            f'selector "{selector}" cannot be read: {error.message}', hint=error.hint
        ) from error
    if any(isinstance(segment, int) for segment in segments):
        raise invalid(
            f'selector "{selector}": a list is set as a whole, so its entries have no history',
            hint="leave the index out",
        )
    keys = [str(segment) for segment in segments]
    if short:
        return ["components", component, "values", *keys]
    if keys[0] not in PARTS:
        near = nearest(keys[0], list(PARTS))
        if _component_name(recipe, keys[0]):
            near = f"components.{keys[0]}"
        raise not_found(
            f'selector "{selector}": a recipe has no part "{keys[0]}" to explain',
            hint=f'did you mean "{near}"?' if near else f"parts: {', '.join(PARTS)}",
        )
    return keys


def _component_name(recipe: Recipe, word: str) -> str:
    """The component of the recipe that a name or an override key means, or ""."""
    names = [ref["name"] for ref in recipe.document.get("componentRefs") or ()]
    entry = recipe.catalog.registry.by_override_key(word)
    if word not in names and entry is not None and entry["name"] in names:
        return entry["name"]
    return word if word in names else ""


def _components(origins: Origins, keys: list[str], extend: Extend | None) -> Explanation:
    if not keys:
        return {"items": explain_refs.declared(origins)}
    component = _component_name(origins.recipe, keys[0])
    if not component:
        known = list(origins.by_name)
        near = nearest(keys[0], known)
        raise not_found(
            f'the recipe has no component "{keys[0]}"',
            hint=f'did you mean "{near}"?' if near else f"it has: {', '.join(known)}",
        )
    if len(keys) == 1:
        return {
            "component": component,
            "items": explain_refs.overview(origins, component),
            "notes": [f"its values: aicr explain … components.{component}.values"],
        }
    if keys[1] in ("values", "overrides"):
        stack = origins.values(component) if keys[1] == "values" else origins.overrides(component)
        if extend is not None and keys[1] == "values":
            extend(component, stack)
        return {
            "component": component,
            "items": _values(origins, component, stack, keys),
        }
    if keys[1] not in REF_ORDER and keys[1] in origins.values(component).merged:
        raise not_found(
            f'a component has no field "{keys[1]}", but component {component} has such a value',
            hint=f"did you mean components.{component}.values.{'.'.join(keys[1:])}?",
        )
    items = explain_refs.field(origins, component, keys[1])
    if len(keys) > 2:
        wanted = ".".join(keys[2:])
        items = [item for item in items if item.get("value") == wanted]
        if not items:
            raise not_found(f'{keys[1]} of component {component} has no entry "{wanted}"')
    return {"component": component, "items": items}


def _values(origins: Origins, component: str, stack: Stack, keys: list[str]) -> list[Item]:
    if origins.by_name[component].get("type") == KUSTOMIZE:
        raise not_found(
            f"component {component} is a Kustomize source, which has no values",
            hint=f"its fields can be explained: components.{component}",
        )
    path = tuple(keys[2:])
    items = explain_path(origins, stack, path, f"components.{component}.{keys[1]}")
    if not items and path:
        raise absent(origins, component, stack, path)
    return items


def _constraints(origins: Origins, keys: list[str]) -> list[Item]:
    if not keys:
        return explain_policy.constraints(origins)
    return explain_policy.constraint(origins, ".".join(keys))


def _criteria(origins: Origins, keys: list[str]) -> list[Item]:
    items = explain_overlays.criteria(origins)
    if not keys:
        return items
    found = [item for item in items if item["selector"] == f"criteria.{keys[0]}"]
    if not found:
        known = [item["selector"].removeprefix("criteria.") for item in items]
        raise not_found(
            f'no criterion "{keys[0]}" was stated', hint=f"stated: {', '.join(known) or 'none'}"
        )
    return found


def _order(origins: Origins, keys: list[str], selector: str) -> Explanation:
    if not keys:
        return {"order": explain_order.order(origins)}
    names = [_component_name(origins.recipe, key) or key for key in keys]
    if len(names) == 1:
        return explain_order.place(origins, names[0])
    if len(names) == 2:
        return explain_order.between(origins, names[0], names[1])
    raise invalid(
        f'selector "{selector}": an order is explained for one component or for two',
        hint="deploymentOrder.NAME, or deploymentOrder.NAME.OTHER",
    )


def _excluded(origins: Origins, keys: list[str]) -> Explanation:
    rows = _named(origins, keys) or explain_overlays.excluded(origins)
    notes = [] if rows else ["no overlay was excluded; only a snapshot (--snapshot) excludes any"]
    return {"overlays": rows, "notes": notes}


def _named(origins: Origins, keys: list[str]) -> list[Any]:
    return [explain_overlays.overlay(origins, ".".join(keys))] if keys else []
