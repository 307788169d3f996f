"""Why a field of a component is what it is: version, chart, namespace, dependencies, files.

Fields follow other rules than values: text and lists of objects are replaced by the next layer, lists of
names unite, and the registry fills what is still empty (recipe spec 3.5, 4.1). It must not know how
selectors are written or how answers are drawn.
"""

from __future__ import annotations

from aicr.catalog.dependencies import is_enabled
from aicr.catalog.fields import REF_BOOLS, REF_LISTS, REF_ORDER
from aicr.catalog.registry import KUSTOMIZE, apply_defaults, component_type, shipped_check
from aicr.errors import nearest, not_found
from aicr.recipe.explain_values import SET, SETS, step
from aicr.recipe.provenance import REGISTRY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from aicr.recipe.explain_types import Edge, Item, Step
    from aicr.recipe.places import Trail
    from aicr.recipe.provenance import Origins

#: State of a component that is part of the recipe and not deployed.
DISABLED: Final = "disabled"

ADDS: Final = "adds"
REPEATS: Final = "repeats"
FILLS: Final = "fills"

#: Lists whose entries of all layers unite.
UNITED: Final = tuple(field for field in REF_LISTS if field != "patches")

#: Key of a registry entry that fills a field, for each type of component.
_HELM: Final = {
    "source": "defaultRepository",
    "version": "defaultVersion",
    "namespace": "defaultNamespace",
    "chart": "defaultChart",
}
_KUSTOMIZE: Final = {"source": "defaultSource", "path": "defaultPath", "tag": "defaultTag"}


def field(origins: Origins, component: str, name: str) -> list[Item]:
    """The items of one field of a component: one, or one for each entry of a united list.

    Raises:
        AicrError: NOT_FOUND for a field that does not exist or that this component does not have.
    """
    ref: Any = origins.by_name[component]
    if name not in REF_ORDER:
        near = nearest(name, [*REF_ORDER, "values"])
        raise not_found(
            f'a component has no field "{name}"',
            hint=f'did you mean "{near}"?' if near else f"fields: {', '.join(REF_ORDER)}, values",
        )
    if not ref.get(name):
        having = ", ".join(key for key in REF_ORDER if ref.get(key))
        raise not_found(
            f"neither a layer nor the registry sets {name} of component {component}",
            hint=f"it has: {having}, values",
        )
    prefix = f"components.{component}.{name}"
    if name in UNITED:
        return [_entry(origins, component, name, entry, prefix) for entry in ref[name]]
    steps = _steps(origins, component, name)
    if steps:
        steps[_deciding(name, steps)]["inForce"] = True
    return [{"selector": prefix, "state": SET, "value": ref[name], "steps": steps}]


def _deciding(name: str, steps: list[Step]) -> int:
    """Who decides: a name and a switch that sticks are their first layer's, the rest the last's."""
    if name == "name" or name in REF_BOOLS:
        return 0
    return len(steps) - 1


def _steps(origins: Origins, component: str, name: str) -> list[Step]:
    found = _registry_steps(origins, component, name)
    for layer in origins.refs(component):
        value = layer.content.get(name)
        if value:
            said = step(origins, layer, (name,), SETS)
            said["value"] = value
            found.append(said)
    return found


def _entry(origins: Origins, component: str, name: str, entry: str, prefix: str) -> Item:
    """An entry of a united list is in the recipe because of the first layer that lists it."""
    steps: list[Step] = []
    for layer in origins.refs(component):
        listed = layer.content.get(name) or ()
        if entry in listed:
            action = REPEATS if steps else ADDS
            steps.append(step(origins, layer, (name, listed.index(entry)), action))
    if not steps:
        # Only the registry is left: it fills the whole list.
        steps = _registry_steps(origins, component, name)
        trail = (name, steps[0]["value"].index(entry))
        steps[0]["value"] = entry
        steps[0]["where"] = origins.places.registry(component, trail)
    steps[0]["inForce"] = True
    return {"selector": f"{prefix}[{entry}]", "state": SET, "value": entry, "steps": steps}


def _registry_steps(origins: Origins, component: str, name: str) -> list[Step]:
    """What the registry would fill in, if it has anything for this field."""
    entry = origins.recipe.catalog.registry.get(component)
    if entry is None:
        return []
    ref = origins.by_name[component]
    kind = ref.get("type") or component_type(entry)
    filled: Any = {"name": component, "type": kind}
    apply_defaults(filled, entry)
    filled["type"] = component_type(entry)
    del filled["name"]
    check = shipped_check(ref, entry, origins.recipe.catalog.tree)
    if check is not None:
        filled["healthCheckAsserts"] = check
    if not filled.get(name):
        return []
    trail = _registry_trail(name, kind)
    found: Step = {
        "kind": REGISTRY,
        "name": component,
        "where": origins.places.registry(component, trail),
        "action": FILLS,
        "value": filled[name],
        "inForce": False,
    }
    return [found]


def _registry_trail(name: str, kind: str) -> Trail:
    if name == "healthCheckAsserts":
        return ("healthCheck", "assertFile")
    if name == "manifestFiles":
        return (name,)
    block, keys = ("kustomize", _KUSTOMIZE) if kind == KUSTOMIZE else ("helm", _HELM)
    return (block, keys[name]) if name in keys else (block,)


def overview(origins: Origins, component: str) -> list[Item]:
    """Every field that a component has, except its overrides."""
    ref: Any = origins.by_name[component]
    found: list[Item] = []
    for name in REF_ORDER:
        if name not in ("name", "overrides") and ref.get(name):
            found += field(origins, component, name)
    return found


def declared(origins: Origins) -> list[Item]:
    """Every component of the recipe and the layer that brought it in."""
    found: list[Item] = []
    for component, ref in origins.by_name.items():
        steps = [
            step(origins, layer, ("name",), REPEATS if number else ADDS)
            for number, layer in enumerate(origins.refs(component))
        ]
        if steps:
            steps[0]["inForce"] = True
        found.append(
            {
                "selector": f"components.{component}",
                "state": SET if is_enabled(ref) else DISABLED,
                "value": ref.get("version") or ref.get("tag") or "",
                "steps": steps,
            }
        )
    return found


def edge(origins: Origins, component: str, depends_on: str) -> Edge:
    """One declared dependency with the layer that added it."""
    prefix = f"components.{component}.dependencyRefs"
    first = _entry(origins, component, "dependencyRefs", depends_on, prefix)["steps"][0]
    return {
        "component": component,
        "dependsOn": depends_on,
        "kind": first["kind"],
        "name": first["name"],
        "where": first["where"],
    }
