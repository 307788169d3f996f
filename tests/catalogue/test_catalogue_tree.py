"""The data tree holds together: parents, files, checks, names."""

from __future__ import annotations

from typing import Any

import pytest
from tests.catalogue.catalogue_files import (
    RECIPES,
    SOURCES,
    chain,
    load,
    mixins,
    overlays,
    registry,
)

REGISTRY = registry()
OVERLAYS = overlays()
MIXINS = mixins()
SOURCED: dict[str, Any] = load(SOURCES)
DIMENSIONS = ("service", "accelerator", "intent", "os", "platform")
#: Only built on, never chosen: what the overlays of two node systems share.
PARENTS = {"oke-cluster"}
CHOSEN = sorted(set(OVERLAYS) - {"base"} - PARENTS)
#: Node systems that a name leaves out because the service has one of its own.
IMPLIED_OS = {"oke": "ol"}


def _words(text: str) -> set[str]:
    return set(text.split())


def _refs(name: str) -> list[dict[str, Any]]:
    return OVERLAYS[name]["spec"].get("componentRefs") or []


@pytest.mark.covers("V-384", "V-387", "V-389")
@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_every_component_has_a_health_check_that_first_asserts_existence(name: str) -> None:
    """A check starts with an assert, so that an empty namespace does not pass, and it only reads."""
    check = load(RECIPES / REGISTRY[name]["healthCheck"]["assertFile"])
    assert check["apiVersion"] == "chainsaw.kyverno.io/v1alpha1"
    assert check["kind"] == "Test"
    operations = [list(operation) for step in check["spec"]["steps"] for operation in step["try"]]
    assert operations[0] == ["assert"]
    assert {key for keys in operations for key in keys} <= {"assert", "error"}
    assert set(check["spec"]) == {"timeouts", "steps"}


@pytest.mark.covers("V-384")
@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_a_phase_is_looked_at_only_after_a_workload_was_asserted(name: str) -> None:
    """Before pods are searched for bad phases, something that owns pods has been found."""
    check = load(RECIPES / REGISTRY[name]["healthCheck"]["assertFile"])
    owners = {"ClusterPolicy", "DaemonSet", "Deployment", "NodeSet", "Skyhook", "StatefulSet"}
    seen: set[str] = set()
    for step in check["spec"]["steps"]:
        for operation in step["try"]:
            ((kind, body),) = operation.items()
            if kind == "assert":
                seen.add(body["resource"]["kind"])
            elif "phase" in body["resource"].get("status", {}):
                assert seen & owners


def test_registry_and_health_checks_are_sorted_and_complete() -> None:
    """The registry is in alphabetical order and no check or component folder is an orphan."""
    assert list(REGISTRY) == sorted(REGISTRY)
    used = {entry["healthCheck"]["assertFile"].split("/")[1] for entry in REGISTRY.values()}
    assert {path.name for path in (RECIPES / "checks").iterdir()} == used
    assert used <= set(REGISTRY)
    assert {path.name for path in (RECIPES / "components").iterdir()} <= set(REGISTRY)


def test_every_component_that_the_specification_names_is_there() -> None:
    """Recipe spec 10.1, the four later ones and the two of decision 56; others with sources."""
    named = _words("""
    agentgateway agentgateway-crds aws-ebs-csi-driver aws-efa cert-manager cert-manager-ocp
    cert-manager-ocp-olm dra-node-labeler dranet dynamo-platform gatekeeper gcp-driver-installer
    gke-gb200-rdma gke-nccl-tcpxo gpu-operator gpu-operator-ocp gpu-operator-ocp-olm grove
    k8s-aibom k8s-ephemeral-storage-metrics k8s-nim-operator k8s-nim-operator-ocp kai-scheduler
    kube-prometheus-stack kubeflow-trainer kueue kueue-queues mariadb-operator
    mariadb-operator-crds network-operator network-operator-ocp network-operator-ocp-olm nfd
    nfd-ocp nfd-ocp-olm node-problem-detector nodewright-customizations nodewright-operator nvcre
    nvidia-dra-driver-gpu nvidia-dra-driver-gpu-ocp nvsentinel nvsentinel-mongodb
    prometheus-adapter prometheus-adapter-ocp prometheus-operator-crds rdma-netns-exclusive
    slinky-slurm slinky-slurm-operator slinky-slurm-operator-crds slinky-topograph
    slurm-accounting-mariadb
    """)
    assert len(named) == 52
    assert named <= set(REGISTRY)
    assert (
        {"gateway-api-crds", "psmdb-operator"}
        <= set(REGISTRY) - named
        <= set(SOURCED["components"])
    )


