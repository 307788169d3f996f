"""Deployment checks as the real program on a real API server, against real nodes, pods and objects.

GPU nodes are nodes of a plane of this module's own; what runs on them is a stand-in for nvidia-smi. One is
broken, by its name.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.check_runs import FAILED, PASSED, SKIPPED, CheckRuns, Stage, recipe
from tests.cluster.checks_table import COULD_NOT_TELL, FAIL, PASS, SKIP, reaches
from tests.cluster.workloads import container, deployment, pod, pod_becomes
from tests.controlplane.client import Document
from tests.controlplane.fixtures import root_or_fail
from tests.controlplane.nodes import Node
from tests.controlplane.plane import ControlPlane

pytestmark = pytest.mark.cluster

NODES = (Node("gpu-1", gpus=8), Node("gpu-2", gpus=8), Node("gpu-mismatch", gpus=8))
FLOOR = "Deployment.gpu-driver.version"
LABEL = {"nvidia.com/gpu.present": "true"}
MEGA = {"cloud.google.com/gke-accelerator": "nvidia-h100-mega-80gb"}
NETWORKING = "/apis/networking.gke.io/v1"
RUNTIMES = "/apis/trainer.kubeflow.org/v1alpha1"
TCPXO = {"name": "gke-nccl-tcpxo", "namespace": "kube-system"}


@pytest.fixture(scope="module")
def gpu_plane() -> Iterator[ControlPlane]:
    """Three GPU nodes, of which one has a broken driver."""
    root_or_fail()
    with ControlPlane(NODES) as own:
        yield own


@pytest.fixture
def runs(gpu_plane: ControlPlane, tmp_path: Path) -> CheckRuns:
    """Runs checks against that plane."""
    return CheckRuns(gpu_plane, tmp_path)


@pytest.fixture
def stage(gpu_plane: ControlPlane) -> Iterator[Stage]:
    """Objects of one test."""
    with Stage(gpu_plane.client()) as found:
        yield found


# operator-health and gpu-operator-version


@reaches(PASS, "operator-health", "gpu-operator-version")
@reaches(FAIL, "operator-health", "gpu-operator-version")
@pytest.mark.covers("V10-57", "V-228", "V-229")
def test_an_operator_is_missing_pending_then_runs(runs: CheckRuns, stage: Stage) -> None:
    """Absent and pending fail, running passes; its version is held against a constraint."""
    for check in ("operator-health", "gpu-operator-version"):
        absent = runs.run(check)
        assert (absent.status, absent.code) == (FAILED, "")
        assert absent.message.startswith("[NOT_FOUND] ")
    namespace = stage.namespace("gpu-operator")
    operator = deployment("gpu-operator", 1, container("exec sleep 1000"))
    operator["spec"]["template"]["spec"]["nodeSelector"] = {"no": "node"}
    operator["metadata"]["labels"] = {"app.kubernetes.io/version": "v25.3.1"}
    stage.put(operator, f"/apis/apps/v1/namespaces/{namespace}/deployments")
    one = pod(
        "pending", container("true"), labels={"app": "gpu-operator"}, nodeSelector={"no": "n"}
    )
    stage.api.create(one, namespace)
    pending = runs.run("operator-health")
    assert (pending.status, pending.code) == (FAILED, "")
    assert "no pods in Running state" in pending.message
    one = pod("runs", container("exec sleep 1000"), labels={"app": "gpu-operator"})
    stage.api.create(one, namespace)
    pod_becomes(stage.api, namespace, "runs", "Running")
    running = runs.run("operator-health")
    assert (running.status, running.message) == (PASSED, "")
    assert running.lines[-1].startswith("Running: 1/")
    found = runs.run("gpu-operator-version")
    assert (found.status, found.lines) == (PASSED, ["Detected GPU Operator version: v25.3.1"])
    held = recipe("gpu-operator", deployment={"Deployment.gpu-operator.version": ">= 25.10"})
    older = runs.run("gpu-operator-version", held)
    assert (older.status, older.code) == (FAILED, "")
    assert older.lines[-1] == "Constraint: >= 25.10 → false"


# check-nvidia-smi


@reaches(PASS, "check-nvidia-smi")
@pytest.mark.covers("V10-56", "V-254", "V-255", "V-256", "V-257")
def test_schedulable_gpu_nodes_answer_and_cordoned_ones_are_counted(
    runs: CheckRuns, stage: Stage
) -> None:
    """The broken node is cordoned; a pod ran on each other one, and nothing is left."""
    stage.cordon("gpu-mismatch")
    ended = runs.run("check-nvidia-smi", recipe(deployment={FLOOR: ">= 580"}))
    assert ended.status == PASSED, ended.message
    assert "  gpu-mismatch: skipped (cordoned)" in ended.lines
    assert "  gpu-1: driver 580.65.06" in ended.lines
    assert ended.lines[-1] == "RESULT: nodesValidated: 2/3 (1 cordoned, skipped)"
    assert ended.extra == {"nodesValidated": "2", "nodesTotal": "3"}
    left = [
        each["metadata"]["name"]
        for each in stage.api.list("Namespace")
        if each["metadata"]["name"].startswith("aicr-")
        and "deletionTimestamp" not in each["metadata"]
    ]
    assert left == []


@reaches(FAIL, "check-nvidia-smi")
@pytest.mark.covers("V-253", "V-258")
def test_a_broken_driver_and_a_dead_one_are_named(runs: CheckRuns, stage: Stage) -> None:
    """One says so itself, the other advertises nothing any more; the good ones are counted."""
    stage.node("gpu-dead", LABEL)
    ended = runs.run("check-nvidia-smi")
    assert (ended.status, ended.code) == (FAILED, "")
    assert "nvidia-smi failed on 2 of 4 schedulable GPU node(s)" in ended.message
    assert "gpu-dead: it has GPUs and none is advertised" in ended.message
    assert "gpu-mismatch: pod nvidia-smi-verify-gpu-mismatch failed" in ended.message
    assert ended.lines[-1] == "RESULT: nodesValidated: 2/4"
    assert ended.extra == {"nodesValidated": "2", "nodesTotal": "4"}


@reaches(FAIL, "check-nvidia-smi")
def test_a_driver_older_than_the_floor_fails(runs: CheckRuns, stage: Stage) -> None:
    """Each node's own."""
    stage.cordon("gpu-mismatch", "gpu-2")
    ended = runs.run("check-nvidia-smi", recipe(deployment={FLOOR: ">= 590"}))
    assert (ended.status, ended.code) == (FAILED, "")
    assert "gpu-1: driver 580.65.06 does not meet" in ended.message
    assert ended.lines[-1] == "RESULT: nodesValidated: 0/3 (2 cordoned, skipped)"


