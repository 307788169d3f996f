"""A pod as gang coordination sees it: small enough to keep every pod of a cluster.

The struct is what the pod cache stores (preflight spec 4.6, P-164): identity, deletion, labels and
annotations, node and gang references, the gang volume, addresses and phase. Decoding skips the rest,
and volumes other than ours are dropped at once. Two fields go beyond the seed's list: ``hostNetwork``
(two gangs on one node must not share a port) and all ``podIPs`` (one family across a gang).

A pod under admission is read into the same struct, so discoverers know one form only. It must not know
groups.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import msgspec
from msgspec.structs import force_setattr

from aicr.errors import invalid
from aicr.kube.projection import Part, PodIP, SchedulingGroup, WorkloadRef, shared
from aicr.preflight import names

#: Written by ``kubectl apply``: as large as the pod, and no discoverer's business.
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_LIVE: Final = frozenset({"", "Pending", "Running"})


class PodMetadata(Part, frozen=True):
    """``metadata`` of a pod."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None

    def __post_init__(self) -> None:
        force_setattr(self, "namespace", shared(self.namespace))
        if self.annotations and LAST_APPLIED in self.annotations:
            kept = {key: text for key, text in self.annotations.items() if key != LAST_APPLIED}
            force_setattr(self, "annotations", kept)


class ConfigMapSource(Part, frozen=True):
    """The ConfigMap behind a volume."""

    name: str = ""


class Volume(Part, frozen=True):
    """A volume; only the gang volume is kept."""

    name: str = ""
    config_map: ConfigMapSource | None = None


class PodSpec(Part, frozen=True):
    """``spec`` of a pod."""

    node_name: str = ""
    host_network: bool = False
    scheduling_group: SchedulingGroup | None = None
    workload_ref: WorkloadRef | None = None
    volumes: tuple[Volume, ...] | None = None

    def __post_init__(self) -> None:
        mine = tuple(found for found in self.volumes or () if found.name == names.GANG_VOLUME)
        force_setattr(self, "volumes", shared(mine) if mine else None)


class PodStatus(Part, frozen=True):
    """``status`` of a pod."""

    phase: str = ""
    pod_ip: str = msgspec.field(name="podIP", default="")
    pod_ips: tuple[PodIP, ...] | None = msgspec.field(name="podIPs", default=None)


class GangPod(Part, frozen=True):
    """See the module."""

    metadata: PodMetadata = PodMetadata()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def name(self) -> str:
        """Its name; before admission perhaps only the stem that one is made from."""
        return self.metadata.name or self.metadata.generate_name

    @property
    def namespace(self) -> str:
        """Its namespace."""
        return self.metadata.namespace

    @property
    def uid(self) -> str:
        """Its UID; "" before admission."""
        return self.metadata.uid

    @property
    def terminating(self) -> bool:
        """Whether its deletion was asked for."""
        return self.metadata.deletion_timestamp is not None

    @property
    def succeeded(self) -> bool:
        """Whether it ran to its end."""
        return self.status.phase == "Succeeded"

    @property
    def live(self) -> bool:
        """Whether it can take part in a check: Pending or Running, and not on its way out."""
        return self.status.phase in _LIVE and not self.terminating

    @property
    def injected(self) -> bool:
        """Whether it mounts a gang volume; a pod without one is no member (decision 22)."""
        return self.spec.volumes is not None

    @property
    def config_map(self) -> str:
        """The ConfigMap that it mounts as gang volume; "" if none, or if the volume is no ConfigMap."""
        for volume in self.spec.volumes or ():
            if volume.config_map is not None:
                return volume.config_map.name
        return ""

    @property
    def addresses(self) -> tuple[str, ...]:
        """Its IPs, the primary one first."""
        first = (self.status.pod_ip,) if self.status.pod_ip else ()
        more = (entry.ip for entry in self.status.pod_ips or () if entry.ip)
        return tuple(dict.fromkeys((*first, *more)))

    @property
    def annotations(self) -> Mapping[str, str]:
        """Its annotations."""
        return self.metadata.annotations or {}

    @property
    def labels(self) -> Mapping[str, str]:
        """Its labels."""
        return self.metadata.labels or {}

    def age(self, now: datetime) -> float:
        """Seconds since it was made; infinite if the server did not say."""
        text = self.metadata.creation_timestamp
        return (now - datetime.fromisoformat(text)).total_seconds() if text else float("inf")


def gang_pod(document: Mapping[str, Any], namespace: str = "") -> GangPod:
    """The pod of a raw *document*; *namespace* is where it is created if it does not say.

    Raises:
        AicrError: INVALID_REQUEST when a field has a type that no pod has.
    """
    try:
        found = msgspec.convert(_reduced(document), GangPod)
    except msgspec.ValidationError as error:
        raise invalid(f"the pod cannot be read: {error}") from error
    if found.metadata.namespace or not namespace:
        return found
    metadata = msgspec.structs.replace(found.metadata, namespace=namespace)
    return msgspec.structs.replace(found, metadata=metadata)


def _reduced(document: Mapping[str, Any]) -> dict[str, Any]:
    """*document* without nulls, which mean absence in Kubernetes, in the parts that are read."""
    parts: dict[str, Any] = {}
    for part in ("metadata", "spec", "status"):
        inner = document.get(part)
        if isinstance(inner, Mapping):
            parts[part] = {key: value for key, value in inner.items() if value is not None}
        elif inner is not None:
            parts[part] = inner
    return parts
