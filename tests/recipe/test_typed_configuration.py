"""Typed configuration: choices that change toggles and values, never which overlays match."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.recipe.conftest import Install
from tests.recipe.trees import (
    base,
    catalog,
    chart,
    command,
    overlay,
    refs_of,
    refusal,
    refused,
    resolved,
)

from aicr.recipe.configuration import parse_interfaces
from aicr.recipe.recipe import Recipe

RUNTIME = "components/kubeflow-trainer/manifests/torch-distributed-tcpxo.yaml"
TREE = {
    "overlays/base.yaml": base(componentRefs=[chart("k8s-aibom", overrides={"enabled": False})]),
    "overlays/eks.yaml": overlay("eks", {"service": "eks"}),
    "overlays/slurm.yaml": overlay(
        "slurm",
        {"service": "eks", "platform": "slurm"},
        base="eks",
        componentRefs=[
            chart("slinky-slurm", dependencyRefs=["slurm-accounting-mariadb"]),
            chart("mariadb-operator-crds"),
            chart("mariadb-operator", dependencyRefs=["mariadb-operator-crds"]),
            chart("slurm-accounting-mariadb", dependencyRefs=["mariadb-operator"]),
        ],
    ),
    "overlays/kubeflow.yaml": overlay(
        "kubeflow",
        {"service": "eks", "platform": "kubeflow"},
        base="eks",
        componentRefs=[chart("kubeflow-trainer", manifestFiles=[RUNTIME])],
    ),
}
INTERFACES = [{"interfaceName": f"eth{n}", "network": f"gpu-nic-{n}"} for n in range(1, 9)]
FLAG = ",".join(f"eth{n}=gpu-nic-{n}" for n in range(1, 9))


def made(folder: Path, configuration: dict[str, Any] | None = None, **words: str) -> Recipe:
    """The recipe of the tree with these choices, for eks and what else is stated."""
    options = {"configuration": configuration} if configuration is not None else {}
    return resolved(catalog(folder, TREE), options=options, **{"service": "eks", **words})


def slurm(mode: Any) -> dict[str, Any]:
    """The accounting choice."""
    return {"slurm": {"accounting": {"mode": mode}}}


@pytest.mark.covers("R11-80")
def test_accounting_belongs_to_slurm(installed: Install, tmp_path: Path) -> None:
    """On another platform the choice would do nothing."""
    installed(TREE)
    target = tmp_path / "recipe.yaml"
    ran = refused(
        "recipe", "--service", "eks", "--platform", "kubeflow", "--gke-tcpxo-interfaces", FLAG,
        "--slurm-accounting-mode", "aicr-provided", "-o", str(target),
    )  # fmt: skip
    assert ran.status == 2
    assert "Slurm accounting mode can only be set when recipe platform is slurm" in ran.err
    assert not target.exists()


@pytest.mark.parametrize("mode", ["", "enabled", "Disabled", None, 1])
def test_another_mode_is_refused_with_the_modes_there_are(tmp_path: Path, mode: Any) -> None:
    """Spelt exactly."""
    error = refusal(lambda: made(tmp_path, slurm(mode), platform="slurm"))
    assert error.code == "INVALID_REQUEST"
    assert error.message == (
        f'invalid Slurm accounting mode "{mode}": must be one of disabled, customer-managed, '
        f"aicr-provided"
    )


@pytest.mark.parametrize(
    ("mode", "accounting", "database"),
    [
        (None, False, False),
        ("disabled", False, False),
        ("customer-managed", True, False),
        ("aicr-provided", True, True),
    ],
)
def test_a_mode_drives_the_toggles_and_the_order(
    tmp_path: Path, mode: str | None, accounting: bool, database: bool
) -> None:
    """accounting.enabled of the cluster, enabled of its database; the order follows."""
    recipe = made(tmp_path, slurm(mode) if mode else None, platform="slurm")
    refs = refs_of(recipe)
    assert refs["slinky-slurm"]["overrides"] == {"accounting": {"enabled": accounting}}
    provided = ("mariadb-operator-crds", "mariadb-operator", "slurm-accounting-mariadb")
    for name in provided:
        assert refs[name]["overrides"] == {"enabled": database}
    expected = [*(provided if database else ()), "slinky-slurm"]
    assert recipe.document["deploymentOrder"] == expected
    assert recipe.document["configuration"] == slurm(mode or "disabled")
    assert recipe.document["apiVersion"] == "aicr.run/v1beta2"


def test_configuration_stands_between_criteria_and_constraints(tmp_path: Path) -> None:
    """In wire order."""
    document = made(tmp_path, platform="slurm").document
    keys = list(document)
    assert keys.index("configuration") == keys.index("criteria") + 1


def test_without_a_choice_there_is_no_configuration(tmp_path: Path) -> None:
    """And the document stays on the stable track."""
    document = made(tmp_path).document
    assert "configuration" not in document
    assert document["apiVersion"] == "aicr.run/v1"


@pytest.mark.parametrize(("state", "deployed"), [("enabled", ["k8s-aibom"]), ("disabled", [])])
def test_the_runtime_inventory_is_a_component(
    tmp_path: Path, state: str, deployed: list[str]
) -> None:
    """Switched on and off, and written down."""
    recipe = made(tmp_path, {"runtimeInventory": state})
    assert recipe.document["deploymentOrder"] == deployed
    assert recipe.document["configuration"] == {"runtimeInventory": state}


@pytest.mark.parametrize("state", ["on", "", "Enabled", True, ["enabled"]])
def test_another_inventory_state_is_refused(tmp_path: Path, state: Any) -> None:
    """enabled or disabled."""
    error = refusal(lambda: made(tmp_path, {"runtimeInventory": state}))
    assert error.message == (
        f'invalid runtime inventory "{state}": must be one of enabled, disabled'
    )


def test_an_inventory_that_the_recipe_does_not_have_cannot_be_enabled(tmp_path: Path) -> None:
    """Disabling what is not there is fine."""
    found = catalog(tmp_path, {"overlays/eks.yaml": overlay("eks", {"service": "eks"})})
    for state in ("enabled", "disabled"):
        options = {"configuration": {"runtimeInventory": state}}
        if state == "enabled":
            error = refusal(lambda o=options: resolved(found, service="eks", options=o))  # type: ignore[misc]
            assert "provided by component k8s-aibom" in error.message
        else:
            resolved(found, service="eks", options=options)


@pytest.mark.parametrize(
    ("configuration", "message"),
    [
        ({"slurmm": {}}, 'unknown configuration "slurmm"'),
        ({"slurm": {"acounting": {}}}, 'unknown configuration "slurm.acounting"'),
        (
            {"slurm": {"accounting": {"modus": "x"}}},
            'unknown configuration "slurm.accounting.modus"',
        ),
        ({"gke": {"tcpxoInterface": []}}, 'unknown configuration "gke.tcpxoInterface"'),
        ({"gke": []}, "configuration.gke must be a map, found a list"),
        ({"slurm": "disabled"}, "configuration.slurm must be a map, found text"),
        ({"slurm": {"accounting": "disabled"}}, "configuration.slurm.accounting must be a map"),
        ({"gke": {"tcpxoInterfaces": "eth1"}}, "tcpxoInterfaces must be a list"),
        ({"gke": {"tcpxoInterfaces": ["eth1"]}}, "tcpxoInterfaces must be a list"),
        ({"gke": {"tcpxoInterfaces": [{"interfaceName": 1}]}}, "tcpxoInterfaces must be a list"),
    ],
)
def test_a_misspelt_or_misshapen_choice_is_refused(
    tmp_path: Path, configuration: dict[str, Any], message: str
) -> None:
    """No choice is ignored."""
    error = refusal(lambda: made(tmp_path, configuration))
    assert error.code == "INVALID_REQUEST"
    assert error.message.startswith(message)


def test_the_tcpxo_runtime_needs_its_interfaces(installed: Install) -> None:
    """A recipe that ships it is refused without them, and the flag is named."""
    installed(TREE)
    ran = refused("recipe", "--service", "eks", "--platform", "kubeflow")
    assert ran.status == 2
    assert (
        "this recipe ships torch-distributed-tcpxo and requires configuration.gke.tcpxoInterfaces; "
        "supply --gke-tcpxo-interfaces"
    ) in ran.err


def test_the_interfaces_become_a_value_of_the_trainer(installed: Install) -> None:
    """From the flag to the values and the configuration block, in the order given."""
    installed(TREE)
    argv = ("--service", "eks", "--platform", "kubeflow", "--gke-tcpxo-interfaces", FLAG)
    ran = command("query", *argv, "--selector", "components.kubeflow-trainer.values", "--format",
                  "json")  # fmt: skip
    assert ran.status == 0
    assert '"interfaceName": "eth8"' in ran.out


def test_interfaces_without_the_runtime_have_no_effect_and_are_refused(tmp_path: Path) -> None:
    """A choice that does nothing is a mistake."""
    error = refusal(lambda: made(tmp_path, {"gke": {"tcpxoInterfaces": INTERFACES}}))
    assert "does not ship torch-distributed-tcpxo" in error.message


def changed(index: int, **fields: str) -> list[dict[str, str]]:
    """The eight interfaces with one changed."""
    found = [dict(item) for item in INTERFACES]
    found[index].update(fields)
    return found


@pytest.mark.parametrize(
    ("interfaces", "message"),
    [
        ([], "exactly eight interfaces are needed, eth1 to eth8 each once; found none"),
        (INTERFACES[:7], "exactly eight interfaces are needed"),
        ([*INTERFACES, INTERFACES[0]], "exactly eight interfaces are needed"),
        (changed(0, interfaceName="eth0"), "exactly eight interfaces are needed"),
        (changed(0, interfaceName="eth2"), "exactly eight interfaces are needed"),
        (changed(0, interfaceName="ETH1"), "exactly eight interfaces are needed"),
        (changed(0, network=""), 'network "" of eth1 is not a lower-case name'),
        (changed(0, network="Gpu-nic"), 'network "Gpu-nic" of eth1 is not a lower-case name'),
        (changed(0, network="1gpu-nic"), 'network "1gpu-nic" of eth1 is not a lower-case name'),
        (changed(0, network="gpu-nic-"), 'network "gpu-nic-" of eth1 is not a lower-case name'),
        (changed(0, network="gpu-nic\n"), "is not a lower-case name"),
        (changed(0, network="gpu-nic-" + "a" * 34), "at most 41 characters"),
        (changed(0, network="default"), 'network "default" of eth1 is not a GPU network'),
        (changed(0, network="vpc"), 'network "vpc" of eth1 is not a GPU network'),
        (changed(0, network="gpu-nic-2"),
         'network "gpu-nic-2" is given to both eth1 and eth2'),
    ],
)  # fmt: skip
def test_interfaces_are_eight_and_each_has_a_gpu_network(
    tmp_path: Path, interfaces: list[dict[str, str]], message: str
) -> None:
    """Every rule of recipe specification 4.12; a config file's error names its own place instead."""
    configuration = {"gke": {"tcpxoInterfaces": interfaces}}
    error = refusal(lambda: made(tmp_path, configuration, platform="kubeflow"))
    assert error.code == "INVALID_REQUEST"
    assert message in error.message
    assert error.where == "--gke-tcpxo-interfaces"
    assert "kubectl get networks.networking.gke.io" in error.hint


