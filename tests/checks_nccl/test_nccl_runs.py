"""The NCCL checks from one end to the other, on the fake API server (validators spec 7.2)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.checks_nccl.bench import (
    IMPATIENT,
    NAMESPACE,
    RUN_ID,
    SHORT,
    Bench,
    Launcher,
    cut,
    gpu_node,
    lease,
    validation,
    whole,
)
from tests.kube.fakeapi import refuse

from aicr.checks.conformance.gpu_pods import on_nodes
from aicr.checks.performance import nccl_lock
from aicr.checks.performance import nccl_templates as templates
from aicr.checks.performance.nccl_variants import DEFAULT, NET, NVLS, Variant
from aicr.checks.sdk.outcome import could_not_tell, skip_in
from aicr.contract import labels
from aicr.errors import (
    CONFLICT,
    INTERNAL,
    INVALID_REQUEST,
    NOT_FOUND,
    SERVICE_UNAVAILABLE,
    TIMEOUT,
    UNAUTHORIZED,
)
from aicr.kube import kinds

Document = dict[str, Any]

TOO_FEW = "skipped - requires at least 2 GPU nodes for EW fabric test"
EFA_LINE = "n1:1:1 [0] NCCL INFO Using network AWS Libfabric"
SOCKET_LINE = "n1:1:1 [0] NCCL INFO Using network Socket"
BANNER = "n1:1:1 [0] NCCL INFO NVLS multicast support is available on dev 0"
COMM = "n1:1:1 [0] NCCL INFO NVLS comm 0x55d0 headRank 0 nHeads 8"


def bench(variant: Variant = DEFAULT, stated: str = ">= 450", **more: Any) -> Bench:
    """A cluster on which the variant runs."""
    accelerator = "gb200" if variant.key else "h100"
    given = validation({variant.check: stated}, "eks", accelerator)
    return Bench(**{"variant": variant, "input": given, **more})


@pytest.mark.covers("V10-58", "K1", "V-186", "V-208", "V-276", "V-277")
def test_a_run_that_reaches_nine_tenths_passes_and_leaves_nothing() -> None:
    """The number of the largest message counts, not the average; namespace and lock are gone."""
    scene = bench(launcher=Launcher(whole("405.00")))
    assert scene.judge() is None
    assert scene.seen.lines == [
        "Benchmark runtime source: cluster-capability "
        "(validators/performance/testdata/h100/eks/runtime.yaml)",
        "Target nodes: 2 with 8 GPUs each: n1, n2",
        "NCCL All Reduce bandwidth (nccl-all-reduce-bw): 405.00 GB/s",
        "Constraint: >= 450 → true",
        "RESULT: nccl-all-reduce-bw: 405.00 GB/s, threshold 450, least 405 GB/s: PASS",
    ]
    assert scene.seen.output.extra == {"runtimeSource": "cluster-capability"}
    assert scene.seen.output.provenance is None
    assert scene.left == []


@pytest.mark.covers("V10-58", "V10-59", "V-291", "K6")
@pytest.mark.parametrize(
    ("variant", "launcher", "said", "verdict"),
    [
        (DEFAULT, Launcher(whole("404.90")), "do not reach 405", True),
        (DEFAULT, Launcher(whole("450.00", wrong=3)), "3 wrong values", True),
        (DEFAULT, Launcher(whole("450.00", ranks=8)), "8 GPUs, not on 16", True),
        (DEFAULT, Launcher("nothing at all"), "could not find bandwidth value in logs", False),
        (DEFAULT, Launcher(cut(whole("450.00"))), "before its summary", False),
        (
            DEFAULT,
            Launcher("Test NCCL failure common.cu:1 'unhandled system error'", "Failed"),
            "a system call failed inside NCCL",
            True,
        ),
        (
            DEFAULT,
            Launcher("cudaErrorSystemNotReady: system not yet initialized", "Failed"),
            "the fabric manager is not ready",
            False,
        ),
        (DEFAULT, Launcher("some text that nobody knows", "Failed"), "some text that", True),
        (NET, Launcher(whole("450.00", SOCKET_LINE)), "used network Socket", True),
        (NET, Launcher(whole("450.00", EFA_LINE, SOCKET_LINE)), "used network Socket", True),
        (NET, Launcher(whole("450.00")), "does not say which network", True),
        (NVLS, Launcher(whole("450.00", COMM)), "multicast is available", True),
        (NVLS, Launcher(whole("450.00", BANNER)), "no communicator used NVLS", True),
    ],
    ids=[
        *("slow", "wrong values", "ranks missing", "no table", "cut off", "nccl error"),
        *("fabric manager", "unknown error", "socket", "one rank on socket", "network unsaid"),
        *("no banner", "no communicator"),
    ],
)
def test_output_that_does_not_prove_the_number_fails(
    variant: Variant, launcher: Launcher, said: str, verdict: bool
) -> None:
    """Enough bandwidth alone is not a pass; what is about the surroundings is no verdict."""
    scene = bench(variant, launcher=launcher)
    error = scene.judge()
    assert error is not None
    assert error.code == INTERNAL
    assert said in str(error)
    assert could_not_tell(error) == ("" if verdict else INTERNAL)
    assert scene.seen.output.extra == {"runtimeSource": "cluster-capability"}
    assert scene.left == []


@pytest.mark.parametrize(
    ("variant", "text", "line"),
    [
        (NET, whole("40.00", EFA_LINE), "Transport: AWS"),
        (NVLS, whole("500.00", BANNER, COMM), "Transport: NVLS"),
    ],
    ids=["net", "nvls"],
)
def test_a_named_variant_that_proves_its_transport_passes(
    variant: Variant, text: str, line: str
) -> None:
    """Its own constraint, its own template, its own proof."""
    scene = bench(variant, ">= 40", launcher=Launcher(text))
    assert scene.judge() is None
    assert line in scene.seen.lines
    made = "computedomains.resource.nvidia.com" in scene.made
    assert made is (variant is NVLS)


@pytest.mark.covers("V10-60", "V10-61", "V10-62", "V-276", "V-278")
@pytest.mark.parametrize(
    ("variant", "given", "nodes", "reason", "code"),
    [
        (
            NVLS,
            {"nccl-all-reduce-bw": ">= 1"},
            2,
            "no nccl-all-reduce-bw-nvls constraint in recipe",
            "",
        ),
        (DEFAULT, {}, 2, "no nccl-all-reduce-bw constraint in recipe", ""),
        (DEFAULT, {"nccl-all-reduce-bw": ">= 1"}, 1, TOO_FEW, ""),
        (DEFAULT, {"nccl-all-reduce-bw": ">= 1"}, 0, TOO_FEW, "no-gpu-nodes"),
        (
            NET,
            {"nccl-all-reduce-bw-net": ">= 1"},
            2,
            "skipped - requires Service + Accelerator to be implemented",
            "",
        ),
        (
            DEFAULT,
            {"nccl-all-reduce-bw": ">= 1", "nccl-benchmark-profile": "gb200/eks"},
            2,
            "skipped - benchmark profile gb200/eks does not implement the default NCCL variant",
            "",
        ),
    ],
    ids=["other constraint", "none", "one node", "no node", "no template", "profile"],
)
def test_what_does_not_apply_skips_and_creates_nothing(
    variant: Variant, given: dict[str, str], nodes: int, reason: str, code: str
) -> None:
    """The reason is the report's; no object has been created."""
    scene = Bench(variant, validation(given), [gpu_node(f"n{i}") for i in range(nodes)])
    error = scene.judge()
    skip = skip_in(error) if error else None
    assert skip is not None
    assert (skip.reason, skip.reason_code) == (reason, code)
    assert scene.writes == []


