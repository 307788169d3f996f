"""A custom resource is installed only after the component that brings its definition."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.catalogue.catalogue_files import RECIPES, load, registry
from tests.leaves.bundle_folders import Folder, document, folders, planned_text
from tests.leaves.kubernetes_objects import BUILT_IN, group_of
from tests.leaves.leaf_cases import BUNDLED, each
from tools.leaf_table import Outcome

from aicr import yamlio

#: API group of custom resources → the component whose release brings the definitions.
PROVIDERS = {
    "agentgateway.dev": "agentgateway-crds",
    "gateway.networking.k8s.io": "gateway-api-crds",
    "mellanox.com": "network-operator",
    "monitoring.coreos.com": "prometheus-operator-crds",
    "resource.nvidia.com": "nvidia-dra-driver-gpu",
    "skyhook.nvidia.com": "nodewright-operator",
    "trainer.kubeflow.org": "kubeflow-trainer",
}
#: What a cloud brings itself (notes in the registry and in the overlays of that cloud).
BY_THE_CLOUD = {
    ("gke", "gateway.networking.k8s.io"),
    ("ocp", "monitoring.coreos.com"),
    ("ocp", "operators.coreos.com"),
}
#: What operators of OpenShift's catalogue bring after the release that subscribes to them.
BY_A_SUBSCRIPTION = {
    "mellanox.com": "network-operator-ocp-olm",
    "nfd.openshift.io": "nfd-ocp-olm",
    "nvidia.com": "gpu-operator-ocp-olm",
    "operator.openshift.io": "cert-manager-ocp-olm",
}

_MONITOR = re.compile(r"(service|pod)monitors?|prometheusrules?", re.IGNORECASE)


def custom_resources(folder: Folder) -> list[dict[str, Any]]:
    """The objects in a folder that are not of Kubernetes itself."""
    found = []
    for path in sorted(folder.path.glob("templates/*")):
        found += yamlio.read_fast_all(planned_text(path), source=path.name)
    return [item for item in found if group_of(item) not in BUILT_IN]


def monitors(values: Any, wanted: bool = False) -> bool:
    """Whether values switch on an object of the Prometheus operator."""
    if isinstance(values, list):
        return any(monitors(item) for item in values)
    if not isinstance(values, dict):
        return False
    if wanted and values.get("enabled") is True:
        return True
    return any(
        (value is True and key in ("create", "enabled") and wanted)
        or monitors(value, bool(_MONITOR.fullmatch(str(key))))
        for key, value in values.items()
    )


def missing(outcome: Outcome, place: int, group: str) -> str:
    """Why a group's definitions are not there when the folder at *place* is installed, or ""."""
    found = folders(outcome.bundle)
    name = found[place].path.name
    service = (document(outcome.recipe).get("criteria") or {}).get("service")
    if (service, group) in BY_THE_CLOUD:
        return ""
    provider = (BY_A_SUBSCRIPTION if service == "ocp" else PROVIDERS).get(group)
    if provider is None:
        return f"{name}: nothing is known to bring {group}"
    where = [folder.order for folder in found if folder.release == provider]
    if not where or where[0] >= found[place].order:
        return f"{name}: {provider} brings {group}, and is not installed before"
    return ""


@pytest.mark.covers("F1")
@each(BUNDLED)
def test_definitions_come_before_our_custom_resources(outcome: Outcome) -> None:
    """The provider's own folder is earlier, whether the resource is in a -pre, -post or own one."""
    found = folders(outcome.bundle)
    wrong = [
        missing(outcome, place, group_of(item))
        for place, folder in enumerate(found)
        for item in custom_resources(folder)
    ]
    assert [text for text in wrong if text] == []


@pytest.mark.covers("F1")
@each(BUNDLED)
def test_definitions_come_before_monitors_that_values_switch_on(outcome: Outcome) -> None:
    """A chart told to make a ServiceMonitor fails to install where the kind is unknown."""
    found = folders(outcome.bundle)
    wrong = [
        missing(outcome, place, "monitoring.coreos.com")
        for place, folder in enumerate(found)
        if monitors(document(folder.path / "values.yaml"))
    ]
    assert [text for text in wrong if text] == []


def test_some_leaf_puts_every_row_of_the_table_to_work(plain: dict[str, Outcome]) -> None:
    """A provider that no leaf needs would be a rule that nothing is checked with."""
    seen = set()
    for outcome in plain.values():
        for folder in folders(outcome.bundle) if outcome.bundle.is_dir() else ():
            seen |= {group_of(item) for item in custom_resources(folder)}
            if monitors(document(folder.path / "values.yaml")):
                seen.add("monitoring.coreos.com")
    known = {group for _, group in BY_THE_CLOUD}
    assert seen == PROVIDERS.keys() | BY_A_SUBSCRIPTION.keys() | known


def test_the_table_agrees_with_the_health_checks() -> None:
    """A component whose check waits for a definition is the one that brings its group."""
    told: dict[str, set[str]] = {}
    for path in sorted((RECIPES / "checks").glob("*/health-check.yaml")):
        for step in load(path)["spec"]["steps"]:
            for operation in step["try"]:
                resource = operation.get("assert", {}).get("resource") or {}
                if resource.get("kind") == "CustomResourceDefinition":
                    group = resource["metadata"]["name"].partition(".")[2]
                    told.setdefault(group, set()).add(path.parent.name)
    both = told.keys() & PROVIDERS.keys()
    assert both
    assert {group for group in both if PROVIDERS[group] not in told[group]} == set()
    assert {*PROVIDERS.values(), *BY_A_SUBSCRIPTION.values()} <= set(registry())


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"serviceMonitor": {"enabled": True}}, True),
        ({"a": [{"podMonitor": {"create": True}}]}, True),
        ({"prometheus": {"servicemonitor": {"enabled": False}}}, False),
        ({"serviceMonitorSelector": {"enabled": True}}, False),
        ({"serviceMonitor": {"labels": {"enabled": True}}}, False),
        ({"enabled": True}, False),
    ],
)
def test_monitors_are_found_in_values(values: dict[str, Any], expected: bool) -> None:
    """Only a switch directly below a monitor's key counts."""
    assert monitors(values) is expected
