"""The checks of Slinky Slurm as the real program on a real API server.

Sets and pods are real objects; commands of Slurm run by exec in a real login pod, where small programs
speak Slurm's formats (standins_b). Which devices a job may open is decided by the kernel, as on a real
node.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.check_runs import (
    FAILED,
    ON_HOLLOW,
    PASSED,
    SKIPPED,
    CheckRuns,
    Ended,
    Stage,
    recipe,
)
from tests.cluster.checks_table import COULD_NOT_TELL, FAIL, PASS, SKIP, reaches
from tests.cluster.workloads import container, pod, pod_is_ready
from tests.controlplane.client import MERGE, Client, Document
from tests.controlplane.plane import ControlPlane

pytestmark = pytest.mark.cluster

SLURM = "slurm"


@pytest.fixture
def runs(plane: ControlPlane, tmp_path: Path) -> CheckRuns:
    """Runs checks against the shared plane."""
    return CheckRuns(plane, tmp_path)


@pytest.fixture
def stage(api: Client) -> Iterator[Stage]:
    """Objects of one test."""
    with Stage(api) as found:
        yield found


def slurm(stage: Stage, *, imex: bool = False, gpus: int = 2) -> None:
    """The sets, a login pod that speaks Slurm, and a pod that is a node."""
    stage.namespace(SLURM)
    root = stage.crd("slinky.slurm.net", "v1beta1", "LoginSet", "loginsets", namespaced=True)
    stage.crd("slinky.slurm.net", "v1beta1", "NodeSet", "nodesets", namespaced=True)
    for kind, plural, name in (
        ("LoginSet", "loginsets", "slinky-slurm-login-slinky"),
        ("NodeSet", "nodesets", "slinky-slurm-worker-slinky"),
    ):
        stage.put(
            {
                "apiVersion": "slinky.slurm.net/v1beta1",
                "kind": kind,
                "metadata": {"name": name},
                "spec": {"controllerRef": {"name": "slinky-slurm"}},
            },
            f"{root}/namespaces/{SLURM}/{plural}",
        )
    amounts = {"limits": {"nvidia.com/gpu": str(gpus)}} if gpus else {}
    more: Document = {"nodeName": "hollow-1", "tolerations": ON_HOLLOW["tolerations"]}
    if imex:
        claim = {"name": "imex-channels", "resourceClaimTemplateName": "slinky-slurm-imex-channels"}
        more["resourceClaims"] = [claim]
        stage.label("hollow-1", "nvidia.com/gpu.clique", "cluster.1")
    pods = f"/api/v1/namespaces/{SLURM}/pods"
    labels = {"app.kubernetes.io/instance": "slinky-slurm-worker-slinky"}
    stage.put(pod("slinky-0", container("true", resources=amounts), labels=labels, **more), pods)
    login(stage, "")


def login(stage: Stage, standin: str) -> None:
    """A ready login pod whose Slurm behaves as *standin* says; one of before is replaced."""
    labels = {"app.kubernetes.io/instance": "slinky-slurm-login-slinky"}
    image = "ghcr.io/slinkyproject/login-pyxis:26.05-ubuntu26.04"
    main = {
        "name": "login",
        "image": image,
        "imagePullPolicy": "Never",
        "env": [{"name": "SLURM_STANDIN", "value": standin}],
    }
    name = f"login-{standin or 'works'}"
    place = {"nodeSelector": {"test.aicr.run/pool": "runs"}}
    for each in stage.api.list("Pod", SLURM):
        if each["metadata"]["name"].startswith("login-"):
            stage.api.delete("Pod", each["metadata"]["name"], SLURM)
    stage.put(pod(name, main, labels=labels, **place), f"/api/v1/namespaces/{SLURM}/pods")
    pod_is_ready(stage.api, SLURM, name)


def slinky(overrides: Document | None = None, **criteria: str) -> Document:
    """A recipe with Slurm."""
    ref: Document = {"name": "slinky-slurm", "namespace": SLURM, "overrides": overrides or {}}
    return {**recipe(ref), "criteria": criteria}


def judged(runs: CheckRuns, stage: Stage, check: str, standin: str, validation: Document) -> Ended:
    """How a check ends with a Slurm that behaves like that."""
    login(stage, standin)
    return runs.run(check, validation)


@reaches(PASS, "slinky-slurm-health")
@reaches(FAIL, "slinky-slurm-health")
@reaches(SKIP, "slinky-slurm-health")
@reaches(COULD_NOT_TELL, "slinky-slurm-health")
def test_slurm_is_asked_by_commands_in_the_login_pod(runs: CheckRuns, stage: Stage) -> None:
    """A job with a GPU, a batch job in the records; failures of Slurm's own, and a queue that is full."""
    check = "slinky-slurm-health"
    assert runs.run(check, recipe("gpu-operator")).status == SKIPPED
    slurm(stage)
    accounted = slinky({"accounting": {"enabled": True}})
    ended = runs.run(check, accounted)
    assert ended.status == PASSED, ended.message
    assert ended.lines[-1] == "Accounting: job 7 is recorded as COMPLETED 0:0"
    assert any("(UUID: GPU-" in line for line in ended.lines)
    for standin, words in (
        ("down", "is DOWN"),
        ("drained", "no Slurm node is idle or mixed"),
        ("no-database", "Connection refused"),
    ):
        ended = judged(runs, stage, check, standin, accounted)
        assert (ended.status, ended.code) == (FAILED, ""), standin
        assert words in ended.message
    ended = judged(runs, stage, check, "full", accounted)
    assert (ended.status, ended.code) == (FAILED, "SERVICE_UNAVAILABLE")
    stage.api.delete("Pod", "login-full", SLURM)
    ended = runs.run(check, accounted)
    assert (ended.status, ended.code) == (FAILED, "")
    assert "no login pod" in ended.message


