"""The data tree holds together: parents, files, checks, names."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.catalogue.catalogue_files import RECIPES, load, mixins, overlays, registry

REGISTRY = registry()
OVERLAYS = overlays()
MIXINS = mixins()
DIMENSIONS = ("service", "accelerator", "intent", "os", "platform")


def _refs(name: str) -> list[dict[str, Any]]:
    return OVERLAYS[name]["spec"].get("componentRefs") or []


def _chain(name: str) -> list[str]:
    names = [name]
    while (parent := OVERLAYS[names[-1]]["spec"].get("base")) not in (None, "", "base"):
        names.append(parent)
    return names if names[-1] == "base" else [*names, "base"]


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_every_component_has_a_health_check_that_first_asserts_existence(name: str) -> None:
    """A check starts with an assert, so that an empty namespace does not pass."""
    check = load(RECIPES / REGISTRY[name]["healthCheck"]["assertFile"])
    assert check["apiVersion"] == "chainsaw.kyverno.io/v1alpha1"
    assert check["kind"] == "Test"
    operations = [list(operation) for step in check["spec"]["steps"] for operation in step["try"]]
    assert operations[0] == ["assert"]
    assert {key for keys in operations for key in keys} <= {"assert", "error"}
    assert set(check["spec"]) == {"timeouts", "steps"}


def test_registry_and_health_checks_are_sorted_and_complete() -> None:
    """The registry is in alphabetical order and no check or component folder is an orphan."""
    assert list(REGISTRY) == sorted(REGISTRY)
    assert {path.name for path in (RECIPES / "checks").iterdir()} == set(REGISTRY)
    assert {path.name for path in (RECIPES / "components").iterdir()} <= set(REGISTRY)


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


@pytest.mark.parametrize("name", sorted(set(OVERLAYS) - {"base"}))
def test_an_overlay_restates_its_parents_criteria_and_its_parents_exist(name: str) -> None:
    """Criteria are not inherited: a child states at least what its parent states."""
    own = OVERLAYS[name]["spec"]["criteria"]
    assert set(own) <= set(DIMENSIONS)
    for parent in _chain(name)[1:]:
        inherited = OVERLAYS[parent]["spec"].get("criteria", {})
        assert inherited.items() <= own.items()


@pytest.mark.parametrize("name", sorted(set(OVERLAYS) - {"base", "monitoring-hpa"}))
def test_an_overlay_is_called_after_its_criteria(name: str) -> None:
    """[accelerator-]service[-os][-intent][-platform]; kind has no os, *-any has the GPU alone."""
    words = list(OVERLAYS[name]["spec"]["criteria"].values())
    assert sorted(re.split("-", name.removesuffix("-any"))) == sorted(words)


@pytest.mark.parametrize("name", sorted(OVERLAYS))
def test_what_an_overlay_refers_to_is_there(name: str) -> None:
    """Mixins, components, files and dependencies of a composition all exist."""
    chain = _chain(name)
    used = [mixin for link in chain for mixin in OVERLAYS[link]["spec"].get("mixins", [])]
    assert set(used) <= set(MIXINS)
    refs = [ref for link in chain for ref in _refs(link)]
    refs += [ref for mixin in used for ref in MIXINS[mixin]["spec"].get("componentRefs", [])]
    declared = {ref["name"] for ref in refs}
    assert declared <= set(REGISTRY)
    for ref in refs:
        assert set(ref.get("dependencyRefs", [])) <= declared
        files = [*ref.get("manifestFiles", []), *filter(None, [ref.get("valuesFile")])]
        for file in files:
            assert (RECIPES / file).is_file(), file


def test_refs_take_pin_source_and_chart_from_the_registry() -> None:
    """A pin outside the registry would be an exemption; this slice has none."""
    refs = [ref for name in OVERLAYS for ref in _refs(name)]
    refs += [ref for mixin in MIXINS.values() for ref in mixin["spec"].get("componentRefs", [])]
    assert not [ref for ref in refs if {"version", "source", "chart", "tag", "path"} & set(ref)]


def test_mixin_refs_set_nothing_that_a_leaf_may_have_set() -> None:
    """On a component that is there already a mixin may add manifests and dependencies only."""
    refs = [ref for mixin in MIXINS.values() for ref in mixin["spec"].get("componentRefs", [])]
    assert all(set(ref) <= {"name", "manifestFiles", "dependencyRefs"} for ref in refs)


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