@pytest.mark.parametrize("network", ["gpu-nic-" + "a" * 33, "a-gpu-nic", "gpu-nics"])
def test_a_network_of_41_characters_is_fine(tmp_path: Path, network: str) -> None:
    """The limits themselves are allowed, and order is kept."""
    interfaces = changed(0, network=network)[::-1]
    recipe = made(tmp_path, {"gke": {"tcpxoInterfaces": interfaces}}, platform="kubeflow")
    assert refs_of(recipe)["kubeflow-trainer"]["overrides"] == {"tcpxoInterfaces": interfaces}


@pytest.mark.parametrize("text", ["", "eth1", "eth1=", "=net", "eth1=a,,eth2=b", "eth1=a,"])
def test_a_mapping_that_is_no_pair_is_refused(text: str) -> None:
    """The flag's own form."""
    error = refusal(lambda: parse_interfaces(text))
    assert error.code == "INVALID_REQUEST"
    assert error.where == "--gke-tcpxo-interfaces"


def test_choices_do_not_colour_the_next_resolution(tmp_path: Path) -> None:
    """Nor the other way round."""
    found = catalog(tmp_path, TREE)
    plain = resolved(found, service="eks").to_yaml()
    options = {"configuration": {"runtimeInventory": "enabled"}}
    chosen = resolved(found, service="eks", options=options).to_yaml()
    assert resolved(found, service="eks").to_yaml() == plain
    assert resolved(found, service="eks", options=options).to_yaml() == chosen != plain
