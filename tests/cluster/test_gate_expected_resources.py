"""expected-resources as the program of its container, on a real cluster."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
from tests.assertions.fake_cluster import check
from tests.cluster.workloads import container, deployment
from tests.controlplane.client import Client, eventually
from tests.controlplane.plane import ControlPlane

from aicr.contract.sentinels import parse_output

pytestmark = pytest.mark.cluster

ROOT: Final = Path(__file__).resolve().parents[2]
SNAPSHOT: Final = {"kind": "Snapshot", "apiVersion": "aicr.run/v1", "measurements": []}


def ran(
    plane: ControlPlane, folder: Path, *refs: dict[str, Any], factor: str = "0.2"
) -> tuple[subprocess.CompletedProcess[str], str]:
    """The program's end and its termination message, with short waiting times."""
    folder.mkdir(exist_ok=True)
    (folder / "snapshot.yaml").write_text(json.dumps(SNAPSHOT), encoding="utf-8")
    document = {"componentRefs": list(refs), "config": {}, "gpuAllocationPolicy": "unspecified"}
    (folder / "validation.yaml").write_text(json.dumps(document), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "aicr.checks.main", "expected-resources"],
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT / "src"),
            "KUBECONFIG": str(plane.kubeconfig),
            "AICR_SNAPSHOT_PATH": str(folder / "snapshot.yaml"),
            "AICR_VALIDATION_PATH": str(folder / "validation.yaml"),
            "AICR_TERMINATION_LOG": str(folder / "termination"),
            "AICR_CHECK_TIMEOUT": "180s",
            "AICR_TIMEOUT_FACTOR": factor,
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    place = folder / "termination"
    return done, place.read_text(encoding="utf-8") if place.exists() else ""


def test_what_is_deployed_passes_and_what_is_not_is_named(
    plane: ControlPlane, api: Client, namespace: str, tmp_path: Path
) -> None:
    """The same recipe before and after its Deployment is there; a GPU probe that must fail."""
    text = check(
        "assert",
        f"{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: app, namespace: {namespace}}}, "
        "status: {(availableReplicas >= `1`): true}}",
    )
    ref = {
        "name": "app",
        "namespace": namespace,
        "expectedResources": [{"kind": "Deployment", "name": "app"}],
        "healthCheckAsserts": text,
    }
    before, message = ran(plane, tmp_path / "before", ref)
    assert before.returncode == 1, before.stderr
    lines = parse_output(before.stdout).lines
    assert lines[:2] == [f"  Namespace {namespace}: Active", "Failed resources:"]
    assert [line.split(":")[0] for line in lines[2:]] == [
        f"  [expectedResources] Deployment {namespace}/app",
        "  [chainsaw] app",
    ]
    assert message.startswith("[NOT_FOUND] ")

    api.create(deployment("app", 1, container("exec sleep 1000")), namespace)
    eventually(
        "the Deployment to be available",
        lambda: api.get("Deployment", "app", namespace)["status"].get("availableReplicas"),
    )
    after, message = ran(plane, tmp_path / "after", ref)
    assert after.returncode == 0, after.stdout + after.stderr
    assert message == ""
    assert parse_output(after.stdout).lines == [
        f"  Namespace {namespace}: Active",
        f"  [expectedResources] Deployment {namespace}/app: healthy",
        "  [chainsaw] app: health check passed",
        "All deployment resources and required readiness signals are healthy",
    ]

    driver = {"name": "nvidia-dra-driver-gpu", "namespace": namespace}
    probed, message = ran(plane, tmp_path / "probed", ref, driver, factor="0.05")
    assert probed.returncode == 1
    assert message.startswith("[TIMEOUT] DRA kubelet plugin not ready within ")
    assert f"no DaemonSet *-kubelet-plugin in namespace {namespace}" in message
    assert "  [chainsaw] app: health check passed" in parse_output(probed.stdout).lines
