"""What discovery finds: the anchor in a pod, and the scheduler's object behind it.

`Discoverer` is the interface of both kinds (preflight spec 3.1). An anchor is read off a pod without
any request; a group is read from the API server each time, because a decision about a gang's size must
not rest on an old copy. This module must not know how either is done.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from aicr.preflight.gang.pods import GangPod


@dataclass(frozen=True, slots=True)
class Anchor:
    """Where a pod says which group it is in. Pods with equal anchors are in the same group."""

    discoverer: str
    namespace: str
    object_name: str
    """Name of the PodGroup or Workload."""
    part: str = ""
    """The pod group inside a Workload (Kubernetes 1.35), or ""."""
    workload: bool = False
    """Whether the object is a Workload and not a PodGroup."""
    ancestors: tuple[str, ...] = ()
    """Composite groups above it, outermost first; only if configured (decision 25)."""

    @property
    def gang_id(self) -> str:
        """``{discoverer}-{namespace}-{group}``, unsanitised (P-120)."""
        words = (self.discoverer, self.namespace, *self.ancestors, self.object_name, self.part)
        return "-".join(word for word in words if word)


@dataclass(frozen=True, slots=True)
class Group:
    """The scheduler's object as just read. `minimum` None: it sets none, `reason` says why."""

    found: bool
    name: str
    minimum: int | None = None
    api_version: str = ""
    kind: str = ""
    uid: str = ""
    reason: str = ""

    def owner(self) -> dict[str, Any] | None:
        """The owner reference for the gang's ConfigMap; None without name and UID."""
        if not (self.name and self.uid):
            return None
        return {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "name": self.name,
            "uid": self.uid,
        }


class Discoverer(Protocol):
    """One way to recognise gangs."""

    @property
    def name(self) -> str:
        """Prefix of gang ids, and its name in logs and statuses."""

    def anchor(self, pod: GangPod) -> Anchor | None:
        """Where *pod* is anchored; None if it is in no gang of this kind. Asks nobody."""

    async def locate(self, pod: GangPod) -> Anchor | None:
        """As `anchor`, with ancestors where those are configured, for which it asks the server."""

    async def read(self, anchor: Anchor) -> Group:
        """The object behind *anchor*.

        An object that is not there is a `Group` that says so. Whatever else keeps it from being
        read is raised, so that it is tried again and never taken for a size.
        """
