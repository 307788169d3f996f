"""Health checks need nothing but this package: no chainsaw program, whichever runtime looks."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.assertions.fake_cluster import check
from tests.assertions.served_api import served
from tests.cli.program import aicr
from tests.expected_resources import deployed_cluster
from tests.expected_resources.deployed_cluster import DeployedCluster, made, namespace

from aicr.kube import kinds

ROOT = Path(__file__).resolve().parents[2]
REGISTRY = (
    "apiVersion: aicr.run/v1beta1\nkind: ComponentRegistry\ncomponents:\n"
    "  - name: app\n    displayName: App\n"
    "    helm: {defaultRepository: 'https://x.example', defaultChart: x/app, defaultVersion: 1.0.0}\n"
    "    healthCheck: {assertFile: checks/app/health-check.yaml}\n"
)
#: One claim in both forms: a Test, and the object itself.
FORMS = {
    "test": check(
        "assert",
        "{apiVersion: v1, kind: Pod, metadata: {namespace: app, name: p}, status: {phase: Running}}",
    ),
    "raw": (
        "apiVersion: v1\nkind: Pod\nmetadata: {namespace: app, name: p}\nstatus: {phase: Running}\n"
    ),
}


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No program can be started."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("a health check must not start a program")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    for name in ("fork", "posix_spawn", "system", "execv", "execve"):
        monkeypatch.setattr(os, name, refuse)


def pod(phase: str) -> dict[str, Any]:
    """The pod that the check is about."""
    return made("v1", "Pod", "p", "app", status={"phase": phase})


@pytest.mark.covers("V-006", "V-007")
@pytest.mark.parametrize("phase", ["Running", "Failed"])
@pytest.mark.parametrize("form", FORMS)
def test_the_deployment_check_evaluates_both_forms_itself(form: str, phase: str) -> None:
    """A Test and a raw object have the same verdict, in the process of the check."""
    ref = {"name": "app", "namespace": "app", "healthCheckAsserts": FORMS[form]}
    found = deployed_cluster.check(DeployedCluster(namespace("app"), pod(phase)), ref)
    assert (found.error is None) is (phase == "Running")
    text = "\n".join(found.lines)
    assert ("[chainsaw] app: health check passed" in text) is (phase == "Running")
    assert ("[chainsaw] app: Pod app/p: status.phase" in text) is (phase == "Failed")


@pytest.mark.covers("V-007")
@pytest.mark.parametrize(("phase", "status"), [("Running", 0), ("Failed", 8)])
@pytest.mark.parametrize("form", FORMS)
def test_check_health_evaluates_both_forms_itself(
    form: str, phase: str, status: int, tmp_path: Path
) -> None:
    """The command for people reads what the deployment check reads."""
    folder = tmp_path / "data" / "checks" / "app"
    folder.mkdir(parents=True)
    (folder / "health-check.yaml").write_text(FORMS[form], encoding="utf-8")
    (tmp_path / "data" / "registry.yaml").write_text(REGISTRY, encoding="utf-8")
    with served(tmp_path) as server:
        server.store("ADDED", kinds.POD, pod(phase))
        done = aicr(
            *("check-health", "app", "--data", tmp_path / "data", "--kubeconfig", server.config),
            *("--timeout", "1s" if status else "60s", "--poll-interval", "50ms"),
        )
    assert done.status == status, done.err


@pytest.mark.covers("V-006")
def test_no_image_brings_the_program_along() -> None:
    """What the images install is this package and what its constraints pin."""
    paths = sorted((ROOT / "containers").rglob("Dockerfile"))
    assert paths
    for path in paths:
        steps = re.sub(r"(?m)^#.*$", "", path.read_text(encoding="utf-8"))
        assert "chainsaw" not in steps.lower(), path
    assert "chainsaw" not in (ROOT / "constraints.txt").read_text(encoding="utf-8").lower()
