"""The load-time check of constraint names."""

from __future__ import annotations

import pytest

from aicr.constraints import addressable
from aicr.errors import INVALID_REQUEST, AicrError


@pytest.mark.parametrize(
    "name",
    [
        "K8s.server.version",
        "K8s.node.provider",
        "K8s.image.some-image",
        "K8s.policy.driver.version",
        "K8s.aks-gpu-pools.gpu-driver",
        "K8s.slinky-slurm.detected",
        "K8s.slinky-slurm[kind=Controller].cluster-name",
        "K8s.percona-server-mongodb.collection-state",
        "GPU.hardware.model",
        "OS.release.VERSION_ID",
        "OS.sysctl./proc/sys/kernel/osrelease",
        "SystemD.containerd.service.ActiveState",
        "SystemD.anything.At-all",
        "NodeTopology.summary.node-count",
        "NodeTopology.label.nvidia.com/gpu.product",
        "NodeTopology.label[key=a].value",
        "NodeTopology.gpu-nodes.label",
        "NetworkTopology.pfs[0].pciAddress",
        "NetworkTopology.pfs[rail=1].anything",
        "NetworkTopology.kernel-modules.mlx5_core",
    ],
)
def test_what_collectors_write_is_addressable(name: str) -> None:
    """Known subtypes and keys, open ones, items, and the node-set name pass (8.3)."""
    addressable.lint(name)


@pytest.mark.covers("R11-62")
@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "K8s.serverr.version",
            'unknown subtype "serverr" for measurement type "K8s"; did you mean "server"?',
        ),
        ("K8s.elsewhere.version", 'unknown subtype "elsewhere" for measurement type "K8s"'),
        (
            "K8s.server.verison",
            'unknown key "verison" for subtype "K8s.server"; did you mean "version"?',
        ),
        ("K8s.server.kernel", 'unknown key "kernel" for subtype "K8s.server"'),
        (
            "NodeTopology.summary.nodecount",
            'unknown key "nodecount" for subtype "NodeTopology.summary"; '
            'did you mean "node-count"?',
        ),
        (
            "K8s.slinky-slurm[0].naem",
            'unknown key "naem" for subtype "K8s.slinky-slurm"; did you mean "name"?',
        ),
        (
            "NetworkTopology.pfs.rail",
            'subtype "pfs" exposes no scalar readings; it requires an item selector, '
            "e.g. NetworkTopology.pfs[0].rail",
        ),
        (
            "K8s.server[0].version",
            'subtype "server" has no items; an item selector is not valid here',
        ),
        (
            "SystemD.containerd[0].ActiveState",
            'subtype "containerd" has no items; an item selector is not valid here',
        ),
        ("GPU.smi.driver", 'unknown subtype "smi" for measurement type "GPU"'),
        ("NodeTopology.gpu-nodes.labels", 'unknown subtype "gpu-nodes"'),
        ("Foo.a.b", "invalid measurement type in constraint path"),
    ],
)
def test_a_typo_is_an_error_with_the_nearest_name(name: str, message: str) -> None:
    """At most two edits away is a suggestion; further is none (8.3)."""
    with pytest.raises(AicrError) as caught:
        addressable.lint(name)
    assert caught.value.code == INVALID_REQUEST
    assert caught.value.message.startswith(message)
    assert ("did you mean" in caught.value.message) == ("did you mean" in message)
