"""A small snapshot of a cluster that fits a recipe, for tests to change."""

from __future__ import annotations

from typing import Any

KERNEL = "/proc/sys/kernel/osrelease"


def reading(type_: str, **subtypes: dict[str, Any]) -> dict[str, Any]:
    """One measurement of a snapshot."""
    return {
        "type": type_,
        "subtypes": [{"subtype": name, "data": data} for name, data in subtypes.items()],
    }


#: What a collector writes on an EKS cluster with H100 nodes that run Ubuntu.
SNAPSHOT: dict[str, Any] = {
    "kind": "Snapshot",
    "apiVersion": "aicr.run/v1",
    "metadata": {"version": "test", "source-node": "node-1"},
    "measurements": [
        reading("K8s", server={"version": "v1.34.2-eks-3025e55"}, node={"provider": "eks"}),
        reading("GPU", hardware={"model": "NVIDIA H100 80GB HBM3"}),
        reading(
            "OS",
            release={"ID": "ubuntu", "VERSION_ID": "24.04"},
            sysctl={KERNEL: "6.8.0-1028-aws"},
        ),
        reading("NodeTopology", summary={"node-count": 4}),
    ],
}
