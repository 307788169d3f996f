"""Pods, groups and ConfigMaps of gangs, as short as they can be written."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from aicr.preflight import names
from aicr.preflight.gang import configmap as cm
from aicr.preflight.gang.coordination import Gang, Plan, Rules, plan
from aicr.preflight.gang.groups import Group
from aicr.preflight.gang.pods import GangPod, gang_pod

Document = dict[str, Any]
NOW = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)
OLD = "2026-11-30T11:00:00Z"
#: The gang of most tests: PodGroup ``train`` of Volcano in namespace ``team-a``.
MAP = "preflight-volcano-team-a-train"
GANG_ID = "volcano-team-a-train"
VOLCANO_KEY = "scheduling.k8s.io/group-name"
VOLCANO: Document = {
    "name": "volcano",
    "annotationKeys": [VOLCANO_KEY],
    "podGroupGVR": {
        "group": "scheduling.volcano.sh",
        "version": "v1beta1",
        "resource": "podgroups",
    },
}


def pod_document(
    name: str,
    ip: str | Sequence[str] = "",
    *,
    uid: str = "",
    phase: str = "Running",
    mounts: str | None = MAP,
    group: str = "train",
    checks: str | None = None,
    node: str = "",
    host_network: bool = False,
    terminating: bool = False,
    created: str = OLD,
    namespace: str = "team-a",
    **spec: Any,
) -> Document:
    """A pod of a gang; *mounts* None has no gang volume, "" has one that names no ConfigMap."""
    addresses = [ip] if isinstance(ip, str) else list(ip)
    annotations = {VOLCANO_KEY: group} if group else {}
    if checks is not None:
        annotations[names.CHECKS_ANNOTATION] = checks
    metadata: Document = {
        "name": name,
        "namespace": namespace,
        "uid": uid or f"uid-of-{name}",
        "creationTimestamp": created,
        "annotations": annotations,
    }
    if terminating:
        metadata["deletionTimestamp"] = OLD
    volume: Document = {"name": names.GANG_VOLUME}
    if mounts:
        volume["configMap"] = {"name": mounts, "optional": True}
    elif mounts == "":
        volume["emptyDir"] = {}
    status: Document = {"phase": phase}
    if addresses != [""]:
        status |= {"podIP": addresses[0], "podIPs": [{"ip": one} for one in addresses]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {
            "nodeName": node or f"node-of-{name}",
            "hostNetwork": host_network,
            "volumes": [{"name": "data", "emptyDir": {}}, *([] if mounts is None else [volume])],
            "containers": [{"name": "main", "image": "x"}],
            **spec,
        },
        "status": status,
    }


def pod(name: str, ip: str | Sequence[str] = "", **fields: Any) -> GangPod:
    """The same, as coordination sees it."""
    return gang_pod(pod_document(name, ip, **fields))


def group(minimum: int | None = 3, *, uid: str = "group-1", found: bool = True) -> Group:
    """PodGroup ``train``."""
    if not found:
        return Group(found=False, name="train", reason="PodGroup team-a/train is not there")
    return Group(
        found=True,
        name="train",
        minimum=minimum,
        api_version="scheduling.volcano.sh/v1beta1",
        kind="PodGroup",
        uid=uid,
    )


class Story:
    """A gang over time: each `step` decides on pods and writes what was decided."""

    def __init__(self, minimum: int | None = 3, *, document: Document | None = None) -> None:
        self.group = group(minimum)
        self.document = document
        self.now = NOW
        self.writes = 0
        self.others = 0
        self.taken: frozenset[int] = frozenset()
        self.rules = Rules()

    def plan(self, *pods: GangPod) -> Plan:
        """What is decided, without writing it."""
        gang = Gang(
            "team-a",
            MAP,
            GANG_ID,
            29500,
            self.group,
            self.others,
            taken_ports=lambda node: self.taken,
        )
        return plan(
            gang,
            pods,
            self.document,
            now=self.now,
            checks_of=lambda one: one.annotations.get(names.CHECKS_ANNOTATION, "dcgm"),
            rules=self.rules,
        )

    def step(self, *pods: GangPod, later: float = 1.0) -> Plan:
        """Decide *later* seconds after the last step, and write."""
        self.now += timedelta(seconds=later)
        decided = self.plan(*pods)
        if decided.document is not None:
            self.document = decided.document
            self.writes += 1
        return decided

    @property
    def data(self) -> dict[str, str]:
        """The ConfigMap's data."""
        assert self.document is not None
        found: dict[str, str] = self.document["data"]
        return found

    @property
    def state(self) -> cm.State:
        """The ConfigMap as read."""
        return cm.read(self.document)

    @property
    def peers(self) -> list[str]:
        """Lines of ``peers``."""
        return self.data[cm.PEERS].splitlines()

    @property
    def peer_names(self) -> list[str]:
        """Names of the peers, by rank."""
        return [line.split(";")[0] for line in self.peers]
