"""slinky-slurm-health: Slurm answers, has room, runs a job, gives it a GPU, and records it where it should.

Everything is asked from a ready login pod, as a user would. Source: validators spec 6.2, 11.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import Any, Final

from aicr.checks.conformance import slurm
from aicr.checks.conformance.hpa import ran_out
from aicr.checks.conformance.slurm import Login, Ran
from aicr.checks.sdk import CONFORMANCE, Check, Context, failed
from aicr.errors import INTERNAL, AicrError, invalid

PING: Final = ("scontrol", "ping")
ROOM: Final = ("/bin/sh", "-c", "sinfo -h -Ne -t idle,mix | grep -q .")
HOSTNAME: Final = ("srun", "--immediate=5", "--time=0:03", "hostname")
GRES: Final = ("sinfo", "-h", "-o", "%G")
GPU_JOB: Final = ("srun", "--immediate=5", "--time=0:03", "--gpus=1", "nvidia-smi", "-L")
BATCH: Final = ("sbatch", "--parsable", "--output=/dev/null", "--wrap=true")
#: States of a job that will not complete any more.
LOST: Final = frozenset(
    {
        "BOOT_FAIL",
        "CANCELLED",
        "DEADLINE",
        "FAILED",
        "NODE_FAIL",
        "OUT_OF_MEMORY",
        "PREEMPTED",
        "REVOKED",
        "TIMEOUT",
    }
)


async def run(context: Context) -> None:
    """Ask, run, and look the job up."""
    ref = context.component(slurm.COMPONENT)
    accounting = ref is not None and accounting_enabled(ref)
    site = await slurm.find_site(context)
    context.out(
        f"LoginSets: {len(site.login_sets)}, NodeSets: {len(site.node_sets)}, "
        f"NodeSet pods: {sum(map(slurm.is_ready, site.node_pods))}/{len(site.node_pods)} ready"
    )
    login = await slurm.find_login(context, site)
    ping = await slurm.execute(context, login, PING)
    context.artifact("Slurm controller", ping.stdout or ping.stderr, " ".join(PING))
    if ping.status != 0 or "is UP" not in ping.stdout:
        raise failed(
            f"the Slurm controller does not answer: {ping.words}",
            hint=f"kubectl get pods -n {site.namespace}",
        )
    room = await slurm.execute(context, login, ROOM)
    if room.status != 0:
        raise failed(
            f"no Slurm node is idle or mixed: {room.words}",
            hint="sinfo -R says why nodes are down or drained",
        )
    context.out("Slurm nodes with room: yes")
    await _job(context, login, HOSTNAME, "a job that asks for nothing")
    if await _has_gpus(context, login):
        listed = await _job(context, login, GPU_JOB, "a job that asks for a GPU")
        if "GPU 0:" not in listed.stdout:
            raise failed(f"a job that asked for a GPU lists none: {listed.words}")
    else:
        context.out("Slurm nodes with GPUs: none")
    if accounting:
        await _accounting(context, login)
    else:
        context.out("Accounting: not switched on by the recipe")


async def _job(context: Context, login: Login, command: tuple[str, ...], what: str) -> Ran:
    ran = await slurm.execute(context, login, command)
    if ran.status != 0:
        raise slurm.job_error(what, ran)
    context.artifact(f"Slurm: {what}", ran.stdout, " ".join(command))
    return ran


async def _has_gpus(context: Context, login: Login) -> bool:
    ran = await slurm.execute(context, login, GRES)
    if ran.status != 0:
        raise AicrError(INTERNAL, f"cannot tell what resources Slurm nodes have: {ran.words}")
    return has_gpus(ran.stdout)


async def _accounting(context: Context, login: Login) -> None:
    """A batch job appears in the accounting records as completed."""
    submitted = await slurm.execute(context, login, BATCH)
    if submitted.status != 0:
        raise slurm.job_error("submitting a batch job", submitted)
    job = job_id(submitted.stdout)
    ended = False
    try:
        ended = await _recorded(context, login, job)
    finally:
        if not ended:
            await _cancel(context, login, job)
    context.out(f"Accounting: job {job} is recorded as COMPLETED 0:0")


async def _recorded(context: Context, login: Login, job: str) -> bool:
    times = context.timeouts
    seconds = context.timeout(times.slurm_accounting_record)
    end = context.clock.now() + seconds
    command = ("sacct", "-n", "-P", "-X", "-j", job, "-o", "JobID,State,ExitCode")
    while True:
        ran = await slurm.execute(context, login, command)
        state, code = record_of(ran.stdout, job)
        if (state, code) == ("COMPLETED", "0:0"):
            return True
        if state in LOST or (state == "COMPLETED" and code != "0:0"):
            raise failed(f"batch job {job} ended as {state} {code}")
        if context.clock.now() >= end:
            last = f"{state} {code}" if state else ran.words if ran.status else "no record"
            raise ran_out(
                f"batch job {job} was not recorded as completed within {seconds:g} s: {last}",
                times.slurm_accounting_record - seconds,
                hint="sacctmgr show stats, and the log of slurmdbd, say more",
            )
        await context.clock.sleep(context.timeout(times.slurm_accounting_poll))


async def _cancel(context: Context, login: Login, job: str) -> None:
    """Take the batch job back, in its own time; what cannot be taken back is named."""
    try:
        async with asyncio.timeout(context.timeouts.cleanup):
            result = await context.cluster.exec(
                login.pod, ("scancel", job), namespace=login.namespace, container=login.container
            )
    except (AicrError, TimeoutError) as error:
        context.log.warning("batch job %s may be left (%s); remove it: scancel %s", job, error, job)
        return
    if result.exit_code != 0:
        context.log.warning("batch job %s may be left; remove it with: scancel %s", job, job)


def accounting_enabled(ref: Mapping[str, Any]) -> bool:
    """Whether the recipe switches accounting on.

    Raises:
        AicrError: INVALID_REQUEST when it says something that is neither true nor false.
    """
    accounting = (ref.get("overrides") or {}).get("accounting")
    if accounting is None:
        return False
    if not isinstance(accounting, Mapping):
        raise invalid(f"{slurm.COMPONENT}: accounting is no map")
    enabled = accounting.get("enabled", False)
    if not isinstance(enabled, bool):
        raise invalid(
            f'{slurm.COMPONENT}: accounting.enabled is "{enabled}"', hint="use true or false"
        )
    return enabled


def has_gpus(text: str) -> bool:
    """Whether the GRES column of sinfo names a GPU."""
    return any(
        entry.strip().partition(":")[0] == "gpu"
        for line in text.splitlines()
        for entry in line.split(",")
    )


def job_id(text: str) -> str:
    """The id in what sbatch printed, ``42``, ``42;cluster`` or a sentence that ends with it.

    Raises:
        AicrError: INTERNAL when there is none.
    """
    match = re.search(r"^(?:Submitted batch job )?([0-9]+)(?:;|\s|$)", text.strip())
    if match is None:
        raise AicrError(INTERNAL, f"sbatch did not say which job it made: {text.strip()[:100]!r}")
    return match[1]


def record_of(text: str, job: str) -> tuple[str, str]:
    """State and exit code that sacct has for a job; empty while it has no record."""
    for line in text.splitlines():
        fields = line.strip().split("|")
        if len(fields) == 3 and fields[0] == job:
            # "CANCELLED by 1000": the first word is the state.
            return fields[1].partition(" ")[0], fields[2]
    return "", ""


CHECK = Check(
    name="slinky-slurm-health",
    phase=CONFORMANCE,
    summary="Slinky Slurm answers, schedules and, if accounting is on, records jobs",
    run=run,
    timeout="8m",
    details=f"""\
Looks at LoginSets and NodeSets (`{slurm.API}`) in the namespace of `{slurm.COMPONENT}`, then runs in a
ready login pod: `scontrol ping`, `{ROOM[2]}`, a job `hostname`, and
where Slurm has GPUs a job `nvidia-smi -L` with `--gpus=1`; jobs may wait 5 s. With
`accounting.enabled: true` in the recipe it submits `sbatch --wrap=true` and asks `sacct` every 5 s for up
to 2 m.

- Passes when all of it works, and the batch job is recorded as COMPLETED 0:0.
- Fails when a set, every NodeSet pod or a ready login pod is absent, or a command fails. A job for which
  there was no room is SERVICE_UNAVAILABLE.
- Skips when the recipe does not declare `{slurm.COMPONENT}`, or all NodeSet pods are on nodes that KWOK
  plays.
""",
    reads=("loginsets, nodesets and pods of slinky-slurm", "nodes"),
    writes=("short jobs in Slurm, by exec in a login pod",),
    capabilities=(slurm.COMPONENT,),
)
