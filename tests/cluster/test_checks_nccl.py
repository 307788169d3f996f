"""The NCCL and CRE checks as the real program on a real API server: scheduler, pods, and small controllers.

The benchmark needs no GPU: mpirun and all_reduce_perf are stand-ins that print real tables, good and
broken (standins_nccl). Workers ask for eight GPUs each, so the real scheduler gives each node one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from tests.checks_nccl.delivered import MAPPING, installer_pods, shipped_runtime
from tests.cluster import validate_runs
from tests.cluster.check_runs import (
    FAILED,
    PASSED,
    SKIPPED,
    CheckRuns,
    Ended,
    Stage,
    gpus_are_free,
    left_behind,
    meanwhile,
)
from tests.cluster.checks_table import COULD_NOT_TELL, FAIL, PASS, SKIP, reaches
from tests.cluster.standins_nccl import readiness_engine, trainer_controller
from tests.controlplane.client import Client, Document, eventually
from tests.controlplane.plane import ControlPlane

from aicr.catalog.catalog import Catalog
from aicr.yamlio.write import dump

pytestmark = pytest.mark.cluster

DEFAULT = "nccl-all-reduce-bw"
NET = "nccl-all-reduce-bw-net"
NVLS = "nccl-all-reduce-bw-nvls"
CRE = "nccl-cre-all-reduce-bw"
GOODPUT = "cre-training-goodput"
PREFIX = "aicr-nccl-perf-"
GROUP = "trainer.kubeflow.org"
PLAIN = "validators/performance/testdata/b200/any/runtime.yaml"
CONTROLLER = "kubeflow-trainer-controller-manager"


@pytest.fixture
def stage(api: Client) -> Iterator[Stage]:
    """Objects of one test."""
    with Stage(api) as found:
        yield found


def validation(
    stated: Document, service: str = "eks", accelerator: str = "h100", *refs: Document
) -> Document:
    """A validation input."""
    constraints = [{"name": name, "value": value} for name, value in stated.items()]
    return {
        "criteria": {"service": service, "accelerator": accelerator},
        "componentRefs": list(refs),
        "config": {"performance": {"constraints": constraints}},
    }


class Bench:
    """Runs the checks in one namespace, on the two nodes on which pods run."""

    def __init__(self, runs: CheckRuns, api: Client, namespace: str) -> None:
        self.runs, self.api, self.namespace = runs, api, namespace

    def run(self, check: str, given: Document, image: str = "good", **more: Any) -> Ended:
        """Run *check* with a benchmark of that kind, once the workers of an earlier one have gone."""
        gpus_are_free(self.api, "runs-1", "runs-2")
        more = {"budget": "240s", "factor": "0.2", **more}
        variables = {
            "AICR_NAMESPACE": self.namespace,
            "AICR_NODE_SELECTOR": "test.aicr.run/pool=runs",
            "AICR_NCCL_RUNTIME_IMAGE": f"test.local/nccl:{image}",
            **more,
        }
        return self.runs.run(check, given, **variables)

    @property
    def left(self) -> list[str]:
        """What is there that a run makes."""
        path = f"/apis/coordination.k8s.io/v1/namespaces/{self.namespace}/leases"
        leases = [each["metadata"]["name"] for each in self.api.call("GET", path)["items"]]
        return [*left_behind(self.api, PREFIX), *left_behind(self.api, "aicr-cre-"), *leases]


@pytest.fixture
def bench(plane: ControlPlane, api: Client, tmp_path: Path, namespace: str) -> Bench:
    """Runs the checks."""
    return Bench(CheckRuns(plane, tmp_path), api, namespace)


def kinds(stage: Stage) -> None:
    """Serve Trainer's kinds."""
    stage.crd(GROUP, "v1alpha1", "TrainJob", "trainjobs", namespaced=True)
    stage.crd(GROUP, "v1alpha1", "TrainingRuntime", "trainingruntimes", namespaced=True)


def training(stage: Stage) -> AbstractContextManager[None]:
    """Trainer's controller at work."""
    return meanwhile(lambda: trainer_controller.turn(stage.api))


