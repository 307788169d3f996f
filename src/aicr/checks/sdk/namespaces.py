"""A namespace of the run for what a check creates: nobody else's objects are touched, nothing is left
behind.

It carries the run's id and the check's name as labels and a random token as an annotation. It is
removed only while its UID and its token are ours, so that a namespace which somebody made again under
the same name stays. What *other* runs left is listed with the command that removes it, and never
removed: they may still be at work (decision 66). Cleaning up has its own time and happens also when the
check was cancelled, or when the answer to the creation never came. Source: validators spec 5.4;
requirements V-138, V-242.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from aicr.checks.sdk.context import Context
from aicr.checks.sdk.removal import command, remove
from aicr.contract import labels
from aicr.errors import NOT_FOUND, AicrError
from aicr.kube import kinds

Document = dict[str, Any]


@dataclass(slots=True)
class RunNamespace:
    """A namespace that is ours.

    Attributes:
        name: of the namespace.
        token: the random text in its annotation.
        uid: its UID, "" while its creation has not been answered.
        removed: after the block: whether it is gone or going. A check for which leftovers are a failure
            looks at it.
    """

    name: str
    token: str
    uid: str = ""
    removed: bool = field(default=False)


@contextlib.asynccontextmanager
async def run_namespace(
    context: Context,
    prefix: str,
    extra_labels: Mapping[str, str] | None = None,
    *,
    digits: int = 8,
) -> AsyncIterator[RunNamespace]:
    """A namespace ``<prefix>-<hex>`` for the length of a block; *digits* (even) is how long the hex is.

    Raises:
        AicrError: when it cannot be created.
    """
    for line in await leftovers(context):
        context.log.warning("%s", line)
    mine = RunNamespace(f"{prefix}-{secrets.token_hex(digits // 2)}", secrets.token_hex(16))
    try:
        created = await context.cluster.create(document(context, mine, extra_labels or {}))
        mine.uid = created["metadata"]["uid"]
        yield mine
    finally:
        mine.removed = await _remove(context, mine)


def document(context: Context, mine: RunNamespace, extra_labels: Mapping[str, str]) -> Document:
    """The namespace as it is created."""
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": mine.name,
            "labels": {**extra_labels, **labels.check_labels(context.run_id, context.name)},
            "annotations": {labels.OWNER_TOKEN: mine.token},
        },
    }


def is_ours(namespace: Mapping[str, Any], token: str) -> bool:
    """Whether a namespace carries our token."""
    annotations = (namespace.get("metadata") or {}).get("annotations") or {}
    return annotations.get(labels.OWNER_TOKEN) == token


async def leftovers(context: Context) -> list[str]:
    """A line for each namespace that this check made in another run, with how to remove it.

    That they cannot be listed is one line as well: it is no reason to fail.
    """
    wanted = {labels.MANAGED_BY: labels.PRODUCT, labels.CHECK: context.name}
    try:
        found = await context.cluster.list(kinds.NAMESPACE, labels=wanted)
    except AicrError as error:
        return [f"cannot tell whether other runs left namespaces: {error}"]
    return [
        f"namespace {namespace['metadata']['name']} is left from run {run}; if that run has ended, "
        f"remove it with: {command(kinds.NAMESPACE, namespace['metadata']['name'])}"
        for namespace in found
        if (run := namespace["metadata"]["labels"].get(labels.RUN_ID)) != context.run_id
    ]


async def _remove(context: Context, mine: RunNamespace) -> bool:
    """Remove the namespace if it is ours; whether nothing of ours stays."""
    try:
        async with asyncio.timeout(context.timeouts.cleanup):
            found = await context.cluster.get(kinds.NAMESPACE, mine.name)
    except AicrError as error:
        if error.code == NOT_FOUND:
            return True
        context.log.warning("%s; remove it with: %s", error, command(kinds.NAMESPACE, mine.name))
        return False
    except TimeoutError:
        context.log.warning(
            "no answer in time; remove what is left with: %s", command(kinds.NAMESPACE, mine.name)
        )
        return False
    uid = str(found["metadata"].get("uid") or "")
    if not is_ours(found, mine.token) or (mine.uid and uid != mine.uid):
        context.log.warning("namespace %s is not ours any more; left alone", mine.name)
        return True
    return await remove(context, kinds.NAMESPACE, mine.name, uid=uid, propagation="Foreground")


async def wait_gone(context: Context, name: str, uid: str, seconds: float) -> bool:
    """Wait until the namespace with *uid* is gone; False if it is not after *seconds*."""
    end = context.clock.now() + seconds
    while True:
        try:
            found = await context.cluster.get(kinds.NAMESPACE, name)
        except AicrError as error:
            if error.code == NOT_FOUND:
                return True
            raise
        if found["metadata"].get("uid") != uid:
            return True
        if context.clock.now() >= end:
            return False
        await context.clock.sleep(min(1.0, seconds / 10))
