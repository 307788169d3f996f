"""gang-scheduling: KAI is installed whole, and binds two CPU-only workers together.

First the parts: seven Deployments, two CRDs and a queue that takes work. Then the behaviour: a PodGroup
of two, and both workers must succeed with the moments at which they got their nodes close together. The
workers ask for no GPU and no claim, so that a full cluster can still be judged. All of it lives in a
namespace of the run (decision 66). Source: validators spec 6.2, 11; decision 66.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from aicr.checks.conformance.required import home, listed, required, required_crd
from aicr.checks.sdk import CONFORMANCE, Capability, Check, Context, failed, require, resources
from aicr.checks.sdk.cluster_reads import established, probe
from aicr.checks.sdk.namespaces import run_namespace
from aicr.checks.sdk.outcome import could_not_tell
from aicr.checks.sdk.pods import PodLifecycle, placed
from aicr.errors import INTERNAL, NOT_FOUND, TIMEOUT, AicrError
from aicr.kube import kinds

COMPONENT: Final = "kai-scheduler"
SCHEDULER: Final = "kai-scheduler"
MAIN: Final = "kai-scheduler-default"
DEPLOYMENTS: Final = (
    MAIN,
    "admission",
    "binder",
    "kai-operator",
    "pod-grouper",
    "podgroup-controller",
    "queue-controller",
)
CRDS: Final = ("queues.scheduling.run.ai", "podgroups.scheduling.run.ai")
QUEUE: Final = "scheduling.run.ai/v2/Queue"
POD_GROUP: Final = "scheduling.run.ai/v2alpha2"
PREFERRED_QUEUE: Final = "default-queue"
GROUP: Final = "gang"
WORKERS: Final = ("worker-0", "worker-1")
IMAGE: Final = "busybox:1.37"
_GROUP_LABEL: Final = "pod-group.scheduling.run.ai/name"
_GROUP_ANNOTATION: Final = "pod-group-name"
_QUEUE_LABEL: Final = "kai.scheduler/queue"

Document = Mapping[str, Any]


async def run(context: Context) -> None:
    """Parts, then behaviour."""
    component, namespace = home(context, COMPONENT, COMPONENT)
    found, error = await probe(context, kinds.DEPLOYMENT, MAIN, namespace)
    capability = Capability(component, f"Deployment {namespace}/{MAIN}")
    require(context, capability, error, found is not None)
    states = await asyncio.gather(
        *(_available(context, namespace, name) for name in DEPLOYMENTS), return_exceptions=True
    )
    _deployments(context, states)
    for name in CRDS:
        if not established(await required_crd(context, name)):
            raise failed(f"CustomResourceDefinition {name} is not established")
        context.out(f"  CRD {name}: established")
    queue = queue_of(await listed(context, QUEUE))
    context.out(f"  Queue: {queue}")
    async with run_namespace(context, "gang-scheduling-test") as mine:
        await context.cluster.create(pod_group(queue), namespace=mine.name)
        pods = await _workers(context, mine.name, queue)
    spread = spread_of(pods)
    limit = context.timeouts.co_schedule_window
    context.artifact(
        "Gang scheduling",
        "\n".join(f"{name}: scheduled {scheduled_at(pod)}" for name, pod in pods.items()),
        "kubectl get pods -o wide",
    )
    context.out(f"Spread of the moments of scheduling: {spread:g} s (limit {limit:g} s)")
    if spread > limit:
        raise failed(
            f"the workers of one gang were scheduled {spread:g} s apart, the limit is {limit:g} s",
            hint="KAI bound them one by one: kubectl describe podgroups.scheduling.run.ai -A",
        )


async def _available(context: Context, namespace: str, name: str) -> str:
    """Wait until a Deployment is available; its state in words."""
    seconds = context.timeout(context.timeouts.diagnostic)
    end = context.clock.now() + seconds
    pause = min(context.timeouts.gang_poll, seconds / 20)
    while True:
        ready, words = resources.state(
            "Deployment", await required(context, kinds.DEPLOYMENT, name, namespace)
        )
        if ready:
            return words
        if context.clock.now() >= end:
            raise failed(
                f"Deployment {namespace}/{name} was not available within {seconds:g} s: {words}",
                hint=f"kubectl describe deployment -n {namespace} {name}",
            )
        await context.clock.sleep(pause)


def _deployments(context: Context, states: Sequence[str | BaseException]) -> None:
    """Print every Deployment; raise the first failure, a verdict before what could not be read."""
    errors: list[AicrError] = []
    for name, state in zip(DEPLOYMENTS, states, strict=True):
        if isinstance(state, AicrError):
            errors.append(state)
            context.out(f"  {name}: FAILED: {state.message}")
        elif isinstance(state, BaseException):
            raise state
        else:
            context.out(f"  {name}: {state}")
    for error in sorted(errors, key=lambda each: bool(could_not_tell(each))):
        raise error


async def _workers(context: Context, namespace: str, queue: str) -> dict[str, Document]:
    """Create both, and wait until both have succeeded; one time for both."""
    lifecycle = PodLifecycle(context, namespace)
    for name in WORKERS:
        await lifecycle.create(placed(worker(name, queue), context))
    seconds = context.timeout(context.timeouts.gang_test_pod)
    ended = await asyncio.gather(
        *(lifecycle.wait_succeeded(name, seconds) for name in WORKERS), return_exceptions=True
    )
    errors = [each for each in ended if isinstance(each, BaseException)]
    for error in errors:
        if isinstance(error, AicrError) and error.code == TIMEOUT:
            # KAI was there and had its time: that the gang did not run is what is looked for.
            raise failed(
                f"the gang of {len(WORKERS)} did not run within {seconds:g} s: {error.message}",
                code=TIMEOUT,
                hint=f"kubectl logs -n {COMPONENT} deployment/{MAIN} says why it was not bound",
            ) from error
    for error in errors:
        raise error
    return {name: pod for name, pod in zip(WORKERS, ended, strict=True) if isinstance(pod, dict)}


def queue_of(queues: Sequence[Document]) -> str:
    """The queue for the workers: `PREFERRED_QUEUE`, else the first that no other queue is under.

    Raises:
        AicrError: NOT_FOUND when there is none; KAI schedules nothing without a queue.
    """
    parents = {(queue.get("spec") or {}).get("parentQueue") for queue in queues}
    leaves = sorted(
        name for queue in queues if (name := str(queue["metadata"]["name"])) not in parents
    )
    if not leaves:
        raise failed(
            "there is no queue of KAI",
            code=NOT_FOUND,
            hint="create one: kubectl get queues.scheduling.run.ai",
        )
    return PREFERRED_QUEUE if PREFERRED_QUEUE in leaves else leaves[0]


def pod_group(queue: str) -> dict[str, Any]:
    """A gang that needs all its workers."""
    return {
        "apiVersion": POD_GROUP,
        "kind": "PodGroup",
        "metadata": {"name": GROUP},
        "spec": {"minMember": len(WORKERS), "queue": queue},
    }


def worker(name: str, queue: str) -> dict[str, Any]:
    """A member: CPU only, by KAI, in the gang."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "labels": {_GROUP_LABEL: GROUP, _QUEUE_LABEL: queue},
            "annotations": {_GROUP_ANNOTATION: GROUP},
        },
        "spec": {
            "schedulerName": SCHEDULER,
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
            "containers": [
                {
                    "name": "worker",
                    "image": IMAGE,
                    "command": ["sh", "-c", f"echo {name} of the gang ran"],
                    "resources": {
                        "requests": {"cpu": "10m", "memory": "16Mi"},
                        "limits": {"cpu": "100m", "memory": "64Mi"},
                    },
                    "securityContext": {"allowPrivilegeEscalation": False},
                }
            ],
        },
    }


