"""secure-accelerator-access: a container sees the one GPU that it was given, and nobody else sees any.

By which mechanism GPUs are handed out is the recipe's policy, held against the cluster; on a standalone
run it is what is usable, DRA first. Under Slinky Slurm every GPU of a node belongs to slurmd's pod and
Slurm isolates jobs, so a pod of ours could never get one, or would attest the wrong path; there
slinky-slurm-gpu-access is the check. Source: validators spec 6.2; requirements V-242, V-247, V-248.
"""

from __future__ import annotations

from typing import Final

from aicr.checks.conformance import gpu_pods
from aicr.checks.conformance.required import unread
from aicr.checks.sdk import CONFORMANCE, Check, Context, Skip, allocation, declares, failed
from aicr.checks.sdk.cluster_reads import served_dra_version
from aicr.checks.sdk.outcome import NO_SCHEDULABLE_GPU_NODES
from aicr.errors import INVALID_REQUEST, SERVICE_UNAVAILABLE, AicrError

SLURM: Final = "slinky-slurm"
#: Seconds for the test when nobody set a budget.
FALLBACK: Final = 510.0


async def run(context: Context) -> None:
    """Choose the mechanism, then run the pod with a GPU and the pod without."""
    if declares(context, SLURM):
        raise Skip(
            f"the recipe has {SLURM}: its pods hold every GPU and Slurm isolates jobs; "
            "slinky-slurm-gpu-access verifies that path"
        )
    context = gpu_pods.budgeted(context, FALLBACK)
    facts = await inspected(context)
    if facts.simulated and not (facts.dra_usable or facts.device_plugin_usable):
        raise Skip("the GPU nodes are simulated: nothing runs there", NO_SCHEDULABLE_GPU_NODES)
    policy = allocation.policy_of(context)
    for warning in allocation.verify(policy, facts):
        context.log.warning("%s", warning)
        context.out(f"Warning: {warning}")
    mechanism = allocation.select(policy, facts)
    context.out(f"Policy: {policy}; mechanism: {mechanism or 'none'} ({facts.in_words()})")
    if not mechanism:
        raise failed(
            "no GPU can be allocated: neither DRA nor a device plugin has a usable GPU on a Ready node "
            "that is not cordoned",
            code=SERVICE_UNAVAILABLE,
            hint="look at the driver, the device plugin and cordons of the GPU nodes",
        )
    by_claim = mechanism == allocation.DRA_CLAIM
    nodes = sorted(facts.dra_node_devices if by_claim else facts.device_plugin_nodes)
    version = await served_dra_version(context) if by_claim else ""
    async with gpu_pods.gpu_namespace(context) as mine:
        node = await gpu_pods.isolation(context, mine.name, mechanism, nodes, version)
        await gpu_pods.denial(context, mine.name, node)
    context.out(f"One GPU is seen by the container that has it, and by nobody else on {node}")


async def inspected(context: Context) -> allocation.Facts:
    """The facts of `allocation.inspect`; INTERNAL when they cannot be read."""
    try:
        return await allocation.inspect(context)
    except AicrError as error:
        if error.code == INVALID_REQUEST:
            raise
        raise unread("nodes and ResourceSlices", error) from error


CHECK = Check(
    name="secure-accelerator-access",
    phase=CONFORMANCE,
    summary="a container sees the GPU that it was given, and no other container sees one",
    run=run,
    timeout="10m",
    details=f"""\
Holds the recipe's GPU allocation policy against nodes and ResourceSlices, then runs two pods of
`{gpu_pods.IMAGE}` in a namespace of the run: one with a container that gets one GPU and a
container that gets none, and one on the same node that gets none.

- Passes when the first container lists exactly one GPU and the others see no `/dev/nvidia*`.
- Fails when one sees more, the policy contradicts the cluster (INVALID_REQUEST), no GPU can be allocated
  (SERVICE_UNAVAILABLE), a pod cannot run, or the namespace cannot be removed afterwards.
- Skips when the recipe has `{SLURM}`, and when every GPU node is simulated (`no-schedulable-gpu-nodes`).
""",
    reads=("nodes", "resourceslices, deviceclasses"),
    writes=("a namespace of the run with two pods and a ResourceClaimTemplate",),
)