@pytest.mark.covers("V-108", "V-274", "V-281", "V-287", "V-290", "V-297", "V10-62", "V10-63")
@pytest.mark.parametrize(
    ("stated", "environ", "said"),
    [
        ({"nccl-all-reduce-bw": "fast"}, {}, "has no number"),
        ({"nccl-all-reduce-bw": ">= 0"}, {}, "has no number"),
        ({"nccl-all-reduce-bw": ">= nan"}, {}, "has no number"),
        (
            {"nccl-all-reduce-bw": ">= 1", "nccl-benchmark-profile": "foo/bar"},
            {},
            "names no benchmark",
        ),
        (
            {"nccl-all-reduce-bw": ">= 1", "nccl-benchmark-profile": "gb200"},
            {},
            "accelerator/service",
        ),
        (
            {"nccl-all-reduce-bw": ">= 1"},
            {"AICR_NCCL_RUNTIME_IMAGE": "UPPER/case:1"},
            "no image reference",
        ),
        (
            {"nccl-all-reduce-bw": ">= 1", "nccl-benchmark-runtime-ref": "a/b"},
            {},
            "reached the validator unresolved",
        ),
        (
            {"nccl-all-reduce-bw": ">= 1", "nccl-benchmark-runtime": "kind: Pod"},
            {},
            "not trainer.kubeflow.org/v1alpha1",
        ),
    ],
    ids=["word", "zero", "nan", "profile", "profile form", "image", "ref", "carrier"],
)
def test_a_knob_that_cannot_be_read_fails_before_anything_is_looked_at(
    stated: dict[str, str], environ: dict[str, str], said: str
) -> None:
    """No request at all goes out: nothing is created, nothing defaulted."""
    scene = Bench(DEFAULT, validation(stated), settings={"environ": environ})
    error = scene.judge()
    assert error is not None
    assert error.code == INVALID_REQUEST
    assert said in str(error)
    assert scene.api is not None
    assert scene.api.seen == []


