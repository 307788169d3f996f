"""inference-perf as the real program on a real API server: scheduler, Jobs, pods, and a small operator.

Of the eight GPUs of a node six are taken, so a run has two workers and a quarter of the throughput. The
vendor's programs are stand-ins that speak the real command lines and the real report
(standins_inference).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
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
    recipe,
)
from tests.cluster.checks_table import COULD_NOT_TELL, FAIL, PASS, SKIP, reaches
from tests.cluster.standins_inference import graph_operator
from tests.controlplane.client import ApiError, Client, Document, eventually
from tests.controlplane.plane import ControlPlane

pytestmark = pytest.mark.cluster

CHECK = "inference-perf"
PREFIX = "aicr-inference-perf-"
NODE = "runs-1"
ASKED = {"inference-throughput": ">= 50000", "inference-ttft-p99": "<= 2000"}
SLICES = "/apis/resource.k8s.io/v1/resourceslices"


@pytest.fixture
def stage(api: Client) -> Iterator[Stage]:
    """Objects of one test."""
    with Stage(api) as found:
        yield found


@pytest.fixture
def no_slices(api: Client) -> Iterator[None]:
    """Withdraw the slices of the plane's test driver, which the check would refuse as foreign."""
    found = api.list("ResourceSlice")
    for each in found:
        api.delete("ResourceSlice", each["metadata"]["name"])
    yield
    for each in found:
        meta = {key: each["metadata"][key] for key in ("name", "ownerReferences")}
        api.call("POST", SLICES, {**each, "metadata": meta})


@pytest.fixture
def busy(stage: Stage, namespace: str) -> None:
    """A pod that holds six of the node's GPUs."""
    pod: Document = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "holds-six"},
        "spec": {
            "nodeSelector": {"kubernetes.io/hostname": NODE},
            "terminationGracePeriodSeconds": 0,
            "containers": [
                {
                    "name": "main",
                    "image": "test.local/pause",
                    "resources": {"limits": {"nvidia.com/gpu": "6"}},
                }
            ],
        },
    }
    api = stage.api
    gpus_are_free(api, NODE)
    stage.put(pod, f"/api/v1/namespaces/{namespace}/pods")
    eventually(
        "the pod to run",
        lambda: api.get("Pod", "holds-six", namespace)["status"].get("phase") == "Running",
    )


class Bench:
    """Runs the check in one namespace."""

    def __init__(self, runs: CheckRuns, api: Client, namespace: str) -> None:
        self.runs, self.api, self.namespace = runs, api, namespace

    def run(
        self, aiperf: str = "good", components: Any = ("dynamo-platform",), **more: Any
    ) -> Ended:
        """Run with a load generator of that kind, and the cache off unless *more* says otherwise."""
        stated = recipe(*components, performance=more.pop("asked", ASKED))
        more.setdefault("budget", "240s")
        variables = {
            "AICR_NAMESPACE": self.namespace,
            "AICR_NODE_SELECTOR": f"kubernetes.io/hostname={NODE}",
            "AICR_VALIDATOR_IMAGE_TAG": aiperf,
            "AICR_INFERENCE_PERF_MODEL_CACHE_SIZE": "off",
            "HOSTNAME": "",
            **more,
        }
        return self.runs.run(CHECK, stated, **variables)

    def left(self) -> list[str]:
        """What is there that a run makes."""
        jobs = [each["metadata"]["name"] for each in self.api.list("Job", self.namespace)]
        secrets = [each["metadata"]["name"] for each in self.api.list("Secret", self.namespace)]
        return [*left_behind(self.api, PREFIX), *jobs, *secrets]


@pytest.fixture
def bench(plane: ControlPlane, api: Client, tmp_path: Path, namespace: str) -> Bench:
    """Runs the check."""
    return Bench(CheckRuns(plane, tmp_path), api, namespace)


