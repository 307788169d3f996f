"""Who hands out GPUs: what the cluster does, whether that is what the recipe says, and what a check uses.

```
detect   nodes, ResourceSlices, DeviceClasses → Facts      no opinion
verify   policy and facts → warnings, or INVALID_REQUEST   nothing for an unspecified policy
select   policy and facts → mechanism                      by preference only for an unspecified policy
```

`inspect` reads what `detect` needs; the rest is pure. `one_gpu_template` is the claim that a check makes
where DRA is used. A device counts for DRA when its pool is whole in its newest generation, nothing taints
it, and its node is Ready and not cordoned. How a policy follows from a recipe is not decided here: it
comes in the validation input. Source: validators spec 5.5; requirements V-243, V-244, V-246; field case
G7.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from aicr.checks.sdk import cluster_reads
from aicr.checks.sdk.context import Context
from aicr.checks.sdk.nodes import GPU, allocatable, is_cordoned, is_ready, is_simulated
from aicr.errors import AicrError, invalid, some_of
from aicr.kube import kinds

DEVICE_PLUGIN: Final = "device-plugin-extended-resource"
DRA_CLAIM: Final = "dra-resource-claim"
DRA_EXTENDED: Final = "dra-extended-resource"
UNSPECIFIED: Final = "unspecified"

GPU_DRIVER: Final = "gpu.nvidia.com"
#: Taint effects of a device that keep new claims away.
_REPELLING: Final = frozenset({"NoSchedule", "NoExecute"})

Document = Mapping[str, Any]


@dataclass(frozen=True)
class Facts:
    """What hands out GPUs in a cluster.

    Attributes:
        dra_node_devices: node → usable full GPUs in DRA, for nodes that are Ready and not cordoned.
        node_local_devices: node → devices in its slices of the GPU driver, usable or not.
        foreign_drivers: other drivers with slices whose names say GPU.
        non_node_local: names of slices of the GPU driver that belong to no single node.
        pool_nodes: pool of the GPU driver → nodes that publish it.
        device_plugin_nodes: node → allocatable ``nvidia.com/gpu``, for Ready nodes that are not cordoned.
        dual: nodes whose GPUs are handed out by both, usable or not.
        dra_backed_classes: DeviceClasses that answer to ``nvidia.com/gpu``.
        simulated: nodes with ``nvidia.com/gpu`` that only play a node; they are usable for nothing.
    """

    dra_node_devices: Mapping[str, int] = field(default_factory=dict)
    node_local_devices: Mapping[str, int] = field(default_factory=dict)
    foreign_drivers: tuple[str, ...] = ()
    non_node_local: tuple[str, ...] = ()
    pool_nodes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    device_plugin_nodes: Mapping[str, int] = field(default_factory=dict)
    dual: tuple[str, ...] = ()
    dra_backed_classes: tuple[str, ...] = ()
    simulated: tuple[str, ...] = ()

    @property
    def dra_usable(self) -> bool:
        """Whether a claim for a full GPU could be met."""
        return bool(self.dra_node_devices)

    @property
    def device_plugin_usable(self) -> bool:
        """Whether a request for ``nvidia.com/gpu`` could be met by a device plugin."""
        return bool(self.device_plugin_nodes)

    @property
    def ambiguous_pools(self) -> list[str]:
        """Pools that several nodes publish, so that a device cannot be put down to one."""
        return sorted(pool for pool, nodes in self.pool_nodes.items() if len(nodes) > 1)

    def in_words(self) -> str:
        """The facts that a policy is held against, in one line."""
        return (
            f"usable DRA GPUs on {len(self.dra_node_devices)} node(s), device plugin on "
            f"{len(self.device_plugin_nodes)} node(s)"
        )


def detect(
    nodes: Iterable[Document],
    slices: Iterable[Document],
    device_classes: Iterable[Document] = (),
) -> Facts:
    """The facts, without an opinion about them.

    Args:
        nodes: Node documents.
        slices: ResourceSlice documents of any served version.
        device_classes: DeviceClass documents.

    Raises:
        AicrError: INVALID_REQUEST for an allocatable quantity that is no whole number.
    """
    nodes, slices = list(nodes), list(slices)
    fit = {
        _name(node)
        for node in nodes
        if is_ready(node) and not is_cordoned(node) and not is_simulated(node)
    }
    plugin = {_name(node): allocatable(node, GPU) for node in nodes}
    ours = [each for each in slices if _spec(each).get("driver") == GPU_DRIVER]
    local: dict[str, int] = {}
    pools: dict[str, set[str]] = {}
    for each in ours:
        node = _spec(each).get("nodeName") or ""
        if node:
            local[node] = local.get(node, 0) + len(devices(each))
            pools.setdefault(_pool(each), set()).add(node)
    usable: dict[str, int] = {}
    for each in current(ours):
        node = _spec(each).get("nodeName") or ""
        count = sum(is_full_gpu(device) and not repels(device) for device in devices(each))
        if node in fit and count:
            usable[node] = usable.get(node, 0) + count
    return Facts(
        dra_node_devices=dict(sorted(usable.items())),
        node_local_devices=dict(sorted(local.items())),
        foreign_drivers=tuple(
            sorted(
                {
                    driver
                    for each in slices
                    if (driver := str(_spec(each).get("driver"))) != GPU_DRIVER
                    and "gpu" in driver.lower()
                }
            )
        ),
        non_node_local=tuple(
            sorted(_name(each) for each in ours if not _spec(each).get("nodeName"))
        ),
        pool_nodes={pool: tuple(sorted(found)) for pool, found in sorted(pools.items())},
        simulated=tuple(
            sorted(_name(node) for node in nodes if is_simulated(node) and plugin[_name(node)])
        ),
        device_plugin_nodes={name: plugin[name] for name in sorted(fit) if plugin[name]},
        dual=tuple(sorted(name for name, count in plugin.items() if count and local.get(name))),
        dra_backed_classes=tuple(
            sorted(
                _name(each)
                for each in device_classes
                if _spec(each).get("extendedResourceName") == GPU
            )
        ),
    )


def verify(policy: str, facts: Facts) -> list[str]:
    """Hold a recipe's policy against the facts; warnings about what is odd and no contradiction.

    Raises:
        AicrError: INVALID_REQUEST when the cluster does not do what the policy says, or the policy is
            none that a recipe can have.
    """
    warnings = explain(facts)
    if policy in ("", UNSPECIFIED):
        return warnings
    if policy not in (DEVICE_PLUGIN, DRA_CLAIM):
        raise invalid(
            f'GPU allocation policy "{policy}" cannot be verified',
            hint=f"policies are {DEVICE_PLUGIN}, {DRA_CLAIM} and {UNSPECIFIED}",
        )
    usable = facts.dra_usable if policy == DRA_CLAIM else facts.device_plugin_usable
    if not usable:
        raise _mismatch(policy, facts)
    return warnings


def select(policy: str, facts: Facts) -> str:
    """What a check uses: `DRA_CLAIM`, `DEVICE_PLUGIN`, or "" when nothing is usable.

    A configured policy forces it. Without one DRA is preferred.
    """
    if policy in (DEVICE_PLUGIN, DRA_CLAIM):
        return policy
    if facts.dra_usable:
        return DRA_CLAIM
    return DEVICE_PLUGIN if facts.device_plugin_usable else ""


def explain(facts: Facts) -> list[str]:
    """What is odd about the facts, a sentence each (field case G7)."""
    found = []
    if facts.dual:
        found.append(
            f"the GPUs of {some_of(facts.dual, 5)} are handed out twice: as "
            f"{GPU} by the device plugin and by DRA driver {GPU_DRIVER}; two workloads can get the same GPU"
        )
    if facts.dra_backed_classes:
        found.append(
            f"DeviceClass {', '.join(facts.dra_backed_classes)} answers to {GPU}: pods that ask for it "
            f"get their GPUs through DRA"
        )
    return found


async def inspect(context: Context) -> Facts:
    """Read nodes, ResourceSlices and DeviceClasses, and `detect`.

    Raises:
        AicrError: as the lists do; that no DRA version is served is a fact, not an error.
    """
    nodes = await context.cluster.list(kinds.NODE)
    version, slices = await cluster_reads.resource_slices(context)
    classes: list[dict[str, Any]] = []
    if version:
        classes = await context.cluster.list(f"{cluster_reads.DRA_GROUP}/{version}/DeviceClass")
    return detect(nodes, slices, classes)


def policy_of(context: Context) -> str:
    """The policy in the validation input; `UNSPECIFIED` on a standalone run."""
    return str((context.validation or {}).get("gpuAllocationPolicy") or UNSPECIFIED)


def current(slices: Sequence[Document]) -> list[Document]:
    """The slices of whole pools in their newest generation.

    While a driver replaces a pool, old and new generations are there together; a pool that is not
    complete says nothing about what can be allocated.
    """
    pools: dict[tuple[str, str], list[Document]] = {}
    for each in slices:
        pools.setdefault((str(_spec(each).get("driver")), _pool(each)), []).append(each)
    found = []
    for members in pools.values():
        newest = max(_generation(each) for each in members)
        mine = [each for each in members if _generation(each) == newest]
        if all(
            (_spec(each).get("pool") or {}).get("resourceSliceCount") == len(mine) for each in mine
        ):
            found += mine
    return found


def devices(resource_slice: Document) -> list[dict[str, Any]]:
    """The devices of a slice in the form of v1, whatever version it was read in."""
    return [
        {"name": device.get("name"), **(device.get("basic") or device)}
        for device in _spec(resource_slice).get("devices") or []
    ]


def is_full_gpu(device: Document) -> bool:
    """Whether a device of the GPU driver is a whole GPU, and no part of one."""
    attributes = device.get("attributes") or {}
    kind = attributes.get("type") or attributes.get(f"{GPU_DRIVER}/type") or {}
    return bool(kind.get("string", "gpu") == "gpu")


def repels(device: Document) -> bool:
    """Whether a taint keeps new claims away from a device."""
    return any(taint.get("effect") in _REPELLING for taint in device.get("taints") or [])


def one_gpu_template(name: str, version: str) -> dict[str, Any]:
    """A template for claims of one full GPU, in a served *version* of ``resource.k8s.io``."""
    request: dict[str, Any] = {"deviceClassName": GPU_DRIVER, "count": 1}
    wrapped = request if version == "v1beta1" else {"exactly": request}
    return {
        "apiVersion": f"{cluster_reads.DRA_GROUP}/{version}",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name},
        "spec": {"spec": {"devices": {"requests": [{"name": "gpu", **wrapped}]}}},
    }


def _mismatch(policy: str, facts: Facts) -> AicrError:
    return invalid(
        f"the recipe hands out GPUs by {policy}, and the cluster does not: {facts.in_words()}",
        hint="the recipe's values and the installed components differ; compare them, or validate with "
        "the recipe that was installed",
    )


def _spec(document: Document) -> Mapping[str, Any]:
    return document.get("spec") or {}


def _name(document: Document) -> str:
    return str(document["metadata"]["name"])


def _pool(resource_slice: Document) -> str:
    return str((_spec(resource_slice).get("pool") or {}).get("name") or "")


def _generation(resource_slice: Document) -> int:
    return int((_spec(resource_slice).get("pool") or {}).get("generation") or 0)
