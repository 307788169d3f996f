"""Checks as Jobs on a real control plane: verdicts, evidence, what is made and what is left."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cluster.validate_runs import Case, left_of, recipe, shell
from tests.collectors.machines import UBUNTU
from tests.controlplane.client import Client
from tests.controlplane.plane import ControlPlane

pytestmark = pytest.mark.cluster

AGENT = "aicr.local/aicr-agent:latest"


@pytest.fixture
def case(tmp_path: Path, plane: ControlPlane) -> Case:
    """A folder and the shared plane."""
    return Case(tmp_path, plane.kubeconfig)


def test_verdicts_of_one_run(case: Case, api: Client, namespace: str) -> None:
    """Exit codes become statuses, stdout evidence, the message the reason; nothing is left."""
    case.write(
        recipe(deployment=["passes", "fails", "skips", "breaks"]),
        [
            shell("passes", "echo seen; echo 'RESULT: 3 pods'"),
            shell("fails", "echo 'no pods' > /dev/termination-log; exit 1"),
            shell("skips", "echo 'no GPU' > /dev/termination-log; exit 2"),
            shell("breaks", "exit 3"),
        ],
    )
    ended = case.run("-n", namespace)
    assert ended.status == 8, ended.err
    statuses = {name: test["status"] for name, test in ended.tests.items()}
    assert statuses == {
        "passes": "passed",
        "fails": "failed",
        "skips": "skipped",
        "breaks": "other",
    }
    assert ended.tests["passes"]["stdout"] == ["seen", "RESULT: 3 pods"]
    assert ended.tests["fails"]["message"].strip() == "no pods"
    assert "passes: RESULT 3 pods" in ended.err
    assert left_of(api.call, ended.run_id) == []


@pytest.mark.covers("V-003", "V-086", "V-109")
def test_a_shipped_check_runs_as_a_job_with_its_log_live(
    case: Case, api: Client, namespace: str
) -> None:
    """The real program in a pod: it finds no operator, says so, and its log was shown meanwhile."""
    case.write(recipe(deployment=["operator-health"]))
    ended = case.run("-n", namespace)
    assert ended.status == 8, ended.err
    test = ended.tests["operator-health"]
    assert test["status"] == "failed"
    assert test["message"]
    assert "operator-health | " in ended.err
    assert not any('"level"' in line for line in test.get("stdout", ()))
    assert ended.err.startswith("context test, server https://")
    assert f"namespace {namespace}" in ended.err.splitlines()[0]
    assert left_of(api.call, ended.run_id) == []


def test_the_same_check_runs_here_with_the_same_verdict(
    case: Case, api: Client, namespace: str
) -> None:
    """--runner local: one contract, no object in the cluster (decision 12)."""
    case.write(recipe(deployment=["operator-health"]))
    ended = case.run("-n", namespace, "--runner", "local")
    assert ended.status == 8, ended.err
    assert ended.tests["operator-health"]["status"] == "failed"
    assert left_of(api.call, ended.run_id) == []
    reports = api.list("ConfigMap", namespace, labelSelector="aicr.run/report-type=ctrf")
    assert reports == []


def test_pods_of_checks_run_on_nodes_that_run_pods(case: Case, api: Client, namespace: str) -> None:
    """They tolerate the taint of hollow nodes, on which nothing runs, and still never go there."""
    names = [f"check-{number}" for number in range(6)]
    case.write(recipe(deployment=names), [shell(name, "hostname") for name in names])
    ended = case.run("-n", namespace, "--parallel", "6", "--no-cleanup")
    pods = api.list("Pod", namespace, labelSelector=f"aicr.run/run-id={ended.run_id}")
    nodes = {pod["spec"]["nodeName"] for pod in pods}
    for kind, path in (
        ("Job", f"/apis/batch/v1/namespaces/{namespace}/jobs"),
        (
            "ClusterRoleBinding",
            "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        ),
    ):
        query = {"labelSelector": f"aicr.run/run-id={ended.run_id}"}
        assert api.call("GET", path, query=query)["items"], kind
        api.request("DELETE", path, query=query)
    assert ended.status == 0, ended.err
    assert len(pods) == 6
    assert nodes <= {"runs-1", "runs-2"}
    assert "--no-cleanup keeps the binding to cluster-admin" in ended.err


def test_documents_in_config_maps(case: Case, api: Client, namespace: str) -> None:
    """Recipe and snapshot from cm://, the report to cm://."""
    case.write(recipe(deployment=["a"]), [shell("a", "grep -c version $AICR_SNAPSHOT_PATH")])
    for name in ("recipe", "snapshot"):
        text = (case.folder / f"{name}.yaml").read_text()
        document = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name},
            "data": {f"{name}.yaml": text},
        }
        api.create(document, namespace)
    flags = ["-r", f"cm://{namespace}/recipe", "-s", f"cm://{namespace}/snapshot"]
    ended = case.run(*flags, "-n", namespace, "-o", f"cm://{namespace}/report", sources=False)
    assert ended.status == 0, ended.err
    kept = api.get("ConfigMap", "report", namespace)["data"]["report.json"]
    assert json.loads(kept)["results"]["summary"]["passed"] == 1


def test_a_recipe_goes_to_a_config_map_and_a_bundle_is_made_from_it(
    case: Case, plane: ControlPlane, api: Client, namespace: str
) -> None:
    """`aicr recipe -o cm://…`, then `aicr bundle -r cm://…`; another key of the ConfigMap stays."""
    own = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "made"}}
    api.create({**own, "data": {"own": "kept"}}, namespace)
    place = f"cm://{namespace}/made"
    words = ["--service", "eks", "--accelerator", "h100", "--intent", "training", "--os", "ubuntu"]
    environ = {**os.environ, "KUBECONFIG": str(plane.kubeconfig)}
    for command in (
        ["recipe", *words, "-o", place],
        ["bundle", "-r", place, "-o", str(case.folder / "bundle")],
    ):
        done = subprocess.run(
            [sys.executable, "-m", "aicr", *command],
            env=environ,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
    data = api.get("ConfigMap", "made", namespace)["data"]
    assert set(data) == {"own", "recipe.yaml"}
    assert (case.folder / "bundle" / "recipe.yaml").exists()


def test_without_a_snapshot_an_agent_takes_one(
    case: Case, plane: ControlPlane, api: Client, namespace: str
) -> None:
    """In the same run and namespace; its objects are gone before the first check."""
    place = plane.folder / "nodes" / "runs-1" / "disk" / "etc" / "os-release"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(UBUNTU)
    case.write(recipe(deployment=["a"]), [shell("a", "grep -c measurements $AICR_SNAPSHOT_PATH")])
    flags = ["-r", str(case.folder / "recipe.yaml"), "-n", namespace, "--image", AGENT]
    flags += ["--node-selector", "kubernetes.io/hostname=runs-1"]
    ended = case.run(*flags, factor="0.3", sources=False)
    assert ended.status == 0, ended.err
    assert "snapshot agent: run " in ended.err
    assert ended.tests["a"]["stdout"] == ["1"]
    assert left_of(api.call, ended.run_id) == []
