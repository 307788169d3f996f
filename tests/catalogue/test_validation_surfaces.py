"""The places where the catalogue says how something is validated: four, and where each one lies."""

from __future__ import annotations

import pytest
from tests.catalogue.catalogue_files import RECIPES, load, mixins, overlays, registry

from aicr.assertions.document import read_check
from aicr.bundle.validations.table import FUNCTIONS
from aicr.catalog import fields
from aicr.catalog.types import RegistryEntry
from aicr.checks import registry as checks

#: Fields of a registry entry that configure, order or place a component, and judge nothing.
NO_JUDGEMENT = {
    "name",
    "displayName",
    "valueOverrideKeys",
    "helm",
    "kustomize",
    "nodeScheduling",
    "podScheduling",
    "storageClassPaths",
    "sharedStorageClassPaths",
    "upgrades",
    "manifestFiles",
    "gkeCriticalPriority",
    "hasSelfRefCRDs",
    "ownsCRDs",
    "ownsCRDsExcludeSubcharts",
    "manifestsUseChartCRDs",
    "mixinSafeOverridePaths",
    "testTier",
}


@pytest.mark.covers("V-001")
def test_there_are_four_surfaces_and_each_has_its_own_place() -> None:
    """Constraint, check, bundle-time validation, health check; a fifth place would show up here."""
    judging = set(RegistryEntry.__annotations__) - NO_JUDGEMENT
    assert judging == {"validations", "healthCheck"}
    judging = set(fields.SPEC_KEYS) - {"base", "criteria", "mixins", "componentRefs", "profile"}
    assert judging == {"constraints", "validation"}
    limits = {"timeout", "nodeSelection", "infrastructure"}
    assert set(fields.PHASE_KEYS) - limits == {"constraints", "checks"}


@pytest.mark.covers("V-001")
def test_each_surface_is_used_and_answered_by_its_own_engine() -> None:
    """A constraint by the evaluator, a check by a program, a validation by a function, a health check by
    the assertion engine: no name is known to two of them."""
    declared = {
        check
        for document in overlays().values()
        for block in document["spec"].get("validation", {}).values()
        for check in block.get("checks", [])
    }
    assert declared
    assert declared <= set(checks.names())
    wired = {
        block["function"] for item in registry().values() for block in item.get("validations", [])
    }
    assert wired == set(FUNCTIONS)
    assert not wired & set(checks.names())
    files = [RECIPES / item["healthCheck"]["assertFile"] for item in registry().values()]
    assert files
    for path in files:
        assert read_check(path.read_text(encoding="utf-8"), source=path.name).operations
    assert any("constraints" in document["spec"] for document in overlays().values())


@pytest.mark.covers("V-015")
def test_no_shipped_document_declares_readiness_constraints() -> None:
    """The gate is fed by the recipes' own constraints and by profiles; pinned, so that a change is seen."""
    blocks = [
        document["spec"].get("validation", {}).get("readiness")
        for document in [*overlays().values(), *mixins().values()]
    ]
    assert [block for block in blocks if block] == []
    gke = load(RECIPES / "overlays" / "gke" / "gke-cos.yaml")["spec"]["profile"]["values"]
    assert ["readinessConstraints" in value for value in gke.values()] == [False, False]
