"""Which nodes are measured, and how the workers get onto exactly these.

```
schedulable GPU nodes ─► user's selector, or product and instance type ─► at least two, alike ─► placement
```

The GPU product is the recipe's accelerator, not the profile's: a borrowed template does not change what
the nodes are. A node that has GPUs by its labels and offers none takes part, so that it fails the
census instead of not being seen. Pure. Source: validators spec 7.2 "Node targeting"; requirements V-282,
V-292.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from aicr.checks.performance.nccl_templates import EFA_RESOURCE
from aicr.checks.sdk import Skip, failed
from aicr.checks.sdk.nodes import GpuNode, allocatable, labels_of, schedulable
from aicr.checks.sdk.outcome import NO_GPU_NODES, NO_SCHEDULABLE_GPU_NODES

PRODUCT: Final = "nvidia.com/gpu.product"
INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"
GKE_ACCELERATOR: Final = "cloud.google.com/gke-accelerator"
NEEDED: Final = 2
TOO_FEW: Final = "skipped - requires at least 2 GPU nodes for EW fabric test"
TOLERATE_ALL: Final[tuple[Mapping[str, Any], ...]] = ({"operator": "Exists"},)
#: Accelerator → what its nodes carry as `PRODUCT`.
_MATCHERS: Final[Mapping[str, re.Pattern[str]]] = {
    "gb200": re.compile(r"NVIDIA-GB200"),
    "gb300": re.compile(r"NVIDIA-GB300"),
    "b200": re.compile(r"NVIDIA-B200"),
    "rtx-pro-6000": re.compile(r"NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition"),
    "h100": re.compile(r"NVIDIA-H100-.*"),
    "h200": re.compile(r"NVIDIA-H200-.*"),
    "a100": re.compile(r"NVIDIA-A100-.*"),
    "l40": re.compile(r"NVIDIA-L40S?"),
}
#: Services whose GPU nodes carry taints of their own.
_TAINTED: Final = frozenset({"oke", "aks", "generic"})


@dataclass(frozen=True, slots=True)
class Placement:
    """Where workers may run; None leaves what the template says."""

    node_selector: Mapping[str, str] | None = None
    tolerations: Sequence[Mapping[str, Any]] | None = None


def targets(
    nodes: Sequence[GpuNode],
    *,
    accelerator: str,
    service: str,
    selector: Mapping[str, str] | None = None,
) -> list[GpuNode]:
    """The nodes to measure, by name.

    Args:
        nodes: every GPU node.
        accelerator, service: of the recipe's criteria.
        selector: the user's, or that of a supplied runtime; None lets the recipe decide.

    Raises:
        Skip: when fewer than two are left, with a code when there is none at all.
        AicrError: INTERNAL, a verdict, when a selector or the product fits no node.
    """
    if not nodes:
        raise Skip(TOO_FEW, NO_GPU_NODES)
    found = schedulable(nodes)
    if not found:
        raise Skip(TOO_FEW, NO_SCHEDULABLE_GPU_NODES)
    if selector:
        found = [node for node in found if _fits(node, selector)]
        if not found:
            words = ", ".join(f"{key}={value}" for key, value in sorted(selector.items()))
            raise failed(
                f"no schedulable GPU node has {words}", hint="kubectl get nodes --show-labels"
            )
    else:
        found = _same_instance(_of_product(found, accelerator), service)
    if len(found) < NEEDED:
        raise Skip(TOO_FEW)
    return found


def census(found: Sequence[GpuNode]) -> int:
    """GPUs of each target node.

    Raises:
        AicrError: INTERNAL, a verdict, when a node is not Ready, has fewer GPUs than another, or none
            of them offers any. Uniformly few are what the cluster is.
    """
    lost = [node.name for node in found if not node.ready]
    if lost:
        raise failed(
            f"GPU nodes are not Ready: {', '.join(lost[:10])}",
            hint="kubectl describe node; cordon a node that is to be left out",
        )
    most = max(node.gpus for node in found)
    if not most:
        raise failed(
            f"none of {len(found)} target nodes offers nvidia.com/gpu",
            hint="the benchmark needs the device plugin; check the GPU operator",
        )
    short = [f"{node.name}={node.gpus}/{most}" for node in found if node.gpus < most]
    if short:
        raise failed(
            f"target nodes offer fewer GPUs than the others: {', '.join(short)}",
            hint="look at the device plugin and nvidia-smi of these nodes, or cordon them",
        )
    return most


def adapters(found: Sequence[GpuNode]) -> int:
    """EFA adapters that every target node offers.

    Raises:
        AicrError: INTERNAL, a verdict, when only some of the nodes have adapters or their number
            differs: the slowest would decide, and nothing would say so.
    """
    counts = {node.name: allocatable(node.document, EFA_RESOURCE) for node in found}
    most = max(counts.values())
    short = [f"{name}={count}/{most}" for name, count in counts.items() if count < most]
    if short:
        raise failed(
            f"target nodes offer fewer {EFA_RESOURCE} than the others: {', '.join(short)}",
            hint="look at the EFA device plugin of these nodes",
        )
    return most


def placement(
    found: Sequence[GpuNode],
    service: str,
    *,
    user: Placement,
    runtime: Placement | None = None,
) -> Placement:
    """How workers are placed: what the user says, what a supplied runtime says, or by service.

    Args:
        found: the target nodes.
        service: whose plumbing is used.
        user: what was asked for on the command line.
        runtime: what a supplied runtime sets itself; None for a template of ours.
    """
    default = _default(found, service)
    selector, tolerations = user.node_selector, user.tolerations
    if selector is None:
        kept = runtime is not None and runtime.node_selector is not None
        selector = None if kept else default.node_selector
    if tolerations is None:
        kept = runtime is not None and runtime.tolerations is not None
        tolerations = None if kept else default.tolerations
    return Placement(selector, tolerations)


def shared(found: Sequence[GpuNode], label: str) -> str:
    """The value of *label* that all nodes share, "" if they share none."""
    values = {labels_of(node.document).get(label, "") for node in found}
    return values.pop() if len(values) == 1 else ""


def _default(found: Sequence[GpuNode], service: str) -> Placement:
    if service == "eks":
        return Placement(_selector(found, INSTANCE_TYPE))
    if service == "gke":
        return Placement(_selector(found, GKE_ACCELERATOR), TOLERATE_ALL)
    if service in _TAINTED:
        return Placement(_selector(found, PRODUCT), TOLERATE_ALL)
    return Placement()


def _selector(found: Sequence[GpuNode], label: str) -> Mapping[str, str] | None:
    value = shared(found, label)
    return {label: value} if value else None


def _of_product(found: list[GpuNode], accelerator: str) -> list[GpuNode]:
    matcher = _MATCHERS.get(accelerator)
    products = {node.name: labels_of(node.document).get(PRODUCT, "") for node in found}
    if matcher is None or not any(products.values()):
        return found
    fitting = [node for node in found if matcher.fullmatch(products[node.name])]
    if not fitting:
        seen = ", ".join(sorted({product for product in products.values() if product}))
        raise failed(
            f"no schedulable GPU node is a {accelerator}; products are {seen}",
            hint=f"the recipe is for {accelerator}; validate a recipe for these nodes",
        )
    return fitting


def _same_instance(found: list[GpuNode], service: str) -> list[GpuNode]:
    if service != "eks":
        return found
    first = labels_of(found[0].document).get(INSTANCE_TYPE)
    if not first:
        return found
    return [node for node in found if labels_of(node.document).get(INSTANCE_TYPE) == first]


def _fits(node: GpuNode, selector: Mapping[str, str]) -> bool:
    labels = labels_of(node.document)
    return all(labels.get(key) == value for key, value in selector.items())
