"""The DRA kubelet plugin: its one DaemonSet runs ready on every node where it should.

Source: validators spec 6.1 step 4.
"""

from __future__ import annotations

from typing import Final

from aicr.checks.deployment.stable import final
from aicr.checks.sdk import Context, failed
from aicr.checks.sdk.resources import state
from aicr.errors import CONFLICT, NOT_FOUND
from aicr.kube import kinds

COMPONENT: Final = "nvidia-dra-driver-gpu"
#: The chart puts its release name before this.
SUFFIX: Final = "-kubelet-plugin"


async def sample(context: Context, namespace: str) -> None:
    """One look.

    Raises:
        AicrError: NOT_FOUND without a DaemonSet, CONFLICT (final) with several, INTERNAL when it is not
            ready everywhere or wanted nowhere.
    """
    found = [
        each
        for each in await context.cluster.list(kinds.DAEMON_SET, namespace=namespace)
        if each["metadata"]["name"].endswith(SUFFIX)
    ]
    names = ", ".join(sorted(each["metadata"]["name"] for each in found))
    if not found:
        raise failed(
            f"no DaemonSet *{SUFFIX} in namespace {namespace}",
            code=NOT_FOUND,
            hint=f"look at the installation of {COMPONENT}",
        )
    if len(found) > 1:
        raise final(
            failed(
                f"{len(found)} DaemonSets *{SUFFIX} in namespace {namespace}: {names}",
                code=CONFLICT,
                hint="two releases of the driver fight over the same GPUs; remove one",
            )
        )
    ready, words = state("DaemonSet", found[0])
    if not ready:
        raise failed(f"DaemonSet {namespace}/{names} is not ready: {words}")
    if not (found[0].get("status") or {}).get("desiredNumberScheduled"):
        raise failed(
            f"DaemonSet {namespace}/{names} is wanted on no node",
            hint="its node selector matches no node; are the GPU nodes labelled?",
        )
