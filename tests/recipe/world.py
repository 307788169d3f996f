"""A small catalogue of the shape that the originals' has: services, accelerators, and their leaves."""

from __future__ import annotations

from tests.recipe.trees import base, chart, constraint, entry, overlay, registry

VERSION_ID = "OS.release.VERSION_ID"
SERVER = "K8s.server.version"

WORLD: dict[str, str] = {
    "registry.yaml": registry(
        entry("nfd", helm={"defaultNamespace": "node-feature-discovery"}),
        entry(
            "gpu-operator",
            valueOverrideKeys=["gpuoperator"],
            helm={
                "defaultRepository": "https://helm.example.com/nvidia",
                "defaultChart": "nvidia/gpu-operator",
                "defaultVersion": "v26.7.0",
                "defaultNamespace": "gpu-operator",
            },
        ),
        entry("kubeflow-trainer"),
        entry("prometheus-adapter"),
    ),
    "overlays/base.yaml": base(
        constraints=[constraint(SERVER, ">= 1.25")],
        componentRefs=[
            chart("nfd"),
            {
                "name": "gpu-operator",
                "type": "Helm",
                "dependencyRefs": ["nfd"],
                "valuesFile": "components/gpu-operator/values.yaml",
            },
        ],
    ),
    "overlays/monitoring-hpa.yaml": overlay(
        "monitoring-hpa", {"intent": "any"}, componentRefs=[chart("prometheus-adapter")]
    ),
    "overlays/h100-any.yaml": overlay("h100-any", {"service": "any", "accelerator": "h100"}),
    "overlays/eks.yaml": overlay(
        "eks", {"service": "eks"}, constraints=[constraint(SERVER, ">= 1.32")]
    ),
    "overlays/eks-training.yaml": overlay(
        "eks-training", {"service": "eks", "intent": "training"}, base="eks"
    ),
    "overlays/h100-eks-training.yaml": overlay(
        "h100-eks-training",
        {"service": "eks", "accelerator": "h100", "intent": "training"},
        base="eks-training",
    ),
    "overlays/h100-eks-ubuntu-training.yaml": overlay(
        "h100-eks-ubuntu-training",
        {"service": "eks", "accelerator": "h100", "intent": "training", "os": "ubuntu"},
        base="h100-eks-training",
        constraints=[constraint(VERSION_ID, "24.04")],
    ),
    "overlays/h100-eks-ubuntu-training-kubeflow.yaml": overlay(
        "h100-eks-ubuntu-training-kubeflow",
        {
            "service": "eks",
            "accelerator": "h100",
            "intent": "training",
            "os": "ubuntu",
            "platform": "kubeflow",
        },
        base="h100-eks-ubuntu-training",
        componentRefs=[chart("kubeflow-trainer")],
    ),
    "overlays/gke-cos.yaml": overlay("gke-cos", {"service": "gke", "os": "cos"}),
    "overlays/h100-gke-cos-training.yaml": overlay(
        "h100-gke-cos-training",
        {"service": "gke", "accelerator": "h100", "intent": "training", "os": "cos"},
        base="gke-cos",
    ),
    "overlays/kind.yaml": overlay("kind", {"service": "kind"}),
    "overlays/kind-inference.yaml": overlay(
        "kind-inference", {"service": "kind", "intent": "inference"}, base="kind"
    ),
    "overlays/gb200-eks-training.yaml": overlay(
        "gb200-eks-training",
        {"service": "eks", "accelerator": "gb200", "intent": "training"},
        base="eks-training",
    ),
    "components/gpu-operator/values.yaml": "driver:\n  enabled: true\n  version: '580'\n",
}

#: Flags of the one query that the full chain of eks answers.
KUBEFLOW = (
    "--service",
    "eks",
    "--accelerator",
    "h100",
    "--intent",
    "training",
    "--os",
    "ubuntu",
    "--platform",
    "kubeflow",
)
TRAINING = KUBEFLOW[:-2]
