"""The NetworkTopology measurement of a machine, from what the kernel lists."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.collectors.machines import linux, pci, write

from aicr.collectors import network
from aicr.collectors.ports import Files
from aicr.errors import NOT_FOUND


def subtypes(root: Path) -> dict[str, Any]:
    """Subtypes by name."""
    return {one["subtype"]: one for one in network.collect(Files(root)).subtypes}


def test_physical_functions_are_listed_with_what_hangs_on_them(tmp_path: Path) -> None:
    """Interface, RDMA device and NUMA node; virtual functions and other makes are left out."""
    linux(tmp_path)
    place = pci(
        tmp_path,
        *("0000:3b:00.0", "0x15b3", "0x1021", "0x020700"),
        numa_node="1",
        sriov_totalvfs="16",
    )
    (place / "net/ibs1").mkdir(parents=True)
    (place / "infiniband/mlx5_0").mkdir(parents=True)
    write(tmp_path, "/sys/class/infiniband/mlx5_0/ports/1/link_layer", "InfiniBand\n")
    pci(tmp_path, "0000:5e:00.0", "0x15b3", "0x1021", "0x020000", numa_node="-1")
    virtual = pci(tmp_path, "0000:3b:00.2", "0x15b3", "0x101e", "0x020700")
    (virtual / "physfn").symlink_to("../0000:3b:00.0")
    pci(tmp_path, "0000:04:00.0", "0x8086", "0x1593", "0x020000")
    write(tmp_path, "/proc/modules", "rpcrdma 1 0 -\nmlx5_core 2 0 -\nnvme_rdma 3 0 -\n")
    found = subtypes(tmp_path)
    assert found["identity"]["data"] == {"pf-count": 2}
    assert found["capabilities"]["data"] == {"ib": True, "rdma": True, "sriov": True}
    assert found["pfs"]["items"] == [
        {
            "context": {
                "pciAddress": "0000:3b:00.0",
                "deviceID": "1021",
                "networkInterface": "ibs1",
                "rdmaDevice": "mlx5_0",
            },
            "data": {"numaNode": 1},
        },
        {"context": {"pciAddress": "0000:5e:00.0", "deviceID": "1021"}},
    ]
    assert found["kernel-modules"]["data"] == {"storage.0": "rpcrdma", "storage.1": "nvme_rdma"}


def test_a_machine_without_fabric_adapters_has_none(tmp_path: Path) -> None:
    """Zero is a reading; there are no items."""
    linux(tmp_path)
    found = subtypes(tmp_path)
    assert found["identity"]["data"] == {"pf-count": 0}
    assert found["capabilities"]["data"] == {"ib": False, "rdma": False, "sriov": False}
    assert "pfs" not in found


def test_rails_are_never_guessed(tmp_path: Path) -> None:
    """Which port hangs on which rail is not written in a machine."""
    linux(tmp_path)
    pci(tmp_path, "0000:3b:00.0", "0x15b3", "0x1021", "0x020700")
    assert "rail" not in str(subtypes(tmp_path))


def test_without_the_bus_nothing_is_claimed(tmp_path: Path) -> None:
    """No /sys is a gap with a reason."""
    found = network.collect(Files(tmp_path))
    assert found.subtypes == []
    assert [(each.name, each.error.code) for each in found.missing] == [
        ("NetworkTopology.pfs", NOT_FOUND)
    ]
