"""The manifests of the catalogue render to Kubernetes objects, with and without optional values."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from tests.catalogue.catalogue_files import RECIPES

from aicr.bundle.gotemplate import render

MANIFESTS = {
    f"{path.parent.parent.name}/{path.name}": path
    for path in sorted((RECIPES / "components").glob("*/manifests/*.yaml"))
}
NEEDED = {"accelerator": "h100", "intent": "inference", "service": "eks"}
INTERFACES = [{"interfaceName": f"eth{n}", "network": f"lab-gpu-nic-{n - 1}"} for n in range(1, 9)]
FULL: dict[str, Any] = {
    **NEEDED,
    "acceleratedNodeSelector": {"pool": "gpu"},
    "acceleratedTolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
    "workloadSelector": {"job": "train"},
    "nodeSelector": {"pool": "system"},
    "tolerations": [{"key": "dedicated", "value": "system"}],
    "allowedSourceRanges": ["10.0.0.0/8"],
    "dcgmExporter": {"config": {"name": "metrics", "create": True}},
    "installer": {"enabled": True},
    "labelKey": "aicr.run/dra",
    "labelValue": "true",
    "tcpxoInterfaces": INTERFACES,
}
OPTIONAL = {
    "dra-node-labeler/labeler.yaml",
    "gcp-driver-installer/installer.yaml",
    "gpu-operator/dcgm-exporter.yaml",
}


def _objects(name: str, values: dict[str, Any]) -> list[dict[str, Any]]:
    component = name.partition("/")[0]
    data = {
        "Values": {component: values},
        "Release": {"Namespace": "somewhere", "Service": "Helm"},
        "Chart": {"Name": component, "Version": "0.1.0"},
    }
    text = render(MANIFESTS[name].read_text(encoding="utf-8"), data, source=name)
    return [document for document in yaml.safe_load_all(text) if document]


@pytest.mark.parametrize("name", sorted(MANIFESTS))
@pytest.mark.parametrize("values", [NEEDED, FULL], ids=["needed", "full"])
def test_a_manifest_renders_to_named_objects(name: str, values: dict[str, Any]) -> None:
    """Every object has kind, version and name, and none is a Helm hook."""
    objects = _objects(name, values)
    assert objects or (name in OPTIONAL and values is NEEDED)
    for item in objects:
        assert item["apiVersion"]
        assert item["kind"]
        assert item["metadata"]["name"]
        assert "helm.sh/hook" not in item["metadata"].get("annotations", {})
        assert item["metadata"].get("namespace", "somewhere") == "somewhere"


@pytest.mark.parametrize("name", sorted(OPTIONAL))
def test_an_optional_manifest_renders_nothing_when_it_is_not_asked_for(name: str) -> None:
    """Off by default: the object appears only with the value that switches it on."""
    assert _objects(name, NEEDED) == []
    assert _objects(name, FULL)


def test_the_tcpxo_runtime_puts_the_default_network_before_the_eight_gpu_networks() -> None:
    """eth0 is the default network, eth1 to eth8 are the recipe's mapping, in its order."""
    (runtime,) = _objects("kubeflow-trainer/torch-distributed-tcpxo.yaml", FULL)
    node = runtime["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]
    annotations = node["template"]["metadata"]["annotations"]
    found = json.loads(annotations["networking.gke.io/interfaces"])
    assert found == [{"interfaceName": "eth0", "network": "default"}, *INTERFACES]
    assert annotations["networking.gke.io/default-interface"] == "eth0"


def test_the_gateway_is_open_to_the_allowed_ranges_only() -> None:
    """allowedSourceRanges become the load balancer's source ranges."""
    parameters, gateway = _objects("agentgateway/inference-gateway.yaml", FULL)
    assert parameters["spec"]["service"]["spec"]["loadBalancerSourceRanges"] == ["10.0.0.0/8"]
    assert gateway["spec"]["infrastructure"]["parametersRef"]["name"] == "inference-gateway"
