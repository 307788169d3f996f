"""Looks at a cluster that several checks make: is it there, which version is served.

A look comes back as what was found and how it failed, in the form in which `capability.require` takes
it; only there is it decided what that means. Source: validators spec 5.3, 5.4; field case G2.
"""

from __future__ import annotations

from typing import Any, Final

from aicr.checks.sdk.context import Context
from aicr.errors import NOT_FOUND, SERVICE_UNAVAILABLE, AicrError
from aicr.kube import kinds
from aicr.kube.port import Kind, Labels

Document = dict[str, Any]

DRA_GROUP: Final = "resource.k8s.io"
#: Best first.
DRA_VERSIONS: Final = ("v1", "v1beta2", "v1beta1")


async def probe(
    context: Context, kind: Kind, name: str, namespace: str = ""
) -> tuple[Document | None, AicrError | None]:
    """One object, or the error; exactly one of the two is None."""
    try:
        return await context.cluster.get(kind, name, namespace=namespace), None
    except AicrError as error:
        return None, error


async def appears(
    context: Context, kind: Kind, name: str, namespace: str, seconds: float
) -> tuple[Document | None, AicrError | None]:
    """One object as soon as it is there, or why it cannot be read; both None after *seconds*."""
    end = context.clock.now() + seconds
    while True:
        found, error = await probe(context, kind, name, namespace)
        if found is not None or (error is not None and error.code != NOT_FOUND):
            return found, error
        if context.clock.now() >= end:
            return None, None
        await context.clock.sleep(min(context.timeouts.poll, seconds / 10))


async def probe_list(
    context: Context, kind: Kind, namespace: str = "", labels: Labels = None
) -> tuple[list[Document], AicrError | None]:
    """All objects, or the error with an empty list."""
    try:
        return await context.cluster.list(kind, namespace=namespace, labels=labels), None
    except AicrError as error:
        return [], error


async def probe_crd(context: Context, name: str) -> tuple[Document | None, AicrError | None]:
    """A CustomResourceDefinition by its full name, such as ``podgroups.scheduling.run.ai``."""
    return await probe(context, kinds.CUSTOM_RESOURCE_DEFINITION, name)


def established(crd: Document) -> bool:
    """Whether a CustomResourceDefinition is served."""
    return any(
        condition.get("type") == "Established" and condition.get("status") == "True"
        for condition in (crd.get("status") or {}).get("conditions") or []
    )


async def find(context: Context, kind: Kind, name: str, namespace: str = "") -> Document | None:
    """One object, or None if the server says that there is none; any other error is raised."""
    found, error = await probe(context, kind, name, namespace)
    if error is not None and error.code != NOT_FOUND:
        raise error
    return found


async def resource_slices(context: Context) -> tuple[str, list[Document]]:
    """The served version of ``resource.k8s.io`` and all ResourceSlices of it; "" if none is served.

    Raises:
        AicrError: whatever a list ends with that is not "no such version".
    """
    for version in DRA_VERSIONS:
        found, error = await probe_list(context, f"{DRA_GROUP}/{version}/ResourceSlice")
        if error is None:
            return version, found
        if error.code != NOT_FOUND:
            raise error
    return "", []


async def served_dra_version(context: Context) -> str:
    """The best served version of ``resource.k8s.io``.

    Raises:
        AicrError: SERVICE_UNAVAILABLE when none is (validators spec 5.4).
    """
    version, _ = await resource_slices(context)
    if not version:
        raise AicrError(
            SERVICE_UNAVAILABLE,
            f"the cluster serves no version of {DRA_GROUP} ({', '.join(DRA_VERSIONS)})",
            hint="DRA needs Kubernetes 1.32 or later with the feature on",
        )
    return version
