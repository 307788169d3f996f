"""Volumes that a patch adds, and pods whose own volumes stand in the way.

A pod may bring a volume of one of our names when it is the same volume, as in a specification that was
copied from an admitted pod. Any other volume of that name would be mounted into the checks instead of
ours, so it is refused, most of all a false connector token. Source: preflight spec 2.5.7, 2.7; decision 24.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aicr.errors import AicrError, invalid
from aicr.preflight import names
from aicr.preflight.admission.gang_port import Membership
from aicr.preflight.admission.pod import Pod
from aicr.preflight.admission.prepared import Prepared

Document = dict[str, Any]


def check_token(pod: Pod, prepared: Prepared) -> None:
    """Refuse a pod that brings its own idea of the connector's token.

    Raises:
        AicrError: INVALID_REQUEST; the pod's volume is not exactly the projection that we add.
    """
    if prepared.token_volume is None:
        return
    for volume in pod.volumes:
        if volume["name"] == names.TOKEN_VOLUME and not _is_token(volume, prepared.token_volume):
            raise invalid(
                f'pod declares a volume named "{names.TOKEN_VOLUME}" that is not the projected '
                "service account token of preflight: rename the volume in the pod",
            )


def _is_token(volume: Mapping[str, Any], wanted: Document) -> bool:
    projected = volume.get("projected")
    sources = projected.get("sources") if type(projected) is dict else None
    if type(sources) is not list or len(sources) != 1 or _source(volume) != "projected":
        return False
    return bool(sources == wanted["projected"]["sources"])


def added(
    pod: Pod, prepared: Prepared, membership: Membership | None, mounted: set[str]
) -> list[Document]:
    """The volumes that *pod* lacks, in the order of spec 2.7; *mounted* are those the checks mount.

    Raises:
        AicrError: INVALID_REQUEST when the pod has another volume of such a name.
    """
    wanted: list[Document] = []
    if prepared.socket_volume is not None:
        wanted.append(prepared.socket_volume)
    if prepared.token_volume is not None:
        wanted.append(prepared.token_volume)
    if membership is not None:
        source = {"name": membership.config_map, "optional": True}
        wanted.append({"name": names.GANG_VOLUME, "configMap": source})
        if names.SHM_VOLUME in mounted:
            memory = {"medium": "Memory", "sizeLimit": names.SHM_LIMIT}
            wanted.append({"name": names.SHM_VOLUME, "emptyDir": memory})
        wanted += prepared.gang_volumes
    present = {volume["name"]: volume for volume in pod.volumes}
    found: list[Document] = []
    for volume in wanted:
        existing = present.get(volume["name"])
        if existing is None:
            found.append(volume)
        elif not _compatible(existing, volume, pod):
            raise _clash(existing, volume)
    return found


def absent(pod: Pod, prepared: Prepared) -> set[str]:
    """Volumes that checks of gang pods mount and that neither *pod* nor the configuration has.

    A mount without its volume would have the pod refused, so it is left out.
    """
    present = {volume["name"] for volume in (*pod.volumes, *prepared.gang_volumes)}
    own = (names.GANG_VOLUME, names.TOPOLOGY_VOLUME)
    return {
        mount["name"]
        for mount in prepared.gang_mounts
        if mount["name"] not in present and mount["name"] not in own
    }


def _compatible(existing: Mapping[str, Any], wanted: Document, pod: Pod) -> bool:
    kind = next(key for key in wanted if key != "name")
    theirs = existing.get(kind)
    if kind == "emptyDir":
        return theirs is not None or _at_shm(pod, existing["name"])
    if type(theirs) is not dict:
        return False
    if kind == "projected":
        return True  # `check_token` has looked at it.
    key = "path" if kind == "hostPath" else "name"
    return bool(theirs.get(key) == wanted[kind][key])


def _at_shm(pod: Pod, volume: str) -> bool:
    """Whether the workload itself uses *volume* as its ``/dev/shm``."""
    return any(
        mount.get("name") == volume
        and str(mount.get("mountPath", "")).rstrip("/") == names.SHM_PATH
        for container in pod.containers
        for mount in container.get("volumeMounts") or ()
    )


def _clash(existing: Mapping[str, Any], wanted: Document) -> AicrError:
    kind = next(key for key in wanted if key != "name")
    what = wanted[kind].get("path") or wanted[kind].get("name") or ""
    return invalid(
        f'pod volume "{existing["name"]}" ({_source(existing)}) has the name of the volume '
        f'"{wanted["name"]}" ({f"{kind} {what}".strip()}) that preflight checks mount: '
        "rename the volume in the pod",
    )


def _source(volume: Mapping[str, Any]) -> str:
    """The kinds of source that a volume states; one, if the pod is right."""
    return ", ".join(key for key, value in volume.items() if key != "name" and value is not None)