@reaches(SKIP, "check-nvidia-smi")
@pytest.mark.covers("V10-56", "V-259", "V-260")
def test_all_cordoned_and_busy_skip_and_fail_with_a_floor(runs: CheckRuns, stage: Stage) -> None:
    """By the scheduler's word a pod holds a GPU; then everything is cordoned."""
    namespace = stage.namespace("team")
    limits: Document = {"resources": {"limits": {"nvidia.com/gpu": "1"}}}
    stage.api.create(pod("train", container("exec sleep 1000", **limits)), namespace)
    pod_becomes(stage.api, namespace, "train", "Running")
    busy = runs.run("check-nvidia-smi")
    assert (busy.status, busy.extra["skipReason"]) == (SKIPPED, "nodes-busy")
    assert "team/train" in busy.message
    stage.cordon(*(node.name for node in NODES))
    cordoned = runs.run("check-nvidia-smi")
    assert cordoned.status == SKIPPED
    assert cordoned.extra == {
        "nodesValidated": "0",
        "nodesTotal": "3",
        "skipReason": "no-schedulable-gpu-nodes",
    }
    assert cordoned.lines[-1] == "RESULT: nodesValidated: 0/3 (3 cordoned, skipped)"
    held = runs.run("check-nvidia-smi", recipe(deployment={FLOOR: ">= 570"}))
    assert (held.status, held.code) == (FAILED, "")
    assert "cannot be measured" in held.message


# gke-gpu-nic-networks


