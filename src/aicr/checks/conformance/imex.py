"""IMEX channels: can a pod on a multi-node NVLink node be given one.

```
survey     nodes, slices, claims → Survey      who could be asked, whose channel is taken
holders    Survey, claims, pods → evidence     claims that prove allocation and preparation
probe      runs a pod with a channel of its own ComputeDomain
```

The driver serves one channel claim a node, so a node whose channel is held cannot be probed. When all are
held, the holders are the evidence: a claim that is allocated, reserved by a pod, and whose pod runs on
that node went all the way. No node with a clique: nothing to test, whatever slices there are, because
other nodes publish them too. `survey` and `holders` are pure.
Source: validators spec 6.2 dra-support; requirements V-232 to V-241.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from aicr.checks.conformance.gpu_pods import on_nodes
from aicr.checks.conformance.required import listed, unread
from aicr.checks.sdk import Context, allocation, failed
from aicr.checks.sdk.cluster_reads import DRA_GROUP, appears, probe, probe_list
from aicr.checks.sdk.nodes import is_cordoned, is_ready, labels_of
from aicr.checks.sdk.pods import PodLifecycle, placed
from aicr.checks.sdk.removal import remove
from aicr.errors import INTERNAL, NOT_FOUND, AicrError
from aicr.kube import kinds

DRIVER: Final = "compute-domain.nvidia.com"
CLIQUE: Final = "nvidia.com/gpu.clique"
COMPUTE_DOMAIN: Final = "resource.nvidia.com/v1beta1/ComputeDomain"
NAME: Final = "imex-probe"
TEMPLATE: Final = "imex-channel"
IMAGE: Final = "busybox:1.37"
_SCRIPT: Final = (
    "for d in /dev/nvidia-caps-imex-channels/*; do "
    '[ -e "$d" ] && echo "CHANNEL=${d##*/}"; done; echo DONE=1'
)
_CHANNEL: Final = re.compile(r"channel\d+")

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Survey:
    """Where a channel could be given out.

    Attributes:
        clique: Ready schedulable nodes with a clique.
        candidates: those of them with a usable slice of the driver.
        occupied: candidate → ``namespace/name`` of the claims that hold its channel.
    """

    clique: tuple[str, ...] = ()
    candidates: tuple[str, ...] = ()
    occupied: Mapping[str, tuple[str, ...]] | None = None

    @property
    def free(self) -> list[str]:
        """Candidates whose channel nobody holds."""
        return [name for name in self.candidates if name not in (self.occupied or {})]


def survey(
    nodes: Iterable[Mapping[str, Any]],
    slices: Iterable[Mapping[str, Any]],
    claims: Iterable[Mapping[str, Any]],
) -> Survey:
    """What nodes, ResourceSlices and ResourceClaims of all namespaces say."""
    clique = sorted(
        str(node["metadata"]["name"])
        for node in nodes
        if is_ready(node) and not is_cordoned(node) and labels_of(node).get(CLIQUE)
    )
    ours = [each for each in slices if (each.get("spec") or {}).get("driver") == DRIVER]
    whole = allocation.current(ours)
    usable = {
        str(each["spec"].get("nodeName") or "")
        for each in whole
        if any(
            _is_channel(device) and not allocation.repels(device)
            for device in allocation.devices(each)
        )
    }
    candidates = [name for name in clique if name in usable]
    places = {
        (str((each["spec"].get("pool") or {}).get("name")), str(device["name"])): str(
            each["spec"].get("nodeName") or ""
        )
        for each in ours
        for device in allocation.devices(each)
        if _is_channel(device)
    }
    occupied: dict[str, list[str]] = {}
    for claim in claims:
        for given in results(claim):
            node = places.get((str(given.get("pool")), str(given.get("device"))), "")
            if given.get("driver") == DRIVER and node in candidates:
                occupied.setdefault(node, []).append(_path(claim))
    return Survey(
        tuple(clique),
        tuple(candidates),
        {node: tuple(sorted(set(held))) for node, held in sorted(occupied.items())},
    )


def holders(
    found: Survey, claims: Iterable[Mapping[str, Any]], pods: Iterable[Mapping[str, Any]]
) -> list[str]:
    """Claims that prove allocation and preparation, a line each.

    *pods* are those that reserve the claims; one counts when it runs on the node of the channel.
    """
    running = {
        (str(pod["metadata"].get("namespace")), str(pod["metadata"].get("uid"))): pod
        for pod in pods
        if (pod.get("status") or {}).get("phase") == "Running"
    }
    by_path = {_path(claim): claim for claim in claims}
    lines = []
    for node, paths in (found.occupied or {}).items():
        for path in paths:
            claim = by_path[path]
            for reference in (claim.get("status") or {}).get("reservedFor") or []:
                place = (str(claim["metadata"].get("namespace")), str(reference.get("uid")))
                pod = running.get(place)
                if pod is not None and (pod.get("spec") or {}).get("nodeName") == node:
                    name = pod["metadata"]["name"]
                    lines.append(f"{node}: claim {path}, reserved by pod {name}, which runs there")
    return lines


async def subtest(context: Context, namespace: str, version: str) -> bool:
    """Test channels where the cluster has them.

    Args:
        context: of the check.
        namespace: of the run, for what the probe creates.
        version: served version of resource.k8s.io.

    Returns:
        Whether it applied.

    Raises:
        AicrError: a verdict when a node with a clique has no usable slice or a pod did not get exactly
            one channel; INTERNAL, could not tell, when all channels are held and no holder proves
            anything.
    """
    nodes = await listed(context, kinds.NODE)
    slices = await listed(context, f"{DRA_GROUP}/{version}/ResourceSlice")
    claims = await listed(context, f"{DRA_GROUP}/{version}/ResourceClaim")
    found = survey(nodes, slices, claims)
    if not found.clique:
        context.out("IMEX channels: not applicable, no Ready schedulable node has a clique")
        return False
    context.out(
        f"IMEX channels: {len(found.clique)} node(s) with a clique, {len(found.candidates)} with a "
        f"usable slice of {DRIVER}, {len(found.free)} free"
    )
    if not found.candidates:
        raise failed(
            f"node(s) {', '.join(found.clique[:5])} have a clique and no usable slice of {DRIVER}",
            hint="look at the compute-domain kubelet plugin of these nodes",
        )
    for name in sorted({*found.clique} - {*found.candidates}):
        context.out(f"  {name}: has a clique and no usable slice")
    for name, held in (found.occupied or {}).items():
        context.out(f"  {name}: its channel is held by {', '.join(held)}")
    if found.free:
        await probe_channel(context, namespace, found.free, version)
        return True
    lines = holders(found, claims, await _reserving(context, claims))
    if not lines:
        raise AicrError(
            INTERNAL,
            "inconclusive: every IMEX channel is held, and no holder shows that its channel was given "
            "to a pod that runs",
            hint="run the check again when a node with a clique is free",
        )
    context.artifact("IMEX channels, by their holders", "\n".join(lines))
    return True


async def probe_channel(
    context: Context, namespace: str, nodes: Sequence[str], version: str
) -> None:
    """Give a pod on one of *nodes* a channel of a ComputeDomain of its own; it must see exactly that."""
    domain = await _create_domain(context, namespace)
    try:
        await _wait_template(context, namespace, version)
        lifecycle = PodLifecycle(context, namespace)
        wanted = placed(pod(nodes), context, tolerations=({"operator": "Exists"},))
        await lifecycle.create(wanted)
        ended = await lifecycle.wait_succeeded(NAME, context.timeouts.dra_test_pod)
        text = await lifecycle.logs(NAME)
        node = (ended.get("spec") or {}).get("nodeName")
        context.artifact(
            f"IMEX channels seen on {node}", text, f"kubectl logs -n {namespace} {NAME}"
        )
        await _evidence(context, namespace, version)
        problem = judge(text)
        if problem:
            raise failed(problem, where=f"node {node}")
    finally:
        uid = str(domain["metadata"].get("uid") or "")
        await remove(context, COMPUTE_DOMAIN, NAME, namespace, uid)


def judge(text: str) -> str:
    """What is wrong with the channels that a pod saw, "" if it saw exactly one.

    Raises:
        AicrError: INTERNAL when the report has no end.
    """
    lines = text.splitlines()
    if "DONE=1" not in lines:
        raise AicrError(INTERNAL, "the report of the IMEX probe is cut short")
    seen = [line[8:] for line in lines if line.startswith("CHANNEL=")]
    channels = [name for name in seen if _CHANNEL.fullmatch(name)]
    if len(channels) == len(seen) == 1:
        return ""
    return f"the pod sees {len(seen)} IMEX channel(s), not one: {', '.join(seen) or 'none'}"


def compute_domain() -> Document:
    """A ComputeDomain of no fixed size whose claims get one channel."""
    api_version, _, kind = COMPUTE_DOMAIN.rpartition("/")
    channel = {"resourceClaimTemplate": {"name": TEMPLATE}, "allocationMode": "Single"}
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": NAME},
        "spec": {"numNodes": 0, "channel": channel},
    }


def pod(nodes: Sequence[str]) -> Document:
    """A pod on one of *nodes* that takes a channel and lists what it sees."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": NAME},
        "spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
            "automountServiceAccountToken": False,
            "affinity": on_nodes(nodes),
            "containers": [
                {
                    "name": "probe",
                    "image": IMAGE,
                    "command": ["sh", "-c", _SCRIPT],
                    "resources": {"claims": [{"name": "channel"}]},
                }
            ],
            "resourceClaims": [{"name": "channel", "resourceClaimTemplateName": TEMPLATE}],
        },
    }


