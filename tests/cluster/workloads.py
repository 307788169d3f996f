"""Pods, Jobs and Deployments for tests, as short as they can be written."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests import tools
from tests.controlplane.client import Client, Document, eventually

SHELL = "test.local/shell"
PYTHON = "test.local/python"


def container(command: str | Sequence[str], /, *, name: str = "main", **fields: Any) -> Document:
    """A container that runs a shell script, or the words of a command."""
    words = ["sh", "-c", command] if isinstance(command, str) else list(command)
    plain = {"name": name, "image": SHELL, "imagePullPolicy": "Never", "command": words}
    return {**plain, **fields}


def pod_spec(*containers: Document, **fields: Any) -> Document:
    """A pod's spec that runs once and ends within a second when it is deleted."""
    plain = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1}
    return {**plain, "containers": list(containers), **fields}


def pod(
    name: str, *containers: Document, labels: Document | None = None, **fields: Any
) -> Document:
    """A pod."""
    meta = {"name": name, "labels": labels or {}}
    spec = pod_spec(*containers, **fields)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def job(
    name: str, *containers: Document, pods: int = 1, retries: int = 0, **fields: Any
) -> Document:
    """A Job of *pods* pods at once."""
    spec = {
        "completions": pods,
        "parallelism": pods,
        "backoffLimit": retries,
        "template": {"spec": pod_spec(*containers, **fields)},
    }
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


def deployment(name: str, replicas: int, *containers: Document, **fields: Any) -> Document:
    """A Deployment."""
    labels = {"app": name}
    spec = pod_spec(*containers, **{"restartPolicy": "Always", **fields})
    template = {"metadata": {"labels": labels}, "spec": spec}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
    }


def config_map(name: str, data: dict[str, str]) -> Document:
    """A ConfigMap."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def secret(name: str, data: dict[str, str]) -> Document:
    """A Secret, given in plain text."""
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data}


def condition(document: Document, kind: str) -> Document | None:
    """A condition that is true, or None."""
    for one in document.get("status", {}).get("conditions", []):
        if one["type"] == kind and one["status"] == "True":
            found: Document = one
            return found
    return None


def job_ends(api: Client, namespace: str, name: str, seconds: float = 60) -> str:
    """Wait for a Job to end; returns "Complete" or "Failed"."""

    def ended() -> str | None:
        found = api.get("Job", name, namespace)
        return next((kind for kind in ("Complete", "Failed") if condition(found, kind)), None)

    return eventually(f"Job {name} to end", ended, seconds)


def pod_becomes(
    api: Client, namespace: str, name: str, phase: str, seconds: float = 60
) -> Document:
    """Wait for a pod's phase; returns the pod."""

    def there() -> Document | None:
        found = api.get("Pod", name, namespace)
        return found if found["status"].get("phase") == phase else None

    return eventually(f"pod {name} to be {phase}", there, seconds)


def pod_is_ready(api: Client, namespace: str, name: str, seconds: float = 60) -> Document:
    """Wait until a pod is ready; returns the pod."""

    def ready() -> Document | None:
        found = api.get("Pod", name, namespace)
        return found if condition(found, "Ready") else None

    return eventually(f"pod {name} to be ready", ready, seconds)


def pod_is_gone(api: Client, namespace: str, name: str, seconds: float = 60) -> None:
    """Wait until a pod is no more."""
    eventually(
        f"pod {name} to be gone",
        lambda: not any(one["metadata"]["name"] == name for one in api.list("Pod", namespace)),
        seconds,
    )


def waiting_reason(found: Document, place: str = "containerStatuses") -> str | None:
    """Why the first container does not run yet."""
    for one in found["status"].get(place, []):
        if "waiting" in one["state"]:
            return str(one["state"]["waiting"].get("reason"))
    return None


def kubectl(
    config: Path, *arguments: str, entry: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the real kubectl."""
    return subprocess.run(
        [tools.kubectl(), f"--kubeconfig={config}", *arguments],
        input=entry,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