@pytest.fixture
def trainer(stage: Stage) -> Iterator[None]:
    """Trainer is installed and works."""
    kinds(stage)
    stage.workload("Deployment", stage.namespace("kubeflow"), CONTROLLER)
    with training(stage):
        yield


@reaches(PASS, DEFAULT)
@pytest.mark.covers("K1", "V-275", "V-277")
def test_a_benchmark_on_two_nodes_passes_and_leaves_nothing(bench: Bench, trainer: None) -> None:
    """The last row counts, the average would not; sixteen ranks on the two hosts of the host file."""
    ended = bench.run(DEFAULT, validation({DEFAULT: ">= 440"}))
    assert ended.status == PASSED, f"{ended.message}\n{ended.log}"
    assert ended.lines[1:] == [
        "Target nodes: 2 with 8 GPUs each: runs-1, runs-2",
        "Left out: hollow-1, hollow-2",
        f"NCCL All Reduce bandwidth ({DEFAULT}): 401.47 GB/s (image test.local/nccl:good)",
        "Constraint: >= 440 → true",
        f"RESULT: {DEFAULT}: 401.47 GB/s, threshold 440, least 396 GB/s: PASS",
    ]
    assert ended.extra == {"runtimeSource": "cluster-capability"}
    assert bench.left == []


@reaches(FAIL, DEFAULT)
@pytest.mark.covers("K6")
@pytest.mark.parametrize(
    ("image", "said", "code"),
    [
        ("low", "101.30 GB/s do not reach 396", ""),
        ("wrong", "wrong values", ""),
        ("error", "a peer ended during the collective", ""),
        ("manager", "the fabric manager is not ready", "INTERNAL"),
        ("cut", "could not find bandwidth value in logs", "INTERNAL"),
    ],
)
def test_a_benchmark_that_goes_badly_fails_with_its_cause(
    image: str, said: str, code: str, bench: Bench, trainer: None
) -> None:
    """Too slow, wrong values, an error of NCCL; what is about the surroundings could not tell."""
    ended = bench.run(DEFAULT, validation({DEFAULT: ">= 440"}), image)
    assert (ended.status, ended.code) == (FAILED, code), ended.log
    assert said in ended.message
    assert ended.extra["runtimeSource"] == "cluster-capability"
    if image == "error":
        assert "nccl-all-reduce-tj-launcher-0-0 | " in ended.log
    assert bench.left == []


@reaches(PASS, NET)
@reaches(FAIL, NET)
@pytest.mark.covers("V10-59", "V-291")
def test_the_network_variant_proves_its_transport(bench: Bench, trainer: None) -> None:
    """The same bandwidth over plain TCP is no pass; nor is a driver that cannot be told."""
    given = validation({NET: ">= 40"}, "eks", "gb200")
    roce = {"AICR_NCCL_FABRIC": "roce"}
    ended = bench.run(NET, given, **roce)
    assert ended.status == PASSED, f"{ended.message}\n{ended.log}"
    assert "Transport: AWS" in ended.lines
    slow = bench.run(NET, given, "socket", **roce)
    assert (slow.status, slow.code) == (FAILED, "")
    assert "NCCL used network Socket" in slow.message
    driver = bench.run(NET, given)
    assert (driver.status, driver.code) == (FAILED, "")
    assert "runs-1: its driver cannot be determined" in driver.message
    assert bench.left == []