def results(claim: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The devices that a claim has been given."""
    allocated = (claim.get("status") or {}).get("allocation") or {}
    return list((allocated.get("devices") or {}).get("results") or [])


async def _create_domain(context: Context, namespace: str) -> Document:
    try:
        return await context.cluster.create(compute_domain(), namespace=namespace)
    except AicrError as error:
        if error.code == NOT_FOUND:
            raise failed(
                f"nodes have cliques, and the cluster does not serve {COMPUTE_DOMAIN}",
                code=NOT_FOUND,
                hint="install the CRDs of nvidia-dra-driver-gpu",
            ) from error
        raise


async def _wait_template(context: Context, namespace: str, version: str) -> None:
    """Wait for the claim template that the driver makes for the domain."""
    kind = f"{DRA_GROUP}/{version}/ResourceClaimTemplate"
    seconds = context.timeout(context.timeouts.diagnostic)
    found, error = await appears(context, kind, TEMPLATE, namespace, seconds)
    if error is not None:
        raise unread(f"ResourceClaimTemplate {TEMPLATE}", error)
    if found is None:
        raise failed(
            f"the driver made no ResourceClaimTemplate for a ComputeDomain within {seconds:g} s",
            hint="kubectl logs -n nvidia-dra-driver deployment/nvidia-dra-driver-gpu-controller",
        )


async def _evidence(context: Context, namespace: str, version: str) -> None:
    """What the claim says after the pod; it may be gone already, and decides nothing."""
    found, error = await probe_list(context, f"{DRA_GROUP}/{version}/ResourceClaim", namespace)
    if error is not None:
        context.log.info("the claim cannot be read after the pod ended: %s", error)
        return
    lines = [
        f"{claim['metadata']['name']}: {'allocated' if results(claim) else 'released'}"
        for claim in found
    ]
    context.artifact("Claim after the pod ended", "\n".join(lines) or "gone")


async def _reserving(
    context: Context, claims: Iterable[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """The pods for which claims of the driver are reserved."""
    places = {
        (str(claim["metadata"].get("namespace")), str(reference.get("name")))
        for claim in claims
        if any(given.get("driver") == DRIVER for given in results(claim))
        for reference in (claim.get("status") or {}).get("reservedFor") or []
        if reference.get("resource") == "pods"
    }
    looks = await asyncio.gather(
        *(probe(context, kinds.POD, name, namespace) for namespace, name in sorted(places))
    )
    found: list[Mapping[str, Any]] = []
    for document, error in looks:
        if document is not None:
            found.append(document)
        elif error is not None and error.code != NOT_FOUND:
            raise unread("pods that hold IMEX channels", error)
    return found


def _is_channel(device: Mapping[str, Any]) -> bool:
    """Whether a device is a channel; the driver publishes its daemons as devices too."""
    attributes = device.get("attributes") or {}
    kind = attributes.get("type") or attributes.get(f"{DRIVER}/type") or {}
    return bool(kind.get("string", "channel") == "channel")


def _path(claim: Mapping[str, Any]) -> str:
    return f"{claim['metadata'].get('namespace', '')}/{claim['metadata']['name']}"