def scheduled_at(pod: Document) -> str:
    """When a pod got its node, as the API writes it; "" if that is not known."""
    for condition in (pod.get("status") or {}).get("conditions") or []:
        if condition.get("type") == "PodScheduled" and condition.get("status") == "True":
            return str(condition.get("lastTransitionTime") or "")
    return ""


def spread_of(pods: Mapping[str, Document]) -> float:
    """Seconds between the first and the last moment of scheduling.

    Raises:
        AicrError: INTERNAL when a pod does not say when it was scheduled.
    """
    moments = []
    for name, pod in pods.items():
        text = scheduled_at(pod)
        try:
            moments.append(datetime.fromisoformat(text))
        except ValueError as error:
            raise AicrError(
                INTERNAL, f'pod {name} does not say when it was scheduled ("{text}")'
            ) from error
    return (max(moments) - min(moments)).total_seconds()


CHECK = Check(
    name="gang-scheduling",
    phase=CONFORMANCE,
    summary="KAI is whole and binds a gang of two CPU-only workers together",
    run=run,
    timeout="10m",
    details=f"""\
Waits up to 2 m for Deployments {", ".join(f"`{name}`" for name in DEPLOYMENTS)}
in namespace `{COMPONENT}`, looks for CRDs {" and ".join(f"`{name}`" for name in CRDS)}
and a queue, then runs a PodGroup with `minMember` 2 and two pods of scheduler `{SCHEDULER}` in a namespace
of the run.

- Passes when both pods succeed within 5 m, scheduled at most 30 s apart.
- Fails when a part is absent or not available, or the gang does not run, or not together.
- Skips when Deployment `{MAIN}` is absent and the recipe does not declare `{COMPONENT}`.
""",
    reads=("deployments in kai-scheduler", "customresourcedefinitions", "queues"),
    writes=("a namespace of the run with a PodGroup and two pods",),
    capabilities=(COMPONENT,),
)
