"""The fingerprint of a snapshot: the criteria that follow from what was measured.

Only readings speak here. A value that is not in the built-in vocabulary is left out and noted,
never passed on; intent and platform are decisions of the user and are never derived. Two GPU
products, or two regions, give no value at all rather than one of them.

This module must not know overlays or flags, nor who takes precedence. Source: recipe spec 1.10.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aicr.catalog import criteria_values
from aicr.constraints import nodelabels, paths
from aicr.errors import AicrError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Final

PRODUCT_LABEL: Final = "nvidia.com/gpu.product"
REGION_LABEL: Final = "topology.kubernetes.io/region"

MULTI_GPU: Final = "multi-gpu"
UNKNOWN_SKU: Final = "unknown-sku"
MULTI_REGION: Final = "multi-region"
UNREADABLE: Final = "unreadable-labels"


def fingerprint(snapshot: Mapping[str, Any]) -> dict[str, Any]:
    """Derive criteria and facts from a validated snapshot document (recipe spec 1.10).

    Returns:
        A dict with a key for each thing that is known, and always ``notes``:
        ``service``, ``accelerator``, ``os`` (built-in criteria values); ``nodes`` and
        ``gpuNodeCount`` (int); ``k8sVersion``, ``osVersion``, ``gpuModel``, ``region`` (text);
        ``notes`` (list of MULTI_GPU, UNKNOWN_SKU, MULTI_REGION, UNREADABLE).
    """
    notes: list[str] = []
    found: dict[str, Any] = {
        "service": _service(snapshot),
        **_gpu(snapshot, notes),
        "os": criteria_values.OS_RELEASE_IDS.get(
            _reading(snapshot, "OS", "release", "ID").lower(), ""
        ),
        "nodes": _count(_reading(snapshot, "NodeTopology", "summary", "node-count")),
        "k8sVersion": _reading(snapshot, "K8s", "server", "version").removeprefix("v"),
        "osVersion": _reading(snapshot, "OS", "release", "VERSION_ID"),
        "region": _region(snapshot, notes),
    }
    return {key: value for key, value in found.items() if value not in ("", None)} | {
        "notes": list(dict.fromkeys(notes))
    }


def _service(snapshot: Mapping[str, Any]) -> str:
    provider = criteria_values.known("service", _reading(snapshot, "K8s", "node", "provider"))
    return "" if provider in criteria_values.NEVER_DETECTED else provider


def _gpu(snapshot: Mapping[str, Any], notes: list[str]) -> dict[str, Any]:
    """accelerator, gpuModel and gpuNodeCount; node labels first, then the local hardware."""
    products = _label(snapshot, PRODUCT_LABEL, notes)
    model = _reading(snapshot, "GPU", "hardware", "model")
    accelerator = ""
    if products and len(products) > 1:
        notes.append(MULTI_GPU)
    else:
        if products:
            accelerator = criteria_values.accelerator_of(next(iter(products)))
            if not accelerator:
                notes.append(UNKNOWN_SKU)
        if not accelerator and model:
            accelerator = criteria_values.accelerator_of(model)
            if not accelerator:
                notes.append(UNKNOWN_SKU)
    nodes = None if products is None else sum(listed.count for listed in products.values())
    return {"accelerator": accelerator, "gpuModel": model, "gpuNodeCount": nodes}


def _region(snapshot: Mapping[str, Any], notes: list[str]) -> str:
    regions = _label(snapshot, REGION_LABEL, notes) or {}
    if len(regions) > 1:
        notes.append(MULTI_REGION)
        return ""
    return next(iter(regions), "")


def _label(
    snapshot: Mapping[str, Any], key: str, notes: list[str]
) -> dict[str, nodelabels.NodeList] | None:
    """Nodes by value of a label; None when labels were not measured or cannot be read."""
    subtype = paths.find_subtype(snapshot, "NodeTopology", "label")
    if subtype is None:
        return None
    try:
        return nodelabels.values_of(subtype, key)
    except AicrError:
        # A fingerprint is advice; a label that cannot be read must not keep a snapshot from use.
        notes.append(UNREADABLE)
        return None


def _reading(snapshot: Mapping[str, Any], type_: str, subtype: str, key: str) -> str:
    found = paths.find_subtype(snapshot, type_, subtype)
    value = (found.get("data") or {}).get(key) if found is not None else None
    return "" if value is None else paths.render(value).strip()


def _count(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None
