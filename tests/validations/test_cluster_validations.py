"""Selectors, MOFED, tolerations, kernel, node problem detector, MariaDB, TCPXO: each verdict."""

from __future__ import annotations

from typing import Any

import pytest
from tests.validations.situations import context, disabled, error_of, merged, nested, only

from aicr.bundle.validations.kernel import kernel_granule
from aicr.bundle.validations.mariadb import operator_ownership
from aicr.bundle.validations.mofed import host_mofed
from aicr.bundle.validations.npd import provider_detector
from aicr.bundle.validations.selectors import accelerated_selector, workload_selector
from aicr.bundle.validations.tcpxo import interfaces
from aicr.bundle.validations.tolerations import wildcard_toleration
from aicr.errors import CONFLICT, INVALID_REQUEST

NODEWRIGHT = "nodewright-customizations"


@pytest.mark.covers("V-357", "V-358")
@pytest.mark.parametrize(
    ("check", "flag", "field"),
    [
        (workload_selector, "--workload-selector", "workload_selector"),
        (accelerated_selector, "--accelerated-node-selector", "accelerated_node_selector"),
    ],
)
def test_a_missing_selector_names_component_and_flag(check: Any, flag: str, field: str) -> None:
    """Only the flag counts; values are not looked at (6.4.1, 6.4.2)."""
    values = {NODEWRIGHT: {"workloadSelector": {"a": "b"}, "acceleratedNodeSelector": {"a": "b"}}}
    assert only(check(context(NODEWRIGHT, values))) == f"{NODEWRIGHT}: {flag} is not set"
    flags: dict[str, Any] = {field: ["job=train"]}
    assert only(check(context(NODEWRIGHT, **flags))) == ""


MOFED = nested("driver.rdma.useHostMofed", True)


@pytest.mark.covers("V-359")
@pytest.mark.parametrize(
    ("values", "network", "dynamic", "said"),
    [
        (MOFED, "enabled", [], ""),
        (MOFED, "disabled", [], "is on, but network-operator is not in the bundle"),
        (MOFED, "undeclared", [], "is on, but network-operator is not in the bundle"),
        (nested("driver.rdma.useHostMofed", False), "disabled", [], ""),
        ({}, "disabled", [], ""),
        ({"driver": None}, "disabled", [], ""),
        ({}, "disabled", ["driver.rdma"], "is given at install time"),
        ({}, "enabled", ["driver.rdma"], ""),
    ],
)
def test_host_mofed_needs_the_network_operator(
    values: dict[str, Any], network: str, dynamic: list[str], said: str
) -> None:
    """The final value counts, not one spelling of one flag (decision 55)."""
    made = context(
        "gpu-operator",
        {"gpu-operator": values, **({"network-operator": {}} if network == "enabled" else {})},
        removed=disabled("network-operator") if network == "disabled" else {},
        dynamic={"gpu-operator": dynamic},
    )
    found = only(host_mofed(made))
    assert bool(found) is bool(said)
    assert said in found


ENTRY = {"nodeScheduling": {"accelerated": {"tolerationPaths": ["acceleratedTolerations"]}}}
KEYED = {"key": "nvidia.com/gpu", "operator": "Exists"}


@pytest.mark.covers("V-360", "B10-66")
@pytest.mark.parametrize(
    ("flags", "final", "said"),
    [
        ([], [{"operator": "Exists"}], "--accelerated-node-toleration is not set"),
        ([], [KEYED], "--accelerated-node-toleration is not set"),
        ([], None, "--accelerated-node-toleration is not set"),
        (["nvidia.com/gpu=present:NoSchedule"], [KEYED], ""),
        (["nvidia.com/gpu:NoSchedule"], None, ""),
        (["nvidia.com/gpu"], [KEYED, {"operator": "Exists"}], "acceleratedTolerations holds"),
        (["nvidia.com/gpu"], [{"key": "", "operator": "Exists"}], "acceleratedTolerations holds"),
    ],
)
def test_a_wildcard_toleration_fires(flags: list[str], final: Any, said: str) -> None:
    """No flag is a wildcard, and so is an entry without a key where the flag is written (6.4.4)."""
    made = context(
        NODEWRIGHT,
        {NODEWRIGHT: {"acceleratedTolerations": final} if final is not None else {}},
        entry=ENTRY,
        accelerated_node_tolerations=flags,
    )
    found = only(wildcard_toleration(made))
    assert bool(found) is bool(said)
    assert said in found


def test_a_toleration_list_without_a_key_fires_whatever_the_flag_parser_allows() -> None:
    """A keyless entry in the read flag fires as well; the parser happens to refuse one today."""
    made = context(NODEWRIGHT, entry=ENTRY, accelerated_node_tolerations=["a"])
    made.scheduling.accelerated_tolerations = [KEYED, {"operator": "Exists"}]
    assert "holds an entry without a key" in only(wildcard_toleration(made))


@pytest.mark.covers("V-361", "V-362")
@pytest.mark.parametrize(
    ("values", "fires"),
    [
        ({}, True),
        ({"tuningEnabled": True}, True),
        ({"tuningEnabled": "true"}, True),
        ({"tuningEnabled": None}, True),
        ({"tuningEnabled": 0}, True),
        ({"tuningEnabled": "False"}, True),
        ({"tuningEnabled": False}, False),
        ({"tuningEnabled": "false"}, False),
    ],
)
def test_the_kernel_advice_is_silent_without_tuning(values: dict[str, Any], fires: bool) -> None:
    """The template compares text with "false", and so does the check (6.4.5)."""
    assert bool(only(kernel_granule(context(NODEWRIGHT, {NODEWRIGHT: values})))) is fires


