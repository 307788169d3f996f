"""Runs a prepared runtime: creates it, waits for the launcher, reads all that it wrote.

```
TrainingRuntime ─► TrainJob ─► launcher appears ─► launcher ends ─► log, read until it is whole
```

One watch of the namespace's pods drives the wait. It ends early at what cannot get better: a pod that
cannot run, a worker whose TCPXO daemon died. When the launcher fails, what launcher and workers said is
logged line by line before the error is raised. `judge` is pure.
Source: validators spec 7.2 "Execution"; decision 14; field case K6.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from aicr.checks.performance import nccl_preflights, nccl_templates, nccl_verdict
from aicr.checks.sdk import Context, failed
from aicr.checks.sdk.cluster_reads import DRA_GROUP, appears, served_dra_version
from aicr.checks.sdk.pods import UNSCHEDULABLE, progress, stuck, stuck_error
from aicr.contract import labels
from aicr.errors import INTERNAL, NOT_FOUND, TIMEOUT, AicrError
from aicr.fabric import causes, nccl_output
from aicr.kube import kinds
from aicr.kube.watching import DELETED, SYNCED

JOBSET_LABEL: Final = "jobset.sigs.k8s.io/jobset-name"
JOB_LABEL: Final = "jobset.sigs.k8s.io/replicatedjob-name"
TRAINING_RUNTIME: Final = f"{nccl_templates.API_VERSION}/{nccl_templates.KIND}"
_TAIL: Final = 100
_REREADS: Final = 5
#: How much of a log is read at most, in bytes.
_LOG_LIMIT: Final = 16 << 20

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Ended:
    """The launcher's pod when it had succeeded, and all that it wrote."""

    pod: Mapping[str, Any]
    text: str


async def create_runtime(context: Context, runtime: Document, namespace: str) -> Document:
    """Create the TrainingRuntime; it as the API server stored it."""
    await context.cluster.create(runtime, namespace=namespace)
    return await context.cluster.get(TRAINING_RUNTIME, nccl_templates.RUNTIME, namespace=namespace)


async def create_domain(context: Context, namespace: str, workers: int) -> None:
    """Create the ComputeDomain of the run and wait for the claim template that the driver makes.

    Raises:
        AicrError: verdicts: NOT_FOUND when the cluster does not serve ComputeDomains, INTERNAL when no
            template appears.
    """
    version = await served_dra_version(context)
    try:
        await context.cluster.create(
            nccl_templates.compute_domain(namespace, workers), namespace=namespace
        )
    except AicrError as error:
        if error.code != NOT_FOUND:
            raise
        raise failed(
            "the run needs a ComputeDomain, and the cluster does not serve them",
            code=NOT_FOUND,
            hint="install nvidia-dra-driver-gpu with compute domains",
        ) from error
    kind = f"{DRA_GROUP}/{version}/ResourceClaimTemplate"
    seconds = context.timeout(context.timeouts.diagnostic)
    found, problem = await appears(context, kind, nccl_templates.IMEX_TEMPLATE, namespace, seconds)
    if problem is not None:
        raise problem
    if found is None:
        raise failed(
            f"the driver made no claim template for the ComputeDomain within {seconds:g} s",
            hint="kubectl logs of the compute-domain controller of nvidia-dra-driver-gpu",
        )


async def start(context: Context, namespace: str) -> None:
    """Create the TrainJob; refused admission is tried again while the runtime spreads.

    Raises:
        AicrError: INTERNAL with the last refusal as its cause.
    """
    wanted = nccl_templates.train_job(namespace, labels.check_labels(context.run_id, context.name))
    end = context.clock.now() + context.timeout(context.timeouts.train_job_admission_retry)
    while True:
        try:
            await context.cluster.create(wanted, namespace=namespace)
            return
        except AicrError as error:
            if not may_pass(error) or context.clock.now() >= end:
                raise AicrError(
                    INTERNAL,
                    "the TrainJob was not admitted",
                    hint="look at the webhook of Kubeflow Trainer",
                ) from error
        await context.clock.sleep(context.timeouts.train_job_admission_poll)


