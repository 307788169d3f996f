"""The namespace of a run, named after it: found again by whoever knows the run, and removed by UID.

It is the SDK's namespace of a run with three differences. Its name follows from the run's id, so that
what a run left can be told from the run. It may be kept, for a look at what went wrong. And the block
waits until it is gone: its workers hold every GPU of a node, and a run that ends while they still do
starves whoever comes next. An object of that name that is not ours is a conflict and stays as it is.
Source: validators spec 7.2 (ownership), 7.3; decision 66; requirements V-341.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import secrets
from collections.abc import AsyncIterator
from typing import Final

from aicr.checks.performance.inference_workload import DEPLOYMENT, NAME
from aicr.checks.sdk import namespaces
from aicr.checks.sdk.context import Context
from aicr.checks.sdk.namespaces import RunNamespace
from aicr.checks.sdk.outcome import failed
from aicr.checks.sdk.removal import command, remove
from aicr.contract import labels
from aicr.errors import CONFLICT, NOT_FOUND, TIMEOUT, AicrError
from aicr.kube import kinds

PREFIX: Final = "aicr-inference-perf"
COMPONENT: Final = "inference-perf"


def suffix(run_id: str) -> str:
    """Eight hex digits that follow from the run's id; random ones without an id."""
    if not run_id:
        return secrets.token_hex(4)
    return hashlib.sha256(run_id.encode()).hexdigest()[:8]


@contextlib.asynccontextmanager
async def inference_namespace(
    context: Context, digits: str, *, keep: bool
) -> AsyncIterator[RunNamespace]:
    """The namespace ``aicr-inference-perf-<digits>`` for the length of a block.

    Raises:
        AicrError: CONFLICT when there is one already; INTERNAL or TIMEOUT when the body passed and the
            namespace stays.
    """
    for line in await namespaces.leftovers(context):
        context.log.warning("%s", line)
    mine = RunNamespace(f"{PREFIX}-{digits}", secrets.token_hex(16))
    ended_badly = False
    try:
        await _create(context, mine)
        yield mine
    except AicrError:
        ended_badly = True
        raise
    finally:
        if keep and mine.uid:
            context.log.warning(
                "kept as asked; remove it with: %s", command(kinds.NAMESPACE, mine.name)
            )
        else:
            mine.removed = await _remove(context, mine)
            # Not after a cancellation, which leaves no time to wait.
            if ended_badly and mine.removed and mine.uid:
                await _linger(context, mine)
    # Reached only when the body raised nothing: an error of it is worth more than what it left.
    if not keep:
        await _gone(context, mine)


async def _create(context: Context, mine: RunNamespace) -> None:
    try:
        created = await context.cluster.create(
            namespaces.document(context, mine, {labels.COMPONENT: COMPONENT})
        )
    except AicrError as error:
        if error.code != CONFLICT:
            raise
        raise AicrError(
            CONFLICT,
            f"namespace {mine.name} exists already",
            hint=f"another process of this run may be at work in it; if not, remove it with: "
            f"{command(kinds.NAMESPACE, mine.name)}",
        ) from error
    mine.uid = str(created["metadata"]["uid"])


async def _remove(context: Context, mine: RunNamespace) -> bool:
    """Delete the deployment and the namespace, if they are ours; whether they are gone or going."""
    if not mine.uid:
        # The answer to the creation may never have come, so what is there decides.
        try:
            async with asyncio.timeout(context.timeouts.cleanup):
                found = await context.cluster.get(kinds.NAMESPACE, mine.name)
        except (AicrError, TimeoutError) as error:
            if isinstance(error, AicrError) and error.code == NOT_FOUND:
                return True
            context.log.warning(
                "cannot tell whether namespace %s is left (%s); remove it with: %s",
                *(mine.name, error, command(kinds.NAMESPACE, mine.name)),
            )
            return False
        if not namespaces.is_ours(found, mine.token):
            return True
        mine.uid = str(found["metadata"]["uid"])
    # First, so that the operator takes its workers down in its own order; the namespace takes the rest.
    await remove(context, DEPLOYMENT, NAME, mine.name)
    return await remove(context, kinds.NAMESPACE, mine.name, uid=mine.uid, propagation="Foreground")


async def _linger(context: Context, mine: RunNamespace) -> None:
    """Wait until it is gone; the error of the body stays the reason of the end."""
    # Half of what is left: a budget that ends in here would say no more than that it has ended.
    seconds = min(context.timeouts.inference_namespace_termination, context.remaining() / 2)
    try:
        if await namespaces.wait_gone(context, mine.name, mine.uid, seconds):
            return
        context.log.warning("namespace %s is still terminating and holds GPUs", mine.name)
    except AicrError as error:
        context.log.warning("cannot tell whether namespace %s is gone: %s", mine.name, error)


async def _gone(context: Context, mine: RunNamespace) -> None:
    how = command(kinds.NAMESPACE, mine.name)
    if not mine.removed:
        raise failed(
            f"the benchmark ran, but its namespace {mine.name} could not be removed",
            hint=f"it holds GPUs; remove it with: {how}",
        )
    seconds = context.timeouts.inference_namespace_termination
    if not await namespaces.wait_gone(context, mine.name, mine.uid, seconds):
        raise failed(
            f"the benchmark ran, but its namespace {mine.name} is still terminating after {seconds:g} s",
            code=TIMEOUT,
            hint=f"it holds GPUs; kubectl describe namespace {mine.name} names what it waits for",
        )