def networks(stage: Stage, count: int) -> None:
    """Serve GKE's kinds, with so many GPU NIC networks."""
    group = "networking.gke.io"
    stage.crd(group, "v1", "Network", "networks", namespaced=False)
    stage.crd(group, "v1", "GKENetworkParamSet", "gkenetworkparamsets", namespaced=False)
    for number in range(1, count + 1):
        name = f"vpc-gpu-nic-{number}"
        conditions = [{"type": kind, "status": "True"} for kind in ("Ready", "ParamsReady")]
        stage.put(
            {
                "apiVersion": "networking.gke.io/v1",
                "kind": "Network",
                "metadata": {"name": name},
                "spec": {"parametersRef": {"kind": "GKENetworkParamSet", "name": name}},
                "status": {"conditions": conditions},
            },
            f"{NETWORKING}/networks",
        )
        stage.put(
            {
                "apiVersion": "networking.gke.io/v1",
                "kind": "GKENetworkParamSet",
                "metadata": {"name": name},
                "status": {"networkName": name},
            },
            f"{NETWORKING}/gkenetworkparamsets",
        )


MAPPING = [
    {"interfaceName": f"eth{number}", "network": f"vpc-gpu-nic-{number}"} for number in range(1, 9)
]
TRAINER: Document = {
    "name": "kubeflow-trainer",
    "namespace": "kubeflow",
    "manifestFiles": ["components/kubeflow-trainer/manifests/torch-distributed-tcpxo.yaml"],
    "overrides": {"tcpxoInterfaces": MAPPING},
}


@reaches(PASS, "gke-gpu-nic-networks")
@reaches(FAIL, "gke-gpu-nic-networks")
@pytest.mark.covers("V-224", "V-227")
def test_eight_networks_pass_and_a_runtime_wired_otherwise_fails(
    runs: CheckRuns, stage: Stage
) -> None:
    """Census and readiness for a base recipe; with the trainer also the wiring."""
    networks(stage, 8)
    base = runs.run("gke-gpu-nic-networks", recipe(TCPXO))
    assert base.status == PASSED, base.message
    assert base.lines[0] == "Found 8 GPU NIC network(s) (need 8):"
    stage.crd(
        *("trainer.kubeflow.org", "v1alpha1", "ClusterTrainingRuntime", "clustertrainingruntimes"),
        namespaced=False,
    )
    absent = runs.run("gke-gpu-nic-networks", recipe(TCPXO, TRAINER))
    assert (absent.status, absent.code) == (FAILED, "")
    assert absent.message.startswith("[NOT_FOUND] ClusterTrainingRuntime torch-distributed-tcpxo")
    entries = [{"interfaceName": "eth0", "network": "default"}, *MAPPING[:-1], MAPPING[0]]
    notes = {
        "networking.gke.io/default-interface": "eth0",
        "networking.gke.io/interfaces": json.dumps(entries),
    }
    pods = {"spec": {"template": {"metadata": {"annotations": notes}}}}
    runtime = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": "torch-distributed-tcpxo"},
        "spec": {"template": {"spec": {"replicatedJobs": [{"name": "node", "template": pods}]}}},
    }
    stage.put(runtime, f"{RUNTIMES}/clustertrainingruntimes")
    wired = runs.run("gke-gpu-nic-networks", recipe(TCPXO, TRAINER))
    assert (wired.status, wired.code) == (FAILED, "")
    assert "entry 8 is eth1=vpc-gpu-nic-1, the recipe has eth8=vpc-gpu-nic-8" in wired.message


@reaches(SKIP, "gke-gpu-nic-networks")
@reaches(FAIL, "gke-gpu-nic-networks")
@pytest.mark.covers("V10-52")
def test_a_group_that_is_not_served_skips_or_fails_by_the_recipe(runs: CheckRuns) -> None:
    """Declared is promised."""
    skipped = runs.run("gke-gpu-nic-networks", recipe("gpu-operator"))
    assert skipped.status == SKIPPED
    promised = runs.run("gke-gpu-nic-networks", recipe(TCPXO))
    assert (promised.status, promised.code) == (FAILED, "")
    assert promised.message.startswith("[NOT_FOUND] gke-nccl-tcpxo")


# gke-gpu-nic-topology