def may_pass(error: AicrError) -> bool:
    """Whether a refused TrainJob may be admitted a moment later: a webhook has not seen the runtime."""
    text = str(error).lower()
    return "webhook" in text or ("runtime" in text and "not found" in text)


async def launcher(context: Context, namespace: str, *, tcpxo: bool = False) -> Ended:
    """Wait until the launcher has succeeded, and read its log.

    Args:
        context: of the check.
        namespace: of the run.
        tcpxo: whether the workers have a TCPXO daemon to watch.

    Raises:
        AicrError: TIMEOUT when it does not appear or end in time; INTERNAL when it fails or a pod of the
            run cannot work. What the pods said has been logged by then.
    """
    try:
        pod = await _wait(context, namespace, tcpxo)
    except AicrError as error:
        await dump(context, namespace)
        if (error.context or {}).get("launcher"):
            # Not chained: a cause in the surroundings must not count as the verdict that it replaces.
            raise await _explained(context, namespace, error) from None
        raise
    return Ended(pod, await read_log(context, namespace, pod))


def judge(
    pods: Mapping[str, Mapping[str, Any]], *, tcpxo: bool = False
) -> tuple[Mapping[str, Any] | None, bool]:
    """The launcher if it is there, and whether some pod waits to be scheduled.

    Raises:
        AicrError: a verdict for a launcher that failed (context ``launcher``) and for a daemon that died;
            for a pod that cannot run see `pods.stuck_error`.
    """
    found: Mapping[str, Any] | None = None
    waiting = False
    for name, pod in sorted(pods.items()):
        has = pod["metadata"].get("labels") or {}
        if has.get(JOBSET_LABEL) != nccl_templates.TRAIN_JOB:
            continue
        is_launcher = has.get(JOB_LABEL) == nccl_templates.LAUNCHER
        phase = (pod.get("status") or {}).get("phase")
        if is_launcher:
            if found is None or phase == "Succeeded":
                found = pod
            if phase == "Failed":
                raise failed(f"the launcher {name} failed{_exit(pod)}", context={"launcher": name})
        if phase == "Succeeded":
            continue
        cause = stuck(pod)
        # A launcher that crashes again and again has failed: its own words say why.
        if cause is not None and cause.reason != UNSCHEDULABLE:
            error = stuck_error(name, cause)
            if is_launcher and cause.reason == "CrashLoopBackOff":
                error.context["launcher"] = name
            raise error
        waiting = waiting or cause is not None
    if tcpxo and (problem := nccl_preflights.daemon_failure(pods.values())):
        raise failed(problem, hint="kubectl logs of that container; check gke-gpu-nic-topology")
    return found, waiting


async def _wait(context: Context, namespace: str, tcpxo: bool) -> Mapping[str, Any]:
    loop = asyncio.get_running_loop()
    times = context.timeouts
    # Kept back, so that we can still say what the pods did.
    budget = max(0.0, context.remaining() - min(times.job_envelope_margin, context.remaining() / 4))
    appear = loop.time() + min(times.nccl_launcher_pod, budget)
    end = loop.time() + min(times.nccl_train_job, budget)
    pods: dict[str, Mapping[str, Any]] = {}
    seen: Mapping[str, Any] | None = None
    grace: float | None = None
    limit = asyncio.timeout_at(appear)
    try:
        watch: Any = context.cluster.watch(kinds.POD, namespace=namespace)
        async with limit, contextlib.aclosing(watch) as events:
            async for event in events:
                if event.type == SYNCED:
                    continue
                name = event.key[1]
                if event.type == DELETED:
                    pods.pop(name, None)
                elif event.object is not None:
                    pods[name] = event.object
                seen, waiting = judge(pods, tcpxo=tcpxo)
                if seen is not None and (seen.get("status") or {}).get("phase") == "Succeeded":
                    return seen
                grace = _grace(grace, waiting, loop.time() + times.unschedulable_grace)
                at = appear if seen is None else end
                limit.reschedule(at if grace is None else min(at, grace))
    except TimeoutError as error:
        raise _timed_out(context, pods, seen, namespace) from error
    raise AicrError(INTERNAL, f"the watch of pods in {namespace} ended")


