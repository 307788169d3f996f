"""Known sentences of NCCL, CUDA and their transports, and what to do about each.

The texts that a failed collective prints name a symptom. A cause here names what is usually wrong and
the next step, and says whether it is about the surroundings (a limit, a version, a service): then
nothing was tested, and no node is to be blamed for it (decision 19). A text that is not known stays
as it is; nothing is guessed.

Source: field case K6 and the reports that it names; decision 19.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from aicr.fabric.nccl_output import tail


@dataclass(frozen=True)
class Cause:
    """One thing that goes wrong, recognised by its sentences."""

    name: str
    title: str
    hint: str
    #: Each pattern must be found somewhere in the text; case does not matter.
    patterns: tuple[str, ...] = field(repr=False)
    #: The surroundings are wrong, so nothing is known about the hardware.
    surroundings: bool = True
    #: Says little by itself; left out when a more exact cause is found.
    vague: bool = False

    def is_in(self, text: str) -> bool:
        """Whether all of its sentences are in *text*."""
        return all(re.search(pattern, text, re.IGNORECASE) for pattern in self.patterns)


#: Most exact first: the first one found is the one to name.
CAUSES: Final[Sequence[Cause]] = (
    Cause(
        "fabric-manager",
        "the fabric manager is not ready",
        "start nvidia-fabricmanager on the node in the driver's own version, then run the check again",
        (
            r"system not yet initialized|cudaErrorSystemNotReady|fabric manager.*not (?:running|ready)",
        ),
    ),
    Cause(
        "shared-memory",
        "/dev/shm is too small",
        "mount an emptyDir of medium Memory at /dev/shm; the 64 MiB of a container do not suffice",
        (r"no space left on device", r"/dev/shm|shared memory"),
    ),
    Cause(
        "shared-memory",
        "/dev/shm is too small",
        "mount an emptyDir of medium Memory at /dev/shm; the 64 MiB of a container do not suffice",
        (r"error while creating shared memory segment", r"size \d+"),
    ),
    Cause(
        "locked-memory",
        "the container may not lock memory",
        "give the container the capability IPC_LOCK, or raise the limit on locked memory of the runtime",
        (r"ibv_reg_mr\S*.*(?:cannot allocate memory|errno 12)|RLIMIT_MEMLOCK|memlock",),
    ),
    Cause(
        "ofi-provider",
        "libfabric finds no provider for the network",
        "check that the EFA device plugin gave the pod its devices and that FI_PROVIDER names one that "
        "`fi_info` lists",
        (
            r"NET/OFI.*(?:no provider|no eligible providers|couldn't find any (?:optimal )?provider"
            r"|unable to find a protocol)",
        ),
    ),
    Cause(
        "driver-version",
        "driver and library versions do not belong together",
        "restart the pod after the driver update, or choose an image whose CUDA the node's driver supports",
        (
            r"driver/library version mismatch|CUDA driver version is insufficient"
            r"|unsupported display driver / cuda driver combination|cudaErrorInsufficientDriver",
        ),
    ),
    Cause(
        "kernel-image",
        "the benchmark was not built for this GPU",
        "build nccl-tests for the GPU's architecture, or choose a newer image",
        (r"no kernel image is available for execution",),
    ),
    Cause(
        "no-gpu",
        "no GPU is visible",
        "check that the container got GPUs (nvidia.com/gpu or a claim) and the NVIDIA runtime class",
        (
            r"no CUDA-capable device is detected|NVML.*not found|no devices were found"
            r"|Invalid number of GPUs: \d+ requested",
        ),
    ),
    Cause(
        "gpu-memory",
        "another process holds the GPU's memory",
        "find it with nvidia-smi on the node; the test needs about twice the message size on each GPU",
        (r"cuda failure.*out of memory|cudaErrorMemoryAllocation|CUDA out of memory",),
    ),
    Cause(
        "host-unknown",
        "a peer's address cannot be resolved or reached",
        "check network policies between the pods and NCCL_SOCKET_IFNAME",
        (
            r"no route to host|connection refused|name or service not known"
            r"|NET/Socket.*no interface found|Bootstrap : no socket interface found",
        ),
    ),
    Cause(
        "uncorrectable-memory",
        "a GPU has an uncorrectable memory error",
        "drain the node and reset or replace the GPU; dcgm-diag and the kernel log name it",
        (r"uncorrectable (?:ECC|NVLink) error|cudaErrorECCUncorrectable",),
        surroundings=False,
    ),
    Cause(
        "gpu-lost",
        "a GPU is no longer reachable",
        "drain the node and reboot it; if that does not help, replace the GPU",
        (r"fallen off the bus|GPU is lost|cudaErrorDevicesUnavailable|unknown error.*Xid",),
        surroundings=False,
    ),
    Cause(
        "link-retries",
        "a network card gave up sending to a peer",
        "look at the link's counters and cable, and at the switch port of the two cards named",
        (r"got completion.*(?:status=12|vendor err 129|retry exceeded)|IBV_WC_RETRY_EXC_ERR",),
        surroundings=False,
    ),
    Cause(
        "remote-exit",
        "a peer ended during the collective",
        "read the log of the peer that ended first; this rank only noticed",
        (
            r"remote process exited|socket closed by (?:remote )?peer|connection closed by remote peer",
        ),
        surroundings=False,
        vague=True,
    ),
    Cause(
        "system-error",
        "a system call failed inside NCCL",
        "run again with NCCL_DEBUG=WARN: the line before this one names the call",
        (r"unhandled system error|ncclSystemError",),
        surroundings=False,
        vague=True,
    ),
    Cause(
        "cuda-error",
        "a CUDA call failed inside NCCL",
        "run again with NCCL_DEBUG=WARN: the line before this one names the call",
        (r"unhandled cuda error|ncclUnhandledCudaError",),
        surroundings=False,
        vague=True,
    ),
)


def find(text: str) -> tuple[Cause, ...]:
    """The causes whose sentences are in *text*, most exact first; empty when none is known."""
    found = [cause for cause in CAUSES if cause.is_in(text)]
    exact = [cause for cause in found if not cause.vague]
    names: set[str] = set()
    unique = []
    for cause in exact or found:
        if cause.name not in names:
            names.add(cause.name)
            unique.append(cause)
    return tuple(unique)


def explain(text: str) -> str:
    """One sentence for a person: cause and next step, or the last lines as they are."""
    found = find(text)
    if found:
        return "; ".join(f"{cause.title}: {cause.hint}" for cause in found)
    return tail(text)


def could_not_test(text: str) -> bool:
    """Whether all that is known about *text* lies in the surroundings (decision 19)."""
    found = find(text)
    return bool(found) and all(cause.surroundings for cause in found)
