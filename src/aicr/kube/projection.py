"""The parts of Kubernetes objects that this product reads, as typed structs.

A pod of 7 kB costs 52 kB as plain documents and 2 kB as one of these, and decoding skips what is
not declared. Add a field when something reads it; annotations and images of nodes, and
managedFields of everything, are left out because they are most of an object's size. Every field has
a default, because a server may leave out what is empty, and unknown fields are ignored.

Structs are frozen and shared: labels, conditions, owners and the like are the same on thousands of
objects, so equal ones are kept once (`shared`). It must not know what the fields are used for. Names
are the wire's, in Python's spelling.
"""

from __future__ import annotations

import sys
from itertools import compress
from operator import ne
from typing import Any, Final, Generic, TypeVar

import msgspec
from msgspec.structs import force_setattr

T = TypeVar("T")


class Part(msgspec.Struct, rename="camel", frozen=True, gc=False):
    """A leaf: holds no reference cycle and is never changed, so the collector need not look at it."""


#: What `shared` has given out. Cleared when full: then equal values are merely kept twice.
_POOL: dict[Any, Any] = {}
_POOL_LIMIT: Final = 10_000


def shared(value: T) -> T:
    """A value equal to *value* that was given before, or *value*; for what is frozen and frequent."""
    if len(_POOL) >= _POOL_LIMIT:
        _POOL.clear()
    found: T = _POOL.setdefault(value, value)
    return found


#: Keys of a mapping → a mapping with those keys. Thousands of objects have the same labels but for a few.
_TEMPLATES: dict[tuple[str, ...], dict[str, str]] = {}
_TEMPLATES_LIMIT: Final = 256
#: How many keys a mapping has for which `_template` may find a smaller form; others need not be tried.
_SHARING_PAYS: Final = range(9, 31)


def _shared_texts(texts: dict[str, str] | None) -> dict[str, str] | None:
    """A mapping whose keys and values are kept once; msgspec does so for short keys only.

    A copy of a mapping with the same keys, in which the values that differ are replaced: that takes half
    of the time of looking up each key and each value.
    """
    if not texts:
        return None
    if len(_POOL) >= _POOL_LIMIT:
        _POOL.clear()
    keep = _POOL.setdefault
    keys = tuple(texts)
    template = _TEMPLATES.get(keys)
    if template is None:
        made = {keep(key, key): keep(value, value) for key, value in texts.items()}
        if len(_TEMPLATES) >= _TEMPLATES_LIMIT:
            _TEMPLATES.clear()
        template = _TEMPLATES[tuple(made)] = _template(made)
    # A copy, since what is given out belongs to whoever gets it.
    made = template.copy()
    for key in compress(keys, map(ne, texts.values(), template.values())):
        value = texts[key]
        made[key] = keep(value, value)
    return made


def _template(texts: dict[str, str]) -> dict[str, str]:
    """*texts*, of which copies are small.

    The dictionary of an instance's attributes shares its keys with its copies (PEP 412). So an ordinary
    mapping of some 10 to 30 keys takes about half of the memory. Where the interpreter does it otherwise,
    the ordinary dictionary is as good.
    """
    if len(texts) not in _SHARING_PAYS:
        return texts
    sharing: dict[str, str] = vars(type("Shape", (), {})())
    for key, value in texts.items():  # `update` would make an ordinary one of it
        sharing[key] = value
    return min(texts, sharing, key=lambda made: sys.getsizeof(made.copy()))


class Owner(Part, frozen=True):
    """An entry of ``metadata.ownerReferences``."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class Metadata(Part, frozen=True):
    """``metadata`` that every object has."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None

    def __post_init__(self) -> None:
        if self.namespace:
            force_setattr(self, "namespace", shared(self.namespace))
        if self.labels:
            force_setattr(self, "labels", _shared_texts(self.labels))
            # The label that says a node's or a pod's name says it in the same words.
            force_setattr(self, "name", _POOL.get(self.name, self.name))
        if self.creation_timestamp:
            force_setattr(self, "creation_timestamp", shared(self.creation_timestamp))


class FullMetadata(Metadata, frozen=True):
    """``metadata`` with annotations and owners."""

    generation: int = 0
    annotations: dict[str, str] | None = None
    owner_references: tuple[Owner, ...] | None = None

    def __post_init__(self) -> None:
        # Not through super(): the struct is a class made anew, which zero-argument super misses.
        Metadata.__post_init__(self)
        if self.owner_references:
            force_setattr(self, "owner_references", shared(self.owner_references))


