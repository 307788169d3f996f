"""The plan of a CNCF submission: for each feature, what is used to show it and what is looked at. Pure.

A behaviour is a check of the conformance phase, run here and now with this process's access to the
cluster: no Job, no catalogue, no recipe. What is looked at besides are lists of objects, as tables. A
kind that the cluster does not serve is something to see and not a failure. Source: validators spec 9.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from aicr.errors import invalid, nearest


@dataclass(frozen=True, slots=True)
class Read:
    """A list of objects to show.

    Attributes:
        title: heading of the table.
        kind: as the port takes it.
        columns: heading → dotted path in the object, besides namespace and name.
        labels: selector, "" for all.
    """

    title: str
    kind: str
    columns: tuple[tuple[str, str], ...] = ()
    labels: str = ""

    @property
    def command(self) -> str:
        """The command that would show the same."""
        words = ["kubectl", "get", self.kind, "-A"]
        return " ".join([*words, *(["-l", self.labels] if self.labels else [])])


@dataclass(frozen=True, slots=True)
class Section:
    """One feature: its page, its behaviour, and what is looked at."""

    feature: str
    title: str
    check: str
    reads: tuple[Read, ...] = ()

    @property
    def file(self) -> str:
        """The page."""
        return f"{self.feature}.md"


_ALLOCATABLE: Final = ("GPUs", "status.allocatable.nvidia.com/gpu")
_PHASE: Final = ("Phase", "status.phase")
_NODE: Final = ("Node", "spec.nodeName")

SECTIONS: Final = (
    Section(
        "dra-support",
        "DRA Support (Dynamic Resource Allocation)",
        "dra-support",
        (
            Read("Device classes", "deviceclasses.resource.k8s.io"),
            Read(
                "Resource slices",
                "resourceslices.resource.k8s.io",
                (("Driver", "spec.driver"), ("Pool", "spec.pool.name")),
            ),
        ),
    ),
    Section(
        "gang-scheduling",
        "Gang Scheduling (KAI Scheduler)",
        "gang-scheduling",
        (
            Read("Queues", "queues.scheduling.run.ai"),
            Read("Pod groups", "podgroups.scheduling.run.ai"),
        ),
    ),
    Section(
        "secure-access",
        "Secure Accelerator Access",
        "secure-accelerator-access",
        (Read("GPUs of nodes", "nodes", (_ALLOCATABLE,)),),
    ),
    Section(
        "accelerator-metrics",
        "Accelerator Metrics",
        "accelerator-metrics",
        (
            Read(
                "DCGM exporters",
                "pods",
                (_PHASE, _NODE),
                labels="app=nvidia-dcgm-exporter",
            ),
        ),
    ),
    Section(
        "ai-service-metrics",
        "AI Service Metrics",
        "ai-service-metrics",
        (
            Read("Service monitors", "servicemonitors.monitoring.coreos.com"),
            Read("Pod monitors", "podmonitors.monitoring.coreos.com"),
        ),
    ),
    Section(
        "inference-gateway",
        "Inference API Gateway",
        "inference-gateway",
        (
            Read(
                "Gateway classes",
                "gatewayclasses.gateway.networking.k8s.io",
                (("Controller", "spec.controllerName"),),
            ),
            Read(
                "Gateways",
                "gateways.gateway.networking.k8s.io",
                (("Class", "spec.gatewayClassName"),),
            ),
            Read("Inference pools", "inferencepools.inference.networking.k8s.io"),
        ),
    ),
    Section(
        "robust-operator",
        "Robust AI Operator",
        "robust-controller",
        (Read("Admission webhooks", "validatingwebhookconfigurations"),),
    ),
    Section(
        "pod-autoscaling",
        "Pod Autoscaling (HPA)",
        "pod-autoscaling",
        (
            Read(
                "Autoscalers",
                "horizontalpodautoscalers.autoscaling",
                (("Target", "spec.scaleTargetRef.name"),),
            ),
        ),
    ),
    Section(
        "cluster-autoscaling",
        "Cluster Autoscaling",
        "cluster-autoscaling",
        (
            Read("Node pools", "nodepools.karpenter.sh"),
            Read("GPUs of nodes", "nodes", (_ALLOCATABLE,)),
        ),
    ),
)
FEATURES: Final = tuple(section.feature for section in SECTIONS)


def plan(features: Sequence[str]) -> list[Section]:
    """The sections of *features* in the order of the specification; all for none.

    Raises:
        AicrError: INVALID_REQUEST for a feature that there is not.
    """
    for feature in features:
        if feature not in FEATURES:
            near = nearest(feature, list(FEATURES))
            raise invalid(
                f'unknown feature "{feature}"',
                where="--feature",
                hint=f'did you mean "{near}"?' if near else f"known: {', '.join(FEATURES)}",
            )
    return [section for section in SECTIONS if not features or section.feature in features]
