"""The NCCL checks from one end to the other; the three check files only name their variant.

```
plan (recipe alone) ─► source is published ─► nodes ─► preflights ─► Trainer ─► lock ─► namespace
    ─► runtime, provenance ─► TrainJob ─► verdict ─► everything removed
```

Nothing is created before the knobs, the nodes and what is deployed have been looked at. A clean-up that
fails fails a run that passed, and never hides why another one failed.
Source: validators spec 7.2; requirements V-193, V-202, V-208 to V-212.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from aicr.catalog.catalog import Catalog
from aicr.checks.performance import (
    nccl_carrier,
    nccl_derivation,
    nccl_execution,
    nccl_lock,
    nccl_preflights,
    nccl_targeting,
    nccl_templates,
    nccl_trainer,
    nccl_verdict,
)
from aicr.checks.performance.nccl_plan import DELIVERED, Plan, resolve
from aicr.checks.performance.nccl_settings import FABRIC, IMAGE, TRAINER
from aicr.checks.performance.nccl_targeting import Placement
from aicr.checks.performance.nccl_variants import EFA, NET, Variant, pairs
from aicr.checks.sdk import PERFORMANCE, Check, Context, Setting, failed
from aicr.checks.sdk.nodes import GpuNode, find_gpu_nodes, names
from aicr.contract.sentinels import RUNTIME_SOURCE
from aicr.errors import CONFLICT, AicrError
from aicr.recipe.configuration import TCPXO_RUNTIME

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Subject:
    """What is measured, once the cluster has been looked at.

    Attributes:
        nodes: the targets.
        gpus: of each.
        efa: adapters of each.
        networks: names of GPU NIC networks.
        delivered: the delivered runtime as deployed, None unless the plan measures it.
    """

    nodes: Sequence[GpuNode]
    gpus: int
    efa: int = 0
    networks: Sequence[str] = ()
    delivered: Mapping[str, Any] | None = None


async def measure(context: Context, variant: Variant) -> None:
    """Run *variant*; see the module."""
    plan = resolve(variant, context.validation, context.environ, Catalog.builtin().tree.read_text)
    context.emit_extra({**context.extra, RUNTIME_SOURCE: plan.source})
    context.out(f"Benchmark runtime source: {plan.source} ({plan.place})")
    subject = await look(context, plan)
    own = nccl_lock.name_of(variant.word, context.run_id)
    async with (
        nccl_lock.held(context) as lock,
        nccl_trainer.present(context, lambda: nccl_lock.others(context, own)),
        nccl_lock.namespace(context, lock, variant.word) as mine,
    ):
        await _run(context, plan, subject, mine.name)
        if await nccl_lock.lost(context, lock):
            raise AicrError(
                CONFLICT,
                "another NCCL run took the lock over while this one measured",
                hint="run the check again when no other is running",
            )
    if mine.problem is not None:
        raise mine.problem


async def look(context: Context, plan: Plan) -> Subject:
    """The targets and what they are wired to; nothing is created.

    Raises:
        Skip: for fewer than two targets.
        AicrError: verdicts of `targets`, `census` and the preflights.
    """
    found = await find_gpu_nodes(context)
    selector = context.node_selector
    if selector is None and plan.supplied:
        sample = nccl_templates.parse(nccl_templates.sample(plan.template), plan.place)
        selector = nccl_carrier.selector(sample)
    chosen = nccl_targeting.targets(
        found, accelerator=plan.accelerator, service=plan.service, selector=selector
    )
    left_out = sorted({*names(found)} - {*names(chosen)})
    gpus = nccl_targeting.census(chosen)
    context.out(f"Target nodes: {len(chosen)} with {gpus} GPUs each: {', '.join(names(chosen))}")
    if left_out:
        context.out(f"Left out: {', '.join(left_out)}")
    if plan.supplied:
        return Subject(chosen, gpus)
    delivered = None
    if plan.source == DELIVERED:
        delivered = await nccl_preflights.delivered_runtime(context, plan)
    networks: Sequence[str] = ()
    if nccl_preflights.needs_tcpxo(plan):
        networks = await nccl_preflights.tcpxo(context, names(chosen))
    uses_efa = plan.pair.service == "eks" and plan.fabric == EFA
    efa = nccl_targeting.adapters(chosen) if uses_efa else 0
    return Subject(chosen, gpus, efa, networks, delivered)


def prepare(
    context: Context, plan: Plan, subject: Subject, namespace: str
) -> tuple[Document, Document | None]:
    """The TrainingRuntime to create, and the shipped worker template that it was derived from, if any.

    Raises:
        AicrError: as `nccl_derivation.derive`.
    """
    uses_efa = plan.pair.service == "eks" and plan.fabric == EFA and not plan.supplied
    bare = uses_efa and not subject.efa
    values = nccl_templates.variables(
        *(namespace, len(subject.nodes), subject.gpus),
        efa=subject.efa,
        largest=nccl_templates.MAX_SIZE_WITHOUT_EFA if bare else nccl_templates.MAX_SIZE,
        interfaces=nccl_preflights.interfaces(subject.networks),
        devices=nccl_preflights.devices(subject.gpus),
        instance_type=nccl_targeting.shared(subject.nodes, nccl_targeting.INSTANCE_TYPE),
    )
    runtime = nccl_templates.parse(nccl_templates.fill(plan.template, values), plan.place)
    runtime = nccl_templates.owned(runtime, namespace)
    if bare:
        runtime = nccl_templates.without_efa(runtime)
    if plan.image:
        runtime = nccl_templates.with_image(runtime, plan.image)
    shipped: Document | None = None
    if subject.delivered is not None:
        shipped = nccl_templates.node_template(subject.delivered)
        runtime = nccl_derivation.derive(shipped, runtime, TCPXO_RUNTIME, subject.gpus)
    return _placed(context, plan, subject, runtime), shipped


def _placed(context: Context, plan: Plan, subject: Subject, runtime: Document) -> Document:
    own = None
    if plan.supplied or subject.delivered is not None:
        spec = nccl_templates.node_template(runtime)["spec"]
        own = Placement(spec.get("nodeSelector") or None, spec.get("tolerations") or None)
    chosen = nccl_targeting.placement(
        subject.nodes,
        plan.pair.service,
        user=Placement(context.node_selector, context.tolerations),
        runtime=own,
    )
    runtime = nccl_templates.with_launcher_on(runtime, names(subject.nodes))
    return nccl_templates.placed(runtime, chosen.node_selector, chosen.tolerations)


async def _run(context: Context, plan: Plan, subject: Subject, namespace: str) -> None:
    runtime, shipped = prepare(context, plan, subject, namespace)
    if nccl_preflights.needs_parameter(plan):
        await nccl_preflights.drivers(context, namespace, names(subject.nodes))
    if plan.needs_imex:
        await nccl_execution.create_domain(context, namespace, len(subject.nodes))
    stored = await nccl_execution.create_runtime(context, runtime, namespace)
    if shipped is not None:
        publish(context, shipped, stored)
    await nccl_execution.start(context, namespace)
    ended = await nccl_execution.launcher(
        context, namespace, tcpxo=nccl_preflights.needs_tcpxo(plan)
    )
    ranks = 0 if plan.supplied else len(subject.nodes) * subject.gpus
    conclude(context, plan, ended.text, ranks)


def publish(context: Context, shipped: Mapping[str, Any], stored: Mapping[str, Any]) -> None:
    """Say what was derived from what, as the object is stored: for people, and bounded for the report."""
    record = nccl_derivation.provenance(shipped, nccl_templates.node_template(stored))
    listing = [f"shipped {record['shippedDigest']}", f"applied {record['derivedDigest']}"]
    listing += [f"overridden {path}" for path in record["overriddenPaths"]]
    listing += [f"inherited {path}" for path in record["inheritedPaths"]]
    context.artifact(
        f"Derived from ClusterTrainingRuntime {TCPXO_RUNTIME}",
        "\n".join(listing),
        f"kubectl get clustertrainingruntime {TCPXO_RUNTIME} -o yaml",
    )
    context.emit_provenance(record)


def conclude(context: Context, plan: Plan, text: str, ranks: int) -> None:
    """Print what was measured and hold transport and threshold against it.

    Raises:
        AicrError: as `nccl_verdict.read` and `hold`; INTERNAL, a verdict, for an unproven transport.
    """
    check = plan.variant.check
    measured = nccl_verdict.read(text, ranks)
    for line in nccl_verdict.lines(check, plan.threshold, measured, plan.image):
        context.out(line)
    problem = nccl_verdict.unproven(plan.variant, text)
    if problem:
        raise failed(
            f"{check}: {measured.busbw:.2f} GB/s over another transport than the one that was asked "
            f"for: {problem}",
            hint="docs/performance.md: why NCCL falls back to another transport",
        )
    if plan.variant.key:
        context.out(f"Transport: {nccl_verdict.transport(plan.variant, text)}")
    nccl_verdict.hold(check, plan.threshold, measured)


def check_of(variant: Variant, summary: str, transport: str) -> Check:
    """The `CHECK` of a variant."""

    async def run(context: Context) -> None:
        await measure(context, variant)

    settings = [
        Setting(IMAGE, "the template's image", "image of launcher and workers"),
        Setting(
            TRAINER,
            "unset",
            "manifests of Kubeflow Trainer, applied for the run where it is absent",
        ),
    ]
    if variant is NET:
        settings.insert(0, Setting(FABRIC, EFA, "fabric on EKS: efa or roce"))
    return Check(
        name=variant.check,
        phase=PERFORMANCE,
        summary=summary,
        run=run,
        timeout="30m",
        details=_DETAILS.format(
            check=variant.check,
            transport=transport,
            pairs=", ".join(f"`{pair}`" for pair in pairs(variant)),
        ),
        reads=(
            *("nodes", "pods", "namespaces", "customresourcedefinitions", "deployments"),
            *(
                "networks.networking.gke.io on GKE",
                "clustertrainingruntimes where one is delivered",
            ),
        ),
        writes=(
            "a namespace of the run with a TrainingRuntime, a TrainJob and, for NVLS, a ComputeDomain",
            "Lease aicr-nccl-run-lock",
            "Kubeflow Trainer for the length of the run, if its manifests are given and it is absent",
        ),
        capabilities=(nccl_trainer.COMPONENT,),
        settings=tuple(settings),
    )


_DETAILS: Final = """\
Runs `all_reduce_perf` on every schedulable GPU node of the recipe's accelerator through a TrainJob of
Kubeflow Trainer and takes the out-of-place bus bandwidth of the largest message. {transport}

Templates are there for {pairs}; `nccl-benchmark-profile` names one of them for another recipe,
`nccl-benchmark-runtime-ref` brings a runtime of the recipe's own. `runtimeSource` says what the number
describes: `delivered-artifact` only where the recipe ships the TCPXO runtime.

- Passes when the bandwidth is at least nine tenths of constraint `{check}`.
- Fails when it is less, values are wrong, nodes differ in GPUs, a preflight or the launcher fails, another
  run holds the lock, or what was created cannot be removed.
- Skips without a constraint of exactly that name, without a template for the recipe, and with fewer than
  two GPU nodes.
"""
