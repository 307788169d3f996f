"""Components of the real catalogue in recipes and plans of their own, for tests of what the seed asks."""

from __future__ import annotations

from functools import cache
from typing import Any, Final, cast

from tests.catalogue.catalogue_files import mixins, overlays, registry

from aicr.bundle.options import BundleOptions
from aicr.bundle.plan import Plan, plan
from aicr.catalog.catalog import Catalog

REGISTRY: Final = registry()
CHARTS: Final = sorted(
    name for name, entry in REGISTRY.items() if entry.get("helm", {}).get("defaultChart")
)
TIERS: Final = ("system", "accelerated")


@cache
def catalog() -> Catalog:
    """The built-in catalogue."""
    return Catalog.builtin()


def pulled(name: str) -> dict[str, Any]:
    """A ref to a component by its name, with the manifests that overlays bring where it has none."""
    entry = REGISTRY[name]
    if name in CHARTS or entry.get("kustomize") or entry.get("manifestFiles"):
        return {"name": name}
    documents = (*overlays().values(), *mixins().values())
    refs = [ref for item in documents for ref in item["spec"].get("componentRefs") or ()]
    own = [ref for ref in refs if ref["name"] == name and "manifestFiles" in ref]
    # Its manifests need the values that come with them; the fullest ref has all of these.
    fullest = max(own, key=lambda ref: len(ref.get("overrides", {})))
    return {
        "name": name,
        "manifestFiles": fullest["manifestFiles"],
        "overrides": fullest.get("overrides", {}),
    }


def planned(*refs: dict[str, Any], service: str = "eks", **flags: Any) -> Plan:
    """The plan of a recipe of these refs and nothing else, with the real registry and values."""
    recipe: dict[str, Any] = {
        "kind": "RecipeResult",
        "apiVersion": "aicr.run/v1",
        "metadata": {"version": "1.0.0"},
        "criteria": {"service": service},
        "componentRefs": [dict(ref) for ref in refs],
        "deploymentOrder": [ref["name"] for ref in refs],
    }
    return plan(cast("Any", recipe), catalog(), BundleOptions(**flags))


def values_of(name: str, **flags: Any) -> dict[str, Any]:
    """The final values of one component that stands in a recipe by its name alone."""
    refs = [pulled(name)]
    if name == "dra-node-labeler":
        refs += [{"name": "gpu-operator"}, {"name": "nvidia-dra-driver-gpu"}]
        flags["dra_eviction_node_label"] = "example.com/dra=on"
    made = planned(*refs, **flags)
    return next(item.values for item in made.components if item.name == name)


def at(values: Any, path: str) -> Any:
    """What stands at a dotted path, None when nothing does."""
    for part in path.split("."):
        values = values.get(part) if isinstance(values, dict) else None
    return values


def leaves(values: Any, stops: set[str], path: str = "") -> dict[str, Any]:
    """Dotted path -> value, with lists and what stands at one of *stops* taken whole."""
    if not isinstance(values, dict) or path in stops or not values:
        return {path: values}
    found: dict[str, Any] = {}
    for key, value in values.items():
        found |= leaves(value, stops, f"{path}.{key}" if path else key)
    return found


def routed(name: str, tier: str, field: str) -> list[str]:
    """The paths that an entry lists."""
    found: list[str] = REGISTRY[name].get("nodeScheduling", {}).get(tier, {}).get(field, [])
    return found
