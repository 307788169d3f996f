"""The manifests of the catalogue render to Kubernetes objects, with and without optional values."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml
from tests.catalogue.catalogue_files import RECIPES, load

from aicr.bundle.gotemplate import render
from aicr.values.merge import deep_merge

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
    "driver": {"enabled": False, "kernelModuleConfig": {"name": "nvidia-kernel-module-params"}},
    "toolkit": {"enabled": False},
    "nvidiaDriver": {"driverType": "gpu"},
}
OPTIONAL = {
    "dra-node-labeler/labeler.yaml",
    "gcp-driver-installer/installer.yaml",
    "gpu-operator/kernel-module-params.yaml",
    "gpu-operator/nvidia-driver.yaml",
    "gpu-operator/peermem-loader-aks.yaml",
    "gpu-operator/toolkit-hardening-aks.yaml",
}
#: A queue of the component's own lies where people look for one.
ELSEWHERE = {"kueue/local-queue.yaml": "default"}


def _objects(name: str, values: dict[str, Any]) -> list[dict[str, Any]]:
    component = name.partition("/")[0]
    own = RECIPES / "components" / component / "values.yaml"
    base = load(own) if own.is_file() else {}
    data = {
        "Values": {component: deep_merge(base, values, null_deletes=True)},
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
        place = ELSEWHERE.get(name, "somewhere")
        assert item["metadata"].get("namespace", place) == place


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


def test_the_tcpxo_daemon_is_the_one_that_google_released_with_the_plugin() -> None:
    """The two are coupled (release notes of GPUDirect-TCPXO); the daemon lost two arguments in v1.0.18."""
    pairs = {"v1.0.15": "v1.0.21", "v1.0.14": "v1.0.20", "v1.0.12": "v1.0.18", "v1.0.11": "v1.0.17"}
    texts = [path.read_text(encoding="utf-8") for path in sorted(RECIPES.rglob("*.yaml"))]
    found = {
        image: {
            tag for text in texts for tag in re.findall(rf"gpudirect-tcpxo/{image}:(\S+)", text)
        }
        for image in ("nccl-plugin-gpudirecttcpx-dev", "tcpgpudmarxd-dev")
    }
    (plugin,) = found["nccl-plugin-gpudirecttcpx-dev"]
    assert found["tcpgpudmarxd-dev"] == {pairs[plugin]}
    daemons = [
        line for text in texts for line in text.splitlines() if "rxdm_container.sh --" in line
    ]
    assert len(daemons) == 2
    assert not [line for line in daemons if "--uid" in line or "--alsologtostderr" in line]


@pytest.mark.parametrize(
    "name", ["tuning.yaml", "tuning-generic.yaml", "tuning-gb300.yaml", "tuning-rke2.yaml"]
)
def test_tuning_can_be_left_out(name: str) -> None:
    """tuningEnabled=false leaves the tuned profile out, and no package waits for what is left out."""
    objects = _objects(f"nodewright-customizations/{name}", {**NEEDED, "tuningEnabled": False})
    packages = {key: value for item in objects for key, value in item["spec"]["packages"].items()}
    assert "nvidia-tuned" not in packages
    waited = {key for package in packages.values() for key in package.get("dependsOn", {})}
    assert waited <= set(packages)
    assert bool(objects) == (name == "tuning.yaml")


def test_rke2_nodes_without_a_gpu_are_never_changed() -> None:
    """Without a selector the profile that reboots is limited to nodes that show a GPU."""
    (tuning,) = _objects("nodewright-customizations/tuning-rke2.yaml", NEEDED)
    assert tuning["spec"]["nodeSelectors"]["matchLabels"] == {"nvidia.com/gpu.present": "true"}
    assert tuning["spec"]["interruptionBudget"] == {"count": 1}


def test_the_cluster_policy_of_openshift_follows_the_values() -> None:
    """What is set under the chart's names stands in the object."""
    (policy,) = _objects("gpu-operator-ocp/cluster-policy.yaml", {"driver": {"enabled": False}})
    assert policy["spec"]["driver"] == {"enabled": False, "rdma": {"enabled": True}}
    assert policy["spec"]["hostPaths"] == {"driverInstallDir": "/run/nvidia/driver"}


def test_a_subscription_names_a_channel_only_where_one_is_known() -> None:
    """An unknown channel is absent, so the catalogue's default applies."""
    channels = {}
    for component in ("cert-manager", "gpu-operator", "network-operator", "nfd"):
        (item,) = _objects(f"{component}-ocp-olm/subscription.yaml", {})
        channels[component] = item["spec"].get("channel")
        assert item["spec"]["sourceNamespace"] == "openshift-marketplace"
    assert channels == {
        "cert-manager": "stable-v1",
        "gpu-operator": None,
        "network-operator": None,
        "nfd": "stable",
    }


def test_the_gateway_is_open_to_the_allowed_ranges_only() -> None:
    """allowedSourceRanges become the load balancer's source ranges."""
    parameters, gateway = _objects("agentgateway/inference-gateway.yaml", FULL)
    assert parameters["spec"]["service"]["spec"]["loadBalancerSourceRanges"] == ["10.0.0.0/8"]
    assert gateway["spec"]["infrastructure"]["parametersRef"]["name"] == "inference-gateway"