@reaches(PASS, NVLS)
@reaches(FAIL, NVLS)
@pytest.mark.covers("V-296")
def test_the_nvls_variant_gets_a_compute_domain_and_proves_nvls(
    bench: Bench, trainer: None, stage: Stage
) -> None:
    """Each worker gets a channel by the claim template of the run's own domain, from the real scheduler."""
    given = validation({NVLS: ">= 400"}, "gke", "gb200")
    root = stage.crd(
        "resource.nvidia.com", "v1beta1", "ComputeDomain", "computedomains", namespaced=True
    )

    def turn() -> None:
        for domain in stage.api.call("GET", f"{root}/computedomains")["items"]:
            request = {"name": "channel", "exactly": {"deviceClassName": "test.aicr.run"}}
            name = domain["spec"]["channel"]["resourceClaimTemplate"]["name"]
            template = {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceClaimTemplate",
                "metadata": {"name": name},
                "spec": {"spec": {"devices": {"requests": [request]}}},
            }
            stage.api.create(template, domain["metadata"]["namespace"])

    silent = bench.run(NVLS, given, "nvls", factor="0.1")
    assert (silent.status, silent.code) == (FAILED, "")
    assert "no claim template for the ComputeDomain" in silent.message
    with meanwhile(turn):
        ended = bench.run(NVLS, given, "nvls")
        assert ended.status == PASSED, f"{ended.message}\n{ended.log}"
        assert "Transport: NVLS" in ended.lines
        plain = bench.run(NVLS, given)
    assert (plain.status, plain.code) == (FAILED, "")
    assert "multicast is available" in plain.message
    assert bench.left == []


@reaches(SKIP, DEFAULT, NET, NVLS, CRE, GOODPUT)
@pytest.mark.covers("V10-60", "V10-61")
def test_what_does_not_apply_skips(bench: Bench) -> None:
    """Another check's constraint, one node, no template, nothing qualified."""
    for check in (NET, NVLS, CRE, GOODPUT):
        ended = bench.run(check, validation({DEFAULT: ">= 1"}))
        assert (ended.status, ended.message) == (SKIPPED, f"no {check} constraint in recipe")
    one = {"AICR_NODE_SELECTOR": "kubernetes.io/hostname=runs-1"}
    alone = bench.run(DEFAULT, validation({DEFAULT: ">= 1"}), **one)
    assert (alone.status, "at least 2 GPU nodes" in alone.message) == (SKIPPED, True)
    other = bench.run(NET, validation({NET: ">= 1"}, "gke", "gb200"))
    assert (other.status, "requires Service + Accelerator" in other.message) == (SKIPPED, True)
    unqualified = bench.run(CRE, validation({CRE: ">= 1"}, "gke"))
    assert (unqualified.status, "has not been qualified" in unqualified.message) == (SKIPPED, True)
    assert bench.left == []


@reaches(COULD_NOT_TELL, DEFAULT, NET, NVLS, CRE, GOODPUT)
@pytest.mark.parametrize(
    ("check", "accelerator"),
    [(DEFAULT, "h100"), (NET, "gb200"), (NVLS, "gb200"), (CRE, "h100"), (GOODPUT, "h100")],
)
def test_who_may_do_nothing_cannot_tell(check: str, accelerator: str, bench: Bench) -> None:
    """Neither a skip nor a verdict."""
    given = validation({check: ">= 1"}, "eks", accelerator)
    ended = bench.runs.without_access(check, given)
    assert (ended.status, ended.code) == (FAILED, "UNAUTHORIZED")


