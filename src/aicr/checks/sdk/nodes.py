"""GPU nodes: which there are, which are cordoned, which have lost their driver, which are busy.

The universe does not depend on a live driver. A node whose driver is dead advertises no GPU, and a
count that starts from what is advertised would simply not see it; so a node is a GPU node when it
advertises GPUs *or* carries a label that comes from its hardware or from the cloud. A node labelled
``nvidia.com/gpu.deploy.operands=false`` was taken out by its operator and counts only while it
advertises GPUs.

Reading is one list; everything else is a pure function of node and pod documents.
Source: validators spec 5.4; requirements V-253 to V-256, V-272.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from aicr.checks.sdk.context import Context
from aicr.contract.labels import HOLLOW
from aicr.kube import kinds
from aicr.values.quantities import whole_units

GPU: Final = "nvidia.com/gpu"
#: Other resources by which a device plugin hands out GPUs or parts of them.
_OTHER_GPUS: Final = ("nvidia.com/gpu.", "nvidia.com/mig-")
#: Labels that say "GPU" without a driver: discovery of PCI devices, and the clouds' own.
_HARDWARE: Final[tuple[tuple[str, str], ...]] = (
    ("nvidia.com/gpu.present", "true"),
    ("feature.node.kubernetes.io/pci-10de.present", "true"),
    ("feature.node.kubernetes.io/pci-0300_10de.present", "true"),
    ("feature.node.kubernetes.io/pci-0302_10de.present", "true"),
    ("kubernetes.azure.com/accelerator", "nvidia"),
)
_GKE_ACCELERATOR: Final = "cloud.google.com/gke-accelerator"
_OPERANDS: Final = "nvidia.com/gpu.deploy.operands"
_TERMINAL: Final = frozenset({"Succeeded", "Failed"})

Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class GpuNode:
    """A node with GPUs.

    Attributes:
        name: of the node.
        cordoned: whether somebody marked it unschedulable.
        ready: whether its Ready condition is True.
        gpus: allocatable ``nvidia.com/gpu``.
        advertises: whether it has any allocatable GPU resource, MIG slices and shared GPUs included.
        document: the Node.
    """

    name: str
    cordoned: bool
    ready: bool
    gpus: int
    advertises: bool
    document: Document

    @property
    def silent(self) -> bool:
        """Whether it has GPUs by its labels and advertises none: a dead driver, or GPUs given by DRA."""
        return not self.advertises


def gpu_nodes(nodes: Iterable[Document]) -> list[GpuNode]:
    """The GPU nodes among *nodes*, by name.

    Raises:
        AicrError: INVALID_REQUEST for an allocatable quantity that is no whole number.
    """
    found = []
    for node in nodes:
        labels = labels_of(node)
        gpus = allocatable(node, GPU)
        advertises = any(
            is_gpu(resource) and allocatable(node, resource) > 0
            for resource in (node.get("status") or {}).get("allocatable") or {}
        )
        if not advertises and not (has_gpu_label(labels) and labels.get(_OPERANDS) != "false"):
            continue
        name = node["metadata"]["name"]
        found.append(GpuNode(name, is_cordoned(node), is_ready(node), gpus, advertises, node))
    return sorted(found, key=lambda each: each.name)


async def find_gpu_nodes(context: Context) -> list[GpuNode]:
    """Every GPU node of the cluster, cordoned and silent ones included.

    Raises:
        AicrError: as the list of nodes does.
    """
    return gpu_nodes(await context.cluster.list(kinds.NODE))


def schedulable(nodes: Iterable[GpuNode]) -> list[GpuNode]:
    """Those that are not cordoned."""
    return [node for node in nodes if not node.cordoned]


def cordoned(nodes: Iterable[GpuNode]) -> list[GpuNode]:
    """Those that are."""
    return [node for node in nodes if node.cordoned]


def silent(nodes: Iterable[GpuNode], given_by_dra: Iterable[str] = ()) -> list[str]:
    """Names of the nodes whose GPUs nobody hands out, neither a device plugin nor DRA.

    Args:
        nodes: GPU nodes.
        given_by_dra: names of nodes with devices in ResourceSlices (`allocation.Facts`).
    """
    by_dra = set(given_by_dra)
    return [node.name for node in nodes if node.silent and node.name not in by_dra]


def labels_of(node: Document) -> dict[str, str]:
    """A node's labels."""
    return (node.get("metadata") or {}).get("labels") or {}


def has_gpu_label(labels: Mapping[str, str]) -> bool:
    """Whether labels say that a node has GPUs, driver or no driver."""
    return _GKE_ACCELERATOR in labels or any(labels.get(key) == value for key, value in _HARDWARE)


def is_gpu(resource: str) -> bool:
    """Whether an extended resource is a GPU, a shared one or a slice of one."""
    return resource == GPU or resource.startswith(_OTHER_GPUS)


def allocatable(node: Document, resource: str) -> int:
    """How many units of an extended resource a node has to give.

    Raises:
        AicrError: INVALID_REQUEST for a quantity that is no whole number.
    """
    quantity = ((node.get("status") or {}).get("allocatable") or {}).get(resource)
    return 0 if quantity is None else whole_units(quantity, resource)


def is_cordoned(node: Document) -> bool:
    """Whether a node is marked unschedulable."""
    return (node.get("spec") or {}).get("unschedulable") is True


def is_simulated(node: Document) -> bool:
    """Whether a node only plays one (KWOK, hollow test nodes): its pods never run, whatever it says."""
    annotations = (node.get("metadata") or {}).get("annotations") or {}
    found = labels_of(node)
    return "kwok.x-k8s.io/node" in annotations or found.get("type") == "kwok" or HOLLOW in found


def is_ready(node: Document) -> bool:
    """Whether a node's Ready condition is True."""
    return any(
        condition.get("type") == "Ready" and condition.get("status") == "True"
        for condition in (node.get("status") or {}).get("conditions") or []
    )


def holds_gpu(pod: Document) -> bool:
    """Whether a pod that has not ended asks for ``nvidia.com/gpu``, init containers included."""
    if (pod.get("status") or {}).get("phase") in _TERMINAL:
        return False
    spec = pod.get("spec") or {}
    containers = [*(spec.get("containers") or []), *(spec.get("initContainers") or [])]
    return any(
        whole_units(quantity, GPU) > 0
        for container in containers
        for kind in ("limits", "requests")
        if (quantity := ((container.get("resources") or {}).get(kind) or {}).get(GPU)) is not None
    )


def holders(pods: Iterable[Document]) -> list[str]:
    """``namespace/name`` of the pods that hold GPUs, sorted."""
    return sorted(
        f"{pod['metadata'].get('namespace', '')}/{pod['metadata']['name']}"
        for pod in pods
        if holds_gpu(pod)
    )


async def gpu_holders(context: Context, node: str) -> list[str]:
    """Pods that hold GPUs of *node*; a node is busy when there is one.

    Raises:
        AicrError: when the pods cannot be listed. A caller that goes on treats the node as busy: a
            GPU that may be taken is not free (validators spec 5.4).
    """
    return holders(await context.cluster.list(kinds.POD, fields={"spec.nodeName": node}))


def names(nodes: Sequence[GpuNode]) -> list[str]:
    """The names of *nodes*."""
    return [node.name for node in nodes]
