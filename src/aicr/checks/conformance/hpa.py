"""A Deployment that a HorizontalPodAutoscaler grows on a GPU metric: the load of both autoscaling checks.

The metric is the power that the cluster's GPUs draw; its target is so low that any idle GPU exceeds it,
so an autoscaler that works wants more pods at once. That the autoscaler is "active" is not enough: what
counts is that it wants more pods than there were, and that they come. Building and judging are pure.
Source: validators spec 6.2 (pod-autoscaling, cluster-autoscaling), 11.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from aicr.checks.conformance.required import unread
from aicr.checks.sdk import Context, failed
from aicr.checks.sdk.nodes import GPU
from aicr.checks.sdk.pods import placed
from aicr.errors import NOT_FOUND, SERVICE_UNAVAILABLE, TIMEOUT, AicrError
from aicr.kube import kinds
from aicr.kube.kinds import Resource

HPA: Final = Resource(
    "autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler", True
)
METRIC: Final = "dcgm_gpu_power_usage"
EXTERNAL: Final = "external.metrics.k8s.io/v1beta1"
#: The metric as the API serves it: a resource of its own in every namespace.
EXTERNAL_METRIC: Final = Resource(
    "external.metrics.k8s.io", "v1beta1", METRIC, "ExternalMetricValue", True
)
#: Watts a pod that the autoscaler aims at.
TARGET: Final = "10"
FIRST: Final = 1
IMAGE: Final = "busybox:1.37"

Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Load:
    """What is created.

    Attributes:
        name: of both objects.
        largest: how many pods the autoscaler may want.
        gpus: ``nvidia.com/gpu`` a pod.
        node_selector: which nodes the load is about, on top of what the user asked for.
        tolerations: those of the pods if the user asked for none.
    """

    name: str
    largest: int
    gpus: int = 0
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: Sequence[Mapping[str, Any]] | None = None


def deployment(load: Load, context: Context) -> dict[str, Any]:
    """The Deployment, placed as the user asked."""
    gpus = {GPU: str(load.gpus)} if load.gpus else {}
    labels = {"app": load.name}
    pod: dict[str, Any] = {
        "metadata": {"labels": labels},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "containers": [
                {
                    "name": "load",
                    "image": IMAGE,
                    "command": ["sleep", "3600"],
                    "resources": {
                        "requests": {"cpu": "10m", "memory": "16Mi", **gpus},
                        "limits": {"cpu": "50m", "memory": "32Mi", **gpus},
                    },
                    "securityContext": {"allowPrivilegeEscalation": False},
                }
            ],
        },
    }
    template = placed(pod, context, tolerations=load.tolerations)
    if load.node_selector:
        # Without it the load would test other nodes than it is about.
        selector = {**template["spec"].get("nodeSelector", {}), **load.node_selector}
        template = {**template, "spec": {**template["spec"], "nodeSelector": selector}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": load.name},
        "spec": {"replicas": FIRST, "selector": {"matchLabels": labels}, "template": template},
    }


def autoscaler(load: Load) -> dict[str, Any]:
    """The HorizontalPodAutoscaler of the Deployment."""
    return {
        "apiVersion": HPA.api_version,
        "kind": HPA.kind,
        "metadata": {"name": load.name},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": load.name},
            "minReplicas": FIRST,
            "maxReplicas": load.largest,
            "metrics": [
                {
                    "type": "External",
                    "external": {
                        "metric": {"name": METRIC},
                        "target": {"type": "AverageValue", "averageValue": TARGET},
                    },
                }
            ],
        },
    }


async def start(context: Context, namespace: str, load: Load) -> None:
    """Create both objects; errors as the creations end."""
    await context.cluster.create(deployment(load, context), namespace=namespace)
    await context.cluster.create(autoscaler(load), namespace=namespace)


async def wait_wanted(context: Context, namespace: str, load: Load) -> int:
    """Wait until the autoscaler wants more pods than the first; how many it wants.

    Raises:
        AicrError: TIMEOUT, a verdict, when it does not; INTERNAL when it cannot be read.
    """
    seconds = context.timeout(context.timeouts.hpa_scale)
    end = context.clock.now() + seconds
    while True:
        found = await read(context, HPA, load.name, namespace)
        wanted = desired(found)
        if wanted > FIRST:
            return wanted
        if context.clock.now() >= end:
            raise ran_out(
                f"the autoscaler did not want more than {FIRST} pod within {seconds:g} s: {why(found)}",
                context.timeouts.hpa_scale - seconds,
                hint=f"it reads {EXTERNAL} {METRIC}; kubectl describe hpa says what it got",
            )
        await context.clock.sleep(context.timeout(context.timeouts.hpa_poll))


async def wait_scaled(context: Context, namespace: str, load: Load) -> int:
    """Wait until the Deployment has more pods than the first; how many it has.

    Raises:
        AicrError: TIMEOUT, a verdict, when it has not; INTERNAL when it cannot be read.
    """
    seconds = context.timeout(context.timeouts.deployment_scale)
    end = context.clock.now() + seconds
    while True:
        found = await read(context, kinds.DEPLOYMENT, load.name, namespace)
        have = int((found.get("status") or {}).get("replicas") or 0)
        if have > FIRST:
            return have
        if context.clock.now() >= end:
            raise ran_out(
                f"the Deployment had {have} pod(s) {seconds:g} s after the autoscaler wanted more",
                context.timeouts.deployment_scale - seconds,
                hint="look for quotas and admission webhooks that refuse pods",
            )
        await context.clock.sleep(context.timeout(context.timeouts.hpa_poll))


def ran_out(message: str, missing: float, hint: str) -> AicrError:
    """The TIMEOUT error for something that did not come: a verdict if it had all of its time.

    *missing* is how many seconds the check's budget took from that time. Something that could still have
    come is "could not tell".
    """
    if missing <= 0:
        return failed(message, code=TIMEOUT, hint=hint)
    return AicrError(TIMEOUT, f"{message}; the check had no more time", hint=hint)


async def external_metric(context: Context, namespace: str = "default") -> list[Document]:
    """The values of the metric once there are some.

    A pipeline that has just started has none yet, so it gets a while.

    Raises:
        AicrError: NOT_FOUND, a verdict, when there are none; INTERNAL when they cannot be read.
    """
    end = context.clock.now() + context.timeout(context.timeouts.metrics_api_warmup)
    while True:
        trouble: AicrError | None = None
        found: list[dict[str, Any]] = []
        try:
            found = await context.cluster.list(EXTERNAL_METRIC, namespace=namespace)
        except AicrError as error:
            trouble = error
            if error.code not in (NOT_FOUND, SERVICE_UNAVAILABLE, TIMEOUT):
                raise unread(f"{EXTERNAL} {METRIC}", error) from error
        if found:
            return list(found)
        if context.clock.now() >= end:
            break
        await context.clock.sleep(context.timeout(context.timeouts.hpa_poll))
    if trouble is not None and trouble.code != NOT_FOUND:
        raise unread(f"{EXTERNAL} {METRIC}", trouble) from trouble
    raise failed(
        f"external metric {METRIC} has no value",
        code=NOT_FOUND,
        hint="prometheus-adapter makes it from the DCGM exporter's series; look at its rules and log",
    ) from trouble


async def read(context: Context, kind: Resource, name: str, namespace: str) -> Document:
    """An object that this check made; INTERNAL when it cannot be read."""
    try:
        return await context.cluster.get(kind, name, namespace=namespace)
    except AicrError as error:
        raise unread(f"{kind.kind} {namespace}/{name}", error) from error


def desired(autoscaler_document: Document) -> int:
    """How many pods the autoscaler wants, 0 before it has decided."""
    return int((autoscaler_document.get("status") or {}).get("desiredReplicas") or 0)


def why(autoscaler_document: Document) -> str:
    """The conditions of an autoscaler that are not as they should be, or what it has seen."""
    status = autoscaler_document.get("status") or {}
    bad = [
        f"{each.get('type')}={each.get('status')} {each.get('reason', '')}: {each.get('message', '')}"
        for each in status.get("conditions") or []
        if each.get("type") in ("AbleToScale", "ScalingActive") and each.get("status") != "True"
    ]
    if bad:
        return "; ".join(bad)
    if not status.get("conditions"):
        return "it has not looked at the Deployment yet"
    return f"it wants {desired(autoscaler_document)} and reads {status.get('currentMetrics') or 'nothing'}"
