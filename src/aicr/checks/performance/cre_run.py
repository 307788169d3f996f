"""The checks that have the Cluster Readiness Engine measure: run a Certification, read it, take it away.

The Certification lives in a namespace of the run (decision 66). Afterwards it is deleted and everything
that carries its name has to be gone, wherever it is: a job that goes on holds the GPUs that the next
check needs, so a teardown that cannot be proven fails a run that passed.
Source: validators spec 7.4; requirement V-273.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any, Final

from aicr.checks.performance import cre_plan, nccl_settings
from aicr.checks.performance.cre_plan import Record
from aicr.checks.performance.nccl_variants import word
from aicr.checks.sdk import PERFORMANCE, Capability, Check, Context, Skip, failed, require
from aicr.checks.sdk.cluster_reads import probe_crd, probe_list
from aicr.checks.sdk.namespaces import run_namespace
from aicr.checks.sdk.nodes import find_gpu_nodes, names
from aicr.checks.sdk.removal import command, remove
from aicr.contract import labels
from aicr.errors import NOT_FOUND, TIMEOUT, AicrError
from aicr.kube import kinds

COMPONENT: Final = "nvcre"
#: What a Certification makes, besides pods.
MADE: Final = (
    f"{cre_plan.API}/WorkloadRun",
    "trainer.kubeflow.org/v1alpha1/TrainJob",
    "batch/v1/Job",
)
_ENDED: Final = frozenset({"Succeeded", "Failed"})

Document = dict[str, Any]


async def measure(context: Context, record: Record) -> None:
    """Run *record* for the recipe; see the module."""
    expression = context.constraint(record.check, PERFORMANCE)
    if expression is None:
        raise Skip(f"no {record.check} constraint in recipe")
    threshold = nccl_settings.threshold(expression, record.check)
    criteria = (context.validation or {}).get("criteria") or {}
    service, accelerator = word(criteria, "service"), word(criteria, "accelerator")
    if not cre_plan.is_qualified(record, service, accelerator):
        raise Skip(f"{record.check} has not been qualified for {accelerator} on {service}")
    crd, error = await probe_crd(context, cre_plan.CRD)
    require(context, Capability(COMPONENT, f"CRD {cre_plan.CRD}"), error, crd is not None)
    nodes = cre_plan.chosen(record, await find_gpu_nodes(context))
    context.out(f"Target nodes: {', '.join(names(nodes))}")
    name = cre_plan.name_of(record, context.run_id)
    wanted = cre_plan.certification(
        record, nodes, name, labels.check_labels(context.run_id, context.name)
    )
    leftovers: list[str] = []
    async with (
        run_namespace(context, record.prefix) as mine,
        _certified(context, wanted, mine.name, leftovers),
    ):
        await _wait(context, name, mine.name)
        kind = f"{cre_plan.API}/{record.measurement}"
        value, status = cre_plan.result(
            record, await context.cluster.list(kind, namespace=mine.name)
        )
        _conclude(context, record, threshold, value, status)
    if leftovers:
        raise AicrError(
            TIMEOUT,
            f"the Certification left what could not be proven gone: {', '.join(leftovers[:5])}",
            hint="it may hold GPUs; remove it before the next run",
        )
    if not mine.removed:
        raise failed(f"namespace {mine.name} could not be removed")


def _conclude(
    context: Context,
    record: Record,
    threshold: nccl_settings.Threshold,
    value: float,
    status: Any,
) -> None:
    for line in cre_plan.lines(record, threshold, value, status):
        context.out(line)
    if record is cre_plan.NCCL and (problem := cre_plan.transport_problem(status)):
        raise failed(f"{record.check}: {problem}")
    if value < threshold.gbps:
        unit = f" {record.unit}" if record.unit else ""
        raise failed(
            f'{record.check}: {value:g}{unit} do not reach "{threshold.expression}"',
            hint="docs/performance.md: what to look at when a measurement is low",
        )


@contextlib.asynccontextmanager
async def _certified(
    context: Context, wanted: Document, namespace: str, leftovers: list[str]
) -> AsyncIterator[None]:
    """The Certification for the length of a block; *leftovers* gets what is there afterwards."""
    name, uid = str(wanted["metadata"]["name"]), ""
    try:
        # Inside, because the answer may never come. The namespace is this run's: so is what has the name.
        created = await context.cluster.create(wanted, namespace=namespace)
        uid = str(created["metadata"].get("uid") or "")
        yield
    finally:
        await remove(
            *(context, cre_plan.CERTIFICATION, name, namespace, uid), propagation="Foreground"
        )
        leftovers += await _gone(context, name, namespace)


async def _gone(context: Context, name: str, namespace: str) -> list[str]:
    """Delete what the Certification made and wait; what is there in the end, or cannot be told."""
    end = context.clock.now() + context.timeouts.cre_delete
    asked: set[tuple[str, str]] = set()
    while True:
        found: list[str] = []
        for kind in MADE:
            objects, error = await _theirs(context, kind, name, namespace)
            found += [f"{kind}: {error}"] if error is not None else []
            for each in objects:
                metadata = each["metadata"]
                found.append(
                    f"{kind.rpartition('/')[2]} {metadata['namespace']}/{metadata['name']}"
                )
                if (kind, metadata["uid"]) not in asked and not metadata.get("deletionTimestamp"):
                    asked.add((kind, metadata["uid"]))
                    await remove(
                        context, kind, metadata["name"], metadata["namespace"], metadata["uid"]
                    )
        pods, error = await _theirs(context, kinds.POD, name, namespace)
        found += [f"pods: {error}"] if error is not None else []
        found += [
            f"pod {pod['metadata']['namespace']}/{pod['metadata']['name']}"
            for pod in pods
            if (pod.get("status") or {}).get("phase") not in _ENDED
        ]
        if not found or context.clock.now() >= end:
            return found
        await context.clock.sleep(min(context.timeouts.cre_poll, context.timeouts.cre_delete / 20))


async def _theirs(
    context: Context, kind: Any, name: str, namespace: str
) -> tuple[list[Document], AicrError | None]:
    """What a Certification made: by its label anywhere, and whatever is in its namespace.

    A kind that is not served has no objects.
    """
    marked, error = await probe_list(context, kind, "", {cre_plan.OWNER: name})
    inside: list[Document] = []
    if error is None:
        inside, error = await probe_list(context, kind, namespace)
    if error is not None:
        absent = error.code == NOT_FOUND and "absent" in error.context
        return [], None if absent else error
    unique = {each["metadata"]["uid"]: each for each in [*marked, *inside]}
    return list(unique.values()), None


async def _wait(context: Context, name: str, namespace: str) -> None:
    """Wait until the Certification has succeeded.

    Raises:
        AicrError: INTERNAL, a verdict, when it failed; TIMEOUT when it does not end.
    """
    seconds = context.timeout(context.timeouts.cre_certification)
    # Kept back, so that what was made can still be removed inside the budget.
    seconds = max(0.0, seconds - min(context.timeouts.job_envelope_margin, seconds / 4))
    end = context.clock.now() + seconds
    while True:
        found = await context.cluster.get(cre_plan.CERTIFICATION, name, namespace=namespace)
        state = cre_plan.phase(found)
        if state == "Succeeded":
            return
        if state == "Failed":
            said = (found.get("status") or {}).get("message") or "it gives no reason"
            raise failed(
                f"Certification {name} failed: {said}",
                hint=f"kubectl describe certification -n {namespace} {name}",
            )
        if context.clock.now() >= end:
            raise AicrError(
                TIMEOUT,
                f"Certification {name} did not end within {seconds:g} s; its phase is "
                f"{state or 'not set'}",
                hint=f"remove it with: {command(cre_plan.CERTIFICATION, name, namespace)}",
            )
        pause = context.timeouts.cre_poll
        await context.clock.sleep(min(pause, seconds / 20 or pause))


def check_of(record: Record, summary: str, verdict: str) -> Check:
    """The `CHECK` of a record."""

    async def run(context: Context) -> None:
        await measure(context, record)

    pairs = ", ".join(
        f"{accelerator} on {service}"
        for service, each in record.services.items()
        for accelerator in sorted(each)
    )
    return Check(
        name=record.check,
        phase=PERFORMANCE,
        summary=summary,
        run=run,
        timeout="30m",
        details=f"""\
Has the Cluster Readiness Engine certify up to {record.most_nodes} GPU nodes with `{record.domain}` /
`{record.variant}` and reads its `{record.measurement}`. No recipe of the catalogue declares it.

- Passes when {verdict}, without any tolerance, and everything that the Certification made is gone again.
- Fails when the Certification fails, the value is lower, fewer than {LEAST} nodes can be used, or the
  teardown cannot be proven.
- Skips without constraint `{record.check}`, for recipes other than {pairs}, and when the engine is absent
  and the recipe does not declare `{COMPONENT}`.
""",
        reads=(
            "nodes",
            f"CRD {cre_plan.CRD}",
            record.measurement,
            "WorkloadRuns, TrainJobs, Jobs, pods",
        ),
        writes=("a namespace of the run with a Certification",),
        capabilities=(COMPONENT,),
    )


LEAST: Final = cre_plan.LEAST_NODES