@pytest.fixture
def dynamo(stage: Stage, no_slices: None, busy: None) -> Iterator[None]:
    """Dynamo's kind is served and its operator is at work."""
    stage.crd(
        *("nvidia.com", "v1beta1", "DynamoGraphDeployment", "dynamographdeployments"),
        namespaced=True,
    )
    with meanwhile(lambda: graph_operator.turn(stage.api)):
        yield


@reaches(PASS, CHECK)
@pytest.mark.covers("V-304", "V-327", "V-336", "V10-65")
def test_inference_perf_passes_with_a_quarter_of_the_throughput_on_a_quarter_of_the_gpus(
    bench: Bench, dynamo: None
) -> None:
    """Two free GPUs of eight: two workers, the gate scaled, and nothing left afterwards."""
    ended = bench.run(HF_TOKEN="hf_not_a_secret")
    assert ended.status == PASSED, f"{ended.message}\n{ended.log}"
    assert ended.lines == [
        "Model: Qwen/Qwen3-8B",
        f"Node: {NODE}, 2 of 8 GPUs free, by device-plugin-extended-resource",
        "Routing: dynamo-router (least-loaded)",
        "Load: concurrency 512, 4096 requests after 512 for warm-up, 128 tokens in, 128 out",
        "Model cache: off",
        "Endpoint serves: 'Hello! How can I help you?'",
        "RESULT: Inference throughput: 12345.67 tokens/s",
        "RESULT: Inference TTFT p99: 421.50 ms",
        "Throughput constraint: >= 50000 → PASS",
        "TTFT p99 constraint: <= 2000 → PASS",
    ]
    assert bench.left() == []
    assert "hf_not_a_secret" not in ended.log + "\n".join(ended.lines)


@reaches(PASS, CHECK)
@pytest.mark.covers("V-300", "V-302")
def test_inference_perf_runs_as_a_job_of_aicr_validate(
    tmp_path: Path, plane: ControlPlane, stage: Stage, namespace: str, dynamo: None
) -> None:
    """Thresholds from the recipe, settings from the catalogue's `env` and not from the caller's shell."""
    document = validate_runs.recipe(performance=[CHECK])
    stated = [{"name": name, "value": text} for name, text in ASKED.items()]
    document["validation"]["performance"]["constraints"] = stated
    operator = document["componentRefs"][0]
    dynamo_platform = {**operator, "name": "dynamo-platform", "namespace": "dynamo-system"}
    document["componentRefs"] = [operator, {**dynamo_platform, "chart": "dynamo-platform"}]
    document["deploymentOrder"] = ["gpu-operator", "dynamo-platform"]
    entry = {
        "name": CHECK,
        "phase": "performance",
        "image": "aicr.local/aicr-checks-performance:latest",
        "timeout": "6m",
        "args": [CHECK],
        "env": [
            {"name": "AICR_INFERENCE_PERF_MODEL_CACHE_SIZE", "value": "off"},
            {"name": "AICR_INFERENCE_PERF_CONCURRENCY_PER_GPU", "value": "8"},
        ],
    }
    case = validate_runs.Case(tmp_path, plane.kubeconfig)
    case.write(document, [entry])
    flags = ("-n", namespace, "--node-selector", f"kubernetes.io/hostname={NODE}")
    started = case.start(*flags, AICR_INFERENCE_PERF_CONCURRENCY_PER_GPU="many")
    ended = started.ended(600)
    test = ended.tests[CHECK]
    assert (test["status"], ended.status) == ("passed", 0), (test, ended.err)
    assert "Load: concurrency 16, 1000 requests after 16 for warm-up" in test["stdout"][3]
    assert test["stdout"][-1] == "TTFT p99 constraint: <= 2000 → PASS"
    assert "inference-perf: RESULT Inference throughput: 12345.67 tokens/s" in ended.err
    assert validate_runs.left_of(stage.api.call, ended.run_id) == []
    assert left_behind(stage.api, PREFIX) == []


