"""Which GPUs are taken: two ledgers, because GPUs are handed out in two ways.

```
scalar   pods that are bound and have not ended, by their effective request for nvidia.com/gpu
DRA      devices of gpu.nvidia.com in the allocations of claims, put down to the node of their pool
```

They are kept apart: which one counts depends on who hands out a node's GPUs. A request that DRA itself
answers (KEP-5004: a claim is generated for a pod's ``nvidia.com/gpu``) is in both places and counts in
the second only, container by container. Access for administrators takes nothing away. Pure.
Source: validators spec 7.3 "Occupancy ledgers".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from aicr.checks.sdk.allocation import GPU_DRIVER
from aicr.checks.sdk.nodes import GPU
from aicr.values.quantities import whole_units

_ENDED: Final = frozenset({"Succeeded", "Failed"})

Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Ledgers:
    """GPUs that are taken, by node.

    Attributes:
        scalar: node → units of ``nvidia.com/gpu`` that a device plugin has given.
        dra: node → devices that claims hold.
        unplaced: pools with held devices whose node is not known.
    """

    scalar: Mapping[str, int] = field(default_factory=dict)
    dra: Mapping[str, int] = field(default_factory=dict)
    unplaced: tuple[str, ...] = ()


def ledgers(
    pods: Iterable[Document],
    claims: Iterable[Document],
    pool_nodes: Mapping[str, tuple[str, ...]],
    node_names: Iterable[str] = (),
) -> Ledgers:
    """Both ledgers.

    Args:
        pods, claims: all Pods and ResourceClaims of the cluster.
        pool_nodes: pool of the GPU driver → nodes that publish it; one each (see `inference_sizing`).
        node_names: a pool that is published no more belongs to the node of its name, if there is one.

    Raises:
        AicrError: INVALID_REQUEST for a GPU quantity that is no whole number.
    """
    scalar: dict[str, int] = {}
    for pod in pods:
        node = (pod.get("spec") or {}).get("nodeName")
        if node and (pod.get("status") or {}).get("phase") not in _ENDED:
            scalar[node] = scalar.get(node, 0) + effective_gpus(pod)
    known = set(node_names)
    held: dict[str, set[tuple[str, str]]] = {}
    unplaced: set[str] = set()
    for claim in claims:
        for pool, device in held_devices(claim):
            owners = pool_nodes.get(pool, ())
            node = owners[0] if owners else pool if pool in known else ""
            if node:
                held.setdefault(node, set()).add((pool, device))
            else:
                unplaced.add(pool)
    return Ledgers(
        scalar={node: count for node, count in sorted(scalar.items()) if count},
        dra={node: len(devices) for node, devices in sorted(held.items())},
        unplaced=tuple(sorted(unplaced)),
    )


def held_devices(claim: Document) -> list[tuple[str, str]]:
    """(pool, device) of the full or partial GPUs that a claim holds, administrators' access aside."""
    allocation = (claim.get("status") or {}).get("allocation") or {}
    return [
        (str(result.get("pool") or ""), str(result.get("device") or ""))
        for result in (allocation.get("devices") or {}).get("results") or []
        if result.get("driver") == GPU_DRIVER and result.get("adminAccess") is not True
    ]


def effective_gpus(pod: Document) -> int:
    """Units of ``nvidia.com/gpu`` that a device plugin must set aside for a pod.

    Containers run together, init containers one after another before them, sidecars from their turn
    to the end; the most that runs at one time counts.

    Raises:
        AicrError: INVALID_REQUEST for a quantity that is no whole number.
    """
    spec = pod.get("spec") or {}
    by_dra = _answered_by_dra(pod)
    sidecars = 0
    peak = 0
    for container in spec.get("initContainers") or []:
        count = _units(container, by_dra)
        if container.get("restartPolicy") == "Always":
            sidecars += count
            peak = max(peak, sidecars)
        else:
            peak = max(peak, sidecars + count)
    together = sidecars + sum(_units(each, by_dra) for each in spec.get("containers") or [])
    return max(peak, together)


def _answered_by_dra(pod: Document) -> set[str]:
    """Names of the containers whose ``nvidia.com/gpu`` a generated claim answers (KEP-5004)."""
    status = (pod.get("status") or {}).get("extendedResourceClaimStatus") or {}
    return {
        str(mapping.get("containerName"))
        for mapping in status.get("requestMappings") or []
        if mapping.get("resourceName") == GPU
    }


def _units(container: Document, by_dra: set[str]) -> int:
    if container.get("name") in by_dra:
        return 0
    resources = container.get("resources") or {}
    # The API server copies a limit into the request; what is there of either counts.
    stated = [
        (resources.get(kind) or {})[GPU]
        for kind in ("requests", "limits")
        if GPU in (resources.get(kind) or {})
    ]
    return max((whole_units(quantity, GPU) for quantity in stated), default=0)
