"""pod-autoscaling: GPU metrics reach the metrics APIs, and an autoscaler acts on one.

Behaviour decides: a Deployment of one idle pod and a HorizontalPodAutoscaler on the GPUs' power must
grow, in a namespace of the run. GPU metrics of pods in the custom metrics API are looked at and reported;
they appear only where a workload uses GPUs, so their absence fails nothing. Source: validators spec 6.2,
11; decisions 64, 66.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from aicr.checks.conformance import hpa
from aicr.checks.conformance.required import unread
from aicr.checks.sdk import CONFORMANCE, Capability, Check, Context, failed, require, require_list
from aicr.checks.sdk.cluster_reads import probe_list
from aicr.checks.sdk.namespaces import run_namespace
from aicr.errors import NOT_FOUND, AicrError
from aicr.kube import kinds
from aicr.kube.kinds import Resource

CUSTOM: Final = "custom.metrics.k8s.io/v1beta1"
CUSTOM_PODS: Final = Resource("custom.metrics.k8s.io", "v1beta1", "pods", "MetricValueList", True)
GPU_METRICS: Final = ("gpu_utilization", "gpu_memory_used", "gpu_power_usage")
GPU_NAMESPACES: Final = ("gpu-operator", "dynamo-system")
EXPORTER: Final = {"app": "nvidia-dcgm-exporter"}
OPERATORS: Final = ("gpu-operator", "gpu-operator-ocp")
LARGEST: Final = 3

Document = Mapping[str, Any]


async def run(context: Context) -> None:
    """The exporter, the two metrics APIs, then an autoscaler at work."""
    operator = next((name for name in OPERATORS if context.component(name)), OPERATORS[0])
    exporter = Capability(operator, "pods of the DCGM exporter")
    pods, error = await probe_list(context, kinds.POD, labels=EXPORTER)
    require_list(error, exporter)
    require(context, exporter, None, bool(pods))
    context.out(f"DCGM exporter pods: {running(pods)}/{len(pods)} running")
    await _custom(context)
    values = await hpa.external_metric(context)
    shown = ", ".join(str(each.get("value")) for each in values[:3])
    context.out(f"External metric {hpa.METRIC}: {len(values)} item(s) ({shown})")
    async with run_namespace(context, "hpa-test") as mine:
        load = hpa.Load(mine.name, LARGEST)
        await hpa.start(context, mine.name, load)
        wanted = await hpa.wait_wanted(context, mine.name, load)
        context.out(f"Autoscaler {mine.name}: wants {wanted}, began with {hpa.FIRST}")
        have = await hpa.wait_scaled(context, mine.name, load)
        context.out(f"Deployment {mine.name}: {have} pods")


async def _custom(context: Context) -> None:
    """The custom metrics API answers; report which GPU metrics pods have."""
    try:
        # A kind that no API has: its absence is the answer of a live one.
        await context.cluster.list(f"{CUSTOM}/AnyKind")
    except AicrError as error:
        if error.code == NOT_FOUND and error.context.get("absent") != "kind":
            raise failed(
                f"the API {CUSTOM} is not served",
                code=NOT_FOUND,
                hint="install prometheus-adapter; kubectl get apiservices shows who should serve it",
            ) from error
        if error.code != NOT_FOUND:
            raise unread(f"the API {CUSTOM}", error) from error
    context.out(f"{CUSTOM}: answers")
    found = [
        f"{metric} in {namespace}"
        for namespace in GPU_NAMESPACES
        for metric in GPU_METRICS
        if await _has(context, namespace, metric)
    ]
    context.out(f"GPU metrics of pods: {', '.join(found) or 'none'}")


async def _has(context: Context, namespace: str, metric: str) -> bool:
    """Whether pods of a namespace have a metric; what cannot be read is a warning, it decides nothing."""
    try:
        values = await context.cluster.get(
            CUSTOM_PODS, "*", namespace=namespace, subresource=metric
        )
    except AicrError as error:
        if error.code != NOT_FOUND:
            context.log.warning("%s", error)
        return False
    return bool(values.get("items"))


def running(pods: Iterable[Document]) -> int:
    """How many pods run."""
    return sum((pod.get("status") or {}).get("phase") == "Running" for pod in pods)


CHECK = Check(
    name="pod-autoscaling",
    phase=CONFORMANCE,
    summary="a HorizontalPodAutoscaler scales on a GPU metric",
    run=run,
    timeout="10m",
    details=f"""\
Looks for pods of the DCGM exporter, asks `{CUSTOM}` and, for up to 1 m, for external metric
`{hpa.METRIC}`. Then creates a Deployment of one idle pod and an autoscaler (1 to {LARGEST} pods,
{hpa.TARGET} W a pod) in a namespace of the run.

- Passes when the autoscaler wants more pods within 3 m and the Deployment has them within 2 m more. GPU
  metrics of pods in `{CUSTOM}` are reported and decide nothing; scaling down is not tested.
- Fails (NOT_FOUND) when a metrics API or the metric is absent, (TIMEOUT) when nothing grows; the
  autoscaler's own words are in the message.
- Skips when there is no exporter pod and the recipe declares no GPU operator.
""",
    reads=(
        "pods",
        f"{CUSTOM} and {hpa.EXTERNAL}",
        "horizontalpodautoscalers and deployments of its own",
    ),
    writes=("a namespace of the run with a Deployment and a HorizontalPodAutoscaler",),
    capabilities=OPERATORS,
)