@reaches(FAIL, CHECK)
@pytest.mark.covers("V-327", "V-328")
@pytest.mark.parametrize(
    ("aiperf", "message"),
    [
        ("slow", "[INTERNAL] 11249.99 tokens/s are below 11250.00"),
        ("late", "[INTERNAL] TTFT p99 of 2200.01 ms is above 2200.00 ms"),
        ("crash", "failed: container aiperf ended with 1 (Error)"),
    ],
)
def test_inference_perf_fails_when_a_gate_is_missed_or_the_load_generator_crashes(
    aiperf: str, message: str, bench: Bench, dynamo: None
) -> None:
    """A verdict with the numbers, or with how the container ended; nothing is left."""
    ended = bench.run(aiperf)
    assert (ended.status, ended.code) == (FAILED, ""), ended.log
    assert message in ended.message
    if aiperf == "crash":
        assert any("OSError: Qwen/Qwen3-8B is not a local folder" in line for line in ended.lines)
    assert bench.left() == []


@reaches(COULD_NOT_TELL, CHECK)
@pytest.mark.parametrize(
    ("aiperf", "message"),
    [
        ("broken", "cannot read AIPerf's result: the report is no JSON"),
        ("silent", "cannot read AIPerf's result: the log has none of the two"),
    ],
)
def test_inference_perf_cannot_tell_from_a_report_that_cannot_be_read(
    aiperf: str, message: str, bench: Bench, dynamo: None
) -> None:
    """A load generator that ended well without a report is neither pass nor skip."""
    ended = bench.run(aiperf)
    assert (ended.status, ended.code) == (FAILED, "INTERNAL"), ended.log
    assert message in ended.message
    assert bench.left() == []


@reaches(COULD_NOT_TELL, CHECK)
@pytest.mark.covers("V-310")
def test_inference_perf_cannot_tell_from_a_model_that_says_nothing(
    bench: Bench, dynamo: None
) -> None:
    """Ready pods and HTTP 200 are not service: a completion must have content."""
    ended = bench.run(
        AICR_INFERENCE_PERF_MODEL="test/no-words", AICR_INFERENCE_PERF_HEALTH_TIMEOUT="8s"
    )
    assert (ended.status, ended.code) == (FAILED, "TIMEOUT"), ended.log
    assert "timed out waiting for inference endpoint to serve requests" in ended.message
    assert "the completion has no content" in ended.message
    assert bench.left() == []


@reaches(COULD_NOT_TELL, CHECK)
def test_inference_perf_that_uses_up_its_budget_takes_everything_back(
    bench: Bench, dynamo: None
) -> None:
    """A workload that never comes up ends with the budget, and the namespace goes all the same."""
    ended = bench.run(AICR_INFERENCE_PERF_MODEL="test/never-loads", budget="24s")
    assert (ended.status, ended.code) == (FAILED, "TIMEOUT"), ended.log
    assert "was not ready within" in ended.message
    assert "VllmWorker: 0/2 ready" in ended.message
    assert bench.left() == []


@reaches(COULD_NOT_TELL, CHECK)
@pytest.mark.covers("V-148")
def test_inference_perf_without_access_never_skips(bench: Bench) -> None:
    """A refused look is UNAUTHORIZED, with Dynamo declared or not."""
    for components in (("dynamo-platform",), ()):
        ended = bench.runs.without_access(CHECK, recipe(*components, performance=ASKED))
        assert (ended.status, ended.code) == (FAILED, "UNAUTHORIZED"), ended.log


@reaches(SKIP, CHECK)
@pytest.mark.parametrize(
    ("asked", "components", "reason"),
    [
        ({}, ("dynamo-platform",), "no inference-throughput or inference-ttft-p99 constraint"),
        (ASKED, (), "the recipe does not declare dynamo-platform"),
    ],
    ids=["nothing asked", "no Dynamo"],
)
def test_inference_perf_skips_where_it_does_not_apply(
    asked: dict[str, str], components: tuple[str, ...], reason: str, bench: Bench
) -> None:
    """Without a threshold, or without Dynamo in recipe and cluster."""
    ended = bench.run(components=components, asked=asked)
    assert ended.status == SKIPPED, ended.log
    assert reason in ended.message


