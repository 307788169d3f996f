"""The steps of a benchmark that wait for others: cache, operator, Service, load generator.

Every wait ends early at what cannot get better and says what that is (decision 14). A worker that crashed
may yet come up, because it starts beside what it depends on; one that crashed `CRASHES` times will not.
Source: validators spec 7.3 "Deployment"; decision 14; requirements V-309, V-319, V-322, V-341.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

from aicr.checks.performance import (
    inference_aiperf,
    inference_endpoint,
    inference_storage,
    inference_workload,
)
from aicr.checks.performance.inference_jobs import run_job, show_tail
from aicr.checks.performance.inference_knobs import Settings
from aicr.checks.performance.inference_plan import Plan
from aicr.checks.performance.inference_verdict import Measurement
from aicr.checks.sdk import Context, failed
from aicr.checks.sdk.cluster_reads import find
from aicr.checks.sdk.namespaces import is_ours
from aicr.checks.sdk.pods import CRASH_LOOP, UNSCHEDULABLE, Stuck, stuck, stuck_error
from aicr.checks.sdk.removal import command, remove
from aicr.contract import labels
from aicr.errors import NOT_FOUND, TIMEOUT, AicrError
from aicr.kube import kinds

#: Restarts of a container after which a crash loop counts as final.
CRASHES: Final = 3

Document = dict[str, Any]


async def fill_cache(context: Context, plan: Plan, namespace: str) -> None:
    """Create the claim of the cache and fill it; errors as `inference_jobs.run_job`."""
    settings = plan.settings
    create = context.cluster.create
    await create(inference_storage.claim(settings, plan.storage_class), namespace=namespace)
    job = await create(
        inference_storage.populate_job(
            settings, plan.suffix, plan.placement.node, plan.placement.tolerations
        ),
        namespace=namespace,
    )
    begun = context.clock.now()
    limit = settings.populate
    await run_job(context.within(limit), namespace, job, appear=limit, finish=limit)
    context.log.info("model cache filled in %.0f s", context.clock.now() - begun)


async def wait_ready(context: Context, settings: Settings, namespace: str) -> None:
    """Wait until the deployment is ready, or one of its pods is past help.

    Raises:
        AicrError: INTERNAL with the pod's own words when one cannot run; TIMEOUT.
    """
    limit = context.timeout(settings.ready)
    end = context.clock.now() + limit
    refused_since: float | None = None
    while True:
        found = await context.cluster.get(
            inference_workload.DEPLOYMENT, inference_workload.NAME, namespace=namespace
        )
        ready, words = inference_workload.readiness(found)
        if ready:
            return
        refused = False
        for pod in await context.cluster.list(kinds.POD, namespace=namespace):
            cause = past_help(pod)
            if cause is None:
                continue
            grace = context.timeouts.unschedulable_grace
            if cause.reason == UNSCHEDULABLE:
                refused = True
                if refused_since is None or context.clock.now() - refused_since < grace:
                    continue
            name = str(pod["metadata"]["name"])
            if cause.reason == CRASH_LOOP:
                await show_tail(context, namespace, name, previous=True)
            raise stuck_error(name, cause)
        if not refused:
            refused_since = None
        elif refused_since is None:
            refused_since = context.clock.now()
        if context.clock.now() + context.timeouts.inference_poll >= end:
            break
        await context.clock.sleep(context.timeouts.inference_poll)
    raise AicrError(
        TIMEOUT,
        f"DynamoGraphDeployment {inference_workload.NAME} was not ready within {limit:g} s: {words}",
        hint="AICR_INFERENCE_PERF_NO_CLEANUP=1 keeps it for a look; a larger "
        "AICR_INFERENCE_PERF_WORKLOAD_READY_TIMEOUT needs a larger catalogue timeout too",
    )


async def wait_service(context: Context, plan: Plan, namespace: str) -> Document:
    """The Service that is asked, once it is there.

    Raises:
        AicrError: NOT_FOUND when it does not appear in the time for the endpoint.
    """
    limit = context.timeout(plan.settings.health)
    end = context.clock.now() + limit
    while True:
        services = await context.cluster.list(kinds.SERVICE, namespace=plan.gateway or namespace)
        found = (
            inference_endpoint.gateway_service(services)
            if plan.gateway
            else inference_endpoint.frontend_service(services)
        )
        if found is not None:
            return dict(found)
        if context.clock.now() + context.timeouts.inference_poll >= end:
            break
        await context.clock.sleep(context.timeouts.inference_poll)
    what = (
        f"Service of gateway {inference_endpoint.GATEWAY}"
        if plan.gateway
        else f"Service {inference_workload.NAME}-frontend"
    )
    raise failed(
        f"{what} not found in {plan.gateway or namespace} within {limit:g} s",
        code=NOT_FOUND,
        hint=f"kubectl get services -n {plan.gateway or namespace}",
    )


async def run_aiperf(context: Context, plan: Plan, url: str, token: str) -> Measurement:
    """Run the load generator in the validation namespace and read what it reports."""
    reference = inference_aiperf.image(context.environ)
    name = f"aicr-aiperf-{plan.suffix}"
    words = inference_aiperf.arguments(plan.settings, plan.load, url, plan.suffix)
    job = inference_aiperf.job(
        name,
        words,
        reference,
        plan.placement.node,
        await _pull_secrets(context),
        labels.check_labels(context.run_id, context.name),
    )
    async with contextlib.AsyncExitStack() as stack:
        if token:
            secret = inference_storage.token_secret(token, name)
            await stack.enter_async_context(_held(context, plan, kinds.SECRET, secret))
        created = await stack.enter_async_context(_held(context, plan, kinds.JOB, job))
        times = context.timeouts
        log = await run_job(
            context, context.namespace, created, appear=times.aiperf_pod, finish=times.aiperf_job
        )
    context.log.info("AIPerf image %s", reference[0])
    return inference_aiperf.measurement(log)


@contextlib.asynccontextmanager
async def _held(
    context: Context, plan: Plan, kind: kinds.Resource, document: Document
) -> AsyncIterator[Document]:
    """An object in the validation namespace for the length of a block, unless it is to be kept."""
    token = secrets.token_hex(16)
    metadata = {**document["metadata"], "annotations": {labels.OWNER_TOKEN: token}}
    created: Document | None = None
    try:
        created = await context.cluster.create(
            {**document, "metadata": metadata}, namespace=context.namespace
        )
        yield created
    finally:
        if created is None:
            # The answer to the creation may never have come; what is there with our token is ours.
            created = await _ours(context, kind, str(metadata["name"]), token)
        elif plan.settings.keep:
            created = None
        if created is not None:
            uid = str(created["metadata"].get("uid") or "")
            await remove(context, kind, str(metadata["name"]), context.namespace, uid)


async def _ours(context: Context, kind: kinds.Resource, name: str, token: str) -> Document | None:
    """The object with our token, if there is one; a look that fails is a warning."""
    try:
        async with asyncio.timeout(context.timeouts.cleanup):
            found = await find(context, kind, name, context.namespace)
    except (AicrError, TimeoutError) as error:
        how = command(kind, name, context.namespace)
        context.log.warning("cannot look for what is left (%s); if it is there: %s", error, how)
        return None
    return found if found is not None and is_ours(found, token) else None


async def _pull_secrets(context: Context) -> list[Document]:
    """The pull secrets of the check's own pod; none when it runs outside one."""
    name = context.environ.get("HOSTNAME", "")
    pod = await find(context, kinds.POD, name, context.namespace) if name else None
    return list(((pod or {}).get("spec") or {}).get("imagePullSecrets") or [])


def past_help(pod: Mapping[str, Any]) -> Stuck | None:
    """What keeps a pod of the workload from running, or None; the caller gives unschedulable ones time."""
    cause = stuck(pod)
    if cause is not None and cause.reason == CRASH_LOOP:
        statuses = (pod.get("status") or {}).get("containerStatuses") or []
        if max((int(each.get("restartCount") or 0) for each in statuses), default=0) < CRASHES:
            return None
    return cause
