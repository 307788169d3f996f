"""What the catalogue and the bundler do so that value gates and the workload gate can work."""

from __future__ import annotations

from typing import Any

import pytest
from tests.cli.program import aicr

from aicr.assertions import selection
from aicr.bundle.api import make_bundle
from aicr.bundle.options import BundleOptions
from aicr.catalog.catalog import Catalog
from aicr.catalog.dependencies import is_enabled
from aicr.recipe.criteria import Criteria
from aicr.recipe.recipe import Recipe
from aicr.recipe.resolve import resolve
from aicr.yamlio import read

EKS = {"service": "eks", "accelerator": "h100", "intent": "training", "os": "ubuntu"}


def recipe(**criteria: str) -> Recipe:
    """A recipe of the catalogue."""
    words: dict[str, Any] = {**EKS, **criteria}
    return resolve(Catalog.builtin(), Criteria(**words))


@pytest.mark.covers("V-410")
@pytest.mark.parametrize("intent", ["training", "inference"])
def test_aks_ships_without_tuning(intent: str) -> None:
    """Through the overrides of its overlays, where the validator sees it."""
    refs = {
        ref["name"]: ref for ref in recipe(service="aks", intent=intent).document["componentRefs"]
    }
    assert refs["nodewright-customizations"]["overrides"]["tuningEnabled"] is False


@pytest.mark.covers("V-427")
def test_nodewright_customizations_has_no_values_file() -> None:
    """Its values are the inline overrides alone."""
    tree = Catalog.builtin().tree
    assert not tree.exists("components/nodewright-customizations/values.yaml")
    refs = [
        ref
        for ref in recipe().document["componentRefs"]
        if ref["name"] == "nodewright-customizations"
    ]
    assert refs
    assert all("valuesFile" not in ref for ref in refs)


@pytest.mark.covers("V-411")
def test_a_recipe_cannot_be_given_values_on_the_command_line() -> None:
    """`aicr recipe` has no --set: overlay or file are the only ways."""
    aicr("recipe", "--service", "eks", "--set", "a:b=c").refused(2, "unknown flag --set")


def bundled(**flags: object) -> dict[str, str]:
    """The text files of a bundle."""
    options = BundleOptions(
        deployer="helm",
        system_node_selector=["pool=system"],
        accelerated_node_selector=["pool=gpu"],
        **flags,  # type: ignore[arg-type]
    )
    made = make_bundle(recipe(), options)
    return {path: content.decode() for path, (content, _) in made.files.items()}


@pytest.mark.covers("V-412", "V-413")
def test_the_eviction_label_is_in_the_bundles_recipe() -> None:
    """recipe.yaml at the root has dra-node-labeler switched on, so what reads that file checks it."""
    before = {ref["name"]: ref for ref in recipe().document["componentRefs"]}
    assert not is_enabled(before["dra-node-labeler"])
    document = read.load(bundled(dra_eviction_node_label="x.y/z=on")["recipe.yaml"], source="r")
    after = {ref["name"]: ref for ref in document["componentRefs"]}
    assert after["dra-node-labeler"]["overrides"]["enabled"] is True
    names = [found["name"] for found in selection.from_recipe(document, Catalog.builtin())]
    assert "dra-node-labeler" in names
    original = selection.from_recipe(dict(recipe().document), Catalog.builtin())
    assert "dra-node-labeler" not in [found["name"] for found in original]


@pytest.mark.covers("V-414")
def test_the_workload_gate_is_a_value_of_the_operator_and_not_of_the_recipe() -> None:
    """The operator gets it as the taint to remove; the validator reads it off the cluster."""
    files = bundled(workload_gate="gate.example/x=y:NoExecute")
    found = [
        read.load(text, source=path) or {}
        for path, text in files.items()
        if "nodewright-operator/" in path and path.endswith("values.yaml")
    ]
    (manager,) = (values["controllerManager"] for values in found if "controllerManager" in values)
    taint = manager["manager"]["env"]["runtimeRequiredTaint"]
    assert taint == "gate.example/x=y:NoExecute"
    assert taint not in files["recipe.yaml"]