@pytest.mark.covers("V-369", "B10-69")
@pytest.mark.parametrize(
    ("service", "os", "said"),
    [
        ("eks", "ubuntu", ""),
        ("eks", "any", ""),
        ("kind", "any", ""),
        ("rke2", "ubuntu", ""),
        ("gke", "cos", "GKE runs a node problem detector of its own"),
        ("aks", "ubuntu", "AKS runs a node problem detector of its own"),
        ("ocp", "any", "OpenShift binds no privileged"),
        ("oke", "ubuntu", "not been verified on OKE"),
        ("k0s", "any", 'not been verified on service "k0s"'),
        ("generic", "any", 'not been verified on service "generic"'),
        ("any", "any", "states no service"),
        ("", "", "states no service"),
        ("eks", "talos", "on Talos its namespace is restricted"),
    ],
)
def test_the_detector_has_a_list_of_places_where_it_may_run(
    service: str, os: str, said: str
) -> None:
    """Everything that is not on the list is an error, not a warning (6.4.6)."""
    verdict = provider_detector(
        context("node-problem-detector", criteria={"service": service, "os": os})
    )
    if not said:
        assert verdict == ([], [])
        return
    error = error_of(verdict)
    assert said in error.message
    assert error.code == INVALID_REQUEST


def test_the_detector_without_criteria_is_refused() -> None:
    """Without criteria nobody knows the provider (6.4.6)."""
    assert "no criteria" in error_of(provider_detector(context("node-problem-detector"))).message


@pytest.mark.covers("V-367", "V-368", "B10-70")
@pytest.mark.parametrize(
    ("mode", "state", "outcome"),
    [
        ("aicr-provided", "absent", "silent"),
        ("aicr-provided", None, "does not record"),
        ("aicr-provided", "", "does not record"),
        ("aicr-provided", "api-detected", "serves the MariaDB operator's API already"),
        ("aicr-provided", "crs-detected", CONFLICT),
        ("aicr-provided", "unknown", CONFLICT),
        ("aicr-provided", "crs_detected", INVALID_REQUEST),
        ("customer-managed", "crs-detected", "silent"),
        ("disabled", "crs-detected", "silent"),
        (None, "crs-detected", "silent"),
    ],
)
def test_another_mariadb_operator_blocks_warns_or_is_unknown(
    mode: str | None, state: str | None, outcome: str
) -> None:
    """Only objects and doubt block; the API alone and no evidence warn (6.4.8)."""
    made = context(
        "mariadb-operator",
        metadata={} if state is None else {"mariaDBOperatorState": state},
        configuration={"slurm": {"accounting": {"mode": mode}}} if mode else {},
    )
    verdict = operator_ownership(made)
    if outcome in (CONFLICT, INVALID_REQUEST):
        error = error_of(verdict)
        assert error.code == outcome
        assert error.exit_status == 2
    elif outcome == "silent":
        assert verdict == ([], [])
    else:
        assert outcome in only(verdict)


RUNTIME = {
    "kubeflow-trainer": {
        "manifestFiles": ["components/kubeflow-trainer/manifests/torch-distributed-tcpxo.yaml"]
    }
}
MAPPING = [{"interfaceName": "eth1", "network": "gpu-nic-1"}]
RECORDED = {"gke": {"tcpxoInterfaces": MAPPING}}


@pytest.mark.covers("V-370")
@pytest.mark.parametrize(
    ("configuration", "values", "dynamic", "said"),
    [
        (RECORDED, {"tcpxoInterfaces": MAPPING}, [], ""),
        ({}, {"tcpxoInterfaces": MAPPING}, [], "configuration.gke.tcpxoInterfaces is missing"),
        ({"gke": {}}, {}, [], "configuration.gke.tcpxoInterfaces is missing"),
        (RECORDED, {}, [], "is unset, not a list"),
        (RECORDED, {"tcpxoInterfaces": "eth1=gpu-nic-1"}, [], "not a list"),
        (RECORDED, {"tcpxoInterfaces": {"eth1": "gpu-nic-1"}}, [], "not a list"),
        (RECORDED, {"tcpxoInterfaces": ["eth1"]}, [], "not a list"),
        (RECORDED, {"tcpxoInterfaces": [{**MAPPING[0], "mtu": "1"}]}, [], "not a list"),
        (RECORDED, {"tcpxoInterfaces": [{**MAPPING[0], "network": 1}]}, [], "not a list"),
        (RECORDED, {"tcpxoInterfaces": []}, [], "but the recipe records"),
        (
            RECORDED,
            {"tcpxoInterfaces": [{**MAPPING[0], "network": "gpu-nic-2"}]},
            [],
            "but the recipe records",
        ),
        (RECORDED, {"tcpxoInterfaces": MAPPING}, ["tcpxoInterfaces"], "given at install time"),
    ],
)
def test_the_networks_are_those_of_the_recipe(
    configuration: dict[str, Any], values: dict[str, Any], dynamic: list[str], said: str
) -> None:
    """Missing, wrongly shaped or different is a violation (6.4.9)."""
    made = context(
        "kubeflow-trainer",
        {"kubeflow-trainer": values},
        refs=RUNTIME,
        configuration=configuration,
        dynamic={"kubeflow-trainer": dynamic},
    )
    found = only(interfaces(made))
    assert bool(found) is bool(said)
    assert said in found


def test_networks_do_not_matter_without_the_runtime() -> None:
    """Only the TCPXO runtime reads them (6.4.9)."""
    assert interfaces(context("kubeflow-trainer", configuration=RECORDED)) == ([], [])


def test_trees_of_situations_combine() -> None:
    """The helper of these tests keeps both sides."""
    assert merged(nested("a.b", 1), nested("a.c", 2)) == {"a": {"b": 1, "c": 2}}
