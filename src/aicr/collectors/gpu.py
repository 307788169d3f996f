"""The ``GPU`` measurement of a machine: what is there without a driver, and what the driver says.

``hardware`` comes from PCI and needs no driver; where the kernel's list cannot be read, the labels of
node feature discovery on the node stand in. ``smi`` comes from nvidia-smi, if there is one; a program that
is there and fails is a reading that could not be taken, never "no GPU".

Source: recipe spec 8.4 (GPU rows), 1.10 (gpuModel).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from aicr.collectors import gpu_models, nvidia_smi, pci
from aicr.collectors.ports import Machine
from aicr.collectors.readings import GPU, Collected, Scalar, item
from aicr.errors import NOT_FOUND, AicrError

MODULE: Final = "/sys/module/nvidia"
PROC: Final = "/proc/driver/nvidia/version"
NFD_PRESENT: Final = re.compile(
    r"feature\.node\.kubernetes\.io/pci-(?:03[0-9a-f]{2}_)?10de\.present"
)
COUNT_LABEL: Final = "nvidia.com/gpu.count"
NO_GPU: Final = "there is no NVIDIA GPU on this machine"


async def collect(
    machine: Machine, *, labels: Mapping[str, str] | None = None, timeout: float
) -> Collected:
    """The measurement; *labels* are those of the machine's node, None if they are not known."""
    found = Collected(GPU)
    count = 0
    driver = driver_loaded(machine)
    try:
        devices = [device for device in pci.scan(machine.files) if device.is_gpu]
        hardware = from_pci(devices, driver=driver)
    except AicrError as error:
        from_labels = from_nfd(labels or {}, driver=driver)
        if from_labels is None:
            found.lacks("hardware", error)
            hardware = {}
        else:
            hardware = from_labels
    if hardware:
        found.add("hardware", hardware)
        count = int(hardware.get("gpu-count", 0))
        if not hardware["gpu-present"]:
            found.remarks.append(NO_GPU)
        elif not hardware["driver-loaded"]:
            found.remarks.append("the NVIDIA kernel module is not loaded")
    await _add_smi(found, machine, expected=count, driver=driver, timeout=timeout)
    return found


def driver_loaded(machine: Machine) -> bool:
    """Whether NVIDIA's kernel module is loaded."""
    return machine.files.exists(MODULE) or machine.files.exists(PROC)


def from_pci(devices: list[pci.Device], *, driver: bool) -> dict[str, Scalar]:
    """``hardware`` from the GPUs on the PCI bus; no model if there are several, or an unknown one."""
    models = {gpu_models.model_of(device.device) for device in devices}
    found: dict[str, Scalar] = {
        "gpu-present": bool(devices),
        "gpu-count": len(devices),
        "driver-loaded": driver,
        "detection-source": "pci",
    }
    if len(models) == 1 and (model := models.pop()):
        found["model"] = model
    return found


def from_nfd(labels: Mapping[str, str], *, driver: bool) -> dict[str, Scalar] | None:
    """``hardware`` from labels of node feature discovery; None if it has not labelled the node."""
    if not any(key.startswith("feature.node.kubernetes.io/") for key in labels):
        return None
    present = any(NFD_PRESENT.fullmatch(key) and value == "true" for key, value in labels.items())
    found: dict[str, Scalar] = {
        "gpu-present": present,
        "driver-loaded": driver,
        "detection-source": "nfd",
    }
    count = labels.get(COUNT_LABEL, "")
    if not present:
        found["gpu-count"] = 0
    elif count.isascii() and count.isdigit():
        found["gpu-count"] = int(count)
    return found


def smi_readings(report: nvidia_smi.Report) -> dict[str, Scalar]:
    """``smi`` from a report; ``gpu.model`` only if all GPUs are of one."""
    found: dict[str, Scalar] = {"gpu-count": len(report.gpus)}
    if report.driver:
        found["driver-version"] = report.driver
    if report.cuda:
        found["cuda-version"] = report.cuda
    models = {gpu.name for gpu in report.gpus}
    if len(models) == 1 and (model := models.pop()):
        found["gpu.model"] = model
    return found


async def _add_smi(
    found: Collected, machine: Machine, *, expected: int, driver: bool, timeout: float
) -> None:
    try:
        ended = await machine.commands.run(("nvidia-smi", "-q", "-x"), timeout=timeout)
        report = nvidia_smi.read(ended.status, ended.out, ended.err)
    except AicrError as error:
        if error.code == NOT_FOUND:
            # Without the program nothing is claimed; a pod has it only with the nvidia runtime.
            return
        if expected or driver:
            found.lacks("smi", error)
        return
    if len(report.gpus) < expected:
        found.remarks.append(f"nvidia-smi sees {len(report.gpus)} of {expected} GPUs")
    items = [
        item(
            {
                key: value
                for key, value in (
                    ("uuid", gpu.uuid),
                    ("model", gpu.name),
                    ("pciAddress", gpu.bus),
                    ("memory", gpu.memory),
                    ("mig", gpu.mig),
                )
                if value
            },
            {"index": index},
        )
        for index, gpu in enumerate(report.gpus)
    ]
    found.add("smi", smi_readings(report), items=items)
