"""Reads of what must be there: its absence is a verdict, a read that fails is not.

"Not found" is an answer about the cluster. Everything else, a refusal or a server that is down, is an
INTERNAL error whose cause says which (validators spec 6, preamble), so that it is published as "could
not tell" with the cause's code. This module must not know what the objects mean.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aicr.checks.sdk.cluster_reads import probe, probe_list
from aicr.checks.sdk.context import Context
from aicr.checks.sdk.outcome import failed
from aicr.errors import INTERNAL, NOT_FOUND, AicrError
from aicr.kube import kinds
from aicr.kube.kinds import Resource
from aicr.kube.port import Kind, Labels

Document = dict[str, Any]


async def required(
    context: Context, kind: Kind, name: str, namespace: str = "", *, hint: str = ""
) -> Document:
    """One object.

    Raises:
        AicrError: NOT_FOUND, a verdict, when there is none or its kind is not served; INTERNAL when it
            cannot be read.
    """
    found, error = await probe(context, kind, name, namespace)
    if found is not None:
        return found
    subject = f"{word(kind)} {f'{namespace}/' if namespace else ''}{name}"
    if error is not None and error.code == NOT_FOUND:
        raise failed(f"{subject} not found", code=NOT_FOUND, hint=hint or error.hint) from error
    raise unread(subject, error)


async def listed(
    context: Context, kind: Kind, namespace: str = "", labels: Labels = None
) -> list[Document]:
    """All objects; INTERNAL when they cannot be listed."""
    found, error = await probe_list(context, kind, namespace, labels)
    if error is not None:
        raise unread(f"{word(kind)} objects", error) from error
    return found


async def required_crd(context: Context, name: str) -> Document:
    """A CustomResourceDefinition by its full name; errors as `required`."""
    return await required(
        context,
        kinds.CUSTOM_RESOURCE_DEFINITION,
        name,
        hint="install the CRDs of the component that brings it",
    )


def unread(subject: str, error: AicrError | None) -> AicrError:
    """The error for something that could not be looked at."""
    found = AicrError(INTERNAL, f"cannot read {subject}", hint=error.hint if error else "")
    found.__cause__ = error
    return found


def word(kind: Kind) -> str:
    """The kind as documents write it."""
    return kind.kind if isinstance(kind, Resource) else kind.rpartition("/")[2]


def home(context: Context, default: str, *components: str) -> tuple[str, str]:
    """Component and namespace of a part of the platform that one of *components* installs.

    The first that the recipe declares, in the namespace that it says; else the first, in *default*.
    """
    for component in components:
        ref = context.component(component)
        if ref is not None:
            return component, str(ref.get("namespace") or default)
    return components[0], default


def number(document: Mapping[str, Any], key: str) -> int:
    """A count in an object's status, 0 if it is not stated."""
    return int((document.get("status") or {}).get(key) or 0)
