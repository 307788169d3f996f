"""`aicr snapshot` on this machine: formats, targets, refusals, and what is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from tests.cli.program import aicr, environment, spawn

from aicr.cli import config
from aicr.cli.arguments import Parser
from aicr.cli.snapshot import agent_options, parser


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No cluster and no agent of the environment."""
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "AICR_AGENT_MODE", "AICR_NAMESPACE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AICR_REQUIRE_GPU", "AICR_AKS_GPU_POOLS_PATH", "NODE_NAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


def test_this_machine_is_measured_and_says_that_it_has_no_gpu() -> None:
    """Without flags, cluster or GPU: a snapshot all the same, with what is not there said."""
    done = aicr("snapshot")
    assert done.status == 0
    snapshot = yaml.safe_load(done.out)
    assert snapshot["kind"] == "Snapshot"
    assert "no cluster is configured: only this machine is measured" in done.err
    gpu = next(one for one in snapshot["measurements"] if one["type"] == "GPU")
    if not gpu["subtypes"][0]["data"]["gpu-present"]:
        assert "there is no NVIDIA GPU on this machine" in done.err


def test_a_process_of_its_own_writes_a_file_that_recipe_reads(tmp_path: Path) -> None:
    """The installed program, from start to end; recipe takes the file."""
    file = tmp_path / "snapshot.yaml"
    env = environment(KUBECONFIG=None, HOME=str(tmp_path))
    assert spawn("snapshot", "-o", file, env=env).status == 0
    made = aicr(
        "recipe",
        "-s",
        file,
        "--service",
        "eks",
        "--accelerator",
        "h100",
        "--os",
        "ubuntu",
        "--intent",
        "training",
    )
    assert "snapshot " in made.err
    assert file.stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("chosen", ["json", "yaml", "table"])
def test_formats_hold_the_same_document(chosen: str) -> None:
    """JSON, YAML, and a table for people."""
    done = aicr("snapshot", "--format", chosen)
    assert done.status == 0
    if chosen == "table":
        assert done.out.startswith("FIELD")
        assert "Measurements.[0].Type" in done.out
    else:
        text = json.loads(done.out) if chosen == "json" else yaml.safe_load(done.out)
        assert text["apiVersion"] == "aicr.run/v1"


def test_a_template_prints_what_is_asked_for(tmp_path: Path) -> None:
    """`reading` gives a reading as constraints see it."""
    file = tmp_path / "report.j2"
    file.write_text("{{ snapshot.kind }} of {{ reading('OS.sysctl./proc/sys/kernel/ostype') }}")
    done = aicr("snapshot", "--template", file)
    assert (done.status, done.out) == (0, "Snapshot of Linux\n")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{{ reading('K8s.server.version') }}", "the template asks for what is not there"),
        ("{{ snapshot.nothing.there }}", "the template is wrong"),
        ("{{ wrong", "the template is wrong"),
        ("{% for x in 3 %}{% endfor %}", "the template is wrong"),
        ("{{ ''.__class__.__mro__ }}", "the template is wrong"),
    ],
    ids=["no-reading", "undefined", "syntax", "type", "escape"],
)
def test_a_template_that_is_wrong_is_refused(tmp_path: Path, text: str, words: str) -> None:
    """A misspelt reading does not print as nothing, and a template is no program."""
    file = tmp_path / "report.j2"
    file.write_text(text)
    aicr("snapshot", "--template", file).refused(2, words, "report.j2")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--format", "xml"), "unknown output format"),
        (("--format", "json", "--template", "x"), "exclude each other"),
        (("--no-cluster", "--agent"), "needs a cluster"),
        (("--no-cluster", "--namespace", "x"), "--namespace needs a cluster"),
        (("--max-nodes-per-entry", "x"), "invalid"),
        (("--output", "cm://nowhere"), "does not name a ConfigMap"),
        (("--agent", "--timeout", "5"), "missing unit"),
        (("--agent", "--node-selector", "x"), "expected key=value"),
        (("--agent", "--toleration", "a=b:Never"), "--toleration"),
        (("--agent", "--limits", "cpu"), "name=quantity"),
        (("--agent", "--os", "ubunto"), "did you mean ubuntu"),
        (("--agent",), "no cluster is configured"),
        (("--kubeconfig", "/nonexistent"), "/nonexistent"),
        (("--aks-gpu-pools", "/nonexistent"), "/nonexistent"),
        (("--agentt",), "did you mean --agent"),
    ],
)
def test_what_cannot_be_meant_is_refused(words: tuple[str, ...], said: str) -> None:
    """Nothing is printed but the error, with what to write instead."""
    done = aicr("snapshot", *words)
    assert done.status in (2, 3)
    assert done.out == ""
    assert said in done.err


