"""``aicr preflight`` offline: config check, inject and explain (decisions 26 and 31)."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.cli.program import Result, aicr
from tests.preflight.admission_cases import (
    ALLREDUCE,
    ANNOTATION,
    DCGM,
    GPU,
    LOOPBACK,
    container,
    document,
    entry,
    gpu_container,
    pod,
)

from aicr.yamlio.read import load, load_all
from aicr.yamlio.write import dump

GROUP = {"schedulingGroup": {"podGroupName": "train"}}


def run(folder: Path, command: str, made: Any, *flags: str, config: Any = None) -> Result:
    """Run ``aicr preflight`` *command* on a file with *made*."""
    (folder / "pod.yaml").write_text(
        made if isinstance(made, str) else "---\n".join(dump(one) for one in listed(made))
    )
    words = ["preflight", command, "-f", str(folder / "pod.yaml"), *flags]
    if config is not None:
        (folder / "config.yaml").write_text(dump(config))
        words += ["--config", str(folder / "config.yaml")]
    return aicr(*words)


def listed(made: Any) -> Sequence[Any]:
    """*made* as documents."""
    return made if isinstance(made, list) else [made]


def test_without_a_sub_command_the_ways_are_named() -> None:
    """A person finds serve, config, inject and explain."""
    aicr("preflight").refused(2, "name a sub-command", "serve", "config", "inject", "explain")
    aicr("preflight", "injekt").refused(2, "injekt", "did you mean preflight inject?")
    aicr("preflight", "zzzzzzzzz").refused(2, "unknown sub-command 'zzzzzzzzz'", "explain")


@pytest.mark.parametrize(
    ("text", "status", "out", "err"),
    [
        pytest.param(
            "initContainers: [{name: a, image: x}]", 0, "valid; checks: a; gang", "", id="fine"
        ),
        pytest.param(
            "initContainer: []", 8, "checks: none", "did you mean initContainers", id="doubt"
        ),
        pytest.param(
            "initContainers: [{name: a}, {name: a}]",
            2,
            "",
            'invalid file config\n  because: duplicate init container name "a"',
            id="rule",
        ),
        pytest.param(
            "initContainers: [{name: a, env: [{name: X, value: 2}]}]",
            2,
            "",
            "initContainers[0].env[0].value: Expected str",
            id="type",
        ),
        pytest.param(
            "initContainers: [{name: a, image: x, resources: {limits: {cpu: lots}}}]",
            2,
            "",
            "initContainers a: resources.limits[cpu]",
            id="quantity",
        ),
    ],
)
def test_a_configuration_is_judged_before_it_is_rolled_out(
    tmp_path: Path, text: str, status: int, out: str, err: str
) -> None:
    """The messages of the webhook, 2 for what would not start, 8 for what is probably not meant."""
    file = tmp_path / "c.yaml"
    file.write_text(text)
    found = aicr("preflight", "config", "check", file)
    assert found.status == status
    assert out in found.out
    assert err in found.err
    if status == 8:
        assert aicr("preflight", "config", "check", file, "--no-warnings").status == 0


def test_config_check_says_how_it_is_called() -> None:
    """The one word and the file are needed."""
    aicr("preflight", "config").refused(2, "aicr preflight config check FILE")
    aicr("preflight", "config", "chek", "x").refused(2, "unknown word 'chek'")
    aicr("preflight", "config", "check").refused(2, "name the file")
    aicr("preflight", "config", "check", "/no/such").refused(3, "not found")


def test_inject_prints_the_pod_with_its_checks(tmp_path: Path) -> None:
    """With the chart's defaults, the pod as it would be stored; nothing of it is lost."""
    made = pod({**gpu_container("8"), "futureField": {"a": 1}}, metadata={"name": "train"}, **GROUP)
    found = run(tmp_path, "inject", made)
    assert found.status == 0
    after = load(found.out, source="out")
    assert [item["name"] for item in after["spec"]["initContainers"]] == [DCGM, LOOPBACK, ALLREDUCE]
    assert after["spec"]["containers"] == made["spec"]["containers"]
    limits = after["spec"]["initContainers"][0]["resources"]["limits"]
    assert limits[GPU] == "8"


def test_inject_prints_the_patch(tmp_path: Path) -> None:
    """As JSON, to look at or to apply by other means; also into a file."""
    target = tmp_path / "patch.json"
    found = run(tmp_path, "inject", pod(), "--show", "patch", "-t", "json", "-o", str(target))
    assert (found.status, found.out) == (0, "")
    patch = json.loads(target.read_text())
    assert [operation["path"] for operation in patch] == ["/spec/initContainers", "/spec/volumes"]
    assert [item["name"] for item in patch[0]["value"]] == [DCGM, LOOPBACK]