@pytest.mark.parametrize(
    ("pattern", "answer", "code"),
    [
        ("GET /api/v1/nodes", refuse(403, "Forbidden", "no"), UNAUTHORIZED),
        ("GET /api/v1/nodes", refuse(503, "ServiceUnavailable", "down"), SERVICE_UNAVAILABLE),
        ("GET .*/customresourcedefinitions/", refuse(403, "Forbidden", "no"), UNAUTHORIZED),
        ("GET .*/leases/", refuse(403, "Forbidden", "no"), UNAUTHORIZED),
        ("POST .*/trainingruntimes", refuse(403, "Forbidden", "no"), UNAUTHORIZED),
        ("GET .*/pods/.*/log", refuse(403, "Forbidden", "no"), UNAUTHORIZED),
    ],
    ids=["nodes", "nodes down", "crd", "lease", "runtime", "log"],
)
def test_what_cannot_be_looked_at_is_never_a_verdict(pattern: str, answer: Any, code: str) -> None:
    """A refusal or an outage is published as could-not-tell, never as skip or pass."""
    scene = bench().fault(pattern, answer)
    error = scene.judge()
    assert error is not None
    assert skip_in(error) is None
    assert could_not_tell(error) == code


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        ([gpu_node("n1"), gpu_node("n2", gpus=7)], "n2=7/8"),
        ([gpu_node("n1"), gpu_node("n2", gpus=None)], "n2=0/8"),
        ([gpu_node("n1", gpus=0), gpu_node("n2", gpus=None)], "none of 2 target nodes offers"),
        ([gpu_node("n1"), gpu_node("n2", ready=False)], "not Ready: n2"),
        ([gpu_node("n1"), gpu_node("n2", efa=31)], "n2=31/32"),
    ],
    ids=["short", "silent", "none", "not ready", "adapters"],
)
def test_nodes_that_are_not_alike_fail_before_anything_is_created(
    nodes: list[Document], said: str
) -> None:
    """The slowest would decide, and the number would be nobody's."""
    scene = bench(nodes=nodes)
    error = scene.judge()
    assert error is not None
    assert said in error.message
    assert could_not_tell(error) == ""
    assert scene.writes == []