@pytest.mark.covers("V-184", "V-195", "V-205", "V-209", "V-210")
def test_a_delivered_runtime_is_measured_as_it_was_shipped(
    bench: Bench, trainer: None, stage: Stage
) -> None:
    """Workers run with the shipped environment beside the shipped daemon."""
    root = stage.crd(
        GROUP, "v1alpha1", "ClusterTrainingRuntime", "clustertrainingruntimes", namespaced=False
    )
    networks = stage.crd("networking.gke.io", "v1", "Network", "networks", namespaced=False)
    for one in MAPPING:
        network = {"apiVersion": "networking.gke.io/v1", "kind": "Network"}
        stage.put({**network, "metadata": {"name": one["network"]}}, f"{networks}/networks")
    shipped = shipped_runtime()
    pods = shipped["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    pods["spec"]["nodeSelector"] = {"test.aicr.run/pool": "runs"}
    pods["spec"]["initContainers"][0] |= {
        "image": "test.local/pause",
        "imagePullPolicy": "Never",
    }
    pods["spec"]["volumes"] = [
        volume if volume["name"] == "shared-memory" else {"name": volume["name"], "emptyDir": {}}
        for volume in pods["spec"]["volumes"]
    ]
    stage.put(shipped, f"{root}/clustertrainingruntimes")
    for pod in installer_pods(("runs-1", "runs-2")):
        spec = {**pod["spec"], "containers": [{"name": "i", "image": "test.local/pause"}]}
        meta = {key: pod["metadata"][key] for key in ("name", "labels")}
        made = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
        stage.put(made, f"/api/v1/namespaces/{bench.namespace}/pods")
    ref = {
        "name": "kubeflow-trainer",
        "manifestFiles": ["components/kubeflow-trainer/manifests/torch-distributed-tcpxo.yaml"],
        "overrides": {"tcpxoInterfaces": MAPPING},
    }
    ended = bench.run(DEFAULT, validation({DEFAULT: ">= 300"}, "gke", "h100", ref))
    assert ended.status == PASSED, f"{ended.message}\n{ended.log}"
    assert ended.extra == {"runtimeSource": "delivered-artifact"}
    assert "inherited spec.containers[node].env[NCCL_FASTRAK_IFNAME].value" in ended.lines
    assert "overridden spec.containers[node].image" in ended.lines
    drifted = {**ref, "overrides": {"tcpxoInterfaces": list(reversed(MAPPING))}}
    drift = bench.run(DEFAULT, validation({DEFAULT: ">= 300"}, "gke", "h100", drifted))
    assert (drift.status, drift.extra["runtimeSource"]) == (FAILED, "delivered-artifact")
    assert "is not the recipe's: entry 1" in drift.message
    assert bench.left == []


def test_a_supplied_runtime_runs_with_the_users_own_wiring(bench: Bench, trainer: None) -> None:
    """A template of another platform by value; the run owns name and namespace."""
    from aicr.catalog.catalog import Catalog

    path = "validators/performance/testdata/b200/any/runtime.yaml"
    text = (
        Catalog.builtin().tree.read_text(path).replace("name: nccl-all-reduce-runtime", "name: x")
    )
    stated = {DEFAULT: ">= 440", "nccl-benchmark-runtime": text}
    ended = bench.run(DEFAULT, validation(stated, "private", "own"))
    assert ended.status == PASSED, f"{ended.message}\n{ended.log}"
    assert ended.extra == {"runtimeSource": "recipe-supplied-runtime"}
    assert bench.left == []


@reaches(PASS, DEFAULT)
@pytest.mark.covers("V-284", "V-285", "V-286", "V10-63")
def test_a_referenced_runtime_is_measured_by_a_job_of_aicr_validate(
    tmp_path: Path, plane: ControlPlane, stage: Stage, namespace: str, trainer: None
) -> None:
    """From a file of --data through the carrier into the check's pod; the image is the caller's."""
    document = validate_runs.recipe(performance=[DEFAULT])
    document["validation"]["performance"]["constraints"] = [
        {"name": DEFAULT, "value": ">= 440"},
        {"name": "nccl-benchmark-runtime-ref", "value": "own/private"},
    ]
    case = validate_runs.Case(tmp_path, plane.kubeconfig)
    case.write(document)
    file = tmp_path / "data/validators/performance/testdata/own/private/runtime.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(Catalog.builtin().tree.read_text(PLAIN))
    flags = ("-n", namespace, "--node-selector", "test.aicr.run/pool=runs")
    ended = case.start(*flags, AICR_NCCL_RUNTIME_IMAGE="test.local/nccl:good").ended(600)
    test = ended.tests[DEFAULT]
    assert (test["status"], ended.status) == ("passed", 0), (test, ended.err)
    assert test["extra"] == {"runtimeSource": "recipe-supplied-runtime"}
    assert test["stdout"][-1].startswith(f"RESULT: {DEFAULT}: 402.05 GB/s")
    assert validate_runs.left_of(stage.api.call, ended.run_id) == []
    assert left_behind(stage.api, PREFIX) == []


def test_an_absent_trainer_is_installed_for_the_run_and_gone_afterwards(
    bench: Bench, stage: Stage, tmp_path: Path
) -> None:
    """From manifests that the operator hands over; without them the check says how."""
    given = validation({DEFAULT: ">= 440"})
    absent = bench.run(DEFAULT, given)
    assert (absent.status, absent.code) == (FAILED, "")
    assert "AICR_NCCL_TRAINER_MANIFESTS" in absent.message
    kinds(stage)
    collection = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    there = [stage.api.call("GET", f"{collection}/{name}.{GROUP}") for name in PLURALS]
    crds = [{**each, "metadata": {"name": each["metadata"]["name"]}} for each in there]
    for each in crds:
        stage.api.request("DELETE", f"{collection}/{each['metadata']['name']}")
        del each["status"]
    names = {each["metadata"]["name"] for each in crds}

    def gone() -> bool:
        left = stage.api.call("GET", collection)["items"]
        return not names & {each["metadata"]["name"] for each in left}

    # Definitions that are still going would be in the way of the check's own.
    eventually("the definitions to be gone", gone)
    template = {
        "metadata": {"labels": {"app": "t"}},
        "spec": {
            "containers": [{"name": "m", "image": "test.local/pause", "imagePullPolicy": "Never"}],
            "nodeSelector": {"test.aicr.run/pool": "runs"},
        },
    }
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": CONTROLLER, "namespace": bench.namespace},
        "spec": {"selector": {"matchLabels": {"app": "t"}}, "template": template},
    }
    file = tmp_path / "trainer.yaml"
    file.write_text("---\n".join(dump(one) for one in [*crds, deployment]))
    with training(stage):
        ended = bench.run(DEFAULT, given, AICR_NCCL_TRAINER_MANIFESTS=str(file))
    assert ended.status == PASSED, f"{ended.message}\n{ended.log}"
    assert "Kubeflow Trainer installed for this run: 3 objects" in ended.lines
    assert bench.left == []
    assert stage.api.list("Deployment", bench.namespace) == []