def born(**named: str) -> dict[str, str]:
    """Annotations of an a3-megagpu node, with some networks otherwise."""
    nics = [
        {"birthName": f"eth{n}", "birthIP": f"10.{n}.0.2", "pciAddress": f"0000:{n:02x}:00.0"}
        for n in range(9)
    ]
    bound = [
        {"network": named.get(f"eth{n}", f"vpc-gpu-nic-{n}"), "ipAddress": f"10.{n}.0.2"}
        for n in range(1, 9)
    ]
    return {
        "networking.gke.io/nic-info": json.dumps(nics),
        "networking.gke.io/north-interfaces": json.dumps(bound),
    }


@reaches(PASS, "gke-gpu-nic-topology")
@reaches(FAIL, "gke-gpu-nic-topology")
@reaches(SKIP, "gke-gpu-nic-topology")
@pytest.mark.covers("V-225", "V-226")
def test_a_displaced_nic_is_found_on_its_node(runs: CheckRuns, stage: Stage) -> None:
    """First all is well, then a node comes whose third NIC is an ordinary one."""
    declared = recipe(TCPXO)
    none = runs.run("gke-gpu-nic-topology", declared)
    assert (none.status, none.code) == (FAILED, "")
    stage.node("mega-1", {**MEGA, **LABEL}, gpus=8, **born())
    good = runs.run("gke-gpu-nic-topology", declared)
    assert good.status == PASSED, good.message
    assert good.extra == {"nodesValidated": "1", "nodesTotal": "1"}
    stage.node("mega-2", {**MEGA, **LABEL}, gpus=8, **born(eth3="default-two"))
    displaced = runs.run("gke-gpu-nic-topology", declared)
    assert (displaced.status, displaced.code) == (FAILED, "")
    assert displaced.message.startswith("[CONFLICT] ")
    assert "mega-2: eth3 is bound to network default-two" in displaced.message
    assert displaced.extra == {"nodesValidated": "1", "nodesTotal": "2"}
    assert runs.run("gke-gpu-nic-topology").status == SKIPPED


@reaches(COULD_NOT_TELL, "gke-gpu-nic-topology")
def test_nodes_without_annotations_cannot_be_told(runs: CheckRuns, stage: Stage) -> None:
    """The recipe declares it, so it is no skip (decision 64)."""
    stage.node("mega-1", {**MEGA, **LABEL}, gpus=8)
    ended = runs.run("gke-gpu-nic-topology", recipe(TCPXO))
    assert (ended.status, ended.code) == (FAILED, "INTERNAL")
    assert ended.lines[-1] == "RESULT: nodesValidated: 0/1"


# Somebody without access


@reaches(
    COULD_NOT_TELL,
    "operator-health",
    "gpu-operator-version",
    "check-nvidia-smi",
    "gke-gpu-nic-networks",
    "gke-gpu-nic-topology",
)
@pytest.mark.covers("V10-53", "V-146", "V-230")
@pytest.mark.parametrize(
    "check",
    [
        *("operator-health", "gpu-operator-version", "check-nvidia-smi"),
        *("gke-gpu-nic-networks", "gke-gpu-nic-topology"),
    ],
)
def test_who_may_not_look_at_nodes_cannot_tell(check: str, runs: CheckRuns, stage: Stage) -> None:
    """The API server's own refusal: neither a skip nor a verdict."""
    if check == "gke-gpu-nic-networks":
        networks(stage, 0)
    ended = runs.without_access(check, recipe(TCPXO))
    assert (ended.status, ended.code) == (FAILED, "UNAUTHORIZED"), ended.message
    if check in ("check-nvidia-smi", "gke-gpu-nic-topology"):
        assert ended.lines[-1] == "RESULT: nodesValidated: 0/0"


@reaches(COULD_NOT_TELL, "check-nvidia-smi")
def test_a_server_that_nobody_reaches_cannot_tell(runs: CheckRuns, tmp_path: Path) -> None:
    """Nothing listens at the address."""
    text = runs.plane.kubeconfig.read_text()
    other = tmp_path / "other.kubeconfig"
    other.write_text(text.replace(runs.plane.url, "https://127.0.0.1:1"))
    ended = runs.run("check-nvidia-smi", kubeconfig=other)
    assert (ended.status, ended.code) == (FAILED, "SERVICE_UNAVAILABLE"), ended.message
