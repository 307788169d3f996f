"""Where a validator pod would like to run: away from GPUs, and beside the component it asks.

Terms are resolved against the recipe before any phase, so that a required component which the
recipe does not bring ends the run and not a phase in the middle of it (decision 63, V-072). Pure.

A node that only plays a node (KWOK, or this project's hollow test nodes) reports a pod as done
without running it, which would be a pass that nothing earned: such nodes are excluded.

Source: validators spec 2.3, 3.2; decision 84.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from aicr.contract.labels import RUNS_PODS
from aicr.errors import invalid
from aicr.validate.catalog import REQUIRED, Affinity, Entry

GPU_LABEL: Final = "nvidia.com/gpu.present"
WEIGHT: Final = 100


def enabled_components(recipe: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The componentRefs that are deployed, by name: all but those with ``overrides.enabled: false``."""
    return {
        ref["name"]: ref
        for ref in recipe.get("componentRefs") or ()
        if (ref.get("overrides") or {}).get("enabled") is not False
    }


def resolve(entries: Iterable[Entry], recipe: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The affinity of each entry's pod, by name of the check.

    Raises:
        AicrError: INVALID_REQUEST for a required component that the recipe does not deploy.
    """
    components = enabled_components(recipe)
    return {entry.name: _affinity(entry, components) for entry in entries}


def _affinity(entry: Entry, components: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    required: list[dict[str, Any]] = []
    preferred: list[dict[str, Any]] = []
    for wish in entry.affinity:
        ref = components.get(wish.component)
        if ref is None:
            if wish.requirement == REQUIRED:
                raise invalid(
                    f'check "{entry.name}" requires the component "{wish.component}", and the recipe '
                    f"does not deploy it",
                    where=entry.where,
                    hint="add the component to the recipe, or take the check out of it",
                )
            continue
        term = _term(wish, str(ref.get("namespace") or ""))
        if wish.requirement == REQUIRED:
            required.append(term)
        else:
            preferred.append({"weight": WEIGHT, "podAffinityTerm": term})
    found: dict[str, Any] = {"nodeAffinity": node_affinity()}
    beside: dict[str, Any] = {}
    if required:
        beside["requiredDuringSchedulingIgnoredDuringExecution"] = required
    if preferred:
        beside["preferredDuringSchedulingIgnoredDuringExecution"] = preferred
    return found | ({"podAffinity": beside} if beside else {})


def node_affinity() -> dict[str, Any]:
    """A node that runs its pods, and one without GPUs if there is one."""
    without_gpu = {"matchExpressions": [{"key": GPU_LABEL, "operator": "DoesNotExist"}]}
    return {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [dict(one) for one in RUNS_PODS]}]
        },
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": WEIGHT, "preference": without_gpu}
        ],
    }


def _term(wish: Affinity, namespace: str) -> dict[str, Any]:
    return {
        "labelSelector": {"matchLabels": dict(wish.labels)},
        **({"namespaces": [namespace]} if namespace else {}),
        "topologyKey": wish.topology_key,
    }