PLURALS = ("trainjobs", "trainingruntimes")


@pytest.fixture
def engine(stage: Stage) -> None:
    """The kinds of the Cluster Readiness Engine."""
    for kind, plural in (
        *readiness_engine.KINDS.values(),
        ("Certification", "certifications"),
        ("WorkloadRun", "workloadruns"),
    ):
        stage.crd("nvcre.nvidia.com", "v1alpha1", kind, plural, namespaced=True)


@reaches(PASS, CRE, GOODPUT)
@reaches(FAIL, CRE, GOODPUT)
@pytest.mark.parametrize(
    ("check", "stated", "good", "bad"),
    [
        (
            CRE,
            ">= 300",
            {"result": "300", "transport": "NET/IB"},
            {"result": "299.9", "transport": "NET/IB"},
        ),
        (GOODPUT, ">= 0.95", {"result": 0.95}, {"result": 0.9}),
    ],
    ids=["bandwidth", "goodput"],
)
def test_a_certification_passes_fails_and_is_taken_back(
    check: str, stated: str, good: Document, bad: Document, bench: Bench, stage: Stage, engine: None
) -> None:
    """No tolerance; jobs that nobody stopped are gone before the check ends."""
    stage.cordon("hollow-1", "hollow-2")
    given = validation({check: stated})
    with meanwhile(lambda: readiness_engine.turn(stage.api, good)):
        ended = bench.run(check, given)
    assert ended.status == PASSED, f"{ended.message}\n{ended.log}"
    assert ended.lines[0] == "Target nodes: runs-1, runs-2"
    with meanwhile(lambda: readiness_engine.turn(stage.api, bad)):
        low = bench.run(check, given)
    assert (low.status, low.code) == (FAILED, "")
    assert "do not reach" in low.message
    with meanwhile(lambda: readiness_engine.turn(stage.api, bad, "Failed")):
        lost = bench.run(check, given)
    assert (lost.status, "a job was lost" in lost.message) == (FAILED, True)
    assert bench.left == []
