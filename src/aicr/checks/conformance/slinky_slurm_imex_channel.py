"""slinky-slurm-imex-channel: two Slurm jobs at the same time have IMEX channels of their own.

The pods of the nodes hold all channels of their domain; Slurm gives each job one. Two jobs that got the
same could read each other's memory. They run side by side, each reports which channel it can open and
when it was there, and only jobs whose times overlap prove anything. Source: validators spec 6.2 (the
original's body is not known; its intent is).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, Final

from aicr.checks.conformance import slurm, slurm_probe
from aicr.checks.conformance.slurm import Login, Site
from aicr.checks.conformance.slurm_probe import ChannelFacts
from aicr.checks.sdk import CONFORMANCE, Check, Context, Skip, failed
from aicr.checks.sdk.nodes import labels_of
from aicr.errors import INTERNAL, NOT_FOUND, AicrError

CLIQUE: Final = "nvidia.com/gpu.clique"
JOB: Final = (
    *("srun", "--immediate=30", "--time=1:00", "--nodes=1", "--ntasks=1"),
    *("--cpus-per-task=1", "--mem=128M"),
)
LABEL: Final = "Slinky Slurm IMEX channels"

Document = Mapping[str, Any]


async def run(context: Context) -> None:
    """Two jobs side by side."""
    site = await slurm.find_site(context)
    pods = in_domains(site)
    if not pods:
        raise Skip(f"no NodeSet pod is on a node of an NVLink domain ({CLIQUE})")
    context.out(f"NodeSet pods in NVLink domains: {len(pods)}/{len(site.node_pods)}")
    bare = without_channels(pods)
    if bare:
        raise failed(
            f"NodeSet pods hold no IMEX channels: {', '.join(bare)}",
            code=NOT_FOUND,
            hint="nodesets.slinky.podSpec.resourceClaims names the template of the ComputeDomain",
        )
    login = await slurm.find_login(context, site)
    # Half of the window in which two things count as together, so that a slow start is made up for.
    hold = max(1, int(context.timeouts.co_schedule_window / 2))
    first, second = await _both(context, login, hold)
    found = slurm_probe.apart(first, second)
    wrong = found.problems + found.doubts
    lines = [
        f"Job on {facts.node}: {', '.join(facts.usable) or 'no channel'} of {len(facts.channels)} listed"
        for facts in (first, second)
    ]
    lines += [f"  {each}" for each in wrong]
    context.artifact(LABEL, "\n".join([*lines, f"Verdict: {'FAIL' if wrong else 'PASS'}"]))
    if found.problems:
        raise failed(
            f"Slurm does not keep IMEX channels apart: {'; '.join(found.problems)}",
            hint="look at SwitchType=switch/nvidia_imex in slurm.conf",
        )
    if found.doubts:
        raise AicrError(INTERNAL, f"inconclusive: {'; '.join(found.doubts)}")


async def _both(context: Context, login: Login, hold: int) -> tuple[ChannelFacts, ChannelFacts]:
    """What both jobs reported; the first one's error if both have one."""
    answers = await asyncio.gather(
        *(_job(context, login, hold, word) for word in ("first", "second")), return_exceptions=True
    )
    for answer in answers:
        if isinstance(answer, BaseException):
            raise answer
    first, second = answers
    assert isinstance(first, ChannelFacts)
    assert isinstance(second, ChannelFacts)
    return first, second


async def _job(context: Context, login: Login, hold: int, word: str) -> ChannelFacts:
    command = (*JOB, "/bin/sh", "-c", slurm_probe.channel_script(hold))
    ran = await slurm.execute(context, login, command)
    if ran.status != 0:
        raise slurm.job_error(f"the {word} of two jobs", ran)
    try:
        return slurm_probe.parse_channels(ran.stdout)
    except AicrError as error:
        raise AicrError(INTERNAL, f"the {word} of two jobs gave no facts") from error


def in_domains(site: Site) -> list[Document]:
    """The NodeSet pods on nodes of an NVLink domain."""
    return [
        pod
        for pod in site.node_pods
        if (node := site.nodes.get(slurm.node_of(pod))) is not None and labels_of(node).get(CLIQUE)
    ]


def without_channels(pods: Iterable[Document]) -> list[str]:
    """Names of the pods that claim no IMEX channels."""
    return [
        str(pod["metadata"]["name"])
        for pod in pods
        if not any(
            "imex" in str(claim.get(key) or "").lower()
            for claim in pod["spec"].get("resourceClaims") or []
            for key in ("name", "resourceClaimTemplateName", "resourceClaimName")
        )
    ]


CHECK = Check(
    name="slinky-slurm-imex-channel",
    phase=CONFORMANCE,
    summary="concurrent Slinky Slurm jobs get IMEX channels of their own",
    run=run,
    timeout="5m",
    details=f"""\
Looks at the NodeSet pods on nodes labelled `{CLIQUE}` and at their resource claims, then runs two jobs
at the same time from a ready login pod. Each reports what opening every
`/dev/nvidia-caps-imex-channels/channelN` gave.

- Passes when each job can open exactly one channel, and not the same one.
- Fails when a pod claims no IMEX channels, or a job has none, several, or the other's. Jobs that did not
  overlap, and another error than EPERM, could not tell.
- Skips when the recipe does not declare `{slurm.COMPONENT}`, when all NodeSet pods are on nodes that
  KWOK plays, and when none is in an NVLink domain.
""",
    reads=("loginsets, nodesets and pods of slinky-slurm", "nodes"),
    writes=("two short jobs in Slurm, by exec in a login pod",),
    capabilities=(slurm.COMPONENT,),
)