def test_another_run_holds_the_lock() -> None:
    """CONFLICT naming it; nothing else is created."""
    scene = bench().put(kinds.LEASE, lease("run-of-somebody", age=60))
    error = scene.judge()
    assert error is not None
    assert error.code == CONFLICT
    assert "run-of-somebody, renewed 60 s ago" in error.message
    assert scene.writes == []


def test_a_stale_lock_is_taken_over() -> None:
    """Nobody has renewed it for longer than it may lie."""
    scene = bench().put(kinds.LEASE, lease("run-that-died", age=1201))
    assert scene.judge() is None
    assert "taking over a stale lock of run-that-died" in scene.seen.log
    assert scene.left == []


@pytest.mark.covers("V-298")
@pytest.mark.parametrize("ours", [False, True], ids=["foreign", "live pod"])
def test_a_namespace_of_that_name_stays_when_it_is_not_free(ours: bool) -> None:
    """CONFLICT; it and what is in it are left alone."""
    name = nccl_lock.name_of("default", RUN_ID)
    has = {**nccl_lock.OWNERSHIP, labels.RUN_ID: RUN_ID} if ours else {}
    there = {"metadata": {"name": name, "labels": has}}
    pod = {"metadata": {"name": "p", "namespace": name}, "status": {"phase": "Running"}}
    scene = bench().put(kinds.NAMESPACE, there).put(kinds.POD, pod)
    error = scene.judge()
    assert error is not None
    assert error.code == CONFLICT
    assert scene.left == [name]


def test_our_own_namespace_without_life_is_replaced() -> None:
    """A container that started again finds what its first life left."""
    name = nccl_lock.name_of("default", RUN_ID)
    there = {"metadata": {"name": name, "labels": {**nccl_lock.OWNERSHIP, labels.RUN_ID: RUN_ID}}}
    scene = bench().put(kinds.NAMESPACE, there)
    assert scene.judge() is None
    assert scene.left == []


def test_leftovers_of_other_runs_are_named_and_stay() -> None:
    """With the command; a young one is somebody's running benchmark and is not named."""
    old = {
        "metadata": {
            "name": "aicr-nccl-perf-default-aaaaaaaa",
            "labels": {**nccl_lock.OWNERSHIP, labels.RUN_ID: "other"},
            "creationTimestamp": "2026-11-30T00:00:00Z",
        }
    }
    young = {
        "metadata": {
            "name": "aicr-nccl-perf-default-bbbbbbbb",
            "labels": {**nccl_lock.OWNERSHIP, labels.RUN_ID: "another"},
            "creationTimestamp": "2027-01-15T08:00:00Z",
        }
    }
    scene = bench().put(kinds.NAMESPACE, old, young)
    assert scene.judge() is None
    assert "kubectl delete namespaces aicr-nccl-perf-default-aaaaaaaa" in scene.seen.log
    assert "bbbbbbbb" not in scene.seen.log
    assert scene.left == ["aicr-nccl-perf-default-aaaaaaaa", "aicr-nccl-perf-default-bbbbbbbb"]


@pytest.mark.parametrize("busbw", ["450.00", "1.00"], ids=["passes", "fails"])
def test_a_namespace_that_cannot_be_removed_fails_a_pass_and_hides_no_failure(busbw: str) -> None:
    """The clean-up's own error only when there is no other."""
    name = nccl_lock.name_of("default", RUN_ID)
    scene = bench(launcher=Launcher(whole(busbw)))
    scene.fault(f"DELETE /api/v1/namespaces/{name}", refuse(403, "Forbidden", "no"))
    error = scene.judge()
    assert error is not None
    said = "could not be removed" if busbw == "450.00" else "do not reach"
    assert said in error.message
    assert name in scene.left


