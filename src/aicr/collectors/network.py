"""The ``NetworkTopology`` measurement of a machine: the fabric network functions that it has.

Physical functions of NVIDIA's adapters, as the kernel lists them: address, device, interface, RDMA device,
NUMA node. Rails are left out, because which port hangs on which rail is wired in the building and not
written in the machine; a constraint on rails then cannot be met by accident. A machine without such
adapters has an empty measurement, which is an answer.

Source: recipe spec 8.3, 8.4 (NetworkTopology row).
"""

from __future__ import annotations

from typing import Final

from aicr.collectors import pci
from aicr.collectors.ports import Files
from aicr.collectors.readings import NETWORK_TOPOLOGY, Collected, Document, item
from aicr.errors import AicrError

#: Kernel modules that let storage use RDMA; they hold the adapter's driver when it is exchanged.
STORAGE_MODULES: Final = frozenset(
    {"ib_isert", "ib_srpt", "nvme_rdma", "nvmet_rdma", "rpcrdma", "xprtrdma"}
)
_INFINIBAND: Final = "InfiniBand"


def collect(files: Files) -> Collected:
    """The measurement."""
    found = Collected(NETWORK_TOPOLOGY)
    try:
        functions = [device for device in pci.scan(files) if device.is_fabric_nic]
    except AicrError as error:
        found.lacks("pfs", error)
        return found
    # A virtual function points to the physical one it was cut from.
    physical = [
        device for device in functions if not files.link(f"{pci.DEVICES}/{device.address}/physfn")
    ]
    records = [_record(files, device) for device in physical]
    found.add("identity", {"pf-count": len(physical)})
    links = [
        _link_layer(files, record["context"]["rdmaDevice"])
        for record in records
        if "rdmaDevice" in record["context"]
    ]
    found.add(
        "capabilities",
        {
            "sriov": any(_virtual_functions(files, device.address) for device in physical),
            "rdma": bool(links),
            "ib": _INFINIBAND in links,
        },
    )
    if records:
        found.add("pfs", {}, items=records)
    modules = files.text("/proc/modules") or ""
    found.add("kernel-modules", kernel_modules(modules))
    return found


def kernel_modules(text: str) -> dict[str, str]:
    """``storage.N``: loaded modules that use RDMA for storage, in the order of the kernel's list."""
    loaded = [words[0] for line in text.splitlines() if (words := line.split())]
    storage = [name for name in loaded if name in STORAGE_MODULES]
    return {f"storage.{number}": name for number, name in enumerate(storage)}


def _record(files: Files, device: pci.Device) -> Document:
    folder = f"{pci.DEVICES}/{device.address}"
    context = {"pciAddress": device.address, "deviceID": device.device}
    for key, place in (("networkInterface", "net"), ("rdmaDevice", "infiniband")):
        names = files.names(f"{folder}/{place}")
        if names:
            context[key] = names[0]
    numa = (files.text(f"{folder}/numa_node") or "").strip()
    # The kernel says -1 where it does not know.
    data = {"numaNode": int(numa)} if numa.isascii() and numa.isdigit() else {}
    return item(context, data)


def _virtual_functions(files: Files, address: str) -> int:
    text = (files.text(f"{pci.DEVICES}/{address}/sriov_totalvfs") or "").strip()
    return int(text) if text.isascii() and text.isdigit() else 0


def _link_layer(files: Files, device: str) -> str:
    return (files.text(f"/sys/class/infiniband/{device}/ports/1/link_layer") or "").strip()