def test_inject_says_why_nothing_is_changed(tmp_path: Path) -> None:
    """The pod comes out as it went in, and the reason is on stderr."""
    made = pod(container())
    found = run(tmp_path, "inject", made)
    assert load(found.out, source="out") == made
    assert "not changed: no container or sidecar gets a GPU" in found.err


@pytest.mark.parametrize(
    ("made", "status", "words"),
    [
        (pod(annotations={ANNOTATION: "foo"}), 2, ["failed to inject init containers", "foo"]),
        ({"kind": "Service"}, 2, ["kind Service makes no pod"]),
        ({"kind": "Jobs"}, 2, ["did you mean Job?"]),
        ({"a": 1}, 2, ["every document needs a kind"]),
        ("[1]", 2, ["every document needs a kind"]),
        ([pod(), pod()], 2, ["2 pods in the file, expected one"]),
        ("", 2, ["0 pods in the file"]),
        ({"kind": "Job", "spec": {}}, 2, ["the Job has no spec.template"]),
        ({"kind": "Pod", "spec": []}, 2, ["spec: expected a map, found a list"]),
        ("a: [", 2, ["pod.yaml:2:1"]),
    ],
    ids=[
        "refused pod",
        "service",
        "typing mistake",
        "no kind",
        "list",
        "two",
        "none",
        "job",
        "no pod",
        "yaml",
    ],
)
def test_a_pod_that_would_be_refused_is_an_error(
    tmp_path: Path, made: Any, status: int, words: list[str]
) -> None:
    """As is a file that holds no pod; the words say what to do."""
    for command in ("inject", "explain"):
        found = run(tmp_path, command, made)
        if command == "explain" and words[0].startswith("failed to inject"):
            assert found.status == 0
            assert "is refused (rejected)" in found.out
        else:
            found.refused(status, *words)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--show", "diff"], ["cannot show 'diff'"]),
        (["--format", "toml"], ["toml"]),
    ],
)
def test_flags_are_checked(tmp_path: Path, flags: list[str], words: list[str]) -> None:
    """A wrong word is refused before anything is read."""
    run(tmp_path, "inject", pod(), *flags).refused(2, *words)
    aicr("preflight", "inject").refused(2, "--file is required")
    aicr("preflight", "inject", "-f", "-", "--config", "-").refused(2, "only one of the two")


@pytest.mark.parametrize(
    ("flag", "value"), [("--port", "http"), ("--port", "70000"), ("--drain-seconds", "-1")]
)
def test_serve_refuses_numbers_that_are_none(flag: str, value: str) -> None:
    """Before anything is started."""
    aicr("preflight", "serve", f"{flag}={value}").refused(2, "invalid number", flag)


def test_a_workload_stands_for_the_pod_that_it_makes(tmp_path: Path) -> None:
    """The template's namespace and name come from the workload; stdin is a file like any other."""
    template = {"spec": pod()["spec"]}
    job = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "nightly", "namespace": "team-a"},
        "spec": {"jobTemplate": {"spec": {"template": template}}},
    }
    made = load(run(tmp_path, "inject", job).out, source="out")
    assert (made["kind"], made["metadata"]) == (
        "Pod",
        {"generateName": "nightly-", "namespace": "team-a"},
    )


def test_standard_input_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """For what kubectl prints."""
    data = io.BytesIO(dump(pod()).encode())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(data))
    assert "gets checks" in aicr("preflight", "explain", "-f", "-").out


def claim_template(name: str) -> dict[str, Any]:
    """A template for GPUs."""
    request = {"name": "r", "exactly": {"deviceClassName": "gpu.nvidia.com"}}
    return {
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name},
        "spec": {"spec": {"devices": {"requests": [request]}}},
    }


def test_claims_are_taken_from_the_file(tmp_path: Path) -> None:
    """What the webhook would look up stands beside the pod; if it does not, that is said."""
    user = {**container(), "resources": {"claims": [{"name": "g"}]}}
    made = pod(user, resourceClaims=[{"name": "g", "resourceClaimTemplateName": "gpus"}])
    found = run(tmp_path, "explain", [made, claim_template("gpus")])
    assert "the pod gets GPUs by resource claim" in found.out
    served = {
        "kind": "DeviceClass",
        "metadata": {"name": "gpu.nvidia.com"},
        "spec": {"extendedResourceName": GPU},
    }
    warned = run(tmp_path, "explain", [pod(), served])
    assert "served by claim (DeviceClass gpu.nvidia.com)" in warned.out
    alone = run(tmp_path, "explain", made)
    assert "ResourceClaimTemplate gpus is not in the file" in alone.out
    assert "put it into the file" in alone.out


