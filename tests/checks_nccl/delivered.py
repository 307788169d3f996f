"""A recipe that delivers the TCPXO runtime, and the cluster on which it is installed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tests.checks_nccl.bench import gpu_node, validation

from aicr.checks.deployment.gke_gpu_nic_networks import ORDINARY

Document = dict[str, Any]

RUNTIME = "torch-distributed-tcpxo"
MAPPING = [{"interfaceName": f"eth{n + 1}", "network": f"gpu-nic-{n}"} for n in range(8)]


def recipe() -> Document:
    """The validation input of h100-gke-cos-training-kubeflow."""
    return validation(
        {"nccl-all-reduce-bw": ">= 300"},
        "gke",
        "h100",
        manifestFiles=[f"components/kubeflow-trainer/manifests/{RUNTIME}.yaml"],
        overrides={"tcpxoInterfaces": [dict(one) for one in MAPPING]},
    )


def networks() -> list[Document]:
    """The GPU NIC networks."""
    return [{"metadata": {"name": one["network"]}, "spec": {}} for one in MAPPING]


def gke_nodes() -> list[Document]:
    """Two nodes with eight GPUs."""
    has = {"cloud.google.com/gke-accelerator": "nvidia-h100-mega-80gb"}
    return [gpu_node(name, labels=has) for name in ("n1", "n2")]


def installer_pods(nodes: Sequence[str] = ("n1", "n2")) -> list[Document]:
    """The TCPXO installer, ready on each node."""
    return [
        {
            "metadata": {
                "name": f"installer-{node}",
                "namespace": "kube-system",
                "labels": {"k8s-app": "nccl-tcpxo-installer"},
            },
            "spec": {"nodeName": node, "containers": [{"name": "i"}]},
            "status": {
                "phase": "Running",
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }
        for node in nodes
    ]


def shipped_runtime(mapping: Sequence[Document] = MAPPING) -> Document:
    """The ClusterTrainingRuntime as it is deployed."""
    gpus = {"nvidia.com/gpu": 8}
    variables = {
        "NCCL_FASTRAK_IFNAME": "eth1,eth2,eth3,eth4,eth5,eth6,eth7,eth8",
        "NCCL_SOCKET_IFNAME": "eth0",
        "LD_LIBRARY_PATH": "/usr/local/nvidia/lib64",
    }
    pods = {
        "metadata": {
            "annotations": {
                "networking.gke.io/default-interface": "eth0",
                "networking.gke.io/interfaces": json.dumps([ORDINARY, *mapping]),
                "devices.gke.io/container.tcpxo-daemon": "- path: /dev/nvidia0\n",
            }
        },
        "spec": {
            "nodeSelector": {"my-org/pool": "customer-prod"},
            "initContainers": [
                {"name": "tcpxo-daemon", "image": "daemon:1", "restartPolicy": "Always"}
            ],
            "containers": [
                {
                    "name": "node",
                    "image": "pytorch:1",
                    "env": [{"name": k, "value": v} for k, v in variables.items()],
                    "resources": {"limits": dict(gpus), "requests": dict(gpus)},
                    "volumeMounts": [
                        {"name": "nvidia", "mountPath": "/usr/local/nvidia/lib64"},
                        {"name": "aperture-devices", "mountPath": "/dev/aperture_devices"},
                        {"name": "shared-memory", "mountPath": "/dev/shm"},
                    ],
                }
            ],
            "volumes": [
                {"name": "nvidia", "hostPath": {"path": "/home/kubernetes/bin/nvidia/lib64"}},
                {"name": "aperture-devices", "hostPath": {"path": "/dev/aperture_devices"}},
                {"name": "sys", "hostPath": {"path": "/sys"}},
                {"name": "proc-sys", "hostPath": {"path": "/proc/sys"}},
                {"name": "shared-memory", "emptyDir": {"medium": "Memory"}},
            ],
        },
    }
    job = {"name": "node", "template": {"spec": {"template": pods}}}
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": RUNTIME},
        "spec": {"template": {"spec": {"replicatedJobs": [job]}}},
    }
