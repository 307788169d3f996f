"""Is an object there, and does it do what it is for: workloads by their ready replicas, others by existing.

What a controller has not looked at yet is not ready: a status that is about an older generation of the
spec says nothing about this one. Source: validators spec 5.4 "VerifyResource".
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from aicr.checks.sdk.context import Context
from aicr.checks.sdk.outcome import failed
from aicr.errors import TIMEOUT, AicrError, invalid
from aicr.kube import kinds
from aicr.kube.kinds import Resource

#: Kinds whose readiness is known → their resource.
KINDS: Final[dict[str, Resource]] = {
    found.kind: found
    for found in (
        kinds.DEPLOYMENT,
        kinds.DAEMON_SET,
        kinds.STATEFUL_SET,
        kinds.SERVICE,
        kinds.CONFIG_MAP,
        kinds.SECRET,
    )
}


async def verify(context: Context, kind: str, namespace: str, name: str) -> str:
    """Check one object; a few words on its state for the evidence, such as ``2/2 available``.

    Raises:
        AicrError: INVALID_REQUEST for a kind that cannot be verified; INTERNAL when it is not ready;
            TIMEOUT after the time for one object; else what the read ended with (NOT_FOUND when absent).
    """
    resource = KINDS.get(kind)
    if resource is None:
        raise invalid(
            f'kind "{kind}" cannot be verified', hint=f"kinds are {', '.join(sorted(KINDS))}"
        )
    seconds = context.timeout(context.timeouts.resource_verification)
    try:
        async with asyncio.timeout(seconds):
            found = await context.cluster.get(resource, name, namespace=namespace)
    except TimeoutError as error:
        raise AicrError(
            TIMEOUT, f"no answer about {kind} {namespace}/{name} within {seconds:g} s"
        ) from error
    ready, words = state(kind, found)
    if not ready:
        raise failed(
            f"{kind} {namespace}/{name} is not ready: {words}",
            hint=f"kubectl describe {resource.singular} -n {namespace} {name}",
        )
    return words


def state(kind: str, document: Mapping[str, Any]) -> tuple[bool, str]:
    """Whether an object of one of `KINDS` is ready, and its state in a few words."""
    spec, status = document.get("spec") or {}, document.get("status") or {}
    if kind not in ("Deployment", "DaemonSet", "StatefulSet"):
        return True, "exists"
    generation = (document.get("metadata") or {}).get("generation") or 0
    if (status.get("observedGeneration") or 0) < generation:
        return False, "its controller has not seen the latest change yet"
    if kind == "DaemonSet":
        wanted, have, word = (
            status.get("desiredNumberScheduled"),
            status.get("numberReady"),
            "ready",
        )
        if wanted is None:
            return False, "its controller has not reported yet"
    else:
        key, word = (
            ("availableReplicas", "available")
            if kind == "Deployment"
            else (
                "readyReplicas",
                "ready",
            )
        )
        wanted, have = spec.get("replicas", 1), status.get(key)
    return (have or 0) >= wanted, f"{have or 0}/{wanted} {word}"
