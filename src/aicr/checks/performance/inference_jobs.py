"""Runs a Job of one pod to its end and hands back its log.

The pod is what is watched: how it is stuck, and how its container ended, says more than the Job's
conditions. A Job that fails without a pod (quota, admission) says why in its own conditions, which are
looked at while no pod is there. What the container wrote last goes to the evidence when it failed, with
the run's token taken out of it. Source: validators spec 7.3; decision 14.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from aicr.checks.sdk.context import Context
from aicr.checks.sdk.outcome import failed
from aicr.checks.sdk.pods import PodLifecycle
from aicr.errors import TIMEOUT, AicrError
from aicr.kube import kinds

TOKEN: Final = "HF_TOKEN"
JOB_LABEL: Final = "batch.kubernetes.io/job-name"
_TAIL: Final = 20


async def run_job(
    context: Context, namespace: str, job: Mapping[str, Any], *, appear: float, finish: float
) -> str:
    """Wait for the pod of a Job that was created, to start and to succeed; its log.

    Args:
        context: of the check.
        namespace: of the Job.
        job: as the server answered its creation.
        appear: seconds until its pod must run.
        finish: seconds from then until it must have succeeded.

    Raises:
        AicrError: INTERNAL when the pod cannot run or failed; TIMEOUT.
    """
    lifecycle = PodLifecycle(context, namespace)
    name = str(job["metadata"]["name"])
    begun = context.clock.now()
    pod = await _pod_of(context, namespace, name, context.timeout(appear))
    left = max(context.timeouts.poll, appear - (context.clock.now() - begun))
    try:
        await lifecycle.wait_running(pod, left)
        await lifecycle.wait_succeeded(pod, finish)
    except AicrError:
        await show_tail(context, namespace, pod)
        raise
    return await lifecycle.logs(pod)


async def _pod_of(context: Context, namespace: str, job: str, seconds: float) -> str:
    """The name of the pod of *job*."""
    end = context.clock.now() + seconds
    while True:
        found = await context.cluster.list(kinds.POD, namespace=namespace, labels={JOB_LABEL: job})
        if found:
            return str(found[0]["metadata"]["name"])
        now = await context.cluster.get(kinds.JOB, job, namespace=namespace)
        for condition in (now.get("status") or {}).get("conditions") or []:
            if condition.get("type") == "Failed" and condition.get("status") == "True":
                said = f"{condition.get('reason')}: {condition.get('message') or ''}"
                raise failed(f"Job {job} failed before it had a pod: {said.rstrip(': ')}")
        if context.clock.now() >= end:
            raise AicrError(
                TIMEOUT,
                f"Job {job} had no pod within {seconds:g} s",
                hint=f"kubectl describe job -n {namespace} {job}; look at quotas and webhooks",
            )
        await context.clock.sleep(min(context.timeouts.poll, max(0.05, seconds / 10)))


async def show_tail(context: Context, namespace: str, pod: str, *, previous: bool = False) -> None:
    """Print the end of a pod's log, or of its *previous* run; that it cannot be read is no failure."""
    try:
        data = await context.cluster.logs(pod, namespace=namespace, tail=_TAIL, previous=previous)
    except AicrError as error:
        context.log.info("no log of pod %s: %s", pod, error)
        return
    tail = without_token(data.decode("utf-8", "replace"), context.environ)
    if tail.strip():
        command = f"kubectl logs -n {namespace} {pod}{' --previous' if previous else ''}"
        context.artifact(f"Last lines of {pod}", tail, command)


def without_token(text: str, environ: Mapping[str, str]) -> str:
    """*text* with the run's Hugging Face token struck out."""
    token = environ.get(TOKEN, "").strip()
    return text.replace(token, "[token]") if token else text
