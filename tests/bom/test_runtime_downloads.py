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
        ("apt-get -y -o Dpkg::Options::=--force-confold install jq", "apt"),
        ("curl -fsSL get.example.org/x.sh", "curl"),
        ("wget -q files.example.org:8080/a.tgz", "wget"),
        ("pip download -d /w torch", "pip"),
        ("uv sync --frozen", "uv"),
        ("go mod download", "go"),
        ("gem install x", "gem"),
        ("cargo install x", "cargo"),
        ("tdnf -y install x", "yum"),
        ("crictl pull registry.example/x:1", "image"),
        ("ctr -n k8s.io images pull registry.example/x:1", "image"),
        ("docker --tls pull registry.example/x:1", "image"),
        ("skopeo copy docker://a.example/x docker://b.example/x", "image"),
        ("aws s3 cp --quiet s3://models/x .", "aws"),
        ("gsutil -m cp gs://models/x .", "gsutil"),
        ("gcloud storage cp gs://models/x .", "gcloud"),
        ("azcopy copy https://x.blob.example/y .", "azcopy"),
        ("ngc registry model download-version a/b:1", "ngc"),
        ("kubectl apply -k https://git.example/x", "kubectl"),
        ("helm upgrade --install x oci://charts.example/x", "helm"),
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
        "curl -k https://$KUBERNETES_SERVICE_HOST/api",
        "curl -k https://${KUBERNETES_SERVICE_HOST}:${KUBERNETES_SERVICE_PORT}/api",
        "curl -o out.d/file http://localhost/x",
        "curl dcgm.gpu-operator.svc.cluster.local/metrics",
        "pip install --no-index -f /wheels torch",
        "aws s3 cp /tmp/x s3://results/x",
        "crictl images",
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