@reaches(FAIL, CHECK)
@pytest.mark.covers("V10-66")
def test_inference_perf_fails_when_declared_dynamo_is_missing(bench: Bench) -> None:
    """What the recipe declares and the cluster lacks is NOT_FOUND."""
    ended = bench.run()
    assert (ended.status, ended.code) == (FAILED, ""), ended.log
    assert ended.message.startswith("[NOT_FOUND] dynamo-platform: ")


@reaches(FAIL, CHECK)
@pytest.mark.covers("V10-64", "V-274", "V-303", "V-306", "V-313")
@pytest.mark.parametrize(
    ("asked", "variables", "message"),
    [
        (
            {"inference-concurrency-per-gpu": "0"},
            {},
            'inference-concurrency-per-gpu: "0" is not a positive integer',
        ),
        (
            {"inference-routing-mode": "gateway-epp"},
            {"AICR_INFERENCE_PERF_ROUTER_MODE": "direct"},
            'AICR_INFERENCE_PERF_ROUTER_MODE: "direct" is not one of kv, ',
        ),
        (
            {},
            {"AICR_INFERENCE_PERF_MODEL_CACHE_SIZE": ""},
            "the model cache needs a StorageClass, and the cluster has no default one",
        ),
    ],
    ids=["concurrency", "router mode", "storage class"],
)
def test_inference_perf_refuses_settings_before_anything_is_created(
    asked: dict[str, str],
    variables: dict[str, str],
    message: str,
    bench: Bench,
    stage: Stage,
    no_slices: None,
) -> None:
    """INVALID_REQUEST, and no namespace was ever made."""
    stage.crd(
        *("nvidia.com", "v1beta1", "DynamoGraphDeployment", "dynamographdeployments"),
        namespaced=True,
    )
    seen: list[str] = []
    with meanwhile(lambda: seen.extend(left_behind(stage.api, PREFIX))):
        ended = bench.run(asked={**ASKED, **asked}, **variables)
    assert ended.status == FAILED, ended.log
    assert ended.message.startswith("[INVALID_REQUEST] ")
    assert message in ended.message
    assert seen == []


@reaches(FAIL, CHECK)
def test_inference_perf_refuses_gpus_of_a_driver_that_it_cannot_count(
    bench: Bench, stage: Stage
) -> None:
    """The plane's own test driver publishes GPUs under another name."""
    stage.crd(
        *("nvidia.com", "v1beta1", "DynamoGraphDeployment", "dynamographdeployments"),
        namespaced=True,
    )
    ended = bench.run()
    assert ended.status == FAILED, ended.log
    assert "GPUs are published by other drivers than gpu.nvidia.com: gpu.test.aicr.run" in (
        ended.message
    )


@pytest.mark.covers("V-341")
def test_inference_perf_leaves_everything_in_place_when_asked(bench: Bench, dynamo: None) -> None:
    """Namespace, graph, workers, frontend and load generator stay, with the command that removes them."""
    ended = bench.run(AICR_INFERENCE_PERF_NO_CLEANUP="1")
    assert ended.status == PASSED, ended.log
    (home,) = left_behind(bench.api, PREFIX)
    try:
        assert f"kubectl delete namespaces {home}" in ended.log
        names = {each["metadata"]["name"] for each in bench.api.list("Deployment", home)}
        assert names == {"aicr-inference-perf-frontend", "aicr-inference-perf-vllmworker"}
        pods = bench.api.list("Pod", home)
        assert sum("vllmworker" in each["metadata"]["name"] for each in pods) == 2
        jobs = [each["metadata"]["name"] for each in bench.api.list("Job", bench.namespace)]
        assert jobs == [f"aicr-aiperf-{home.removeprefix(PREFIX)}"]
    finally:
        bench.api.delete("Namespace", home)
        eventually("the namespace to be gone", lambda: _gone(bench.api, home), 60)


def _gone(api: Client, name: str) -> bool:
    with contextlib.suppress(ApiError):
        api.get("Namespace", name)
        return False
    return True
