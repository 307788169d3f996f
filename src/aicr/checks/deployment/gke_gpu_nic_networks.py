"""gke-gpu-nic-networks: the eight GPU NIC networks of a GKE cluster exist, are ready, and are those that
the delivered training runtime names.

Three arms over the Network objects. The census counts them. Readiness asks that each is Ready, that its
parameters are, and that it and its GKENetworkParamSet point at each other and at nobody else. Wiring is
looked at only where the recipe delivers the TCPXO runtime: what the recipe recorded, what is deployed,
and what the cluster has must be the same mapping. Source: validators spec 6.1; requirements V-224, V-227.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from aicr.checks.sdk import (
    DEPLOYMENT,
    Capability,
    Check,
    Context,
    failed,
    require,
    require_list,
)
from aicr.checks.sdk.cluster_reads import find, probe_list
from aicr.errors import NOT_FOUND, invalid
from aicr.recipe.configuration import TCPXO_RUNTIME, ships_tcpxo_runtime

NETWORK: Final = "networking.gke.io/v1/Network"
PARAMETERS: Final = "networking.gke.io/v1/GKENetworkParamSet"
RUNTIME: Final = "trainer.kubeflow.org/v1alpha1/ClusterTrainingRuntime"
#: What the name of a GPU NIC's network contains.
GPU_NIC: Final = "gpu-nic"
NEEDED: Final = 8
CAPABILITY: Final = Capability("gke-nccl-tcpxo", "GPU NIC networks (networks.networking.gke.io)")
TRAINER: Final = "kubeflow-trainer"
INTERFACES: Final = "networking.gke.io/interfaces"
DEFAULT_INTERFACE: Final = "networking.gke.io/default-interface"
#: The first entry of every mapping: the pod's ordinary network.
ORDINARY: Final = {"interfaceName": "eth0", "network": "default"}
_CONDITIONS: Final = ("Ready", "ParamsReady")

Document = Mapping[str, Any]
Wiring = list[dict[str, str]]


async def run(context: Context) -> None:
    """Count, ask for readiness, compare the wiring."""
    everything, error = await probe_list(context, NETWORK)
    if error is not None and error.code == NOT_FOUND and "absent" in error.context:
        require(context, CAPABILITY, error, False)
    require_list(error, CAPABILITY)
    networks = gpu_networks(everything)
    require(context, CAPABILITY, None, bool(networks))
    context.out(f"Found {len(networks)} GPU NIC network(s) (need {NEEDED}):")
    for network in networks:
        context.out(f"  {network['metadata']['name']}")
    if len(networks) < NEEDED:
        raise failed(
            f"{len(networks)} GPU NIC network(s) found, {NEEDED} are needed",
            code=NOT_FOUND,
            hint="create a Network and a GKENetworkParamSet for each GPU NIC: kubectl get networks",
        )
    parameters, error = await probe_list(context, PARAMETERS)
    require_list(error, CAPABILITY)
    problems = unready(networks, parameters)
    for line in problems:
        context.out(f"  not ready: {line}")
    if problems:
        raise failed(
            f"GPU NIC networks are not ready: {'; '.join(problems[:5])}",
            hint="kubectl describe networks,gkenetworkparamsets says what GKE waits for",
        )
    context.out("Every GPU NIC network is ready and bound to parameters of its own")
    wanted = delivered(context.component(TRAINER))
    if wanted is None:
        context.out("The recipe delivers no TCPXO runtime: there is no wiring to compare")
        return
    await _wiring(context, wanted, {network["metadata"]["name"] for network in everything})


async def _wiring(context: Context, wanted: Wiring, existing: set[str]) -> None:
    runtime = await deployed_runtime(context)
    problems = miswired(node_annotations(runtime), wanted)
    absent = sorted({entry["network"] for entry in wanted} - existing)
    if absent:
        problems.append(f"mapped network(s) do not exist: {', '.join(absent)}")
    if problems:
        raise failed(
            f"the wiring of ClusterTrainingRuntime {TCPXO_RUNTIME} is not the recipe's: "
            f"{'; '.join(problems)}",
            hint="make the recipe's tcpxoInterfaces name the cluster's networks, and install it again",
        )
    shown = ", ".join(f"{entry['interfaceName']}={entry['network']}" for entry in wanted)
    context.out(f"Runtime {TCPXO_RUNTIME} is wired as the recipe says: {shown}")


async def deployed_runtime(context: Context) -> dict[str, Any]:
    """The TCPXO runtime that the recipe delivers, as it is deployed.

    Raises:
        AicrError: NOT_FOUND, a verdict, when it is not there; as the read fails.
    """
    runtime = await find(context, RUNTIME, TCPXO_RUNTIME)
    if runtime is None:
        raise failed(
            f"ClusterTrainingRuntime {TCPXO_RUNTIME} not found, although the recipe delivers it",
            code=NOT_FOUND,
            hint=f"install {TRAINER} of this recipe again",
        )
    return runtime


def gpu_networks(networks: Sequence[Document]) -> list[Document]:
    """The networks of GPU NICs, by name."""
    found = [network for network in networks if GPU_NIC in network["metadata"]["name"]]
    return sorted(found, key=lambda network: str(network["metadata"]["name"]))


def unready(networks: Sequence[Document], parameters: Sequence[Document]) -> list[str]:
    """What keeps networks from being usable, a line each.

    A Network names its GKENetworkParamSet, which says in its status which Network it serves. One set
    serves one network, or two pods' interfaces would share a NIC.
    """
    sets = {each["metadata"]["name"]: each for each in parameters}
    taken: dict[str, str] = {}
    found = []
    for network in networks:
        name = network["metadata"]["name"]
        states = {
            condition.get("type"): condition
            for condition in (network.get("status") or {}).get("conditions") or []
        }
        for kind in _CONDITIONS:
            state = states.get(kind) or {}
            if state.get("status") != "True":
                why = state.get("message") or state.get("reason") or state.get("status") or "absent"
                found.append(f"{name}: condition {kind} is not True ({why})")
        reference = (network.get("spec") or {}).get("parametersRef") or {}
        bound = str(reference.get("name") or "")
        if reference.get("kind") != "GKENetworkParamSet" or not bound:
            found.append(f"{name}: names no GKENetworkParamSet")
        elif bound not in sets:
            found.append(f"{name}: GKENetworkParamSet {bound} does not exist")
        elif bound in taken:
            found.append(f"{name}: GKENetworkParamSet {bound} belongs to {taken[bound]} as well")
        else:
            taken[bound] = name
            serves = (sets[bound].get("status") or {}).get("networkName")
            if serves and serves != name:
                found.append(f"{name}: GKENetworkParamSet {bound} serves network {serves}")
    return found


def delivered(ref: Document | None) -> Wiring | None:
    """The mapping that a recipe delivers with its runtime; None when it delivers no runtime.

    A mapping without the runtime's manifest describes nothing.

    Raises:
        AicrError: INVALID_REQUEST for a runtime without a mapping, and for a mapping of another form.
    """
    if ref is None or not ships_tcpxo_runtime({TRAINER: ref}):  # type: ignore[dict-item]
        return None
    mapping = (ref.get("overrides") or {}).get("tcpxoInterfaces")
    if not mapping:
        raise invalid(
            f"the recipe ships {TCPXO_RUNTIME} and records no tcpxoInterfaces",
            where=f"componentRefs {TRAINER}.overrides",
            hint="generate the recipe again with --gke-tcpxo-interfaces",
        )
    wiring = _wiring_of(mapping)
    if wiring is None:
        raise invalid(
            "tcpxoInterfaces must be a list of {interfaceName, network}",
            where=f"componentRefs {TRAINER}.overrides",
        )
    return wiring


def node_annotations(runtime: Document) -> Document:
    """The annotations that a ClusterTrainingRuntime puts on the pods of its job ``node``."""
    template = ((runtime.get("spec") or {}).get("template") or {}).get("spec") or {}
    for job in template.get("replicatedJobs") or []:
        if job.get("name") == "node":
            pods = (((job.get("template") or {}).get("spec") or {}).get("template")) or {}
            found: Document = (pods.get("metadata") or {}).get("annotations") or {}
            return found
    return {}


def miswired(annotations: Document, wanted: Wiring) -> list[str]:
    """How the annotations of a deployed runtime differ from the recipe's mapping."""
    if annotations.get(DEFAULT_INTERFACE) != "eth0":
        return [f"{DEFAULT_INTERFACE} is {annotations.get(DEFAULT_INTERFACE)!r}, not eth0"]
    try:
        deployed = _wiring_of(json.loads(annotations.get(INTERFACES) or ""))
    except ValueError:
        deployed = None
    if deployed is None:
        return [f"{INTERFACES} is no JSON list of interfaceName and network"]
    if deployed[:1] != [ORDINARY]:
        return [f"the first entry of {INTERFACES} is not eth0 on network default"]
    rest = deployed[1:]
    if len(rest) != len(wanted):
        return [f"{len(rest)} interface(s) are mapped, the recipe maps {len(wanted)}"]
    return [
        f"entry {number} is {have['interfaceName']}={have['network']}, the recipe has "
        f"{want['interfaceName']}={want['network']}"
        for number, (have, want) in enumerate(zip(rest, wanted, strict=True), 1)
        if have != want
    ]