class ListMetadata(Part, frozen=True):
    """``metadata`` of a list."""

    resource_version: str = ""
    continue_: str = msgspec.field(name="continue", default="")
    remaining_item_count: int | None = None


class Page(Part, Generic[T], frozen=True):
    """One page of a list."""

    metadata: ListMetadata = ListMetadata()
    items: list[T] | None = None


class WatchLine(Part, Generic[T], frozen=True):
    """One line of a watch that carries an object."""

    type: str
    object: T


class Condition(Part, frozen=True):
    """A condition of any object's status, without its times, which no two objects share."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class Meta(Part, frozen=True):
    """Any object, when only its metadata matters."""

    metadata: FullMetadata = FullMetadata()


class Taint(Part, frozen=True):
    """A taint of a node."""

    key: str = ""
    value: str = ""
    effect: str = ""


class NodeInfo(Part, frozen=True):
    """Versions that a node reports."""

    kernel_version: str = ""
    os_image: str = ""
    container_runtime_version: str = ""
    kubelet_version: str = ""
    architecture: str = ""


class NodeSpec(Part, frozen=True):
    """``spec`` of a node."""

    provider_id: str = msgspec.field(name="providerID", default="")
    unschedulable: bool = False
    taints: tuple[Taint, ...] | None = None

    def __post_init__(self) -> None:
        if self.taints:
            force_setattr(self, "taints", shared(self.taints))


class NodeStatus(Part, frozen=True):
    """``status`` of a node, without its list of images, which is most of its size."""

    allocatable: dict[str, str] | None = None
    conditions: tuple[Condition, ...] | None = None
    node_info: NodeInfo = NodeInfo()

    def __post_init__(self) -> None:
        force_setattr(self, "allocatable", _shared_texts(self.allocatable))
        force_setattr(self, "conditions", shared(self.conditions))
        force_setattr(self, "node_info", shared(self.node_info))


class Node(Part, frozen=True):
    """A node."""

    metadata: Metadata = Metadata()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class Terminated(Part, frozen=True):
    """How a container ended."""

    exit_code: int = 0
    reason: str = ""
    message: str = ""
    signal: int = 0


class Waiting(Part, frozen=True):
    """Why a container does not run yet."""

    reason: str = ""
    message: str = ""


class ContainerState(Part, frozen=True):
    """State of a container; `running` is a document or None."""

    waiting: Waiting | None = None
    running: dict[str, Any] | None = None
    terminated: Terminated | None = None


class ContainerStatus(Part, frozen=True):
    """Status of one container."""

    name: str = ""
    ready: bool = False
    restart_count: int = 0
    image: str = ""
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()


class Resources(Part, frozen=True):
    """Requests and limits of a container."""

    requests: dict[str, str] | None = None
    limits: dict[str, str] | None = None


class Container(Part, frozen=True):
    """A container of a pod's spec."""

    name: str = ""
    image: str = ""
    restart_policy: str | None = None
    resources: Resources = Resources()


class PodIP(Part, frozen=True):
    """One of a pod's addresses."""

    ip: str = ""


class SchedulingGroup(Part, frozen=True):
    """Gang membership as of Kubernetes 1.36."""

    pod_group_name: str = ""


class WorkloadRef(Part, frozen=True):
    """Gang membership as of Kubernetes 1.35."""

    name: str = ""
    pod_group: str = ""
    pod_group_replica_key: str = ""


class PodSpec(Part, frozen=True):
    """``spec`` of a pod."""

    node_name: str = ""
    scheduler_name: str = ""
    restart_policy: str = ""
    containers: tuple[Container, ...] | None = None
    init_containers: tuple[Container, ...] | None = None
    node_selector: dict[str, str] | None = None
    scheduling_group: SchedulingGroup | None = None
    workload_ref: WorkloadRef | None = None


class PodStatus(Part, frozen=True):
    """``status`` of a pod."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    pod_ip: str = msgspec.field(name="podIP", default="")
    pod_ips: tuple[PodIP, ...] | None = msgspec.field(name="podIPs", default=None)
    host_ip: str = msgspec.field(name="hostIP", default="")
    conditions: tuple[Condition, ...] | None = None
    container_statuses: tuple[ContainerStatus, ...] | None = None
    init_container_statuses: tuple[ContainerStatus, ...] | None = None

    def __post_init__(self) -> None:
        force_setattr(self, "conditions", shared(self.conditions))


class Pod(Part, frozen=True):
    """A pod."""

    metadata: FullMetadata = FullMetadata()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()