def test_a_wrong_dump_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    """Exit 2 with the file's name, whether the flag or the variable named it."""
    file = tmp_path / "pools.json"
    file.write_text("{}")
    aicr("snapshot", "--aks-gpu-pools", file).refused(2, "pools.json", "no list of node pools")


def test_a_dump_named_by_the_environment_is_merged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """AICR_AKS_GPU_POOLS_PATH stands for the flag (validators spec 1.1)."""
    file = tmp_path / "pools.json"
    file.write_text('[{"name": "gpu", "vmSize": "Standard_NC24ads_A100_v4"}]')
    monkeypatch.setenv("AICR_AKS_GPU_POOLS_PATH", str(file))
    snapshot = json.loads(aicr("snapshot", "--format", "json").out)
    k8s = snapshot["measurements"][0]
    assert (k8s["type"], k8s["subtypes"][0]["data"]["gpu-driver"]) == ("K8s", "Install")


def test_a_gpu_that_is_required_and_not_there_is_not_found() -> None:
    """Exit 3 on a machine without one; on one with, a snapshot."""
    done = aicr("snapshot", "--require-gpu")
    assert done.status in (0, 3)
    if done.status == 3:
        assert "a GPU is required and none was found" in done.err


def test_inside_the_agents_own_pod_flags_of_the_agent_start_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """AICR_AGENT_MODE=true means: here."""
    monkeypatch.setenv("AICR_AGENT_MODE", "true")
    done = aicr("snapshot", "--agent", "--namespace", "x")
    assert done.status == 0
    assert "only this machine is measured" in done.err


def test_flags_become_the_agents_options() -> None:
    """Each flag in its place; what is not said keeps its default."""
    found: Parser = parser()
    words = [
        *("--namespace", "ns", "--image", "registry.test/agent:v1", "--image-pull-secret", "s"),
        *("--job-name", "job", "--service-account-name", "sa", "--node-selector", "a=b"),
        *("--toleration", "nvidia.com/gpu=present:NoSchedule", "--runtime-class", "nvidia"),
        *("--requests", "cpu=1", "--limits", "cpu=2", "--privileged", "false"),
        *("--timeout", "90s", "--no-cleanup", "--partial", "--max-nodes-per-entry", "9"),
        *("--os", "cos"),
    ]
    asked = agent_options(found.parse(words), [])
    assert (asked.namespace, asked.image, asked.job_name) == ("ns", "registry.test/agent:v1", "job")
    assert (asked.service_account, asked.node_selector) == ("sa", {"a": "b"})
    assert asked.tolerations == [
        {
            "effect": "NoSchedule",
            "key": "nvidia.com/gpu",
            "operator": "Equal",
            "value": "present",
        }
    ]
    assert (asked.runtime_class, asked.os, asked.most_names) == ("nvidia", "cos", 9)
    assert (asked.requests, asked.limits) == ({"cpu": "1"}, {"cpu": "2"})
    assert (asked.privileged, asked.cleanup, asked.partial) == (False, False, True)
    assert (asked.times.agent, asked.image_pull_secrets) == (90, ["s"])
    plain = agent_options(found.parse([]), [])
    assert (plain.tolerations, plain.service_account, plain.times.agent) == (None, None, 300)
    assert (plain.namespace, plain.privileged, plain.cleanup) == ("default", True, True)


@pytest.mark.skipif(
    "snapshot" not in config.COMMANDS, reason="aicr.cli.config does not know spec.snapshot yet"
)
def test_a_config_file_stands_for_the_flags(tmp_path: Path) -> None:
    """spec.snapshot of an AICRConfig; what the agent would be told makes it the agent's business."""
    file = tmp_path / "config.yaml"
    text = "kind: AICRConfig\napiVersion: aicr.run/v1beta1\nspec:\n  snapshot:\n"
    target = tmp_path / "out.json"
    file.write_text(f"{text}    output: {{path: {target}, format: json}}\n")
    done = aicr("snapshot", "--config", file)
    assert done.status == 0, done.err
    assert json.loads(target.read_text())["kind"] == "Snapshot"
    file.write_text(f"{text}    agent: {{namespace: gpu-operator, tolerations: []}}\n")
    aicr("snapshot", "--config", file).refused(2, "no cluster is configured")


def test_help_names_the_two_ways() -> None:
    """Here, or through an agent."""
    done = aicr("snapshot", "--help")
    assert done.status == 0
    assert "--agent" in done.out
    assert "exit status" in done.out