@reaches(PASS, "slinky-slurm-gpu-access")
@reaches(FAIL, "slinky-slurm-gpu-access")
@reaches(COULD_NOT_TELL, "slinky-slurm-gpu-access")
@pytest.mark.covers("V-249", "V-250", "V-252")
def test_jobs_open_the_devices_that_they_were_given(runs: CheckRuns, stage: Stage) -> None:
    """One of two with --gpus=1, none without; a leak fails, an odd error and a full queue cannot tell."""
    check = "slinky-slurm-gpu-access"
    slurm(stage)
    ended = runs.run(check, slinky())
    assert ended.status == PASSED, (ended.message, ended.lines)
    assert ended.lines[-1] == "Verdict: PASS"
    assert "  Devices opened: /dev/nvidia0 of 2" in ended.lines
    assert "  Devices opened: none of 2" in ended.lines
    ended = judged(runs, stage, check, "leak", slinky())
    assert (ended.status, ended.code) == (FAILED, "")
    assert "can open /dev/nvidia1" in ended.message
    ended = judged(runs, stage, check, "odd", slinky())
    assert (ended.status, ended.code) == (FAILED, "INTERNAL"), ended.message
    ended = judged(runs, stage, check, "full", slinky())
    assert (ended.status, ended.code) == (FAILED, "SERVICE_UNAVAILABLE")


@reaches(SKIP, "slinky-slurm-health", "slinky-slurm-gpu-access", "slinky-slurm-imex-channel")
def test_slurm_on_nodes_that_kwok_plays_skips(runs: CheckRuns, stage: Stage) -> None:
    """All NodeSet pods are there; so does service kind, and a NodeSet without GPUs that nobody promised."""
    slurm(stage, gpus=0)
    ended = runs.run("slinky-slurm-gpu-access", slinky(service="eks"))
    assert ended.status == SKIPPED
    assert runs.run("slinky-slurm-gpu-access", slinky(service="kind")).status == SKIPPED
    stage.change_node(
        "hollow-1",
        {"metadata": {"annotations": {"kwok.x-k8s.io/node": "fake"}}},
        {"metadata": {"annotations": {"kwok.x-k8s.io/node": None}}},
    )
    for check in ("slinky-slurm-health", "slinky-slurm-gpu-access", "slinky-slurm-imex-channel"):
        ended = runs.run(check, slinky())
        assert ended.status == SKIPPED
        assert "KWOK" in ended.message


@reaches(PASS, "slinky-slurm-imex-channel")
@reaches(FAIL, "slinky-slurm-imex-channel")
@reaches(COULD_NOT_TELL, "slinky-slurm-imex-channel")
@reaches(SKIP, "slinky-slurm-imex-channel")
def test_jobs_side_by_side_have_imex_channels_of_their_own(
    runs: CheckRuns, stage: Stage, api: Client
) -> None:
    """Not the same one; a queue that is full cannot tell; no NVLink domain skips."""
    check = "slinky-slurm-imex-channel"
    slurm(stage, imex=True)
    # Both jobs last 6 s, and so are there at the same time however slowly the second one starts.
    ended = runs.run(check, slinky(), factor="0.4")
    assert ended.status == PASSED, (ended.message, ended.lines)
    assert ended.lines[-1] == "Verdict: PASS"
    ended = judged(runs, stage, check, "shared-channel", slinky())
    assert (ended.status, ended.code) == (FAILED, "")
    assert "both jobs have IMEX channel 0" in ended.message
    ended = judged(runs, stage, check, "full", slinky())
    assert (ended.status, ended.code) == (FAILED, "SERVICE_UNAVAILABLE")
    change = {"metadata": {"labels": {"nvidia.com/gpu.clique": None}}}
    api.call("PATCH", "/api/v1/nodes/hollow-1", change, content_type=MERGE)
    assert runs.run(check, slinky()).status == SKIPPED
