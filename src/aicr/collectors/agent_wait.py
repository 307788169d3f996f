"""Whether the agent's Job has ended, goes on, or never will: read off Job and pods. Pure.

Waiting ends early on what cannot mend itself (decision 14): an image that is not there, a container that
cannot be made, a pod that finds no node for a while. The cause that Kubernetes gives is in the error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from aicr.collectors.agent_objects import CONTAINER
from aicr.contract.images import SIDE_LOADED
from aicr.errors import EXIT_STATUS, INTERNAL, SERVICE_UNAVAILABLE, TIMEOUT, AicrError

#: Reasons of a waiting container that waiting does not mend.
STUCK: Final = frozenset(
    {
        "CreateContainerConfigError",
        "CreateContainerError",
        "ErrImageNeverPull",
        "ErrImagePull",
        "ImageInspectError",
        "ImagePullBackOff",
        "InvalidImageName",
        "RunContainerError",
    }
)
#: One failed pull may be a moment of the registry; the next attempts are told as ImagePullBackOff.
_MAY_MEND: Final = frozenset({"ErrImagePull", "RunContainerError"})
_CODED: Final = re.compile(r"\[(?P<code>[A-Z_]+)\] (?P<rest>.*)", re.DOTALL)

RUNNING: Final = "running"
SUCCEEDED: Final = "succeeded"


def owned(pods: Sequence[Mapping[str, Any]], uid: str) -> list[Mapping[str, Any]]:
    """The pods that the Job with *uid* controls; labels could be anybody's."""
    return [
        pod
        for pod in pods
        if any(
            owner.get("uid") == uid and owner.get("controller") is True
            for owner in (pod.get("metadata") or {}).get("ownerReferences") or []
        )
    ]


def state(job: Mapping[str, Any], pods: Sequence[Mapping[str, Any]]) -> str:
    """RUNNING or SUCCEEDED.

    Raises:
        AicrError: how the Job failed, with the agent's own code if it left one; SERVICE_UNAVAILABLE
            if its pod cannot start.
    """
    for pod in pods:
        ended = _ended(pod)
        if ended is not None and ended.get("exitCode") != 0:
            raise _failed(pod, ended)
    conditions = {
        one.get("type"): one
        for one in (job.get("status") or {}).get("conditions") or []
        if one.get("status") == "True"
    }
    if "Complete" in conditions:
        return SUCCEEDED
    if "Failed" in conditions:
        raise _job_failed(job, conditions["Failed"])
    for pod in pods:
        waiting = ((_status(pod).get("state") or {}).get("waiting")) or {}
        cause = waiting.get("reason")
        if cause in STUCK and cause not in _MAY_MEND:
            raise _stuck(pod, str(cause), str(waiting.get("message") or ""))
    return RUNNING


def unscheduled(pods: Sequence[Mapping[str, Any]]) -> str:
    """Why the scheduler has found no place for the pod, "" if that is not what is waited for."""
    for pod in pods:
        for one in (pod.get("status") or {}).get("conditions") or []:
            if one.get("type") == "PodScheduled" and one.get("reason") == "Unschedulable":
                return str(one.get("message") or "no node fits")
    return ""


def _status(pod: Mapping[str, Any]) -> Mapping[str, Any]:
    for one in (pod.get("status") or {}).get("containerStatuses") or []:
        if one.get("name") == CONTAINER:
            found: Mapping[str, Any] = one
            return found
    return {}


def _ended(pod: Mapping[str, Any]) -> Mapping[str, Any] | None:
    found: Mapping[str, Any] | None = (_status(pod).get("state") or {}).get("terminated")
    return found


def _failed(pod: Mapping[str, Any], ended: Mapping[str, Any]) -> AicrError:
    """The agent's own error, from its termination message; else its exit code."""
    said = str(ended.get("message") or "").strip()
    match = _CODED.fullmatch(said)
    node = (pod.get("spec") or {}).get("nodeName", "")
    if match is not None and match["code"] in EXIT_STATUS:
        return AicrError(match["code"], f"the agent failed: {match['rest']}", where=f"node {node}")
    cause = said or str(ended.get("reason") or "it said nothing")
    hint = "give it more with --limits memory=2Gi" if ended.get("reason") == "OOMKilled" else ""
    return AicrError(
        INTERNAL,
        f"the agent ended with exit code {ended.get('exitCode')}: {cause}",
        where=f"node {node}",
        hint=hint,
    )


def _job_failed(job: Mapping[str, Any], condition: Mapping[str, Any]) -> AicrError:
    name = (job.get("metadata") or {}).get("name", "")
    late = condition.get("reason") == "DeadlineExceeded"
    return AicrError(
        TIMEOUT if late else INTERNAL,
        f"Job {name} failed ({condition.get('reason')}): {condition.get('message')}",
        where=f"Job {name}",
    )


def _stuck(pod: Mapping[str, Any], cause: str, message: str) -> AicrError:
    spec = pod.get("spec") or {}
    image = next((str(one.get("image")) for one in spec.get("containers") or []), "")
    if cause == "ErrImageNeverPull" and image.startswith(SIDE_LOADED):
        hint = (
            "build aicr-agent from containers/Dockerfile and load it on the nodes, or name another "
            "with --image"
        )
    elif "Image" in cause:
        hint = "check --image and --image-pull-secret"
    else:
        hint = "see: kubectl describe pod"
    return AicrError(
        SERVICE_UNAVAILABLE,
        f"the agent cannot start: {cause}: {message or image}",
        where=f"pod {(pod.get('metadata') or {}).get('name', '')}",
        hint=hint,
    )
