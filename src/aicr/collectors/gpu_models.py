"""What NVIDIA's PCI device ids are called, as NVML names them.

Only ids whose product is known from a public list (the PCI ID Repository, NVIDIA's open tools); an id that
is not here has no name, and its device is counted all the same. A name never says more than the id does:
two products under one id have the name of neither. Source: recipe spec 8.4 (model from PCI id).
"""

from __future__ import annotations

from typing import Final

#: PCI device id of vendor 10de, in hex → product.
MODELS: Final[dict[str, str]] = {
    "1db1": "Tesla V100-SXM2-16GB",
    "1db4": "Tesla V100-PCIE-16GB",
    "1db5": "Tesla V100-SXM2-32GB",
    "1db6": "Tesla V100-PCIE-32GB",
    "1eb8": "Tesla T4",
    "20b0": "NVIDIA A100-SXM4-40GB",
    "20b2": "NVIDIA A100-SXM4-80GB",
    "20b5": "NVIDIA A100 80GB PCIe",
    "20b7": "NVIDIA A30",
    "20b8": "NVIDIA A100X",
    "20f1": "NVIDIA A100-PCIE-40GB",
    "2230": "NVIDIA RTX A6000",
    "2231": "NVIDIA RTX A5000",
    "2235": "NVIDIA A40",
    "2236": "NVIDIA A10",
    "2237": "NVIDIA A10G",
    "2321": "NVIDIA H100 NVL",
    "2322": "NVIDIA H800 PCIe",
    "2324": "NVIDIA H800",
    "2329": "NVIDIA H20",
    "2330": "NVIDIA H100 80GB HBM3",
    "2331": "NVIDIA H100 PCIe",
    "2335": "NVIDIA H200",
    "2336": "NVIDIA H100",
    "2339": "NVIDIA H100",
    "233b": "NVIDIA H200 NVL",
    "2342": "NVIDIA GH200 480GB",
    "2348": "NVIDIA GH200 144G HBM3e",
    "26b5": "NVIDIA L40",
    "26b8": "NVIDIA L40G",
    "26b9": "NVIDIA L40S",
    "26ba": "NVIDIA L20",
    "27b6": "NVIDIA L2",
    "27b8": "NVIDIA L4",
    "2901": "NVIDIA B200",
    "2941": "NVIDIA GB200",
    "29bc": "NVIDIA B100",
    "2bb5": "NVIDIA RTX PRO 6000 Blackwell Server Edition",
    "31c2": "NVIDIA GB300",
    "31c3": "NVIDIA GB300",
}


def model_of(device: str) -> str:
    """The product of a PCI device id (``0x2330`` or ``2330``), "" for one that is not known."""
    return MODELS.get(device.strip().lower().removeprefix("0x"), "")
