"""inference-perf from end to end on the fake API server: how it ends, what it says, what it leaves."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web
from tests.checks.contexts import node, put
from tests.checks_deployment.kubelet import Ends
from tests.checks_inference.perf_scene import (
    DRA,
    GATEWAY,
    HOME,
    IMPATIENT,
    KINDS,
    RESOURCE_CLAIM,
    RUN,
    SLICE,
    STORAGE_CLASS,
    PerfScene,
    crd,
    endpoint_slice,
    failing,
    holder,
    report,
    said,
    storage_class,
)

from aicr.checks.conformance.endpoints import ENDPOINT_SLICE
from aicr.checks.performance.inference_knobs import NO_CLEANUP
from aicr.checks.performance.inference_namespace import suffix
from aicr.checks.performance.inference_perf import CHECK
from aicr.checks.sdk.outcome import could_not_tell, skip_in
from aicr.errors import (
    INTERNAL,
    INVALID_REQUEST,
    NOT_FOUND,
    SERVICE_UNAVAILABLE,
    TIMEOUT,
    UNAUTHORIZED,
)
from aicr.kube import kinds

Document = dict[str, Any]
P = "AICR_INFERENCE_PERF_"


# Guards


@pytest.mark.parametrize(
    ("constraints", "components", "installed", "reason"),
    [
        (
            {},
            ("dynamo-platform",),
            True,
            "no inference-throughput or inference-ttft-p99 constraint in recipe",
        ),
        ({"inference-throughput": " "}, (), True, "no inference-throughput or"),
        ({"inference-throughput": "1"}, (), False, "the recipe does not declare dynamo-platform"),
    ],
    ids=["A: nothing asked", "A before B", "B: not declared, not there"],
)
def test_it_skips_where_it_does_not_apply(
    constraints: dict[str, str], components: tuple[str, ...], installed: bool, reason: str
) -> None:
    """Guards A and B; nothing is created."""
    scene = PerfScene(constraints=constraints, components=components, bare=not installed)
    error = scene.judge()
    assert error is not None
    found = skip_in(error)
    assert found is not None
    assert reason in found.reason
    assert scene.made == {}


def test_a_skip_for_want_of_constraints_asks_the_cluster_nothing() -> None:
    """Guard A comes first."""
    scene = PerfScene(constraints={})
    scene.judge()
    assert scene.api.seen == []


@pytest.mark.covers("V10-66")
@pytest.mark.parametrize(
    ("found", "message"),
    [
        (None, "dynamo-platform: CRD dynamographdeployments.nvidia.com not found"),
        (crd("v1beta1", established=False), "dynamo-platform: CRD dynamographdeployments"),
        (crd("v1alpha1"), "does not serve v1beta1, but v1alpha1"),
    ],
    ids=["absent", "not established", "too old"],
)
def test_declared_dynamo_that_is_missing_is_not_found(found: Document | None, message: str) -> None:
    """Guard C: what the recipe declares must be there."""
    scene = PerfScene(bare=True)
    if found is not None:
        scene.put(kinds.CUSTOM_RESOURCE_DEFINITION, found)
    error = failing(scene)
    assert (error.code, could_not_tell(error)) == (NOT_FOUND, "")
    assert message in error.message


def test_dynamo_that_is_there_is_measured_although_the_recipe_does_not_declare_it() -> None:
    """Decision 64: undeclared and present proceeds."""
    assert PerfScene(components=()).judge() is None


@pytest.mark.parametrize("components", [("dynamo-platform",), ()], ids=["declared", "not"])
@pytest.mark.parametrize(
    ("code", "reason", "expected"),
    [(403, "Forbidden", UNAUTHORIZED), (503, "ServiceUnavailable", SERVICE_UNAVAILABLE)],
)
def test_a_look_that_fails_never_skips(
    components: tuple[str, ...], code: int, reason: str, expected: str
) -> None:
    """Whoever declared what."""
    error = failing(PerfScene(components=components).fault("GET .*customresourcedef", code, reason))
    assert (error.code, could_not_tell(error)) == (expected, expected)


@pytest.mark.covers("V10-64", "V-274")
@pytest.mark.parametrize(
    ("constraints", "environ", "message"),
    [
        ({"inference-throughput": "fast"}, {}, "inference-throughput"),
        ({"inference-concurrency-per-gpu": "0"}, {}, "is not a positive integer"),
        ({"inference-routing-mode": "gateway-epp"}, {"ROUTER_MODE": "direct"}, '"direct" is not'),
        ({}, {"MODEL_CACHE_STORAGE_CLASS": "fast"}, 'StorageClass "fast" of the model cache'),
    ],
    ids=["threshold", "concurrency", "router mode", "storage class"],
)
def test_a_bad_setting_ends_the_run_before_anything_is_created(
    constraints: dict[str, str], environ: dict[str, str], message: str
) -> None:
    """INVALID_REQUEST, and not one write."""
    scene = PerfScene(environ={P + name: text for name, text in environ.items()})
    scene.constraints |= constraints
    error = failing(scene)
    assert error.code == INVALID_REQUEST
    assert message in error.message
    assert not [line for line in scene.api.seen if not line.startswith("GET ")]


# A good run


@pytest.mark.covers("V-304", "V-320", "V-321", "V-322", "V-325", "V-326", "V-340")
def test_a_healthy_deployment_passes_and_leaves_nothing() -> None:
    """The order of the steps, the evidence, the token in a Secret and nowhere else."""
    scene = PerfScene(environ={"HF_TOKEN": "hf_x", "HOSTNAME": "validator-1"})
    mine = {"metadata": {"name": "validator-1", "namespace": "aicr-validation", "uid": "uid-me"}}
    scene.put(kinds.POD, {**mine, "spec": {"imagePullSecrets": [{"name": "pull"}]}})
    assert scene.judge() is None
    assert scene.seen.lines == [
        "Model: Qwen/Qwen3-8B",
        "Node: gpu-1, 8 of 8 GPUs free, by device-plugin-extended-resource",
        "Routing: dynamo-router (least-loaded)",
        "Load: concurrency 2048, 16384 requests after 2048 for warm-up, 128 tokens in, 128 out",
        "Model cache: 100Gi of class standard",
        "Endpoint serves: 'Hello!'",
        "RESULT: Inference throughput: 50000.00 tokens/s",
        "RESULT: Inference TTFT p99: 800.00 ms",
        "Throughput constraint: >= 50000 → PASS",
        "TTFT p99 constraint: <= 2000 → PASS",
    ]
    assert scene.seen.output.results == [
        "Inference throughput: 50000.00 tokens/s",
        "Inference TTFT p99: 800.00 ms",
    ]
    assert "hf_x" not in scene.seen.log + "".join(scene.seen.stdout)
    assert scene.left == []
    assert not [key for key in scene.api.objects["jobs.batch"] if key[0] == "aicr-validation"]
    assert not [key for key in scene.api.objects["secrets"] if key[0] == "aicr-validation"]
    order = [
        kind
        for line in scene.api.seen
        if line.startswith("POST")
        for kind in ("namespaces?", "secrets", "persistentvolumeclaims", "jobs", "dynamograph")
        if kind in f"{line.partition('?')[0]}?"
    ]
    assert order == [
        *("namespaces?", "secrets", "persistentvolumeclaims", "jobs", "dynamograph"),
        *("secrets", "jobs"),
    ]
    generator = next(job for job in scene.made["Job"] if "aiperf" in job["metadata"]["name"])
    assert generator["metadata"]["namespace"] == "aicr-validation"
    assert generator["metadata"]["name"] == f"aicr-aiperf-{suffix(RUN)}"
    assert generator["spec"]["template"]["spec"]["imagePullSecrets"] == [{"name": "pull"}]
    ((question, _),) = scene.questions
    assert question["model"] == "Qwen/Qwen3-8B"


@pytest.mark.covers("V-312")
def test_without_a_cache_there_is_no_claim_no_job_and_no_look_at_classes() -> None:
    """Workers download themselves."""
    scene = PerfScene(environ={P + "MODEL_CACHE_SIZE": "off"})
    assert scene.judge() is None
    assert "PersistentVolumeClaim" not in scene.made
    assert len(scene.made["Job"]) == 1
    assert not [line for line in scene.api.seen if "storageclasses" in line]


@pytest.mark.covers("V10-65", "V-327")
@pytest.mark.parametrize(("throughput", "passes"), [(22500.0, True), (22499.99, False)])
def test_half_of_the_gpus_must_give_half_of_the_throughput(throughput: float, passes: bool) -> None:
    """Four of eight are held by somebody else."""
    scene = PerfScene(aiperf=report(throughput)).put(kinds.POD, holder("other", "gpu-1", 4))
    error = scene.judge()
    assert "Node: gpu-1, 4 of 8 GPUs free" in scene.seen.lines[1]
    assert (error is None) is passes
    if error is not None:
        assert (error.code, could_not_tell(error)) == (INTERNAL, "")
        assert "22499.99 tokens/s are below 22500.00" in error.message


@pytest.mark.covers("V-247")
def test_gpus_by_dra_are_counted_and_claimed() -> None:
    """Four devices, one held; three workers with claims from the run's template."""
    devices = [{"name": f"gpu-{index}"} for index in range(4)]
    pool = {"name": "dra-1", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu.nvidia.com", "nodeName": "dra-1", "pool": pool, "devices": devices}
    held = {"driver": "gpu.nvidia.com", "pool": "dra-1", "device": "gpu-2"}
    scene = PerfScene(
        served=(*KINDS, *DRA), policy="dra-resource-claim", aiperf=report(33750.0), bare=True
    )
    scene.put(kinds.CUSTOM_RESOURCE_DEFINITION, crd("v1beta1"))
    scene.put(kinds.NODE, node("dra-1", labels={"nvidia.com/gpu.present": "true"}))
    scene.put(STORAGE_CLASS, storage_class("standard", default=True))
    scene.put(SLICE, {"metadata": {"name": "dra-1-slice"}, "spec": spec})
    allocation = {"devices": {"results": [held]}}
    taken = {"metadata": {"name": "c", "namespace": "d"}, "status": {"allocation": allocation}}
    scene.put(RESOURCE_CLAIM, taken)
    assert scene.judge() is None
    assert scene.seen.lines[1] == "Node: dra-1, 3 of 4 GPUs free, by dra-resource-claim"
    assert scene.one("ResourceClaimTemplate")["apiVersion"] == "resource.k8s.io/v1"
    worker = scene.one("DynamoGraphDeployment")["spec"]["components"][1]
    assert worker["replicas"] == 3
    assert worker["podTemplate"]["spec"]["resourceClaims"]


@pytest.mark.covers("V-334", "V-335")
def test_behind_the_gateway_the_gateway_is_asked_with_the_run_s_header() -> None:
    """A route to the operator's pool, and the same header from probe and load generator."""
    scene = PerfScene(frontend=False)
    scene.constraints |= {"inference-routing-mode": "gateway-epp"}
    scene.put(
        GATEWAY, {"metadata": {"name": "inference-gateway", "namespace": "agentgateway-system"}}
    )
    service = {
        "metadata": {"name": "inference-gateway", "namespace": "agentgateway-system"},
        "spec": {"ports": [{"name": "http", "port": 80}]},
    }
    scene.put(kinds.SERVICE, service)
    react = scene._react

    async def with_endpoint(api: Any, found: Document, model: str, known: set[str]) -> None:
        await react(api, found, model, known)
        if "endpointslices.discovery.k8s.io" not in api.objects:
            each = endpoint_slice("inference-gateway", "agentgateway-system", model)
            await put(api, ENDPOINT_SLICE, each)

    scene._react = with_endpoint  # type: ignore[method-assign]
    assert scene.judge() is None, scene.seen.log
    assert scene.seen.lines[2] == "Routing: gateway-epp"
    assert scene.one("HTTPRoute")["metadata"]["namespace"] == HOME
    ((_, headers),) = scene.questions
    assert headers["x-aicr-inference-perf"] == suffix(RUN)
    generator = next(job for job in scene.made["Job"] if "aiperf" in job["metadata"]["name"])
    words = generator["spec"]["template"]["spec"]["containers"][0]["args"]
    assert f"x-aicr-inference-perf:{suffix(RUN)}" in words
    assert "http://inference-gateway.agentgateway-system.svc:80" in words


def test_routing_through_a_gateway_that_is_not_there_is_not_found() -> None:
    """The recipe chose it; nothing is created."""
    scene = PerfScene()
    scene.constraints |= {"inference-routing-mode": "gateway-epp"}
    error = failing(scene)
    assert error.code == NOT_FOUND
    assert "there is no Gateway agentgateway-system/inference-gateway" in error.message
    assert scene.made == {}


# Runs that go wrong


@pytest.mark.parametrize(
    ("changes", "code", "published", "message"),
    [
        ({"aiperf": report(44999.0)}, INTERNAL, "", "44999.00 tokens/s are below 45000.00"),
        ({"aiperf": report(ttft=2201.0)}, INTERNAL, "", "TTFT p99 of 2201.00 ms is above 2200"),
        (
            {"aiperf": report(1.0, 9999.0)},
            *(
                INTERNAL,
                "",
                "1.00 tokens/s are below 45000.00 (>= 50000, 8/8 GPUs, 10 % tolerance); T",
            ),
        ),
        (
            {"aiperf": report(error_request_count={"avg": 4096})},
            *(INTERNAL, "", "4096 of 8192 requests failed"),
        ),
        ({"aiperf": "nothing to see\n"}, INTERNAL, INTERNAL, "the log has none of the two"),
        ({"aiperf": Ends("Failed")}, INTERNAL, "", "pod aicr-aiperf-"),
        ({"aiperf": None, "timeouts": IMPATIENT}, TIMEOUT, TIMEOUT, "to run; last seen: Pending"),
        ({"populate": Ends("Failed")}, INTERNAL, "", "pod aicr-model-cache-populate-"),
        ({"state": "failed", "timeouts": IMPATIENT}, TIMEOUT, TIMEOUT, "state failed"),
        ({"ready": False, "timeouts": IMPATIENT}, TIMEOUT, TIMEOUT, "VllmWorker: 0/8 ready"),
        ({"frontend": False, "timeouts": IMPATIENT}, NOT_FOUND, "", "aicr-inference-perf-frontend"),
        (
            {"answer": said(""), "timeouts": IMPATIENT},
            *(TIMEOUT, TIMEOUT, "timed out waiting for inference endpoint to serve requests"),
        ),
    ],
    ids=[
        *("throughput", "first token", "both", "errors", "no report", "crash", "never starts"),
        *("cache", "state", "not ready", "no Service", "silent model"),
    ],
)
def test_what_goes_wrong_fails_with_its_reason_and_leaves_nothing(
    changes: dict[str, Any], code: str, published: str, message: str
) -> None:
    """A verdict has no published code; what could not be told has one."""
    scene = replace(PerfScene(), **changes)
    error = failing(scene)
    assert (error.code, could_not_tell(error)) == (code, published), str(error)
    assert message in str(error)
    assert scene.left == []
    assert not [key for key in scene.api.objects.get("jobs.batch", {}) if key[0] != HOME]


@pytest.mark.parametrize(
    ("pattern", "code", "reason", "expected"),
    [
        ("GET /api/v1/nodes", 403, "Forbidden", UNAUTHORIZED),
        ("GET /api/v1/pods", 403, "Forbidden", UNAUTHORIZED),
        ("GET .*storageclasses", 500, "InternalError", SERVICE_UNAVAILABLE),
        ("POST .*dynamographdeployments", 403, "Forbidden", UNAUTHORIZED),
        ("GET .*endpointslices", 403, "Forbidden", UNAUTHORIZED),
    ],
)
def test_what_cannot_be_looked_at_is_not_a_verdict(
    pattern: str, code: int, reason: str, expected: str
) -> None:
    """A GPU that may be taken is not free: a failed list of pods ends the run."""
    scene = PerfScene().fault(pattern, code, reason)
    error = failing(scene)
    assert could_not_tell(error) == expected, str(error)
    assert scene.left == []


def test_all_gpus_held_is_internal_and_creates_nothing() -> None:
    """Not a skip: the recipe asked for a benchmark."""
    scene = PerfScene().put(kinds.POD, holder("other", "gpu-1", 8))
    error = failing(scene)
    assert (error.code, could_not_tell(error)) == (INTERNAL, INTERNAL)
    assert error.message == "no node has a free GPU: gpu-1: 0 of 8 free"
    assert scene.made == {}


@pytest.mark.covers("V-340")
def test_a_slow_first_answer_is_waited_for() -> None:
    """The probe has its own time for each request, and asks again after an error."""

    async def slow(request: web.Request) -> web.StreamResponse:
        if len(scene.questions) < 3:
            return web.Response(status=503, text="no worker is ready")
        await asyncio.sleep(0.05)
        return web.json_response(said())

    scene = PerfScene(answer=slow)
    assert scene.judge() is None
    assert len(scene.questions) == 3


def test_an_answer_that_is_too_long_is_none() -> None:
    """At most 8 KiB are read."""
    error = failing(PerfScene(answer=said("x" * 9000), timeouts=IMPATIENT))
    assert "the answer is longer than 8192 bytes" in error.message


@pytest.mark.parametrize("restarts", [2, 3])
def test_a_worker_that_keeps_crashing_ends_the_wait(restarts: int) -> None:
    """Three times and no more; with the kubelet's own words."""
    status = {
        "containerStatuses": [
            {
                "name": "main",
                "restartCount": restarts,
                "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}},
            }
        ]
    }
    scene = PerfScene(ready=False, timeouts=IMPATIENT if restarts < 3 else PerfScene().timeouts)
    worker = {"metadata": {"name": "w", "namespace": HOME, "uid": "uid-w"}, "spec": {}}
    scene.put(kinds.POD, {**worker, "status": {"phase": "Running", **status}})
    error = failing(scene)
    if restarts < 3:
        assert error.code == TIMEOUT
    else:
        assert (error.code, could_not_tell(error)) == (INTERNAL, "")
        assert (
            error.message == "pod w cannot run: CrashLoopBackOff (container main, image ): back-off"
        )


def test_a_worker_that_nobody_can_schedule_ends_the_wait_after_its_grace() -> None:
    """Decision 14."""
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/1 nodes are available",
    }
    worker = {"metadata": {"name": "w", "namespace": HOME, "uid": "uid-w"}, "spec": {}}
    scene = PerfScene(ready=False)
    scene.put(kinds.POD, {**worker, "status": {"phase": "Pending", "conditions": [condition]}})
    error = failing(scene)
    assert "pod w cannot run: Unschedulable: 0/1 nodes are available" in error.message


@pytest.mark.covers("V-329", "V-339")
def test_a_missed_gate_says_what_to_look_at_before_concluding() -> None:
    """Stalls are often not reproducible."""
    assert "run it again before concluding" in failing(PerfScene(aiperf=report(1.0))).hint


def test_the_check_describes_itself() -> None:
    """Every variable is listed, with the timeout that the catalogue gives."""
    assert (CHECK.name, CHECK.phase, CHECK.timeout) == ("inference-perf", "performance", "65m")
    assert {each.name for each in CHECK.settings} >= {P + "MODEL", P + "ROUTER_MODE", NO_CLEANUP}
