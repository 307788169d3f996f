"""cluster-autoscaling: with Karpenter, GPU pools grow when pods need it; elsewhere the platform's own
autoscaler is there.

With Karpenter behaviour decides. A load that asks for more GPUs than the pool has free is grown by an
autoscaler, and a node that was not there before must take a pod of it. How many GPUs a pod asks for
follows from what is free, so that a pool with idle nodes has to grow too; a pool so idle that it need not
is "could not tell". Without Karpenter, what the cloud calls its node groups is all there is to see.
Source: validators spec 6.2, 5.3, 11; decisions 64, 66.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from aicr.checks.conformance import hpa
from aicr.checks.conformance.platforms import PLATFORMS, Platform, platform_of
from aicr.checks.conformance.required import listed, required, unread
from aicr.checks.sdk import CONFORMANCE, Capability, Check, Context, Skip, failed, require_list
from aicr.checks.sdk.cluster_reads import find, probe_list
from aicr.checks.sdk.namespaces import run_namespace
from aicr.checks.sdk.nodes import GPU, allocatable, gpu_nodes, is_cordoned, is_ready, labels_of
from aicr.checks.sdk.resources import state
from aicr.errors import INTERNAL, NOT_FOUND, AicrError
from aicr.kube import kinds
from aicr.values.quantities import whole_units

KARPENTER: Final = "karpenter"
#: By which labels its Deployment is found, first that finds one.
LABELS: Final = ({"app.kubernetes.io/name": KARPENTER}, {"app": KARPENTER})
NODE_POOL: Final = "karpenter.sh/v1/NodePool"
POOL_LABEL: Final = "karpenter.sh/nodepool"
LARGEST: Final = 4
#: GPUs of the largest node that a pod can ask for.
MOST_GPUS: Final = 16
_ENDED: Final = frozenset({"Succeeded", "Failed"})
NODES: Final = Capability(KARPENTER, "nodes")
CONTROLLER: Final = Capability(KARPENTER, "Deployment of Karpenter")

Document = Mapping[str, Any]


async def run(context: Context) -> None:
    """Karpenter's pools if it is there, else the platform."""
    controller = await _karpenter(context)
    if controller is None:
        await _platform(context)
        return
    metadata = controller["metadata"]
    ready, words = state("Deployment", controller)
    context.out(f"Karpenter {metadata['namespace']}/{metadata['name']}: {words}")
    if not ready:
        raise failed(
            f"Karpenter is not ready: {words}",
            hint=f"kubectl describe deployment -n {metadata['namespace']} {metadata['name']}",
        )
    pools = gpu_pools(await _node_pools(context))
    if not pools:
        raise failed(
            f"no NodePool has {GPU} in spec.limits",
            code=NOT_FOUND,
            hint="give the GPU pools a limit, so that they can be told from others",
        )
    context.out(f"GPU NodePools: {', '.join(pools)}")
    for pool in pools:
        await _grow(context, pool)


async def _karpenter(context: Context) -> Document | None:
    for labels in LABELS:
        found, error = await probe_list(context, kinds.DEPLOYMENT, labels=labels)
        require_list(error, CONTROLLER)
        if found:
            return min(found, key=lambda each: str(each["metadata"]["namespace"]))
    if context.component(KARPENTER) is not None:
        raise failed(
            "the Deployment of Karpenter not found, although the recipe declares it",
            code=NOT_FOUND,
            hint="install karpenter, or disable it in the recipe",
        )
    return None


async def _node_pools(context: Context) -> list[dict[str, Any]]:
    try:
        return await context.cluster.list(NODE_POOL)
    except AicrError as error:
        if error.code == NOT_FOUND:
            raise failed(
                "the cluster serves no NodePool of Karpenter",
                code=NOT_FOUND,
                hint="install Karpenter's CRDs",
            ) from error
        raise unread("NodePool objects", error) from error


