"""accelerator-metrics: the DCGM exporter publishes samples of the metrics that dashboards and autoscalers
need.

A metric counts when it has a sample. An exporter whose driver is gone still describes its metrics in
comments, and has nothing to say. Source: validators spec 6.2.
"""

from __future__ import annotations

import re
from typing import Final

from aicr.checks.conformance import endpoints
from aicr.checks.conformance.required import home
from aicr.checks.sdk import CONFORMANCE, Capability, Check, Context, failed, require
from aicr.checks.sdk.cluster_reads import probe
from aicr.errors import INTERNAL, NOT_FOUND, AicrError
from aicr.kube import kinds

SERVICE: Final = "nvidia-dcgm-exporter"
PORT: Final = 9400
REQUIRED: Final = (
    "DCGM_FI_DEV_GPU_UTIL",
    "DCGM_FI_DEV_FB_USED",
    "DCGM_FI_DEV_GPU_TEMP",
    "DCGM_FI_DEV_POWER_USAGE",
)
SAMPLE_LINES: Final = 8
_SAMPLE: Final = re.compile(r"([A-Za-z_:][A-Za-z0-9_:]*)(?:\{[^\n]*\})?[ \t]+[-+0-9.NIni]")


async def run(context: Context) -> None:
    """Read the exporter's page and look for samples of each metric."""
    component, namespace = home(context, "gpu-operator", "gpu-operator", "gpu-operator-ocp")
    service, error = await probe(context, kinds.SERVICE, SERVICE, namespace)
    capability = Capability(component, f"Service {namespace}/{SERVICE}")
    require(context, capability, error, service is not None)
    assert service is not None
    text = await endpoints.fetch(context, service, PORT, "/metrics")
    found = samples(text)
    if not found:
        raise AicrError(
            INTERNAL,
            f"what {namespace}/{SERVICE} answers are no metrics; it begins: {text.strip()[:100]!r}",
            hint="something else listens there, or the exporter has no GPU to report",
        )
    absent = [name for name in REQUIRED if name not in found]
    for name in REQUIRED:
        context.out(f"  {name}: {'absent' if name in absent else f'{len(found[name])} sample(s)'}")
    shown = [line for name in REQUIRED for line in found.get(name, ())[:2]][:SAMPLE_LINES]
    context.artifact(
        "DCGM exporter metrics",
        "\n".join(shown),
        f"curl -s http://{SERVICE}.{namespace}.svc:{PORT}/metrics",
    )
    if absent:
        raise failed(
            f"the DCGM exporter publishes no {', '.join(absent)}",
            code=NOT_FOUND,
            hint="look at the exporter's metrics ConfigMap and at the driver of its node",
        )


def samples(text: str) -> dict[str, list[str]]:
    """Metric → its sample lines, of a page in Prometheus' text format; comments are no samples."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        match = _SAMPLE.match(line)
        if match:
            found.setdefault(match[1], []).append(line)
    return found


CHECK = Check(
    name="accelerator-metrics",
    phase=CONFORMANCE,
    summary="the DCGM exporter publishes utilisation, memory, temperature and power of GPUs",
    run=run,
    timeout="5m",
    details=f"""\
Reads `/metrics` of Service `{SERVICE}` (port {PORT}) in the GPU operator's namespace through a ready
endpoint, 1 MiB at most.

- Passes when {", ".join(f"`{name}`" for name in REQUIRED)} have samples each.
- Fails when one has none (NOT_FOUND, listing them), no endpoint is ready, or none can be reached
  (SERVICE_UNAVAILABLE).
- Skips when the Service is absent and the recipe does not declare `gpu-operator`.
""",
    reads=("service nvidia-dcgm-exporter and its endpointslices", "GET /metrics of its pods"),
    capabilities=("gpu-operator",),
)
