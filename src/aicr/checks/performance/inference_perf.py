"""inference-perf: a model served on the free GPUs of one node reaches the recipe's throughput and latency.

```
applies?    constraint, platform, CRD
settings    every knob, every threshold         nothing has been created so far that a typo could leave
plan        who hands out GPUs, which node, how much load, which StorageClass
deploy      namespace, token, cache, DynamoGraphDeployment
serve       ready by its operator, then a real chat completion
measure     AIPerf, warm-up first
judge       gates with 10 % tolerance
```

This module only puts the steps in their order; the rules are in its siblings ``inference_*``. It keeps
part of its budget for cleaning up. Source: validators spec 7.3; decisions 14, 64, 66.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from aicr.checks.performance import (
    inference_endpoint,
    inference_knobs,
    inference_storage,
    inference_verdict,
    inference_workload,
)
from aicr.checks.performance.inference_jobs import TOKEN
from aicr.checks.performance.inference_namespace import inference_namespace
from aicr.checks.performance.inference_plan import Plan, make_plan, say_plan
from aicr.checks.performance.inference_serving import (
    fill_cache,
    run_aiperf,
    wait_ready,
    wait_service,
)
from aicr.checks.performance.inference_verdict import Measurement, Thresholds
from aicr.checks.sdk import PERFORMANCE, Capability, Check, Context, Skip, failed, require
from aicr.checks.sdk.allocation import one_gpu_template
from aicr.checks.sdk.cluster_reads import established, probe_crd
from aicr.errors import NOT_FOUND

COMPONENT: Final = "dynamo-platform"
CRD: Final = "dynamographdeployments.nvidia.com"
_PLATFORM: Final = Capability(COMPONENT, f"CRD {CRD}")


async def run(context: Context) -> None:
    """The check; see the module."""
    asked = await _applies(context)
    settings = inference_knobs.resolve(context.constraint, context.environ, context.timeouts)
    plan = await make_plan(context, settings, asked)
    say_plan(context, plan)
    async with inference_namespace(context, plan.suffix, keep=settings.keep) as mine:
        work = context if context.deadline is None else _within_budget(context)
        measured = await _measured(work, plan, mine.name)
        _judge(context, plan, measured)


async def _applies(context: Context) -> Thresholds:
    """What the recipe asks for, once the check applies.

    Raises:
        Skip: the recipe asks for nothing, or Dynamo is neither declared nor there.
        AicrError: NOT_FOUND when Dynamo is declared and its CRD is not there.
    """
    asked = inference_verdict.thresholds(context.constraint)
    if asked is None:
        raise Skip("no inference-throughput or inference-ttft-p99 constraint in recipe")
    crd, error = await probe_crd(context, CRD)
    require(context, _PLATFORM, error, crd is not None and established(crd))
    assert crd is not None
    versions = [each["name"] for each in crd["spec"].get("versions") or [] if each.get("served")]
    wanted = inference_workload.GROUP_VERSION.rpartition("/")[2]
    if wanted not in versions:
        raise failed(
            f"{COMPONENT}: CRD {CRD} does not serve {wanted}, but {', '.join(versions) or 'nothing'}",
            code=NOT_FOUND,
            hint="upgrade the Dynamo platform",
        )
    return asked


def _within_budget(context: Context) -> Context:
    left = context.remaining() - min(context.timeouts.reserve, context.remaining() / 2)
    return context.within(left)


async def _measured(context: Context, plan: Plan, namespace: str) -> Measurement:
    """Deploy, wait until it serves, and measure."""
    create = context.cluster.create
    token = context.environ.get(TOKEN, "").strip()
    if token:
        await create(inference_storage.token_secret(token), namespace=namespace)
    if plan.storage_class:
        await fill_cache(context, plan, namespace)
    if plan.dra_version:
        await create(
            one_gpu_template(inference_workload.CLAIM_TEMPLATE, plan.dra_version),
            namespace=namespace,
        )
    await create(inference_workload.deployment(plan.settings, plan.placement), namespace=namespace)
    await wait_ready(context, plan.settings, namespace)
    headers: Mapping[str, str] = {}
    if plan.gateway:
        route = inference_workload.route(plan.gateway, inference_endpoint.GATEWAY, plan.suffix)
        await create(route, namespace=namespace)
        headers = {inference_workload.ROUTE_HEADER: plan.suffix}
    service = await wait_service(context, plan, namespace)
    said = await inference_endpoint.wait_serving(
        context, service, plan.settings.model, headers, plan.settings.health
    )
    context.out(f"Endpoint serves: {said.strip()[:80]!r}")
    return await run_aiperf(context, plan, inference_endpoint.url_of(service), token)


def _judge(context: Context, plan: Plan, measured: Measurement) -> None:
    """Print what was measured and how it compares.

    Raises:
        AicrError: INTERNAL, a verdict, naming every gate that was missed.
    """
    context.out(f"RESULT: Inference throughput: {measured.throughput:.2f} tokens/s")
    context.out(f"RESULT: Inference TTFT p99: {measured.ttft_p99:.2f} ms")
    if measured.errors:
        context.out(f"Failed requests: {measured.errors}")
    missed = []
    for gate in inference_verdict.judge(plan.asked, measured, plan.load):
        context.out(gate.line)
        if not gate.passed:
            missed.append(gate.reason)
    if broken := inference_verdict.too_many_errors(measured):
        missed.append(broken)
    if missed:
        raise failed(
            "; ".join(missed),
            hint="run it again before concluding; then look at GPU clocks, ECC, throttling and XIDs "
            "(docs/inference-perf.md)",
        )


CHECK = Check(
    name="inference-perf",
    phase=PERFORMANCE,
    summary="a served model reaches the recipe's throughput and time to the first token",
    run=run,
    timeout="65m",
    details="""\
Serves a model with Dynamo and vLLM on the free GPUs of one node and loads it with AIPerf. Reads
constraints `inference-throughput` (tokens/s) and `inference-ttft-p99` (ms) of the performance phase; the
throughput is scaled by free GPUs over GPUs of the node. Both have 10 % tolerance. See
[inference-perf.md](inference-perf.md).

- Passes when every constraint that is stated is met.
- Fails when one is missed, more than a tenth of the requests fail, the workload does not come up or serve
  in its time, a knob or threshold cannot be read (INVALID_REQUEST, before anything is created), or
  Dynamo's CRD is missing although the recipe declares it (NOT_FOUND).
- Skips when neither constraint is stated, or Dynamo is neither declared nor installed.
""",
    reads=(
        "nodes, pods, services, endpointslices",
        "resourceslices, resourceclaims, deviceclasses",
        "storageclasses, CRDs, the inference gateway",
        "POST /v1/chat/completions of the workload",
    ),
    writes=(
        "a namespace aicr-inference-perf-* with Secret, PersistentVolumeClaim, Job, "
        "DynamoGraphDeployment, ResourceClaimTemplate, HTTPRoute",
        "a Job aicr-aiperf-* (and a Secret) in the validation namespace",
    ),
    capabilities=(COMPONENT,),
    settings=inference_knobs.described(),
)