def _grace(before: float | None, waiting: bool, fresh: float) -> float | None:
    if not waiting:
        return None
    return fresh if before is None else before


def _timed_out(
    context: Context,
    pods: Mapping[str, Mapping[str, Any]],
    seen: Mapping[str, Any] | None,
    namespace: str,
) -> AicrError:
    for name, pod in sorted(pods.items()):
        cause = stuck(pod)
        if cause is not None:
            return stuck_error(name, cause)
    if seen is None:
        return AicrError(
            TIMEOUT,
            f"no launcher appeared within {context.timeouts.nccl_launcher_pod:g} s",
            hint=f"kubectl describe trainjob,jobset -n {namespace}",
        )
    return AicrError(
        TIMEOUT,
        f"the launcher did not end in time; last seen: {progress(seen)}",
        hint="a rank that hangs is usually a node whose peers cannot reach it",
    )


async def read_log(context: Context, namespace: str, pod: Mapping[str, Any]) -> str:
    """All that the launcher wrote: read again while its summary is missing, then with what it left
    behind as termination message.
    """
    name = str(pod["metadata"]["name"])
    container = str(pod["spec"]["containers"][0]["name"])
    text = ""
    for attempt in range(_REREADS):
        if attempt:
            await context.clock.sleep(context.timeouts.nccl_log_reread)
        data = await context.cluster.logs(
            name, namespace=namespace, container=container, limit_bytes=_LOG_LIMIT
        )
        text = data.decode("utf-8", "replace")
        if nccl_verdict.is_whole(text):
            return text
    left = nccl_verdict.termination_message(pod)
    return f"{text.rstrip()}\n{left}\n" if left else text


async def dump(context: Context, namespace: str) -> None:
    """Log what launcher and workers did, a line each; that it cannot be read changes nothing."""
    try:
        async with asyncio.timeout(context.timeouts.diagnostic):
            wanted = {JOBSET_LABEL: nccl_templates.TRAIN_JOB}
            for pod in await context.cluster.list(kinds.POD, namespace=namespace, labels=wanted):
                await _dump_pod(context, namespace, pod)
    except (AicrError, TimeoutError) as error:
        context.log.warning("cannot read what the pods of the run did: %s", error)


async def _dump_pod(context: Context, namespace: str, pod: Document) -> None:
    name = pod["metadata"]["name"]
    context.log.info("pod %s on %s: %s", name, pod["spec"].get("nodeName"), progress(pod))
    for status in (pod.get("status") or {}).get("containerStatuses") or []:
        context.log.info("  container %s: %s", status.get("name"), status.get("state"))
    try:
        data = await context.cluster.logs(
            name,
            namespace=namespace,
            container=pod["spec"]["containers"][0]["name"],
            tail=_TAIL,
        )
    except AicrError as error:
        context.log.info("  no log: %s", error)
        return
    for line in data.decode("utf-8", "replace").splitlines():
        context.log.info("  %s | %s", name, line)


async def _explained(context: Context, namespace: str, error: AicrError) -> AicrError:
    """The launcher's failure with its known cause; one in the surroundings says nothing of a GPU."""
    try:
        found = await context.cluster.get(
            kinds.POD, str(error.context["launcher"]), namespace=namespace
        )
        text = await read_log(context, namespace, found)
    except AicrError as unread:
        context.log.warning("the launcher's log cannot be read: %s", unread)
        return error
    said = causes.explain(text)
    if not said:
        return error
    message, hint = f"{error.message}: {said}", "docs/performance.md lists known causes"
    if causes.could_not_test(text):
        return AicrError(INTERNAL, message, hint=hint, context={"tail": nccl_output.tail(text)})
    return failed(message, hint=hint, context={"tail": nccl_output.tail(text)})


def _exit(pod: Mapping[str, Any]) -> str:
    for status in (pod.get("status") or {}).get("containerStatuses") or []:
        end = (status.get("state") or {}).get("terminated") or {}
        if end.get("exitCode"):
            return f" with {end['exitCode']}"
    return ""
