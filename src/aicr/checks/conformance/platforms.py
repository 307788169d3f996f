"""Which cloud nodes come from, and what in the cluster shows that it can add some.

A table and a look at providerIDs; nothing here reads a cluster. Source: validators spec 6.2
(cluster-autoscaling).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Platform:
    """A cloud.

    Attributes:
        name: for people.
        prefix: how its nodes' providerIDs begin.
        looked_for: what would show that it adds nodes, for people.
        label: of nodes that belong to a group which the cloud scales, "" if that shows nothing.
        status_map: namespace and name of the ConfigMap in which its autoscaler reports.
        deployment: app name of an autoscaler that runs in the cluster.
    """

    name: str
    prefix: str
    looked_for: str
    label: str = ""
    status_map: tuple[str, str] | None = None
    deployment: str = ""


_DEPLOYMENT: Final = "cluster-autoscaler"
PLATFORMS: Final = (
    Platform(
        "EKS",
        "aws://",
        "nodes of a node group (eks.amazonaws.com/nodegroup) and a cluster-autoscaler Deployment",
        label="eks.amazonaws.com/nodegroup",
        deployment=_DEPLOYMENT,
    ),
    Platform(
        "AKS",
        "azure://",
        "nodes of an agent pool (kubernetes.azure.com/agentpool)",
        label="kubernetes.azure.com/agentpool",
    ),
    # Every node of GKE is in a node pool, so only its autoscaler's own report shows anything.
    Platform(
        "GKE",
        "gce://",
        "ConfigMap kube-system/cluster-autoscaler-status and a cluster-autoscaler Deployment",
        status_map=("kube-system", "cluster-autoscaler-status"),
        deployment=_DEPLOYMENT,
    ),
)


def platform_of(nodes: Iterable[Mapping[str, Any]]) -> Platform | None:
    """The platform of the first node, by name, that has one; None when none is known."""
    for node in sorted(nodes, key=lambda each: str(each["metadata"]["name"])):
        provider = str((node.get("spec") or {}).get("providerID") or "")
        for platform in PLATFORMS:
            if provider.startswith(platform.prefix):
                return platform
    return None
