"""gke-gpu-nic-topology: on every a3-megagpu node each GPU NIC is bound to a GPU NIC network.

A node says in one annotation which interfaces it was born with, and in another which network has which
address. Joined by address they show whether an ordinary NIC (gVNIC) took a place that belongs to a GPU
NIC. A node without these annotations is unverified: neither good nor bad, and counted. When no node can
be verified the check could not tell, since the recipe declares what it is about (decision 64).
Source: validators spec 6.1; requirements V-225, V-226; decision 64.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from aicr.checks.deployment.gke_gpu_nic_networks import CAPABILITY, GPU_NIC
from aicr.checks.sdk import DEPLOYMENT, Check, Context, Skip, declares, failed, require_list
from aicr.checks.sdk.cluster_reads import probe_list
from aicr.errors import CONFLICT, INTERNAL, NOT_FOUND, AicrError, some_of
from aicr.kube import kinds

LABEL: Final = "cloud.google.com/gke-accelerator"
MACHINE: Final = "nvidia-h100-mega-80gb"
NIC_INFO: Final = "networking.gke.io/nic-info"
NORTH: Final = "networking.gke.io/north-interfaces"
GPU_NICS: Final = tuple(f"eth{number}" for number in range(1, 9))
INTERFACES: Final = ("eth0", *GPU_NICS)

Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Topology:
    """What a node's annotations say: problems, or why nothing can be told; neither means good."""

    problems: tuple[str, ...] = ()
    unverified: str = ""


async def run(context: Context) -> None:
    """Judge every node; the coverage comes last on every path."""
    total = validated = 0
    try:
        if not declares(context, CAPABILITY.component):
            raise Skip(f"the recipe does not declare {CAPABILITY.component}")
        found, error = await probe_list(context, kinds.NODE, labels={LABEL: MACHINE})
        require_list(error, CAPABILITY)
        nodes = sorted(found, key=lambda node: str(node["metadata"]["name"]))
        total = len(nodes)
        context.out(f"Found {total} node(s) with {LABEL}={MACHINE}:")
        judged = {str(node["metadata"]["name"]): judge(node) for node in nodes}
        for name, topology in judged.items():
            context.out(f"  {name}: {_word(topology)}")
        validated = sum(
            not topology.problems and not topology.unverified for topology in judged.values()
        )
        _verdict(judged)
    finally:
        context.out(f"RESULT: nodesValidated: {validated}/{total}")
        context.emit_extra({"nodesValidated": str(validated), "nodesTotal": str(total)})


def _verdict(judged: Mapping[str, Topology]) -> None:
    if not judged:
        raise failed(
            f"no node has {LABEL}={MACHINE}",
            code=NOT_FOUND,
            hint="the recipe declares gke-nccl-tcpxo, which needs an a3-megagpu node pool",
        )
    problems = [
        f"{name}: {problem}" for name, topology in judged.items() for problem in topology.problems
    ]
    if problems:
        raise failed(
            f"GPU NICs are not where they belong: {some_of(problems, 5, '; ')}",
            code=CONFLICT,
            hint="create the node pool again with its GPU NIC networks in order, gVNIC only as eth0",
        )
    if all(topology.unverified for topology in judged.values()):
        first = next(iter(judged.items()))
        raise AicrError(
            INTERNAL,
            f"no node could be verified: {first[0]}: {first[1].unverified}",
            hint=f"GKE writes {NIC_INFO} and {NORTH} on nodes with multi-networking; is it turned on?",
        )


def _word(topology: Topology) -> str:
    if topology.problems:
        return f"FAILED: {'; '.join(topology.problems)}"
    if topology.unverified:
        return f"unverified ({topology.unverified})"
    return "each GPU NIC is bound to a GPU NIC network"


def judge(node: Document) -> Topology:
    """What the annotations of a node say about its NICs."""
    annotations = node["metadata"].get("annotations") or {}
    text = annotations.get(NIC_INFO)
    if text is None:
        return Topology(unverified=f"no annotation {NIC_INFO}")
    born = _entries(text, ("birthName", "birthIP", "pciAddress"))
    if not born:
        return Topology((f"{NIC_INFO} is no JSON list of NICs",))
    problems = [
        f"{NIC_INFO} names {key} {value} twice"
        for key in ("birthName", "birthIP", "pciAddress")
        for value in _twice([nic[key] for nic in born])
    ]
    names = {nic["birthName"] for nic in born}
    problems += [f"unexpected interface {name}" for name in sorted(names - {*INTERFACES})]
    absent = [name for name in GPU_NICS if name not in names]
    if absent:
        problems.append(f"no GPU NIC {', '.join(absent)}")
    north = annotations.get(NORTH)
    bound = None if north is None else _entries(north, ("network", "ipAddress"))
    if north is not None and bound is None:
        problems.append(f"{NORTH} is no JSON list of networks")
    networks = {entry["ipAddress"]: entry["network"] for entry in bound or ()}
    joined = {
        nic["birthName"]: networks[nic["birthIP"]]
        for nic in born
        if nic["birthName"] != "eth0" and nic["birthIP"] in networks
    }
    problems += [
        f"{name} is bound to network {network}, which is no GPU NIC network"
        for name, network in sorted(joined.items())
        if GPU_NIC not in network
    ]
    if problems:
        return Topology(tuple(problems))
    loose = [name for name in GPU_NICS if name not in joined]
    if loose:
        return Topology(unverified=f"{NORTH} does not say the network of {', '.join(loose)}")
    return Topology()


def _entries(text: str, keys: tuple[str, ...]) -> list[dict[str, str]] | None:
    """A JSON list of maps with these texts; None if it is not of that form."""
    try:
        value = json.loads(text)
    except ValueError:
        return None
    if not isinstance(value, list):
        return None
    found = []
    for entry in value:
        if not isinstance(entry, dict) or not all(
            isinstance(entry.get(key), str) and entry[key] for key in keys
        ):
            return None
        found.append({key: str(entry[key]) for key in keys})
    return found


def _twice(values: list[str]) -> list[str]:
    return sorted({value for value in values if values.count(value) > 1})


CHECK = Check(
    name="gke-gpu-nic-topology",
    phase=DEPLOYMENT,
    summary="each GPU NIC of an a3-megagpu node is bound to a GPU NIC network",
    run=run,
    timeout="2m",
    details=f"""\
Reads annotations `{NIC_INFO}` and `{NORTH}` of nodes with
`{LABEL}={MACHINE}`, cordoned ones included, and joins them by address.
`RESULT: nodesValidated: V/T` and the same counts as extra come on every path.

- Passes when no node has a problem and at least one could be verified.
- Fails (CONFLICT) when an annotation cannot be read, names a NIC twice, lacks one of `eth1` to `eth8`, has
  another interface, or one of them is bound to a network that is no GPU NIC network. Fails when there is
  no such node, and when no node has the annotations.
- Skips when the recipe does not declare `gke-nccl-tcpxo`.
""",
    reads=("nodes",),
)
