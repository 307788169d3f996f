"""What can be said of gangs from outside: their ConfigMaps beside the pods that are there. Pure.

| state | means |
|---|---|
| ``complete`` | every member has an address and is alive or has ended well |
| ``forming`` | members are waited for |
| ``unsized`` | members are there, and the group does not say (yet) how many there must be |
| ``losing`` | complete as written, and a member is dead: the controller has not got there, or is down |
| ``empty`` | nobody is alive |

This module must not read a cluster. Source: decision 22.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from aicr.errors import some_of
from aicr.preflight import names
from aicr.preflight.gang import configmap as cm
from aicr.preflight.gang.pods import GangPod

COMPLETE: Final = "complete"
FORMING: Final = "forming"
UNSIZED: Final = "unsized"
LOSING: Final = "losing"
EMPTY: Final = "empty"

_NAMED: Final = 8


def gangs(documents: Iterable[Mapping[str, Any]], pods: Iterable[GangPod]) -> list[dict[str, Any]]:
    """A plain document for each gang ConfigMap, by namespace and name.

    Args:
        documents: ConfigMaps; those that are not ours are passed over.
        pods: every pod of the same namespaces.
    """
    mounting: dict[tuple[str, str], list[GangPod]] = {}
    for pod in pods:
        if pod.config_map:
            mounting.setdefault((pod.namespace, pod.config_map), []).append(pod)
    found = []
    for document in documents:
        metadata = document["metadata"]
        labels = metadata.get("labels") or {}
        if labels.get(names.MANAGED_BY_LABEL) == names.MANAGED_BY:
            key = (metadata["namespace"], metadata["name"])
            found.append(gang(document, mounting.get(key, [])))
    return sorted(found, key=lambda row: (row["namespace"], row["configMap"]))


def gang(document: Mapping[str, Any], pods: Sequence[GangPod]) -> dict[str, Any]:
    """One gang: its ConfigMap *document*, and all pods that mount it."""
    metadata, state = document["metadata"], cm.read(document)
    by_uid = {pod.uid: pod for pod in pods}
    live = sorted((pod for pod in pods if pod.live), key=lambda pod: pod.name.encode())
    members = [_member(member, by_uid.get(member.uid)) for member in state.members]
    inside = {member.uid for member in state.members}
    outside = [pod for pod in live if pod.uid not in inside]
    owners = metadata.get("ownerReferences") or []
    found: dict[str, Any] = {
        "namespace": metadata["namespace"],
        "gang": state.gang_id,
        "configMap": metadata["name"],
        "state": _state(state, members, live),
        "generation": state.generation,
        "expected": state.expected,
        "members": members,
        # Who has an address and is not in a complete membership came too late for it.
        "missing": [pod.name for pod in outside if not (state.complete and pod.addresses)],
        "late": [pod.name for pod in outside if state.complete and pod.addresses],
        "checks": [name for name in state.checks.split(",") if name],
        "owner": f"{owners[0]['kind']}/{owners[0]['name']}" if owners else "",
    }
    if state.members:
        found["master"] = cm.endpoint(state.members[0].ip, state.master_port)
    return found


def _member(member: cm.Member, pod: GangPod | None) -> dict[str, Any]:
    found: dict[str, Any] = {"name": member.name, "rank": member.rank, "ip": member.ip}
    if pod is None:
        return {**found, "phase": "gone", "live": False}
    phase = "Terminating" if pod.terminating else pod.status.phase
    return {**found, "phase": phase, "live": pod.live, "node": pod.spec.node_name}


def _state(state: cm.State, members: Sequence[Mapping[str, Any]], live: Sequence[GangPod]) -> str:
    if not live:
        return EMPTY
    if state.complete:
        well = all(member["live"] or member["phase"] == "Succeeded" for member in members)
        return COMPLETE if well else LOSING
    return FORMING if state.expected else UNSIZED


def line(row: Mapping[str, Any]) -> str:
    """One gang in one line, for people who watch."""
    parts = [
        f"{row['namespace']}/{row['gang']}: {row['state']}, generation {row['generation']}",
        f"{len(row['members'])} of {row['expected'] or '?'} members",
    ]
    dead = [member["name"] for member in row["members"] if not member["live"]]
    for word, who in (("missing", row["missing"]), ("late", row["late"]), ("not alive", dead)):
        if who:
            parts.append(f"{word} {some_of(who, _NAMED)}")
    return ", ".join(parts)