def test_a_namespace_that_does_not_end_is_a_timeout() -> None:
    """Terminating for longer than it may: TIMEOUT naming it."""
    name = nccl_lock.name_of("default", RUN_ID)
    scene = bench(timeouts=replace(SHORT, namespace_termination=1.0, pod_termination=0.2))

    async def hold(api: Any, qualified: str, document: Document) -> None:
        if qualified == "namespaces":
            kept = {**document, "metadata": {**document["metadata"], "finalizers": ["x"]}}
            await api.store("MODIFIED", kinds.NAMESPACE, kept)

    scene.beside = hold
    error = scene.judge()
    assert error is not None
    assert (error.code, name in error.message) == (TIMEOUT, True)


def test_a_log_that_is_not_whole_at_first_is_read_again() -> None:
    """The API server may be behind the container."""
    scene = bench(launcher=Launcher(cut(whole("450.00")), later=whole("450.00")))
    assert scene.judge() is None


def test_a_rotated_log_is_completed_by_the_termination_message() -> None:
    """The last lines survive there."""
    text = whole("450.00")
    scene = bench(launcher=Launcher("the first lines", message="\n".join(text.splitlines()[-8:])))
    assert scene.judge() is None


def test_no_launcher_is_a_timeout_that_says_where_to_look() -> None:
    """Trainer made nothing of the TrainJob."""
    scene = bench(timeouts=IMPATIENT, launcher=Launcher(appears=False))
    error = scene.judge()
    assert error is not None
    assert error.code == TIMEOUT
    assert "no launcher appeared" in error.message
    assert "kubectl describe trainjob" in error.hint
    assert scene.left == []


def test_a_worker_that_cannot_run_ends_the_wait_and_all_pods_are_dumped() -> None:
    """Its image cannot be pulled: that is said, with what launcher and worker did, a line each."""
    waiting = {"reason": "ImagePullBackOff", "message": "not there"}
    worker = {
        "phase": "Pending",
        "containerStatuses": [{"name": "node", "image": "x", "state": {"waiting": waiting}}],
    }
    scene = bench(launcher=Launcher(phase="Running", worker=worker))
    error = scene.judge()
    assert error is not None
    assert "ImagePullBackOff" in error.message
    assert "pod nccl-all-reduce-tj-launcher-0-0-abcde on n1: Running" in scene.seen.log
    assert "nccl-all-reduce-tj-node-0-0-abcde | a worker's words" in scene.seen.log


def test_a_launcher_that_hangs_is_a_timeout_with_a_dump() -> None:
    """What it was last seen doing; the namespace is removed all the same."""
    # A launcher pod there is, however long it takes to be seen.
    impatient = replace(SHORT, nccl_train_job=0.5)
    scene = bench(timeouts=impatient, launcher=Launcher("some words", phase="Running"))
    error = scene.judge()
    assert error is not None
    assert error.code == TIMEOUT
    assert "last seen: Running" in error.message
    assert "some words" in scene.seen.log
    assert scene.left == []


def test_admission_is_tried_again_while_the_runtime_spreads() -> None:
    """The webhook's cache is a moment behind; another refusal is final."""
    webhook = refuse(403, "Forbidden", "admission webhook denied: TrainingRuntime not found")
    scene = bench().fault("POST .*/trainjobs", webhook, times=3)
    assert scene.judge() is None
    scene = bench().fault("POST .*/trainjobs", refuse(422, "Invalid", "spec.x"), times=1)
    error = scene.judge()
    assert error is not None
    assert error.message == "the TrainJob was not admitted"


@pytest.mark.parametrize(
    ("declared", "code"), [(True, NOT_FOUND), (False, NOT_FOUND)], ids=["declared", "undeclared"]
)
def test_an_absent_trainer_fails_unless_it_can_be_installed(declared: bool, code: str) -> None:
    """The message says whose fault it is; the lock is free again."""
    fields: Document = {"manifestFiles": []} if declared else {}
    given = validation({"nccl-all-reduce-bw": ">= 1"}, **fields)
    scene = Bench(DEFAULT, given, trainer=False)
    error = scene.judge()
    assert error is not None
    assert error.code == code
    assert ("the recipe declares it" in error.message) is declared
    assert scene.left == []


