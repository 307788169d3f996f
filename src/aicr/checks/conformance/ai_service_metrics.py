"""ai-service-metrics: Prometheus has series of GPUs, and the custom metrics API answers.

The first scrape may be under way, so the query is repeated for a while. Prometheus that answers "no
series" all the time is a verdict; one that does not answer is not. Source: validators spec 6.2, 11.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from aicr.checks.conformance import endpoints
from aicr.checks.conformance.required import home
from aicr.checks.sdk import (
    CONFORMANCE,
    Capability,
    Check,
    Context,
    failed,
    require,
    require_list,
)
from aicr.checks.sdk.cluster_reads import probe_list
from aicr.errors import INTERNAL, NOT_FOUND, AicrError
from aicr.kube import kinds

METRIC: Final = "DCGM_FI_DEV_GPU_UTIL"
COMPONENT: Final = "kube-prometheus-stack"
PORT: Final = 9090
#: By which labels the Service is found, first that finds one.
LABELS: Final = ({"app.kubernetes.io/name": "prometheus"}, {"self-monitor": "true"})
CUSTOM: Final = "custom.metrics.k8s.io/v1beta1"

Document = Mapping[str, Any]


async def run(context: Context) -> None:
    """Find Prometheus, wait for a series, then ask for the custom metrics API."""
    component, namespace = home(context, "monitoring", COMPONENT)
    capability = Capability(component, f"a Prometheus Service on port {PORT} in {namespace}")
    service: Document | None = None
    for labels in LABELS:
        found, error = await probe_list(context, kinds.SERVICE, namespace, labels)
        require_list(error, capability)
        service = service or prometheus(found)
    require(context, capability, None, service is not None)
    assert service is not None
    count = await _series(context, service)
    context.out(f"Prometheus {namespace}/{service['metadata']['name']}: {count} series of {METRIC}")
    error = await unserved(context, CUSTOM)
    if error is not None:
        context.out(f"{CUSTOM}: does not answer")
        if error.code == NOT_FOUND:
            raise failed(
                f"the API {CUSTOM} is not served",
                code=NOT_FOUND,
                hint="install prometheus-adapter; kubectl get apiservices shows who should serve it",
            ) from error
        raise error
    context.out(f"{CUSTOM}: answers")


async def _series(context: Context, service: Document) -> int:
    """How many series Prometheus has, once there is one."""
    times = context.timeouts
    end = context.clock.now() + context.timeout(times.ai_service_metrics)
    while True:
        trouble: AicrError | None = None
        try:
            text = await endpoints.fetch(context, service, PORT, f"/api/v1/query?query={METRIC}")
            count = series_in(text)
        except AicrError as error:
            trouble, count = error, 0
        if count:
            return count
        if context.clock.now() + times.ai_service_metrics_poll >= end:
            break
        await context.clock.sleep(times.ai_service_metrics_poll)
    if trouble is not None:
        raise trouble
    raise failed(
        f"Prometheus had no series of {METRIC} within {times.ai_service_metrics:g} s",
        code=NOT_FOUND,
        hint="is the DCGM exporter scraped? kubectl get servicemonitors -A",
    )


def prometheus(services: Iterable[Document]) -> Document | None:
    """The first Service, by name, that has Prometheus' port."""
    for service in sorted(services, key=lambda each: str(each["metadata"]["name"])):
        ports = (service.get("spec") or {}).get("ports") or []
        if any(port.get("port") == PORT for port in ports):
            return service
    return None


def series_in(text: str) -> int:
    """How many series an instant query gave.

    Raises:
        AicrError: INTERNAL for an answer that is none of Prometheus', or an error of it.
    """
    try:
        answer = json.loads(text)
        if answer["status"] != "success":
            raise AicrError(INTERNAL, f"Prometheus refused the query: {answer.get('error', '')}")
        return len(answer["data"]["result"])
    except (ValueError, KeyError, TypeError) as error:
        raise AicrError(
            INTERNAL, f"what Prometheus answered cannot be read: {text.strip()[:100]!r}"
        ) from error


async def unserved(context: Context, group_version: str) -> AicrError | None:
    """Why an API does not answer; None when it does.

    NOT_FOUND: nobody serves it. Other codes: it could not be told, as when its server is down.
    """
    try:
        # Discovery is what a client sees of an API; that it has no such kind is the answer of a live one.
        await context.cluster.list(f"{group_version}/AnyKind")
    except AicrError as error:
        return None if error.context.get("absent") == "kind" else error
    return None


CHECK = Check(
    name="ai-service-metrics",
    phase=CONFORMANCE,
    summary="Prometheus has GPU series and the custom metrics API answers",
    run=run,
    timeout="5m",
    details=f"""\
Finds the Prometheus Service (port {PORT}) in the namespace of `{COMPONENT}` by label
`app.kubernetes.io/name=prometheus`, else `self-monitor=true`, and queries `{METRIC}` every 10 s for 2 m.

- Passes when there is a series and `{CUSTOM}` is served.
- Fails (NOT_FOUND) when there is none in that time, or the API is not served. What does not answer is
  SERVICE_UNAVAILABLE.
- Skips when there is no such Service and the recipe does not declare `{COMPONENT}`.
""",
    reads=(
        "services and endpointslices of kube-prometheus-stack",
        "GET /api/v1/query of Prometheus",
        "API discovery",
    ),
    capabilities=(COMPONENT,),
)
