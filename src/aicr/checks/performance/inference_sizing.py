"""Where inference-perf runs and how large it is: refusals, candidates, the choice, the load.

```
refuse      facts about GPUs → INVALID_REQUEST where devices cannot be put down to one node
candidates  GPU nodes, policy, the user's node selector → nodes
offer       one node, facts, ledgers → free GPUs and how they are handed out, or why not
choose      offers → the node with most free GPUs
size        settings and the choice → concurrency, requests, warm-up
```

All workers run on one node, so that the number describes a node. Everything here is pure; the same
inputs give the same node. Source: validators spec 7.3 "Sizing"; requirements V-247, V-304, V-326.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from aicr.checks.performance.inference_knobs import Settings
from aicr.checks.performance.inference_occupancy import Ledgers
from aicr.checks.sdk.allocation import DEVICE_PLUGIN, DRA_CLAIM, GPU_DRIVER, Facts
from aicr.checks.sdk.nodes import GpuNode, labels_of, schedulable
from aicr.errors import INTERNAL, AicrError, invalid, some_of

HOSTNAME: Final = "kubernetes.io/hostname"
#: Taints of this prefix are the node's condition, not a choice of who may run there.
_CONDITION: Final = "node.kubernetes.io/"

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Offer:
    """What a node could give.

    Attributes:
        node: its name.
        wiring: `DRA_CLAIM` or `DEVICE_PLUGIN`; "" when it gives nothing.
        capacity: GPUs that it has to give.
        free: those that nobody holds, never below 0.
        why: in words, for the message when no node will do.
    """

    node: str
    wiring: str
    capacity: int
    free: int
    why: str


@dataclass(frozen=True, slots=True)
class Load:
    """How much the load generator does.

    Attributes:
        gpus: workers, one GPU each.
        node_gpus: GPUs of the node, taken ones included.
        concurrency, requests, warmup: requests at a time, measured, and before that.
    """

    gpus: int
    node_gpus: int
    concurrency: int
    requests: int
    warmup: int


def refuse(facts: Facts) -> None:
    """Refuse a cluster in which a device cannot be put down to one node and one driver.

    Raises:
        AicrError: INVALID_REQUEST naming drivers, slices or pools.
    """
    if facts.foreign_drivers:
        raise invalid(
            f"GPUs are published by other drivers than {GPU_DRIVER}: {_some(facts.foreign_drivers)}",
            hint="free GPUs cannot be counted across drivers; remove the other driver's slices",
        )
    if facts.non_node_local:
        raise invalid(
            f"ResourceSlices of {GPU_DRIVER} belong to no single node: {_some(facts.non_node_local)}",
            hint="the benchmark needs GPUs that are local to a node",
        )
    if facts.ambiguous_pools:
        raise invalid(
            f"pools of {GPU_DRIVER} are published by several nodes: {_some(facts.ambiguous_pools)}",
            hint="restart the driver's kubelet plugin on those nodes; a pool belongs to one node",
        )


def candidates(
    nodes: Sequence[GpuNode],
    facts: Facts,
    policy: str,
    selector: Mapping[str, str] | None,
) -> list[GpuNode]:
    """GPU nodes that may be chosen, by name.

    Args:
        nodes: GPU nodes of the cluster.
        facts: who hands out GPUs.
        policy: the recipe's, see `sdk.allocation`.
        selector: the user's node selector; None or empty selects all.

    Raises:
        AicrError: INVALID_REQUEST for a cluster that hands out GPUs by DRA only while the recipe states
            no policy; INTERNAL when no node is left.
    """
    open_nodes = schedulable(nodes)
    if policy == DRA_CLAIM:
        able = [node for node in open_nodes if node.name in facts.dra_node_devices]
    else:
        able = [node for node in open_nodes if node.gpus > 0]
        if not able and policy != DEVICE_PLUGIN and facts.dra_usable:
            raise invalid(
                "GPUs are handed out by DRA only, and the recipe states no GPU allocation policy",
                hint="validate with a recipe that enables nvidia-dra-driver-gpu with "
                "resources.gpus.enabled: true",
            )
    if not able:
        raise AicrError(
            INTERNAL,
            "no schedulable GPU node found",
            hint="kubectl get nodes shows cordons; is the device plugin or the DRA driver running?",
        )
    wanted = selector or {}
    found = [
        node
        for node in able
        if all(labels_of(node.document).get(key) == value for key, value in wanted.items())
    ]
    if not found:
        said = ",".join(f"{key}={wanted[key]}" for key in sorted(wanted))
        raise AicrError(
            INTERNAL,
            f"no schedulable GPU node matches node selector {said}",
            hint=f"GPU nodes are {_some([node.name for node in able])}",
        )
    return found


def offer(node: GpuNode, facts: Facts, ledger: Ledgers, policy: str) -> Offer:
    """What *node* could give under *policy*."""
    name = node.name
    scalar, dra = ledger.scalar.get(name, 0), ledger.dra.get(name, 0)

    def none(why: str) -> Offer:
        return Offer(name, "", 0, 0, why)

    if not node.ready:
        return none("not Ready")
    devices = facts.dra_node_devices.get(name, 0)
    if devices:
        if policy == DEVICE_PLUGIN:
            return none("its GPUs are handed out by DRA, and the policy is the device plugin")
        if scalar:
            return none(f"DRA hands out its GPUs while pods hold {scalar} by the device plugin")
        free = max(0, devices - dra)
        return Offer(name, DRA_CLAIM, devices, free, f"{free} of {devices} free by DRA")
    if facts.node_local_devices.get(name):
        return none("its ResourceSlices are not usable (incomplete, tainted, or of an old driver)")
    if policy == DRA_CLAIM:
        return none("no usable DRA devices, and the policy is DRA")
    free = max(0, node.gpus - scalar - dra)
    return Offer(name, DEVICE_PLUGIN, node.gpus, free, f"{free} of {node.gpus} free")


def choose(offers: Iterable[Offer]) -> Offer:
    """The node with the most free GPUs; of equals DRA first, then the first by name.

    Raises:
        AicrError: INTERNAL with what each node said, when none has a free GPU.
    """
    ranked = sorted(
        offers, key=lambda each: (-each.free, each.wiring != DRA_CLAIM, not each.wiring, each.node)
    )
    if not ranked or ranked[0].free <= 0:
        raise AicrError(
            INTERNAL,
            f"no node has a free GPU: {_some([f'{each.node}: {each.why}' for each in ranked])}",
            hint="wait for the workloads that hold GPUs, or run the check when the cluster is idle",
        )
    return ranked[0]


def size(settings: Settings, choice: Offer) -> Load:
    """The load for the GPUs that are free on the chosen node."""
    concurrency = settings.concurrency_per_gpu * choice.free
    return Load(
        gpus=choice.free,
        node_gpus=choice.capacity,
        concurrency=concurrency,
        requests=max(settings.min_requests, concurrency * settings.requests_per_concurrency),
        warmup=concurrency * settings.warmup_per_concurrency,
    )


def tolerations(node: Mapping[str, Any], user: Sequence[Document] | None) -> list[Document]:
    """The user's tolerations as they are; without any, those that mirror the node's taints."""
    if user is not None:
        return [dict(each) for each in user]
    found = []
    for taint in (node.get("spec") or {}).get("taints") or []:
        if str(taint.get("key") or "").startswith(_CONDITION):
            continue
        mirrored: Document = {"key": taint["key"], "operator": "Exists"}
        if taint.get("value"):
            mirrored |= {"operator": "Equal", "value": taint["value"]}
        found.append({**mirrored, "effect": taint["effect"]})
    return found


def hostname(node: Mapping[str, Any]) -> str:
    """The value of the node's host name label, by which workers are pinned."""
    return labels_of(node).get(HOSTNAME) or str(node["metadata"]["name"])


def _some(names: Sequence[str]) -> str:
    return some_of(names, 5, "; " if any(": " in name for name in names) else ", ")
