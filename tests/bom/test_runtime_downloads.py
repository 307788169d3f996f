"""What pods fetch when they start is seen, and what stays inside is not (field case L3)."""

from __future__ import annotations

from typing import Any

import pytest

from aicr.bundle.downloads import downloads, object_name, tool_of


@pytest.mark.covers("L3")
@pytest.mark.parametrize(
    ("line", "tool"),
    [
        ("apt-get install -y jq", "apt"),
        ("apt-get -qq -y install jq", "apt"),
        ("apt update", "apt"),
        ("dnf install kernel-devel", "yum"),
        ("apk add --no-cache curl", "apk"),
        ("git clone https://github.example/x", "git"),
        ("git -C /x pull", "git"),
        ("pip install torch", "pip"),
        ("python3 -m pip install torch", "pip"),
        ("helm repo add x https://charts.example", "helm"),
        ("curl -fsSL https://get.example/x.sh | sh", "curl"),
        ("wget http://files.example/a", "wget"),
        ('curl "https://$HOST/x"', "curl"),
        ('curl -O "$DOWNLOAD_URL"', "curl"),
        ("kubectl apply -f https://raw.example/x.yaml", "kubectl"),
        ("npm ci", "npm"),
        ("huggingface-cli download x/y", "huggingface"),
    ],
)
def test_a_command_that_fetches_is_named(line: str, tool: str) -> None:
    """Packages, repositories, files and addresses that are put together at run time."""
    assert tool_of(line) == tool


@pytest.mark.covers("L3")
@pytest.mark.parametrize(
    "line",
    [
        "# apt-get install jq",
        "curl http://localhost:8080/healthz",
        "curl -sf http://127.0.0.1:9400/metrics",
        "wget http://dcgm.gpu-operator.svc:5555/",
        "curl http://dcgm.gpu-operator.svc.cluster.local/",
        "curl http://metadata.google.internal/x",
        "curl http://169.254.169.254/latest",
        "curl http://other-service/x",
        "command -v curl",
        "curl --version",
        "apt-get remove jq",
        "git status",
        "echo piped install",
        "kubectl apply -f /manifests/x.yaml",
        "helm upgrade x ./chart",
    ],
)
def test_a_command_that_stays_inside_is_not(line: str) -> None:
    """The cluster, the pod and its files are no network."""
    assert tool_of(line) == ""


def pod(**container: Any) -> dict[str, Any]:
    """A pod with one container."""
    return {
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "n"},
        "spec": {"containers": [{"name": "c", **container}]},
    }


@pytest.mark.covers("L3")
@pytest.mark.parametrize(
    ("document", "path", "tool"),
    [
        (
            pod(command=["sh", "-c"], args=["set -e; apt-get install -y jq"]),
            "spec.containers.0.command",
            "apt",
        ),
        (pod(command=["pip"], args=["install", "x"]), "spec.containers.0.command", "pip"),
        (pod(args=["git", "clone", "x"]), "spec.containers.0.args", "git"),
        (
            pod(lifecycle={"postStart": {"exec": {"command": ["apk", "add", "jq"]}}}),
            "spec.containers.0.lifecycle.postStart.exec.command",
            "apk",
        ),
        (
            {
                "kind": "ConfigMap",
                "metadata": {"name": "s"},
                "data": {"run.sh": "set -e\ncurl \\\n  https://x.example/y\n"},
            },
            "data.run.sh",
            "curl",
        ),
        (
            {"kind": "Skyhook", "spec": {"configMap": {"a.sh": "dnf -y install x"}}},
            "spec.configMap.a.sh",
            "yum",
        ),
    ],
)
def test_a_download_is_found_in_commands_and_scripts(document: Any, path: str, tool: str) -> None:
    """With the object's name, the path in it, and the line."""
    (item,) = downloads(document, where=object_name(document))
    assert (item.path, item.tool) == (path, tool)
    assert item.where == object_name(document)


@pytest.mark.parametrize(
    "document",
    [
        {"kind": "CustomResourceDefinition", "spec": {"x": "apt-get install y"}},
        {"kind": "ConfigMap", "metadata": {"annotations": {"a": "pip install x"}}},
        {"spec": {"description": "use git clone to get it"}},
    ],
)
def test_words_about_downloads_are_no_downloads(document: Any) -> None:
    """Schemas, annotations and descriptions are not run."""
    assert downloads(document, where="x") == []


def test_objects_are_named_with_kind_and_namespace() -> None:
    """As a person would ask kubectl for them."""
    assert object_name(pod()) == "Pod n/p"
    assert object_name({"kind": "Job", "metadata": {"generateName": "x-"}}) == "Job x-"
    assert object_name({"a": 1}) == ""
    assert object_name([]) == ""
