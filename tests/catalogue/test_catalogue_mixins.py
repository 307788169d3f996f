"""Every mixin can be taken up: over a real recipe it merges, orders and hydrates."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from tests.catalogue.catalogue_files import RECIPES, mixins

from aicr.catalog.catalog import Catalog
from aicr.errors import AicrError
from aicr.recipe.criteria import Criteria
from aicr.recipe.hydrate import hydrate
from aicr.recipe.resolve import resolve

if TYPE_CHECKING:
    from pathlib import Path

    from aicr.recipe.types import RecipeResult

MIXINS = mixins()
STEPS = ("nvsentinel-observe", "nvsentinel-quarantine", "nvsentinel-remediation")


def _recipe(place: Path, *names: str) -> RecipeResult:
    """The recipe of a leaf on EKS that takes up these mixins and nothing else of its own."""
    tree = place / "recipes"
    shutil.copytree(RECIPES, tree)
    lines = ["kind: RecipeMetadata", "apiVersion: aicr.run/v1beta1", "metadata:", "  name: taker"]
    lines += ["spec:", "  base: eks-training", "  criteria:", "    service: eks"]
    lines += ["    intent: training", "    platform: runai", "  mixins:"]
    lines += [f"    - {name}" for name in names]
    (tree / "overlays" / "taker.yaml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    criteria = Criteria(service="eks", intent="training", platform="runai")
    recipe = resolve(Catalog.from_dir(str(tree)), criteria)
    assert hydrate(recipe)["components"]
    return recipe.document


@pytest.mark.parametrize("name", sorted(MIXINS))
def test_a_mixin_can_be_taken_up_by_a_leaf(tmp_path: Path, name: str) -> None:
    """Its overrides are allowed, touch nothing that is set, and its components are in the order."""
    document = _recipe(tmp_path, name)
    wanted = {ref["name"] for ref in MIXINS[name]["spec"].get("componentRefs", [])}
    assert wanted <= set(document["deploymentOrder"])
    constraints = {item["name"] for item in document["constraints"]}
    assert {item["name"] for item in MIXINS[name]["spec"].get("constraints", [])} <= constraints


@pytest.mark.parametrize("second", STEPS[1:])
def test_the_steps_of_remediation_exclude_one_another(tmp_path: Path, second: str) -> None:
    """Two of them set the same switches, so a recipe with two is refused."""
    with pytest.raises(AicrError, match="collides with path"):
        _recipe(tmp_path, STEPS[0], second)


def test_the_datastore_is_there_before_what_uses_it(tmp_path: Path) -> None:
    """Operator, then database, then NVSentinel."""
    order = _recipe(tmp_path, "nvsentinel-quarantine")["deploymentOrder"]
    places = [order.index(name) for name in ("psmdb-operator", "nvsentinel-mongodb", "nvsentinel")]
    assert places == sorted(places)


def test_privileged_components_move_to_namespaces_of_their_own_on_talos(tmp_path: Path) -> None:
    """The namespace manifest is put before the chart."""
    refs = {ref["name"]: ref for ref in _recipe(tmp_path, "os-talos")["componentRefs"]}
    for name in ("gpu-operator", "network-operator", "nodewright-operator", "nvsentinel"):
        assert refs[name]["namespace"] == f"privileged-{name}"
        assert refs[name]["preManifestFiles"] == [
            f"components/{name}/manifests/talos-namespace.yaml"
        ]


def test_health_checks_look_where_talos_has_the_component(tmp_path: Path) -> None:
    """A check of the usual namespace would find nothing there, for ever (recipe spec 10.6)."""
    usual = {ref["name"]: ref for ref in _recipe(tmp_path / "usual", "os-ubuntu")["componentRefs"]}
    moved = {ref["name"]: ref for ref in _recipe(tmp_path / "talos", "os-talos")["componentRefs"]}
    seen = 0
    for name, ref in moved.items():
        if name not in usual or ref["namespace"] == usual[name]["namespace"]:
            if name in usual:
                assert ref["healthCheckAsserts"] == usual[name]["healthCheckAsserts"]
            continue
        before, after = (
            list(yaml.safe_load_all(each["healthCheckAsserts"])) for each in (usual[name], ref)
        )
        text = usual[name]["namespace"]
        assert _namespaces(before) == {text}
        assert _namespaces(after) == {ref["namespace"]}
        assert _renamed(before, text, ref["namespace"]) == after
        seen += 1
    assert seen == 4


def _namespaces(node: Any) -> set[str]:
    """Every namespace that an object of a document is in."""
    if isinstance(node, dict):
        own = {node["namespace"]} if "namespace" in node else set()
        return own.union(*map(_namespaces, node.values()))
    return set().union(*map(_namespaces, node)) if isinstance(node, list) else set()


def _renamed(node: Any, old: str, new: str) -> Any:
    """A document with the namespace of its objects replaced, and nothing else."""
    if isinstance(node, dict):
        return {
            key: new if key == "namespace" and value == old else _renamed(value, old, new)
            for key, value in node.items()
        }
    return [_renamed(item, old, new) for item in node] if isinstance(node, list) else node