async def _grow(context: Context, pool: str) -> None:
    """A node that was not there before takes a pod of a load that the pool has no room for."""
    members = {POOL_LABEL: pool}
    before = await listed(context, kinds.NODE, labels=members)
    baseline = {str(node["metadata"]["name"]) for node in before}
    free = free_gpus(before, await listed(context, kinds.POD))
    gpus = gpus_a_pod(free)
    context.out(f"NodePool {pool}: {len(baseline)} node(s), {sum(free.values())} GPU(s) free")
    if not gpus:
        raise AicrError(
            INTERNAL,
            f"NodePool {pool} has room for {LARGEST} pods of {MOST_GPUS} GPUs, so it need not grow",
            hint="idle nodes are being removed; run the check again in a few minutes",
        )
    async with run_namespace(context, "cluster-auto-test") as mine:
        load = hpa.Load(mine.name, LARGEST, gpus, members, [{"operator": "Exists"}])
        await hpa.start(context, mine.name, load)
        wanted = await hpa.wait_wanted(context, mine.name, load)
        context.out(f"Autoscaler {mine.name}: wants {wanted} pods of {gpus} GPU(s)")
        have = await hpa.wait_scaled(context, mine.name, load)
        context.out(f"Deployment {mine.name}: {have} pods")
        await _wait_node(context, pool, baseline, load)


async def _wait_node(context: Context, pool: str, baseline: set[str], load: hpa.Load) -> None:
    times = context.timeouts
    seconds = context.timeout(times.karpenter_node)
    end = context.clock.now() + seconds
    while True:
        nodes = await listed(context, kinds.NODE, labels={POOL_LABEL: pool})
        new = sorted({str(node["metadata"]["name"]) for node in nodes} - baseline)
        pods = await listed(context, kinds.POD, load.name)
        where = [str((pod.get("spec") or {}).get("nodeName") or "") for pod in pods]
        on_new = sum(node in new for node in where)
        if on_new:
            context.out(
                f"NodePool {pool}: {len(new)} new node(s); {on_new} of {len(pods)} pods on them, "
                f"{where.count('')} waiting"
            )
            return
        if context.clock.now() >= end:
            raise hpa.ran_out(
                f"NodePool {pool} did not give a new node to a pod within {seconds:g} s: "
                f"{len(new)} new node(s), {where.count('')} of {len(pods)} pods waiting",
                times.karpenter_node - seconds,
                hint=f"kubectl get nodeclaims -l {POOL_LABEL}={pool}; Karpenter's log says why",
            )
        await context.clock.sleep(context.timeout(times.karpenter_poll))


async def _platform(context: Context) -> None:
    """What the cloud itself has to add nodes with."""
    nodes, error = await probe_list(context, kinds.NODE)
    require_list(error, NODES)
    platform = platform_of(nodes)
    if platform is None:
        raise Skip(
            f"Karpenter is not installed, and the nodes are of no platform that is known "
            f"({', '.join(known.prefix for known in PLATFORMS)})"
        )
    context.out(f"Karpenter: not installed; platform: {platform.name}")
    proof = node_groups(platform, nodes) if platform.label else ""
    proof = proof or await _autoscaler(context, platform)
    if not proof:
        raise failed(
            f"{platform.name}: nothing that adds nodes found",
            code=NOT_FOUND,
            hint=f"looked for {platform.looked_for}; or install Karpenter",
        )
    context.out(f"{platform.name}: {proof}")


async def _autoscaler(context: Context, platform: Platform) -> str:
    if platform.status_map:
        namespace, name = platform.status_map
        if await find(context, kinds.CONFIG_MAP, name, namespace) is not None:
            return f"ConfigMap {namespace}/{name}"
    if not platform.deployment:
        return ""
    for labels in ({"app.kubernetes.io/name": platform.deployment}, {"app": platform.deployment}):
        for found in await listed(context, kinds.DEPLOYMENT, labels=labels):
            return await _ready(context, found)
    return ""


