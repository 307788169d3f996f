"""The GPUs that this container has, by UUID, as nvidia-smi lists them.

nvidia-smi comes into a container with the driver, so no library has to be shipped. It lists whole GPUs,
also to a container that has a part of one (MIG). A place in this list is never passed on: the UUID is
what a GPU is called (decision 18). It must not know: DCGM, NCCL.
Source: preflight specification 6.3 step 2 and 7.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from aicr.errors import SERVICE_UNAVAILABLE, TIMEOUT, AicrError
from aicr.preflight.checks.environment_process import Process
from aicr.preflight.checks.times import CheckTimes

PROGRAM: Final = "nvidia-smi"
LIMIT: Final = CheckTimes().nvidia_smi
_QUERY: Final = ("--query-gpu=uuid,mig.mode.current,name", "--format=csv,noheader")
_COUNT: Final = ("--query-gpu=name", "--format=csv,noheader")


@dataclass(frozen=True)
class LocalGpu:
    """One GPU of this container."""

    uuid: str
    #: Whether it is cut into instances (MIG).
    mig: bool = False
    product: str = ""


def list_gpus(process: Process, environ: Mapping[str, str]) -> list[LocalGpu]:
    """The GPUs of this container in the order of nvidia-smi; empty when there are none.

    Raises:
        AicrError: nvidia-smi is missing, fails, does not end, or prints something else.
    """
    found = []
    for line in _lines(process, _QUERY, environ):
        uuid, mig, product = [*(part.strip() for part in line.split(",", 2)), "", ""][:3]
        if not uuid.startswith("GPU-"):
            raise AicrError(
                SERVICE_UNAVAILABLE, f"nvidia-smi printed {line!r} where a GPU's UUID was expected"
            )
        found.append(LocalGpu(uuid, mig.lower() == "enabled", product))
    return found


def product_names(process: Process, environ: Mapping[str, str]) -> list[str]:
    """The products of the GPUs of this container, one a GPU.

    Raises:
        AicrError: `nvidia-smi failed: …`, `nvidia-smi timed out after 30s` or `no GPUs found`.
    """
    found = _lines(process, _COUNT, environ)
    if not found:
        raise AicrError(SERVICE_UNAVAILABLE, "no GPUs found")
    return found


def _lines(process: Process, arguments: tuple[str, ...], environ: Mapping[str, str]) -> list[str]:
    try:
        done = process([PROGRAM, *arguments], timeout=LIMIT, environ=environ)
    except AicrError as error:
        if error.code == TIMEOUT:
            raise AicrError(TIMEOUT, f"nvidia-smi timed out after {LIMIT:.0f}s") from error
        raise AicrError(SERVICE_UNAVAILABLE, "nvidia-smi failed") from error
    lines = [line.strip() for line in done.stdout.splitlines() if line.strip()]
    if "no devices were found" in done.text.lower():
        return []
    if done.returncode:
        raise AicrError(
            SERVICE_UNAVAILABLE, f"nvidia-smi failed: {done.failure()}: {done.text}".strip(": ")
        )
    return lines
