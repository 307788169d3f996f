"""What is plugged into a machine, as the kernel lists it: no driver is needed, and none is asked.

A GPU is a display controller (PCI class 03) of NVIDIA's; its audio function, NVSwitches and bridges are
not. This module must not know measurements. Source: recipe spec 8.4 (GPU.hardware).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from aicr.collectors.ports import Files
from aicr.errors import not_found

DEVICES: Final = "/sys/bus/pci/devices"
NVIDIA: Final = "10de"
MELLANOX: Final = "15b3"
DISPLAY: Final = "03"
NETWORK: Final = "02"


@dataclass(frozen=True, slots=True)
class Device:
    """One PCI function: address, and ids in lower-case hex without ``0x``."""

    address: str
    vendor: str
    device: str
    kind: str
    driver: str

    @property
    def is_gpu(self) -> bool:
        """Whether it is one of NVIDIA's GPUs."""
        return self.vendor == NVIDIA and self.kind.startswith(DISPLAY)

    @property
    def is_fabric_nic(self) -> bool:
        """Whether it is a network function of NVIDIA's, formerly Mellanox's."""
        return self.vendor == MELLANOX and self.kind.startswith(NETWORK)


def scan(files: Files) -> list[Device]:
    """All PCI functions, by address.

    Raises:
        AicrError: NOT_FOUND if the kernel lists none, as in a container without ``/sys``.
    """
    names = files.names(DEVICES)
    if names is None:
        raise not_found(
            f"there is no {DEVICES}: devices cannot be told from here",
            where=DEVICES,
            hint="the pod needs the host's /sys; a virtual machine without PCI has none",
        )
    return [
        Device(
            name,
            _hex(files, name, "vendor"),
            _hex(files, name, "device"),
            _hex(files, name, "class"),
            files.link(f"{DEVICES}/{name}/driver"),
        )
        for name in names
    ]


def _hex(files: Files, name: str, what: str) -> str:
    text = files.text(f"{DEVICES}/{name}/{what}") or ""
    return text.strip().lower().removeprefix("0x")
