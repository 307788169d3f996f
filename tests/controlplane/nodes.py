"""What a test node is, and the configuration its agent gets.

It must not know: how agents are started, and how they work.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml
from tests.controlplane import build

#: Pods on such a node are said to run and do not. The taint keeps off what has to run, Jobs first.
HOLLOW: Final = "aicr.run/hollow"
HOLLOW_TAINT: Final[Mapping[str, str]] = {"key": HOLLOW, "value": "true", "effect": "NoSchedule"}
IMAGES: Final = Path(__file__).resolve().with_name("images.yaml")
TESTS: Final = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Node:
    """A node to add: its name, labels and size; *devices* are given out by claims (DRA).

    *info* replaces entries of `status.nodeInfo`, such as `kernelVersion` or `osImage`.
    """

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    cpu: str = "16"
    memory: str = "64Gi"
    pods: int = 60
    gpus: int = 0
    devices: int = 0
    taints: Sequence[Mapping[str, str]] = ()
    hollow: bool = False
    info: Mapping[str, str] = field(default_factory=dict)

    def document(self, address: str, port: int | None) -> dict[str, Any]:
        """The Node object without conditions, as its agent registers it."""
        amounts = {"cpu": self.cpu, "memory": self.memory, "pods": str(self.pods)}
        amounts["ephemeral-storage"] = "100Gi"
        if self.gpus:
            amounts["nvidia.com/gpu"] = str(self.gpus)
        taints = [dict(taint) for taint in self.taints]
        labels = {
            "kubernetes.io/hostname": self.name,
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
            **self.labels,
        }
        if self.hollow:
            taints.append(dict(HOLLOW_TAINT))
            labels[HOLLOW] = "true"
        spec: dict[str, Any] = {"taints": taints} if taints else {}
        status: dict[str, Any] = {
            "capacity": amounts,
            "allocatable": amounts,
            "addresses": [
                {"type": "InternalIP", "address": address},
                {"type": "Hostname", "address": self.name},
            ],
            "nodeInfo": {
                "architecture": "amd64",
                "operatingSystem": "linux",
                "osImage": "test",
                "kernelVersion": "6.8.0-test",
                "containerRuntimeVersion": "aicr-test://1",
                "kubeletVersion": build.kubernetes_version(),
                "kubeProxyVersion": "",
                "machineID": self.name,
                "systemUUID": self.name,
                "bootID": self.name,
                **self.info,
            },
        }
        if port is not None:
            status["daemonEndpoints"] = {"kubeletEndpoint": {"Port": port}}
            # Tells the API server to hand WebSockets of exec through as they are.
            status["declaredFeatures"] = ["ExtendWebSocketsToKubelet"]
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": self.name, "labels": labels},
            "spec": spec,
            "status": status,
        }


def read_images(*files: Path) -> dict[str, dict[str, Any]]:
    """Images that exist on test nodes: name → entrypoint, cmd, env, workdir; later files win.

    `{python}` stands for the interpreter that runs the tests, `{tests}` for the folder of all tests.

    Raises:
        ValueError: an entry is not of that form.
    """
    images: dict[str, dict[str, Any]] = {}
    for file in files:
        for name, entry in (yaml.safe_load(file.read_text(encoding="utf-8")) or {}).items():
            if isinstance(entry, list):
                entry = {"entrypoint": entry}
            if not isinstance(entry, dict) or set(entry) - {"entrypoint", "cmd", "env", "workdir"}:
                raise ValueError(
                    f"{file}: {name}: give a list of words, or entrypoint, cmd, env and workdir"
                )
            images[str(name)] = {
                "entrypoint": [_filled(word) for word in entry.get("entrypoint", [])],
                "cmd": [_filled(word) for word in entry.get("cmd", [])],
                "env": {key: _filled(text) for key, text in entry.get("env", {}).items()},
                "workdir": entry.get("workdir", "/"),
            }
    return images


def _filled(word: object) -> str:
    return str(word).replace("{python}", sys.executable).replace("{tests}", str(TESTS))
