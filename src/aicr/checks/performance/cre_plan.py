"""What a Certification of the Cluster Readiness Engine is asked for, and what it answered.

```
constraint, criteria ──► record ──► nodes ──► Certification ──► measurement ──► verdict
```

Only what has been qualified is run: a check, a service and an accelerator for which the engine's job is
known to measure what the check is about. Pure. Source: validators spec 7.4; requirement V-273.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from aicr.checks.performance.nccl_settings import Threshold
from aicr.checks.sdk import failed
from aicr.checks.sdk.nodes import GpuNode
from aicr.errors import INTERNAL, NOT_FOUND, AicrError, invalid

API: Final = "nvcre.nvidia.com/v1alpha1"
CERTIFICATION: Final = f"{API}/Certification"
CRD: Final = "certifications.nvcre.nvidia.com"
#: Label on everything that a Certification makes.
OWNER: Final = "nvcre.nvidia.com/certification"
TIMEOUT_PER_JOB: Final = "30m"
LEAST_NODES: Final = 2
#: Effects of a taint that keep pods away.
_REPELLING: Final = frozenset({"NoSchedule", "NoExecute"})
_FACTS: Final = ("avgTFLOPSPerGPU", "avgStepTimeSec", "interruptionCount", "lostWorkTimeSec")

Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Record:
    """A qualified job: what the engine calls it, and on how many nodes it may run at most.

    Attributes:
        check: that it belongs to.
        prefix: of the Certification's name.
        domain, variant: as the engine's categories spell them.
        measurement: kind whose status holds the result.
        unit: of the result.
        services: service → accelerators for which it has been qualified.
        most_nodes: at most.
    """

    check: str
    prefix: str
    domain: str
    variant: str
    measurement: str
    unit: str
    services: Mapping[str, frozenset[str]]
    most_nodes: int = 2


_QUALIFIED: Final[Mapping[str, frozenset[str]]] = {"eks": frozenset({"h100"})}
NCCL: Final = Record(
    *("nccl-cre-all-reduce-bw", "aicr-cre-nccl", "communication", "nccl-all-reduce"),
    *("BandwidthMeasurement", "GB/s", _QUALIFIED),
)
GOODPUT: Final = Record(
    *("cre-training-goodput", "aicr-cre-nemo", "training", "nemotron5-8b"),
    *("GoodputMeasurement", "", _QUALIFIED),
)


def is_qualified(record: Record, service: str, accelerator: str) -> bool:
    """Whether *record* may be run for a recipe."""
    return accelerator in record.services.get(service, frozenset())


def chosen(record: Record, nodes: Sequence[GpuNode]) -> list[GpuNode]:
    """The nodes to certify: Ready and schedulable ones with GPUs, by name, at most as many as qualified.

    Raises:
        AicrError: NOT_FOUND, a verdict, for fewer than two; INTERNAL, a verdict, when they differ in GPUs.
    """
    fit = [node for node in nodes if node.ready and not node.cordoned and node.gpus]
    if len(fit) < LEAST_NODES:
        raise failed(
            f"{len(fit)} GPU node(s) can be used, {record.check} needs {LEAST_NODES}",
            code=NOT_FOUND,
            hint="uncordon GPU nodes, or withhold the check with --skip-check",
        )
    found = sorted(fit, key=lambda node: node.name)[: record.most_nodes]
    if len({node.gpus for node in found}) > 1:
        counts = ", ".join(f"{node.name}={node.gpus}" for node in found)
        raise failed(f"the nodes offer different numbers of GPUs: {counts}")
    return found


def taint_selectors(nodes: Sequence[GpuNode]) -> list[dict[str, str]]:
    """The repelling taints that all nodes share; what only some have must not be tolerated by chance."""
    each = [
        {
            json.dumps(
                {key: taint[key] for key in ("key", "value", "effect") if taint.get(key)},
                sort_keys=True,
            )
            for taint in (node.document.get("spec") or {}).get("taints") or []
            if taint.get("effect") in _REPELLING
        }
        for node in nodes
    ]
    shared = set.intersection(*each) if each else set()
    return [json.loads(one) for one in sorted(shared)]


def name_of(record: Record, run_id: str) -> str:
    """The name of a run's Certification, and of its namespace."""
    return f"{record.prefix}-{hashlib.sha256(run_id.encode()).hexdigest()[:8]}"


def certification(
    record: Record, nodes: Sequence[GpuNode], name: str, labels: Mapping[str, str]
) -> dict[str, Any]:
    """The Certification of a run.

    Raises:
        AicrError: INVALID_REQUEST without nodes: an empty list means "all" to the engine.
    """
    if not nodes:
        raise invalid("a Certification needs the names of its nodes")
    names = sorted(node.name for node in nodes)[: record.most_nodes]
    spec: dict[str, Any] = {
        "categories": [{"domain": record.domain, "variant": record.variant}],
        "gpusPerNode": min(node.gpus for node in nodes),
        "nodesPerJob": len(names),
        "timeoutPerJob": TIMEOUT_PER_JOB,
        "target": {"nodeNames": names},
    }
    taints = taint_selectors(nodes)
    if taints:
        spec["taintSelectors"] = taints
    return {
        "apiVersion": API,
        "kind": "Certification",
        "metadata": {"name": name, "labels": dict(labels)},
        "spec": spec,
    }


def phase(found: Document) -> str:
    """Where a Certification stands; "" before the engine has looked at it."""
    return str((found.get("status") or {}).get("phase") or "")


def result(record: Record, measurements: Iterable[Document]) -> tuple[float, Document]:
    """The measured value and the status that holds it: the lowest, when there are several.

    Raises:
        AicrError: INTERNAL, could not tell, when there is none or it is no number.
    """
    found = []
    for each in measurements:
        status = each.get("status") or {}
        try:
            value = float(status["result"])
        except (KeyError, TypeError, ValueError):
            value = math.nan
        if not math.isfinite(value):
            raise AicrError(
                INTERNAL,
                f"{record.measurement} {each['metadata']['name']} holds no result",
                hint=f"kubectl get {record.measurement.lower()} -o yaml",
            )
        found.append((value, status))
    if not found:
        raise AicrError(INTERNAL, f"the Certification succeeded and left no {record.measurement}")
    return min(found, key=lambda one: one[0])


def transport_problem(status: Document) -> str:
    """Why a bandwidth does not prove the network, "" if it does."""
    used = str(status.get("transport") or "")
    if not used:
        return "the measurement does not say which transport was used"
    if not used.upper().startswith("NET") or "SOCKET" in used.upper():
        return f"the transport was {used}, not a network fabric"
    return ""


def lines(record: Record, threshold: Threshold, value: float, status: Document) -> list[str]:
    """The evidence of a measurement."""
    met = threshold.gbps <= value
    word = "true" if met else "false"
    if record is NCCL:
        shown = f"NCCL All Reduce bandwidth ({record.check}): {value:.2f} GB/s"
        more = [f"Transport: {status.get('transport')}"]
        said = f"{value:.2f} GB/s"
    else:
        shown, said = f"Training goodput ({record.check}): {value:.4f}", f"{value:.4f}"
        more = [f"{key}: {status[key]}" for key in _FACTS if status.get(key) is not None]
    return [
        shown,
        *more,
        f"Constraint: {threshold.expression} → {word}",
        f"RESULT: {record.check}: {said}, threshold {threshold.gbps:g}: {'PASS' if met else 'FAIL'}",
    ]