def test_every_leaf_that_the_specification_names_is_there() -> None:
    """Recipe spec 10.5, written out."""
    named = _words("""
    a100-any b200-any gb200-any gb300-any h100-any h200-any l40-any l40s-any rtx-pro-6000-any
    monitoring-hpa aks-ubuntu a100-aks-ubuntu-training-kubeflow
    h100-aks-ubuntu-inference-dynamo h100-aks-ubuntu-training-kubeflow
    h100-aks-ubuntu-training-slurm bcm-inference h100-bcm-ubuntu-training-kubeflow eks-ubuntu
    a100-eks-ubuntu-training-kubeflow gb200-eks-ubuntu-inference-dynamo
    gb200-eks-ubuntu-training-kubeflow gb200-eks-ubuntu-training-slurm
    gb300-eks-ubuntu-inference-dynamo gb300-eks-ubuntu-training-kubeflow
    gb300-eks-ubuntu-training-slurm h100-eks-ubuntu-inference-dynamo h100-eks-ubuntu-inference-nim
    h100-eks-ubuntu-training-kubeflow h100-eks-ubuntu-training-slurm h200-eks-inference
    h200-eks-training-kubeflow rtx-pro-6000-eks-ubuntu-inference-dynamo
    rtx-pro-6000-eks-ubuntu-inference-nim rtx-pro-6000-eks-ubuntu-training-kubeflow
    gb300-generic-ubuntu-training a100-gke-cos-training-kubeflow b200-gke-cos-inference-dynamo
    b200-gke-cos-training-kubeflow gb200-gke-cos-inference-dynamo gb200-gke-cos-training-kubeflow
    gb200-gke-cos-training-slurm h100-gke-cos-inference-dynamo h100-gke-cos-training-kubeflow
    h100-gke-cos-training-slurm h200-k0s-ubuntu-training h100-kind-inference-dynamo
    h100-kind-training-kubeflow h100-kind-training-slurm rtx-pro-6000-lke-ubuntu-inference
    rtx-pro-6000-lke-ubuntu-training-kubeflow ocp-inference-nim ocp-training
    a100-oke-ubuntu-training-kubeflow gb200-oke-ubuntu-inference-dynamo
    gb200-oke-ubuntu-training-kubeflow l40s-oke-inference l40s-oke-training-kubeflow
    vr200-rke2-ubuntu-inference-dynamo vr200-rke2-ubuntu-training
    vr200-rke2-ubuntu-training-kubeflow eks eks-training eks-inference aks aks-training
    aks-inference gke-cos gke-cos-training gke-cos-inference oke ocp bcm bcm-training lke kind
    kind-inference rke2 rke2-training k0s-training
    """)
    assert named <= set(OVERLAYS)


def test_the_mixins_are_the_sixteen() -> None:
    """Recipe spec 10.6; more may join with their sources."""
    monitors = "observability object-monitor preflight observe quarantine remediation"
    extra = "nic-health-monitor slurm-drain-monitor"
    named = {f"nvsentinel-{word}" for word in f"{monitors} {extra}".split()}
    named |= {"os-ubuntu", "os-talos", "os-amazonlinux", "os-sles", "platform-inference"}
    named |= {"platform-kubeflow", "npd", "gpu-operator-nvidia-driver-cr"}
    assert len(named) == 16
    assert named <= set(MIXINS)
    assert set(MIXINS) - named <= set(SOURCED["mixins"])


@pytest.mark.covers("C-046", "C-063")
def test_override_keys_are_unique_and_tiers_share_no_selector_path() -> None:
    """A key means one component; a selector path means one node class."""
    keys = [key for entry in REGISTRY.values() for key in entry.get("valueOverrideKeys", [])]
    assert len(keys) == len(set(keys))
    assert not set(keys) & set(REGISTRY)
    for entry in REGISTRY.values():
        scheduling = entry.get("nodeScheduling", {})
        system = set(scheduling.get("system", {}).get("nodeSelectorPaths", []))
        accelerated = set(scheduling.get("accelerated", {}).get("nodeSelectorPaths", []))
        assert not system & accelerated


@pytest.mark.covers("C-047")
def test_the_gpu_operator_routes_tolerations_only_to_gpu_nodes() -> None:
    """Its operands place themselves by deploy labels."""
    assert REGISTRY["gpu-operator"]["nodeScheduling"]["accelerated"] == {
        "tolerationPaths": ["daemonsets.tolerations"]
    }


@pytest.mark.parametrize("name", CHOSEN)
def test_an_overlay_restates_its_parents_criteria_and_its_parents_exist(name: str) -> None:
    """Criteria are not inherited: a child states at least what its parent states."""
    own = OVERLAYS[name]["spec"]["criteria"]
    assert set(own) <= set(DIMENSIONS)
    for parent in chain(name)[1:]:
        inherited = OVERLAYS[parent]["spec"].get("criteria", {})
        assert inherited.items() <= own.items()


