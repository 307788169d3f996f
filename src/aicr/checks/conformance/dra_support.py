"""dra-support: Dynamic Resource Allocation works, for GPUs where they are claimed and for IMEX channels
where nodes have them.

Controller, kubelet plugin and slices must be there; what hands out GPUs must be what the recipe says.
Then two behaviours, each where it applies: a channel of a ComputeDomain (see `imex`), and a GPU by claim
(see `gpu_pods`). Both share one namespace of the run, and what stays of it turns a pass into a failure.
Source: validators spec 6.2; requirements V-231 to V-247; decisions 64, 66.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from aicr.checks.conformance import gpu_pods, imex
from aicr.checks.conformance.required import home, listed, number, required, unread
from aicr.checks.conformance.secure_accelerator_access import inspected
from aicr.checks.sdk import (
    CONFORMANCE,
    Capability,
    Check,
    Context,
    allocation,
    declares,
    failed,
    require,
    require_list,
)
from aicr.checks.sdk.cluster_reads import probe, probe_list, resource_slices
from aicr.checks.sdk.nodes import is_cordoned, is_ready
from aicr.checks.sdk.timeouts import Timeouts
from aicr.errors import NOT_FOUND, SERVICE_UNAVAILABLE, AicrError
from aicr.kube import kinds

COMPONENT: Final = "nvidia-dra-driver-gpu"
OPENSHIFT: Final = "nvidia-dra-driver-gpu-ocp"
NAMESPACE: Final = "nvidia-dra-driver"
CONTROLLER: Final = "nvidia-dra-driver-gpu-controller"
PLUGIN: Final = "nvidia-dra-driver-gpu-kubelet-plugin"
#: Seconds for the tests when nobody set a budget.
FALLBACK: Final = 210.0
_VENDOR: Final = ".nvidia.com"

Document = Mapping[str, Any]


async def run(context: Context) -> None:
    """Is it here, is it whole, is it what the recipe says, does it work."""
    component, namespace = home(context, NAMESPACE, COMPONENT, OPENSHIFT)
    capability = Capability(component, f"a DRA driver in namespace {namespace}")
    if not declares(context, component):
        require(context, capability, None, await _installed(context, namespace, capability))
    context = gpu_pods.budgeted(context, FALLBACK)
    version, slices = await _served(context)
    context.out(f"Served: resource.k8s.io/{version}")
    await _parts(context, namespace)
    facts = await inspected(context)
    drivers = usable_drivers(slices, await listed(context, kinds.NODE))
    if not drivers:
        raise failed(
            f"no ResourceSlice of a driver *{_VENDOR} is usable",
            hint="kubectl get resourceslices; a slice counts in a whole pool, on a Ready node that is "
            "not cordoned, with a device that nothing taints",
        )
    for driver, count in drivers.items():
        context.out(f"  {driver}: {count} usable device(s)")
    policy = allocation.policy_of(context)
    for warning in allocation.verify(policy, facts):
        context.log.warning("%s", warning)
        context.out(f"Warning: {warning}")
    context.out(f"Policy: {policy} ({facts.in_words()})")
    full_gpu = facts.dra_usable and policy != allocation.DEVICE_PLUGIN
    async with gpu_pods.gpu_namespace(context) as mine:
        channels = await imex.subtest(context, mine.name, version)
        if full_gpu:
            nodes = sorted(facts.dra_node_devices)
            await gpu_pods.isolation(context, mine.name, allocation.DRA_CLAIM, nodes, version)
        else:
            context.out("Full GPUs by claim: not applicable, GPUs are not handed out by DRA")
    tested = [
        *(["IMEX channels"] if channels else []),
        *(["a full GPU by claim"] if full_gpu else []),
    ]
    context.out(f"DRA works; tested by use: {', '.join(tested) or 'nothing'}")


async def _installed(context: Context, namespace: str, capability: Capability) -> bool:
    """Whether a driver is there that no recipe declares; raises what says "could not look"."""
    pods, error = await probe_list(context, kinds.POD, namespace)
    require_list(error, capability)
    found = bool(pods)
    for kind, name in ((kinds.DEPLOYMENT, CONTROLLER), (kinds.DAEMON_SET, PLUGIN)):
        document, error = await probe(context, kind, name, namespace)
        if error is not None and error.code != NOT_FOUND:
            require(context, capability, error, False)
        found = found or document is not None
    return found


async def _served(context: Context) -> tuple[str, list[dict[str, Any]]]:
    """The served version, and all ResourceSlices."""
    try:
        version, slices = await resource_slices(context)
    except AicrError as error:
        raise unread("ResourceSlices", error) from error
    if not version:
        raise failed(
            "the cluster serves no version of resource.k8s.io that DRA needs",
            code=SERVICE_UNAVAILABLE,
            hint="DRA needs Kubernetes 1.32 or later with the feature on",
        )
    return version, slices


async def _parts(context: Context, namespace: str) -> None:
    """Controller and kubelet plugin, at least one of each; a verdict says which is missing."""
    parts = (
        (kinds.DEPLOYMENT, CONTROLLER, "availableReplicas", "available"),
        (kinds.DAEMON_SET, PLUGIN, "numberReady", "ready"),
    )
    for kind, name, key, word in parts:
        document = await required(context, kind, name, namespace)
        count = number(document, key)
        context.out(f"{kind.kind} {namespace}/{name}: {count} {word}")
        if count < 1:
            raise failed(
                f"{kind.kind} {namespace}/{name} has none {word}",
                hint=f"kubectl describe {kind.singular} -n {namespace} {name}",
            )


def usable_drivers(slices: Iterable[Document], nodes: Iterable[Document]) -> dict[str, int]:
    """Driver of NVIDIA → devices that a claim could get now."""
    fit = {
        str(node["metadata"]["name"]) for node in nodes if is_ready(node) and not is_cordoned(node)
    }
    found: dict[str, int] = {}
    ours = [
        each for each in slices if str((each.get("spec") or {}).get("driver")).endswith(_VENDOR)
    ]
    for each in allocation.current(ours):
        node = each["spec"].get("nodeName")
        count = sum(not allocation.repels(device) for device in allocation.devices(each))
        if count and (not node or node in fit):
            driver = str(each["spec"]["driver"])
            found[driver] = found.get(driver, 0) + count
    return dict(sorted(found.items()))


CHECK = Check(
    name="dra-support",
    phase=CONFORMANCE,
    summary="DRA works: driver, slices, policy, a GPU by claim and an IMEX channel where they apply",
    run=run,
    timeout="5m",
    details=f"""\
Looks at Deployment `{CONTROLLER}`,
DaemonSet `{PLUGIN}` and ResourceSlices of `*{_VENDOR}`,
and holds the recipe's GPU allocation policy against nodes and slices. Where a Ready schedulable node has
label `{imex.CLIQUE}`, a pod takes an IMEX channel of a ComputeDomain; if all channels are held,
their holders are the evidence. Where full GPUs are claimable and the policy is not the
device plugin, a pod claims one GPU. {Timeouts().reserve:.0f} s of the budget are kept for cleaning up.

- Passes when all that applies works and the namespace of the run is gone afterwards.
- Fails when a part is absent or not ready, no slice is usable, the policy contradicts the cluster
  (INVALID_REQUEST), a node with a clique has no usable slice, a pod sees other devices than its own, or
  the namespace stays. Inconclusive holders and a budget that is too short (TIMEOUT) fail as well.
- Skips when no DRA driver is installed and the recipe does not declare `{COMPONENT}`.
""",
    reads=(
        "deployments, daemonsets, pods of the driver",
        "nodes",
        "resourceslices, resourceclaims, deviceclasses",
    ),
    writes=("a namespace of the run with a ComputeDomain, a claim template and two pods",),
    capabilities=(COMPONENT,),
)