@pytest.mark.covers("V-289", "V-290", "V-292", "V-294", "V-296", "V-185")
def test_a_supplied_runtime_is_applied_under_our_name_with_its_own_placement() -> None:
    """No template of ours, no fabric variable, no adapters; workers are counted by its selector."""
    text = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata: {name: theirs, namespace: kube-system, labels: {team: x}}
spec:
  mlPolicy: {numNodes: ${WORKER_COUNT}}
  template:
    spec:
      replicatedJobs:
        - name: launcher
          template: {spec: {template: {spec: {containers: [{name: node, image: a, args: ["${HOME}"]}]}}}}
        - name: node
          template:
            spec:
              template:
                spec:
                  nodeSelector: {pool: a}
                  resourceClaims: [{name: i, resourceClaimTemplateName: nccl-all-reduce-imex}]
                  containers: [{name: node, image: a}]
"""
    nodes = [gpu_node(f"n{i}", labels={"pool": "b" if i == 2 else "a"}, efa=i) for i in range(4)]
    stated = {"nccl-all-reduce-bw": ">= 450", "nccl-benchmark-runtime": text}
    scene = Bench(
        DEFAULT,
        validation(stated, "mine", "own"),
        nodes,
        settings={"environ": {"AICR_NCCL_FABRIC": "nonsense"}},
    )
    assert scene.judge() is None
    assert scene.seen.output.extra == {"runtimeSource": "recipe-supplied-runtime"}
    made = scene.runtime
    name = nccl_lock.name_of("default", RUN_ID)
    assert (made["metadata"]["name"], made["metadata"]["namespace"]) == (
        "nccl-all-reduce-runtime",
        name,
    )
    assert made["metadata"]["labels"] == {"team": "x"}
    assert made["spec"]["mlPolicy"]["numNodes"] == 3
    assert "Left out: n2" in scene.seen.lines
    assert "computedomains.resource.nvidia.com" in scene.made


def test_objects_carry_the_runs_names_and_labels() -> None:
    """Namespace, TrainJob and Lease as the specification names them."""
    scene = bench(settings={"environ": {"AICR_NCCL_RUNTIME_IMAGE": "mirror.test/nccl:1"}})
    assert scene.judge() is None
    (namespace,) = scene.made["namespaces"]
    assert namespace["metadata"]["name"] == nccl_lock.name_of("default", RUN_ID)
    has = namespace["metadata"]["labels"]
    assert has["app.kubernetes.io/managed-by"] == "aicr-validator"
    assert has["app.kubernetes.io/component"] == "nccl-perf"
    (job,) = scene.made["trainjobs.trainer.kubeflow.org"]
    assert job["metadata"]["name"] == "nccl-all-reduce-tj"
    assert job["spec"]["runtimeRef"]["name"] == "nccl-all-reduce-runtime"
    (held,) = scene.made["leases.coordination.k8s.io"]
    assert (held["metadata"]["name"], held["metadata"]["namespace"]) == (
        "aicr-nccl-run-lock",
        NAMESPACE,
    )
    said = "NCCL All Reduce bandwidth (nccl-all-reduce-bw): 450.00 GB/s (image mirror.test/nccl:1)"
    assert said in scene.seen.lines


def test_the_launcher_runs_on_a_target_node() -> None:
    """It tolerates everything, and would else land on any node, one that is not ready included."""
    scene = bench()
    assert scene.judge() is None
    launcher = templates.launcher_template(scene.runtime)
    assert launcher["spec"]["affinity"] == on_nodes(["n1", "n2"])
    own = templates.with_launcher_on(scene.runtime, ["n3"])
    assert templates.launcher_template(own) == launcher
