"""slinky-slurm-gpu-access: a job gets the one GPU that it asked for, and one that asked for none gets none.

Both jobs run on the same Slurm node, one after the other, and try to open every GPU device. See
`slurm_probe` for why opening and not listing. Source: validators spec 6.2; requirements V-249 to V-252.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from aicr.checks.conformance import slurm, slurm_probe
from aicr.checks.conformance.slurm import Login
from aicr.checks.conformance.slurm_probe import GpuFacts, Judgement
from aicr.checks.sdk import CONFORMANCE, Check, Context, Skip, failed
from aicr.errors import INTERNAL, SERVICE_UNAVAILABLE, TIMEOUT, AicrError

JOB: Final = (
    *("srun", "--immediate=30", "--time=1:00", "--nodes=1", "--ntasks=1"),
    *("--cpus-per-task=1", "--mem=128M"),
)
ONE_GPU: Final = "--gpus=1"
LABEL: Final = "Slinky Slurm GPU access and isolation"
_CRITERIA: Final = ("service", "accelerator", "intent", "os", "platform")


async def run(context: Context) -> None:
    """Two jobs, one with a GPU and one without."""
    criteria = (context.validation or {}).get("criteria") or {}
    if context.component(slurm.COMPONENT) is not None and criteria.get("service") == "kind":
        raise Skip("service kind has no GPUs to isolate")
    site = await slurm.find_site(context)
    if not slurm.gpus_of(site.node_pods):
        raise no_gpus(criteria)
    login = await slurm.find_login(context, site)
    first = await _probe(context, login, (ONE_GPU,), "the job that asks for a GPU")
    if not context.remaining():
        raise AicrError(TIMEOUT, "the check had no time left for the job without a GPU")
    pinned = (f"--nodelist={first.node}",)
    second = await _probe(context, login, pinned, "the job that asks for no GPU")
    found = slurm_probe.with_gpu(first)
    other = slurm_probe.without_gpu(second, first.node)
    context.artifact(
        LABEL, report(first, second, found, other), " ".join((*JOB, ONE_GPU, "/bin/sh -c <probe>"))
    )
    problems = _named(found.problems, other.problems)
    if problems:
        raise failed(
            f"Slurm does not isolate GPUs as it should: {'; '.join(problems)}",
            hint="look at ConstrainDevices in cgroup.conf, at gres.conf, and at the node's pod",
        )
    doubts = _named(found.doubts, other.doubts)
    if doubts:
        raise AicrError(INTERNAL, f"inconclusive: {'; '.join(doubts)}")


async def _probe(context: Context, login: Login, more: tuple[str, ...], what: str) -> GpuFacts:
    command = (*JOB, *more, "/bin/sh", "-c", slurm_probe.gpu_script())
    ran = await slurm.execute(context, login, command)
    if ran.status != 0:
        raise slurm.job_error(what, ran)
    try:
        return slurm_probe.parse_gpu(ran.stdout)
    except AicrError as error:
        raise AicrError(INTERNAL, f"{what} gave no facts") from error


def no_gpus(criteria: Mapping[str, Any]) -> AicrError:
    """How the check ends when no NodeSet pod has a GPU.

    A recipe for one exact kind of cluster promises GPUs; one that leaves something open does not.
    """
    values = [str(criteria.get(key) or "any") for key in _CRITERIA]
    if "any" in values:
        return Skip("no NodeSet pod has a GPU, and the recipe is not for one exact kind of cluster")
    return failed(
        "no NodeSet pod has a GPU, although the recipe is for " + "/".join(values),
        code=SERVICE_UNAVAILABLE,
        hint="nodesets.slinky.slurmd.resources.limits gives the pods their GPUs",
    )


def report(first: GpuFacts, second: GpuFacts, found: Judgement, other: Judgement) -> str:
    """The facts of both jobs and the verdict, as evidence."""
    lines = []
    for word, facts in (("with --gpus=1", first), ("without a GPU", second)):
        opened = [path for path, errno in facts.devices.items() if errno == slurm_probe.OPENED]
        lines += [
            f"Job {word}, on {facts.node}:",
            f"  GPUs listed: {', '.join(uuid for uuid, _ in facts.gpus) or 'none'}",
            f"  CUDA_VISIBLE_DEVICES: {facts.visible or '(empty)'}",
            f"  Devices opened: {', '.join(opened) or 'none'} of {len(facts.devices)}",
        ]
    wrong = _named(found.problems, other.problems) + _named(found.doubts, other.doubts)
    lines += [f"  {each}" for each in wrong]
    return "\n".join([*lines, f"Verdict: {'FAIL' if wrong else 'PASS'}"])


def _named(first: list[str], second: list[str]) -> list[str]:
    return [f"with a GPU: {text}" for text in first] + [f"without a GPU: {text}" for text in second]


CHECK = Check(
    name="slinky-slurm-gpu-access",
    phase=CONFORMANCE,
    summary="a Slinky Slurm job sees the GPU it asked for and no others",
    run=run,
    timeout="5m",
    details=f"""\
Runs two jobs from a ready login pod: one with `--gpus=1`, then one without on the same Slurm node. Each
reports the GPUs that nvidia-smi lists and what opening each `/dev/nvidiaN` for reading gave. Listing
devices proves nothing, because cgroups leave them visible.

- Passes when the first lists one GPU without MIG and can open exactly one device while every other is
  refused (EPERM), and the second lists and opens none.
- Fails otherwise. Another error than EPERM, a probe without an end and a full queue could not tell. A
  NodeSet without GPUs fails (SERVICE_UNAVAILABLE) when the recipe's criteria are complete.
- Skips when the recipe does not declare `{slurm.COMPONENT}`, on service kind, when all NodeSet pods are
  on nodes that KWOK plays, and without GPUs when a criterion is open.
""",
    reads=("loginsets, nodesets and pods of slinky-slurm", "nodes"),
    writes=("two short jobs in Slurm, by exec in a login pod",),
    capabilities=(slurm.COMPONENT,),
)
