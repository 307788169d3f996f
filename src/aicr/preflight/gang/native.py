"""Native discovery, ``kubernetes``: the gang APIs of Kubernetes itself.

What the API server serves under ``scheduling.k8s.io`` decides, never its version number (decision 25):

| served | anchor in the pod | minimum |
|---|---|---|
| PodGroup, any version | ``spec.schedulingGroup.podGroupName`` | ``spec.schedulingPolicy.gang.minCount`` |
| Workload v1alpha1 | ``spec.workloadRef.name``, ``.podGroup`` | ``spec.podGroups[].policy.gang.minCount`` |

A pod with both is in its PodGroup. Kubernetes 1.37 nests groups: the PodGroup that the pod names is the
gang, and the composite groups above it (``spec.parentCompositePodGroupName``) come into the gang id
only if that is configured. It must not know ConfigMaps. Source: preflight spec 3.2, field case J13.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from aicr.errors import NOT_FOUND, SERVICE_UNAVAILABLE, AicrError
from aicr.kube.discovery import Catalogue
from aicr.kube.kinds import Resource
from aicr.kube.port import Cluster
from aicr.preflight.gang.groups import Anchor, Group
from aicr.preflight.gang.pods import GangPod

NAME: Final = "kubernetes"
GROUP: Final = "scheduling.k8s.io"
WORKLOAD_VERSION: Final = "v1alpha1"
PARENT: Final = "parentCompositePodGroupName"
#: A nest deeper than this is a circle.
DEEPEST: Final = 16
UNAVAILABLE: Final = (
    "kubernetes native gang API not available (requires K8s 1.35 Workload or K8s 1.36+ PodGroup)"
)


@dataclass(frozen=True, slots=True)
class Served:
    """The native kinds that a server has."""

    pod_group: Resource | None = None
    workload: Resource | None = None
    composite: Resource | None = None


def served_by(catalogue: Catalogue) -> Served:
    """The native gang kinds in *catalogue*, each in the most stable version.

    Raises:
        AicrError: SERVICE_UNAVAILABLE when the API group cannot be asked, and NOT_FOUND with
            `UNAVAILABLE` when the server has none of them.
    """
    found: dict[str, Resource] = {}
    for api_version in sorted(catalogue.group_versions(GROUP), key=_stability, reverse=True):
        for resource in catalogue.served.get(api_version, ()):
            found.setdefault(resource.kind, resource)
            if resource.kind == "Workload" and resource.version == WORKLOAD_VERSION:
                found["Workload v1alpha1"] = resource
    served = Served(
        found.get("PodGroup"), found.get("Workload v1alpha1"), found.get("CompositePodGroup")
    )
    if served.pod_group or served.workload:
        return served
    away = [name for name in catalogue.unreachable if name.startswith(f"{GROUP}/")]
    if away:
        raise AicrError(
            SERVICE_UNAVAILABLE,
            f"cannot tell whether the server has the native gang API: {', '.join(away)}: "
            f"{catalogue.unreachable[away[0]]}",
        )
    raise AicrError(
        NOT_FOUND,
        UNAVAILABLE,
        hint="configure gangDiscovery for the scheduler's PodGroups, or set "
        "gangCoordination.enabled: false",
    )


def _stability(api_version: str) -> tuple[int, int, int]:
    """As Kubernetes ranks versions: v2 > v1 > v1beta2 > v1alpha3."""
    match = re.fullmatch(r"v(\d+)(?:(alpha|beta)(\d+))?", api_version.rpartition("/")[2])
    if match is None:
        return (-1, 0, 0)
    level = {None: 2, "beta": 1, "alpha": 0}[match[2]]
    return (level, int(match[1]), int(match[3] or 0))


class NativeDiscoverer:
    """See the module.

    Args:
        cluster: the port; ``get`` on the served kinds is needed.
        served: what the server has.
        ancestors: whether composite groups come into the gang id.
    """

    name: str = NAME

    def __init__(self, cluster: Cluster, served: Served, *, ancestors: bool = False) -> None:
        self._cluster = cluster
        self._served = served
        self._ancestors = ancestors and served.composite is not None

    def anchor(self, pod: GangPod) -> Anchor | None:
        """The pod's PodGroup, or else its Workload; only of a kind that the server has."""
        group, workload = pod.spec.scheduling_group, pod.spec.workload_ref
        if self._served.pod_group and group and group.pod_group_name:
            return Anchor(NAME, pod.namespace, group.pod_group_name)
        if self._served.workload and workload and workload.name:
            return Anchor(NAME, pod.namespace, workload.name, workload.pod_group, workload=True)
        return None

    async def locate(self, pod: GangPod) -> Anchor | None:
        """As `Discoverer.locate`."""
        anchor = self.anchor(pod)
        if anchor is None or anchor.workload or not self._ancestors:
            return anchor
        assert self._served.pod_group is not None
        above: list[str] = []
        kind, name = self._served.pod_group, anchor.object_name
        while parent := await self._parent(kind, name, anchor.namespace):
            if parent in above or len(above) == DEEPEST:
                raise AicrError(
                    SERVICE_UNAVAILABLE,
                    f"the composite groups above PodGroup {anchor.namespace}/{anchor.object_name} "
                    f"have no end: {' > '.join(above)} > {parent}",
                )
            above.append(parent)
            assert self._served.composite is not None
            kind, name = self._served.composite, parent
        return replace(anchor, ancestors=tuple(reversed(above)))

    async def _parent(self, kind: Resource, name: str, namespace: str) -> str:
        found = await self._cluster.get(kind, name, namespace=namespace)
        return str((found.get("spec") or {}).get(PARENT) or "")

    async def read(self, anchor: Anchor) -> Group:
        """As `Discoverer.read`."""
        kind = self._served.workload if anchor.workload else self._served.pod_group
        assert kind is not None
        place = f"{anchor.namespace}/{anchor.object_name}"
        try:
            found = await self._cluster.get(kind, anchor.object_name, namespace=anchor.namespace)
        except AicrError as error:
            if error.code == NOT_FOUND and "absent" not in error.context:
                return Group(
                    found=False,
                    name=anchor.object_name,
                    reason=f"{kind.kind} {place} is not there",
                )
            raise AicrError(
                error.code,
                f"failed to get {kind.kind} {place} minCount (check RBAC)",
                hint=error.hint,
                context=error.context,
            ) from error
        spec = found.get("spec") or {}
        count = _workload_minimum(spec, anchor.part) if anchor.workload else _minimum(spec)
        minimum = _whole(count)
        return Group(
            found=True,
            name=anchor.object_name,
            minimum=minimum,
            api_version=kind.api_version,
            kind=kind.kind,
            uid=str((found.get("metadata") or {}).get("uid") or ""),
            reason="" if minimum is not None else _no_minimum(kind.kind, place, count),
        )


def _minimum(spec: Mapping[str, Any]) -> Any:
    gang = (spec.get("schedulingPolicy") or {}).get("gang") or {}
    return gang.get("minCount")


def _workload_minimum(spec: Mapping[str, Any], part: str) -> Any:
    for entry in spec.get("podGroups") or []:
        count = ((entry.get("policy") or {}).get("gang") or {}).get("minCount")
        if part in ("", entry.get("name")) and count is not None:
            return count
    return None


def _whole(count: Any) -> int | None:
    return int(count) if isinstance(count, int | float) and not isinstance(count, bool) else None


def _no_minimum(kind: str, place: str, count: Any) -> str:
    if count is None:
        return f"{kind} {place} has no gang policy with minCount"
    return f"minCount of {kind} {place} is no number: {count!r}"
