"""Shipped checks as Jobs of one `aicr validate` run: the same verdicts from inside the cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.check_runs import HOLLOWS, Stage, gpus_are_free
from tests.cluster.validate_runs import Case, left_of, recipe
from tests.controlplane.client import Client, Document
from tests.controlplane.plane import ControlPlane

pytestmark = pytest.mark.cluster


@pytest.fixture
def stage(api: Client) -> Iterator[Stage]:
    """Objects of one test."""
    with Stage(api) as found:
        yield found


@pytest.mark.covers("V-257", "V-261", "V-262")
def test_checks_of_two_phases_run_as_jobs(
    tmp_path: Path, plane: ControlPlane, stage: Stage, namespace: str
) -> None:
    """Pods of checks create pods, read metrics of pods, skip and fail; coverage is shown while they run."""
    gpus_are_free(stage.api, "runs-1", "runs-2")
    operator = stage.namespace("gpu-operator")
    stage.workload("Deployment", operator, "gpu-operator", {"app": "gpu-operator"})
    stage.serve(operator, "nvidia-dcgm-exporter", 9400, "metrics")
    stage.cordon(*HOLLOWS)
    case = Case(tmp_path, plane.kubeconfig)
    document: Document = recipe(
        deployment=["operator-health", "check-nvidia-smi"],
        conformance=[
            *("accelerator-metrics", "secure-accelerator-access", "platform-health"),
            *("gang-scheduling", "gpu-operator-health"),
        ],
    )
    case.write(document)
    ended = case.start("-n", namespace, "--parallel", "2").ended(600)
    statuses = {name: test["status"] for name, test in ended.tests.items()}
    assert statuses == {
        "operator-health": "passed",
        "check-nvidia-smi": "passed",
        "accelerator-metrics": "passed",
        "secure-accelerator-access": "passed",
        "platform-health": "passed",
        "gang-scheduling": "skipped",
        "gpu-operator-health": "failed",
    }, ended.err
    assert ended.status == 8
    smi = ended.tests["check-nvidia-smi"]
    assert smi["extra"] == {"nodesValidated": "2", "nodesTotal": "4"}
    assert smi["stdout"][-1] == "RESULT: nodesValidated: 2/4 (2 cordoned, skipped)"
    assert "check-nvidia-smi: RESULT nodesValidated: 2/4 (2 cordoned, skipped)" in ended.err
    assert "ClusterPolicy" in ended.tests["gpu-operator-health"]["message"]
    assert left_of(stage.api.call, ended.run_id) == []