@pytest.mark.covers("I15", "I3")
@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ("Never", "restartPolicy Never: a check that fails fails the pod, and a Job counts that"),
        ("OnFailure", "restartPolicy OnFailure: a check that fails is run again"),
        (None, "restartPolicy Always: a check that fails is run again"),
    ],
)
def test_explain_says_what_follows_for_the_pod(tmp_path: Path, policy: Any, said: str) -> None:
    """Order, gang, devices reserved before and after, and what a failing check does."""
    made = pod(
        gpu_container("4", "a"),
        gpu_container("4", "b"),
        initContainers=[{"name": "setup", "image": "s"}],
        **GROUP,
        **({"restartPolicy": policy} if policy else {}),
    )
    found = run(tmp_path, "explain", made)
    assert found.status == 0
    for words in (
        "pod team-a/w-0 gets checks (injected)",
        f"setup → {DCGM} → {LOOPBACK} → {ALLREDUCE}",
        "kubernetes-team-a-train (by kubernetes, ConfigMap preflight-kubernetes-team-a-train)",
        "nvidia.com/gpu: 8 for each check; reserved for the pod: 8 without checks, 8 with them",
        "nvsentinel.nvidia.com/preflight=enabled",
        said,
    ):
        assert words in found.out


@pytest.mark.parametrize(
    ("made", "config", "result", "why", "left_out"),
    [
        (pod(container()), None, "skipped_no_gpu", "no container or sidecar gets a GPU", {}),
        (
            pod(annotations={ANNOTATION: ""}),
            None,
            "skipped_no_checks",
            "no check is selected for this pod",
            {},
        ),
        (
            pod(),
            None,
            "injected",
            "the pod gets GPUs by extended resource",
            {ALLREDUCE: "it is only for pods of a gang, and this pod is in none"},
        ),
        (
            pod(annotations={ANNOTATION: DCGM}),
            document(),
            "injected",
            "the pod gets GPUs by extended resource",
            {
                LOOPBACK: f"annotation {ANNOTATION} does not name it",
                ALLREDUCE: f"annotation {ANNOTATION} does not name it",
            },
        ),
        (
            pod(),
            document(initContainers=[entry(DCGM), entry(LOOPBACK, defaultEnabled=False)]),
            "injected",
            "the pod gets GPUs by extended resource",
            {LOOPBACK: "defaultEnabled is false"},
        ),
        (
            pod(container(), resourceClaims=[{"name": "g", "resourceClaimName": "x"}]),
            document(gpuDraEnabled=False),
            "skipped_no_gpu",
            "no container or sidecar gets a GPU by extended resource, and resource claims are not "
            "looked at (gpuDraEnabled)",
            {},
        ),
        (
            pod(annotations={"kubernetes.io/config.mirror": "x"}),
            None,
            "skipped_no_checks",
            "a static pod runs before the API server hears of it",
            {},
        ),
    ],
)
def test_explain_is_a_document_for_programs(
    tmp_path: Path, made: Any, config: Any, result: str, why: str, left_out: dict[str, str]
) -> None:
    """Why and why not, check by check."""
    found = run(tmp_path, "explain", made, "-t", "json", config=config)
    explained = json.loads(found.out)
    assert (explained["result"], explained["why"]) == (result, why)
    assert {item["check"]: item["why"] for item in explained.get("leftOut", [])} == left_out
    yaml = run(tmp_path, "explain", made, "-t", "yaml", config=config)
    assert load_all(yaml.out, source="out") == [explained]


def test_an_anchor_of_a_scheduler_is_recognised_offline(tmp_path: Path) -> None:
    """The configured discovery reads the pod alone, so no cluster is asked."""
    made = pod(annotations={"scheduling.k8s.io/group-name": "pg1"})
    found = json.loads(run(tmp_path, "explain", made, "-t", "json", config=document()).out)
    assert found["gang"] == {
        "id": "volcano-team-a-pg1",
        "configMap": "preflight-volcano-team-a-pg1",
        "discoverer": "volcano",
    }
    workload = pod(workloadRef={"name": "w", "podGroup": "g"})
    found = json.loads(run(tmp_path, "explain", workload, "-t", "json").out)
    assert found["gang"]["id"] == "kubernetes-team-a-w-g"
