"""Reading what ``nvidia-smi -q -x`` prints, and what it says when it fails.

Pure. The program ends with 0 and "No devices were found", or with a message and a status of its own; which
of these is a broken driver and which is an honest "none" is decided here. It must not know how it was run.
Source: recipe spec 8.4 (GPU.smi), NVIDIA's nvidia-smi manual (return values).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from xml.etree import ElementTree

from aicr.errors import INTERNAL, SERVICE_UNAVAILABLE, AicrError

#: What a hint says for words in its output; first match wins.
_CAUSES: Final = (
    (
        "driver/library version mismatch",
        "the loaded kernel module is of another driver version than the library: reboot the node, or "
        "unload the nvidia modules and load them again",
    ),
    (
        "couldn't communicate with the nvidia driver",
        "the kernel module is not loaded: see dmesg, and that it is built for this kernel",
    ),
    ("insufficient permissions", "run as root"),
    ("unable to determine the device handle", "a GPU has fallen off the bus: see dmesg for Xid 79"),
    ("gpu is lost", "a GPU has fallen off the bus: reboot the node"),
)
_NO_DEVICES: Final = "no devices were found"
#: Entity and document type declarations are not needed, and could do harm.
_ENTITY: Final = re.compile(r"<!ENTITY", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU as nvidia-smi describes it; "" for what it does not say."""

    uuid: str
    name: str
    bus: str
    memory: str
    mig: str


@dataclass(frozen=True, slots=True)
class Report:
    """What nvidia-smi says of a machine."""

    driver: str
    cuda: str
    gpus: tuple[Gpu, ...]


def read(status: int, out: str, err: str) -> Report:
    """The report, from exit status and output of ``nvidia-smi -q -x``.

    Raises:
        AicrError: SERVICE_UNAVAILABLE if the driver does not answer (the hint has the known cause),
            INTERNAL if the output is none of nvidia-smi's.
    """
    said = " ".join(f"{out}\n{err}".split())
    if _NO_DEVICES in said.lower() and "<gpu" not in out:
        return Report("", "", ())
    if status != 0 or "<nvidia_smi_log" not in out:
        lower = said.lower()
        hint = next(
            (hint for words, hint in _CAUSES if words in lower), "run nvidia-smi on the node"
        )
        raise AicrError(
            SERVICE_UNAVAILABLE,
            f"nvidia-smi failed with status {status}: {said[:300] or 'it said nothing'}",
            where="nvidia-smi",
            hint=hint,
        )
    return parse(out)


def parse(text: str) -> Report:
    """The report in XML; INTERNAL if it cannot be read."""
    if _ENTITY.search(text):
        raise AicrError(INTERNAL, "nvidia-smi's XML declares entities", where="nvidia-smi")
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise AicrError(
            INTERNAL, f"nvidia-smi's XML cannot be read: {error}", where="nvidia-smi"
        ) from error
    return Report(
        _text(root, "driver_version"),
        _text(root, "cuda_version"),
        tuple(
            Gpu(
                _text(gpu, "uuid"),
                _text(gpu, "product_name"),
                _text(gpu, "pci/pci_bus_id"),
                _text(gpu, "fb_memory_usage/total"),
                _text(gpu, "mig_mode/current_mig"),
            )
            for gpu in root.findall("gpu")
        ),
    )


def _text(element: ElementTree.Element, path: str) -> str:
    text = (element.findtext(path) or "").strip()
    return "" if text in ("N/A", "[N/A]", "[Not Supported]", "Not Found") else text