async def _ready(context: Context, found: Document) -> str:
    namespace, name = found["metadata"]["namespace"], found["metadata"]["name"]
    ready, words = state("Deployment", await required(context, kinds.DEPLOYMENT, name, namespace))
    if not ready:
        raise failed(
            f"Deployment {namespace}/{name} is not ready: {words}",
            hint=f"kubectl describe deployment -n {namespace} {name}",
        )
    return f"Deployment {namespace}/{name}: {words}"


def gpu_pools(pools: Iterable[Document]) -> list[str]:
    """Names of the NodePools that limit GPUs, sorted."""
    return sorted(
        str(pool["metadata"]["name"])
        for pool in pools
        if ((pool.get("spec") or {}).get("limits") or {}).get(GPU) is not None
    )


def node_groups(platform: Platform, nodes: Sequence[Document]) -> str:
    """In a few words, how many nodes belong to a group of the platform; "" if none does.

    GPU nodes are what counts where there are any.
    """
    looked_at = [each.document for each in gpu_nodes(nodes)] or list(nodes)
    groups = [
        group for node in looked_at if (group := labels_of(node).get(platform.label)) is not None
    ]
    if not groups:
        return ""
    return (
        f"{len(groups)}/{len(looked_at)} node(s) in {len(set(groups))} group(s) ({platform.label})"
    )


def free_gpus(nodes: Iterable[Document], pods: Iterable[Document]) -> dict[str, int]:
    """Node → GPUs that a new pod could get; nodes that take no pods have none.

    Raises:
        AicrError: INVALID_REQUEST for a quantity that is no whole number.
    """
    left = {
        str(node["metadata"]["name"]): allocatable(node, GPU)
        for node in nodes
        if is_ready(node) and not is_cordoned(node)
    }
    for pod in pods:
        node = str((pod.get("spec") or {}).get("nodeName") or "")
        if node in left and (pod.get("status") or {}).get("phase") not in _ENDED:
            left[node] -= sum(_limit(each) for each in (pod["spec"].get("containers") or []))
    return {name: max(0, count) for name, count in left.items()}


def gpus_a_pod(free: Mapping[str, int]) -> int:
    """The least GPUs a pod with which `LARGEST` pods do not fit; 0 when they always do."""
    for gpus in range(1, MOST_GPUS + 1):
        if sum(count // gpus for count in free.values()) < LARGEST:
            return gpus
    return 0


def _limit(container: Document) -> int:
    amount = ((container.get("resources") or {}).get("limits") or {}).get(GPU)
    return 0 if amount is None else whole_units(amount, GPU)


CHECK = Check(
    name="cluster-autoscaling",
    phase=CONFORMANCE,
    summary="the cluster adds GPU nodes on demand",
    run=run,
    timeout="10m",
    details=f"""\
Looks for Karpenter's Deployment in all namespaces and for NodePools with `{GPU}` in their limits. For
each it grows a load of up to {LARGEST} pods, with an autoscaler on the GPUs' power, in a namespace of
the run; each pod asks for as many GPUs as it takes for the load not to fit.

- Passes when, for each GPU NodePool, a node that was not there before takes a pod within 3 m.
- Fails when Karpenter is not ready, (NOT_FOUND) when no NodePool limits GPUs, (TIMEOUT) when no node
  comes.
- Without Karpenter the platform decides, by the nodes' providerID: EKS needs a node group or
  cluster-autoscaler, AKS an agent pool, GKE the status of its autoscaler; NOT_FOUND without. A list of
  nodes that fails, fails.
- Skips when there is no Karpenter and the platform is another one.
""",
    reads=("deployments", "nodes", "pods", "nodepools", "configmaps in kube-system"),
    writes=(
        "for each GPU NodePool a namespace of the run with a Deployment and a HorizontalPodAutoscaler",
    ),
    capabilities=(KARPENTER,),
)