@pytest.mark.parametrize("name", sorted(set(CHOSEN) - {"monitoring-hpa"}))
def test_an_overlay_is_called_after_its_criteria(name: str) -> None:
    """[accelerator-]service[-os][-intent][-platform]; kind has no os, *-any has the GPU alone."""
    criteria = OVERLAYS[name]["spec"]["criteria"]
    words = list(criteria.values())
    implied = IMPLIED_OS.get(criteria.get("service", ""))
    if implied and implied not in name.split("-"):
        words = [word for word in words if word != implied]
    found = [word for value in words for word in value.split("-")]
    assert sorted(name.removesuffix("-any").split("-")) == sorted(found)


def test_an_overlay_without_criteria_is_one_that_others_build_on() -> None:
    """It can never be chosen, so it has to be a parent."""
    bare = {name for name, document in OVERLAYS.items() if "criteria" not in document["spec"]}
    assert bare == PARENTS | {"base"}
    parents = {document["spec"].get("base") for document in OVERLAYS.values()}
    assert parents >= PARENTS


@pytest.mark.parametrize("name", CHOSEN)
def test_an_overlay_lies_in_the_folder_of_its_service(name: str) -> None:
    """overlays/<service>/<name>.yaml; what is for every service lies on top."""
    service = OVERLAYS[name]["spec"]["criteria"].get("service", "")
    assert (RECIPES / "overlays" / service / f"{name}.yaml").is_file()


@pytest.mark.parametrize("name", sorted(OVERLAYS))
def test_what_an_overlay_refers_to_is_there(name: str) -> None:
    """Mixins, components, files and dependencies of a composition all exist."""
    links = chain(name)
    used = [mixin for link in links for mixin in OVERLAYS[link]["spec"].get("mixins", [])]
    assert set(used) <= set(MIXINS)
    refs = [ref for link in [*links, "monitoring-hpa"] for ref in _refs(link)]
    refs += [ref for mixin in used for ref in MIXINS[mixin]["spec"].get("componentRefs", [])]
    declared = {ref["name"] for ref in refs}
    assert declared <= set(REGISTRY)
    for ref in refs:
        assert set(ref.get("dependencyRefs", [])) <= declared
        files = [*ref.get("manifestFiles", []), *ref.get("preManifestFiles", [])]
        files += filter(None, [ref.get("valuesFile")])
        for file in files:
            assert (RECIPES / file).is_file(), file


def test_refs_take_pin_source_and_chart_from_the_registry() -> None:
    """A pin outside the registry would be an exemption; there is none."""
    refs = [ref for name in OVERLAYS for ref in _refs(name)]
    refs += [ref for mixin in MIXINS.values() for ref in mixin["spec"].get("componentRefs", [])]
    assert not [ref for ref in refs if {"version", "source", "chart", "tag", "path"} & set(ref)]


def test_mixin_refs_set_nothing_that_a_leaf_may_have_set() -> None:
    """On a component that is there already a mixin may not say what the component is."""
    refs = [ref for mixin in MIXINS.values() for ref in mixin["spec"].get("componentRefs", [])]
    allowed = {"name", "namespace", "overrides", "dependencyRefs"}
    allowed |= {"manifestFiles", "preManifestFiles"}
    assert all(set(ref) <= allowed for ref in refs)


def test_what_the_registry_refers_to_is_there() -> None:
    """Manifests and upgrade records of the registry exist, and no manifest is left over."""
    used = {file for entry in REGISTRY.values() for file in entry.get("manifestFiles", [])}
    assert all((RECIPES / file).is_file() for file in used)
    documents = [*OVERLAYS.values(), *MIXINS.values()]
    for ref in (ref for item in documents for ref in item["spec"].get("componentRefs") or []):
        used |= {*ref.get("manifestFiles", []), *ref.get("preManifestFiles", [])}
    found = (RECIPES / "components").glob("*/manifests/*.yaml")
    assert {str(path.relative_to(RECIPES)) for path in found} == used


@pytest.mark.parametrize("name", sorted(OVERLAYS))
def test_declared_checks_are_in_the_validator_catalogue_under_their_phase(name: str) -> None:
    """A check that no catalogue entry of its phase answers would stop a validation."""
    catalogue = load(RECIPES / "validators" / "catalog.yaml")
    assert catalogue["apiVersion"] == "validator.nvidia.com/v1alpha1"
    phases = {entry["name"]: entry["phase"] for entry in catalogue["validators"]}
    assert len(phases) == len(catalogue["validators"])
    for phase, block in OVERLAYS[name]["spec"].get("validation", {}).items():
        for check in block.get("checks", []):
            assert phases.get(check) == phase, check