def _wiring_of(value: Any) -> Wiring | None:
    """*value* as a mapping, or None if it is not of that form."""
    if not isinstance(value, list):
        return None
    found = []
    for entry in value:
        if not isinstance(entry, dict):
            return None
        pair = {key: entry.get(key) for key in ("interfaceName", "network")}
        if not all(isinstance(text, str) and text for text in pair.values()):
            return None
        found.append({key: str(text) for key, text in pair.items()})
    return found


CHECK = Check(
    name="gke-gpu-nic-networks",
    phase=DEPLOYMENT,
    summary="the eight GPU NIC networks of GKE exist, are ready, and are wired as the recipe says",
    run=run,
    timeout="2m",
    details=f"""\
Lists `networks.networking.gke.io` and takes those whose name contains `{GPU_NIC}`. If the recipe delivers
runtime `{TCPXO_RUNTIME}`, its deployed annotations are compared with the recipe's `tcpxoInterfaces`, entry
by entry.

- Passes when there are at least {NEEDED}, each is Ready with ready parameters of its own, and the wiring
  is the recipe's.
- Fails when there are fewer, one is not ready, two share a `GKENetworkParamSet`, or the runtime is absent
  or wired otherwise.
- Skips when the cluster has none and the recipe does not declare `gke-nccl-tcpxo`.
""",
    reads=("networks, gkenetworkparamsets", "clustertrainingruntimes"),
    capabilities=("gke-nccl-tcpxo",),
)
