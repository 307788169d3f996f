"""Conditions of the rules for bundles: what has to hold for a difference to be the one that is meant.

Each takes the case and the difference, and works out what we should have from the recipe and the
original's bundle, not with the bundler. This module must not know the rules.
"""

from __future__ import annotations

from tests.conformance.compare import Difference, at, steps
from tests.conformance.rules import Case

from aicr.recipe.hydrate import resolve_values

ROLLS = "aicr.run/gpu-operator-chart-version"
HOOKS = {"helm.sh/hook", "helm.sh/hook-weight", "helm.sh/hook-delete-policy"}


def recipes_own(case: Case, difference: Difference) -> bool:
    """The list is the one that the recipe's values hold, untouched."""
    name = str(steps(difference.path)[2])
    document = case.actual["document"]
    refs = case.facts["recipe"]["componentRefs"]
    ref = next(ref for ref in refs if ref["name"] == name)
    values = resolve_values(ref, case.facts["catalog"].tree)
    path = ".".join(str(step) for step in steps(difference.path)[4:-2])
    kept = at(values, path)
    return bool(kept) and kept == at(document["components"][name]["values"], path)


def only_sync_hooks(_: Case, difference: Difference) -> bool:
    """All annotations are hooks of the phases after a sync."""
    hooks = str(difference.expected.get("helm.sh/hook"))
    return difference.expected.keys() <= HOOKS and hooks == "post-install,post-upgrade"


def operators_version(case: Case, _: Difference) -> bool:
    """Both kinds of pods carry the GPU operator's version of the recipe, and nothing else."""
    refs = {ref["name"]: ref for ref in case.facts["recipe"]["componentRefs"]}
    values = case.actual["document"]["components"]["nvidia-dra-driver-gpu"]["values"]
    wanted = {ROLLS: refs["gpu-operator"]["version"]}
    return all(values[pods]["podAnnotations"] == wanted for pods in ("controller", "kubeletPlugin"))


def pinned_in_a_registry(case: Case, difference: Difference) -> bool:
    """The recipe's own version of a chart in a registry, in an Argo CD bundle."""
    name = str(steps(difference.path)[2])
    document = case.actual["document"]
    refs = {ref["name"]: ref for ref in case.facts["recipe"]["componentRefs"]}
    return (
        "parent" in document
        and document["components"][name]["chart"].startswith("oci://")
        and difference.actual == refs[name]["version"] == f"v{difference.expected}"
    )


def _waits(case: Case) -> dict[str, list[str]]:
    """What each component of the recipe waits for, with those that the bundle leaves out."""
    recipe = case.actual["document"].get("recipe") or case.facts["recipe"]
    return {ref["name"]: ref.get("dependencyRefs") or [] for ref in recipe["componentRefs"]}


def _by_tiers(order: list[str], waits: dict[str, list[str]]) -> list[str]:
    """*order* with each component in its tier; what is left out passes on what it waits for."""

    def tier(name: str) -> int:
        return max((tier(on) + (on in order) for on in waits.get(name, ())), default=0)

    return sorted(order, key=tier)


def originals_order_by_tiers(case: Case, _: Difference) -> bool:
    """An Argo CD bundle of ours syncs in the original's order, tier by tier."""
    ours, theirs = (side["document"] for side in (case.actual, case.expected))
    return "parent" in ours and _by_tiers(theirs["order"], _waits(case)) == ours["order"]


def derived_order(case: Case, difference: Difference) -> bool:
    """Our order is what the dependencies of the bundle's recipe give, alphabetical where free."""
    document = case.actual["document"]
    waits = _waits(case)
    left = {name: set(on) for name, on in waits.items()}
    derived: list[str] = []
    while left:
        ready = min(name for name, on in left.items() if not on & left.keys())
        derived.append(ready)
        del left[ready]
    if steps(difference.path)[1] != "order":
        return bool(derived == document["recipe"]["deploymentOrder"])
    return bool(
        (_by_tiers(derived, waits) if "parent" in document else derived) == document["order"]
    )
