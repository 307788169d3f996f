"""Which checks there are, and where: name → module, imported when it is asked for.

The order is that of the shipped catalogue within each phase. A name that is not here does not exist,
whatever files there are. This module must not import a check before it is asked to. Source: validators
spec 2.2, 5.2.
"""

from __future__ import annotations

import importlib
from typing import Final

from aicr.checks.sdk.check import CONFORMANCE, DEPLOYMENT, PERFORMANCE, Check
from aicr.errors import INTERNAL, AicrError, nearest, not_found

_NAMES: Final[dict[str, tuple[str, ...]]] = {
    DEPLOYMENT: (
        "operator-health",
        "expected-resources",
        "gpu-operator-version",
        "check-nvidia-smi",
        "gke-gpu-nic-networks",
        "gke-gpu-nic-topology",
    ),
    CONFORMANCE: (
        "dra-support",
        "gang-scheduling",
        "accelerator-metrics",
        "ai-service-metrics",
        "inference-gateway",
        "pod-autoscaling",
        "cluster-autoscaling",
        "robust-controller",
        "secure-accelerator-access",
        "slinky-slurm-health",
        "slinky-slurm-imex-channel",
        "slinky-slurm-gpu-access",
        "gpu-operator-health",
        "platform-health",
    ),
    PERFORMANCE: (
        "nccl-all-reduce-bw",
        "inference-perf",
        "nccl-all-reduce-bw-net",
        "nccl-all-reduce-bw-nvls",
        "nccl-cre-all-reduce-bw",
        "cre-training-goodput",
    ),
}

#: Name of a check → module that has its `CHECK`.
MODULES: Final[dict[str, str]] = {
    name: f"aicr.checks.{phase}.{name.replace('-', '_')}"
    for phase, names in _NAMES.items()
    for name in names
}


def names(phase: str = "") -> list[str]:
    """The names of all checks, or those of one phase, in the order in which they run."""
    return [name for each, listed in _NAMES.items() if phase in ("", each) for name in listed]


def load(name: str) -> Check:
    """The check called *name*.

    Raises:
        AicrError: NOT_FOUND ``unknown check: NAME`` with the nearest name; INTERNAL when its module
            does not hold the check that the table says, which is a bug.
    """
    path = MODULES.get(name)
    if path is None:
        near = nearest(name, list(MODULES))
        raise not_found(
            f"unknown check: {name}",
            hint=f"did you mean {near}?" if near else "aicr checks list shows all",
        )
    check = getattr(importlib.import_module(path), "CHECK", None)
    if not isinstance(check, Check) or check.name != name or check.phase != path.split(".")[2]:
        raise AicrError(INTERNAL, f"{path} does not declare check {name}")
    return check
