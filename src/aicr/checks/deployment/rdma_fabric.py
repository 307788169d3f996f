"""The RDMA fabric: every schedulable GPU node with such an adapter hands out the same share of it.

What the nodes must hand out comes from the recipe: the device plugin's configuration in the rendered
NicClusterPolicy names exactly one resource. A node that somebody cordoned is left out on purpose, listed,
and counted in the total. This part never skips: what cannot be observed has failed.
Source: validators spec 6.1 step 4.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from aicr.checks.sdk import Context, failed
from aicr.checks.sdk.nodes import GpuNode, allocatable, cordoned, find_gpu_nodes, schedulable
from aicr.errors import NOT_FOUND, invalid

#: A manifest whose path has this makes the fabric part of the recipe.
MANIFEST: Final = "nic-cluster-policy"
KIND: Final = "NicClusterPolicy"
LABEL: Final = "feature.node.kubernetes.io/pci-15b3.present"
#: Device plugin of a NicClusterPolicy → its list of resources, and their prefix unless it is stated.
_PLUGINS: Final = {
    "rdmaSharedDevicePlugin": ("configList", "rdma"),
    "sriovDevicePlugin": ("resourceList", "intel.com"),
}


def applies(ref: Mapping[str, Any] | None) -> bool:
    """Whether the recipe has a fabric: network-operator with a manifest of that name."""
    return ref is not None and any(MANIFEST in path for path in ref.get("manifestFiles") or ())


def resource_of(documents: Iterable[Mapping[str, Any]]) -> str:
    """The extended resource that the device plugins of rendered policies hand out.

    Raises:
        AicrError: INVALID_REQUEST when they name none, several, or their configuration is no JSON.
    """
    found = sorted({name for document in documents for name in _resources(document)})
    if len(found) != 1:
        what = "no RDMA resource" if not found else f"several RDMA resources: {', '.join(found)}"
        raise invalid(
            f"the recipe's {KIND} names {what}; exactly one is needed to judge the fabric",
            hint=f"look at the device plugin's config in the {MANIFEST} manifest",
        )
    return found[0]


def _resources(document: Mapping[str, Any]) -> Iterator[str]:
    if document.get("kind") != KIND:
        return
    spec = document.get("spec") or {}
    for plugin, (key, default) in _PLUGINS.items():
        text = (spec.get(plugin) or {}).get("config")
        if not text:
            continue
        try:
            config = json.loads(text)
            entries = config.get(key) or []
            for entry in entries:
                prefix = entry.get("resourcePrefix") or default
                yield f"{prefix}/{entry['resourceName']}"
        except (ValueError, AttributeError, KeyError, TypeError) as error:
            raise invalid(
                f"the config of {plugin} in the recipe's {KIND} is not as the plugin reads it: {error}"
            ) from None


@dataclass
class Fabric:
    """The look at the fabric, and what it has seen for the report.

    Attributes:
        resource: what every node must hand out.
        nodes: RDMA nodes at the last look that could list them, cordoned ones included.
        quantities: of the schedulable ones, by name.
        announced: whether a total went out already.
    """

    resource: str
    nodes: list[GpuNode] = field(default_factory=list)
    quantities: dict[str, int] = field(default_factory=dict)
    announced: bool = False

    async def sample(self, context: Context) -> None:
        """One look.

        Raises:
            AicrError: NOT_FOUND without a node to judge; INTERNAL when one hands out nothing, or not as
                much as the others.
        """
        found = [
            node
            for node in await find_gpu_nodes(context)
            if (node.document["metadata"].get("labels") or {}).get(LABEL) == "true"
        ]
        if found and not self.announced:
            # Whatever happens from here on, the report has the total.
            context.emit_extra(_extra(0, len(found)))
            self.announced = True
        self.nodes = found
        cohort = schedulable(found)
        self.quantities = {node.name: allocatable(node.document, self.resource) for node in cohort}
        if not cohort:
            raise failed(
                f"no schedulable GPU node has an RDMA adapter ({LABEL}=true)",
                code=NOT_FOUND,
                hint="node feature discovery sets the label; are the nodes cordoned?",
            )
        without = [name for name, count in self.quantities.items() if count <= 0]
        if without:
            raise failed(
                f"nodes hand out no {self.resource}: {', '.join(without)}",
                hint="look at the device plugin's pods on these nodes",
            )
        if len(set(self.quantities.values())) > 1:
            told = ", ".join(f"{name} {count}" for name, count in self.quantities.items())
            raise failed(
                f"nodes hand out different amounts of {self.resource}: {told}",
                hint="an adapter or port is down on the nodes with less",
            )

    def report(self, context: Context, *, certified: bool) -> None:
        """Print the nodes, the RESULT line and the extra, once, at the end.

        Args:
            context: of the check.
            certified: whether the fabric was found well and stayed so; nothing counts as validated without.
        """
        nodes = self.nodes
        out = cordoned(nodes)
        context.out(
            f"Found {len(nodes)} RDMA node(s), {len(nodes) - len(out)} schedulable, "
            f"{len(out)} cordoned:"
            if nodes
            else "Found 0 RDMA node(s)."
        )
        for node in nodes:
            said = (
                "skipped (cordoned)"
                if node.cordoned
                else f"{self.resource} {self.quantities.get(node.name, 0)}"
            )
            context.out(f"  {node.name}: {said}")
        validated = len(nodes) - len(out) if certified else 0
        note = f" ({len(out)} cordoned, skipped)" if out else ""
        context.out(f"RESULT: nodesValidated: {validated}/{len(nodes)}{note}")
        context.emit_extra(_extra(validated, len(nodes)))


def _extra(validated: int, total: int) -> dict[str, str]:
    return {"nodesValidated": str(validated), "nodesTotal": str(total)}
