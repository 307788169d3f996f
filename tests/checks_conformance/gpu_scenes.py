"""Clusters that hand out GPUs, by claim or by a device plugin, and what their pods report."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.checks.contexts import node
from tests.checks_conformance.scene import DRA, SLICE, Scene
from tests.checks_deployment.kubelet import Ends

from aicr.checks.sdk.check import Check
from aicr.kube import kinds

Document = dict[str, Any]

ONE = "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-3e8b7a52-0001)\n"
TWO = ONE + "GPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-3e8b7a52-0002)\n"


def listing(gpus: str = ONE, *, status: int = 0, devices: tuple[str, ...] = ("nvidia0",)) -> str:
    """What the container with a GPU writes."""
    return f"{gpus}NVSMI_RC={status}\n{nothing(*devices)}"


def nothing(*devices: str) -> str:
    """What a container without a GPU writes."""
    return "".join(f"DEV=/dev/{name}\n" for name in devices) + "DONE=1\n"


def pods(
    given: str = "", denied: str = "", other: str = "", channel: str = ""
) -> Callable[[Document], Ends | None]:
    """Test pods that report this; the default is as it should be."""

    def behave(pod: Document) -> Ends | None:
        name = pod["metadata"]["name"]
        if name == "gpu-access":
            terms = pod["spec"]["affinity"]["nodeAffinity"][
                "requiredDuringSchedulingIgnoredDuringExecution"
            ]["nodeSelectorTerms"]
            place = terms[0]["matchFields"][0]["values"][0]
            logs = {"gpu-test": given or listing(), "unauthorized": denied or nothing()}
            return Ends(logs=logs, node=place)
        if name == "gpu-denied":
            return Ends(logs={"unauthorized": other or nothing()})
        if name == "imex-probe":
            return Ends(logs={"probe": channel or "CHANNEL=channel0\nDONE=1\n"}, node="clique")
        return None

    return behave


def gpu_slice(name: str, count: int = 8) -> Document:
    """Full GPUs of a node in DRA."""
    devices = [
        {"name": f"gpu-{n}", "attributes": {"type": {"string": "gpu"}}} for n in range(count)
    ]
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu.nvidia.com", "nodeName": name, "pool": pool, "devices": devices}
    return {"metadata": {"name": f"{name}-gpus"}, "spec": spec}


def by_plugin(check: Check, **settings: Any) -> Scene:
    """One node with eight GPUs of a device plugin, and one without."""
    scene = Scene(check, **{"behave": pods(), "served": DRA, **settings})
    return scene.put(kinds.NODE, node("gpu-node", gpus=8), node("cpu-node"))


def by_claim(check: Check, **settings: Any) -> Scene:
    """One node whose GPUs are in ResourceSlices."""
    scene = Scene(check, **{"behave": pods(), "served": DRA, **settings})
    return scene.put(kinds.NODE, node("gpu-node"), node("cpu-node")).put(
        SLICE, gpu_slice("gpu-node")
    )
