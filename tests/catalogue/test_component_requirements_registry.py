"""What the components seed asks of the catalogue's entries, held against every one of the real ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, cast

import pytest
from tests.catalogue.catalogue_files import RECIPES, load, mixins, overlays
from tests.catalogue.component_plans import CHARTS, REGISTRY, at, catalog, leaves, pulled

from aicr.catalog.catalog import Catalog
from aicr.catalog.registry import apply_defaults, component_type
from aicr.errors import AicrError
from aicr.recipe.criteria import Criteria
from aicr.recipe.hydrate import resolve_values
from aicr.recipe.resolve import resolve

HELM_FIELDS: Final = ("defaultRepository", "defaultChart", "defaultVersion", "defaultNamespace")


# -- entries -----------------------------------------------------------------------------------------


@pytest.mark.covers("C-001", "C-007")
@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_a_recipe_pulls_every_component_by_its_name_alone(name: str) -> None:
    """The entry names one chart or one Kustomize source, or holds manifests, and the ref takes it."""
    entry = catalog().registry.get(name)
    assert entry is not None
    helm, kustomize = entry.get("helm") or {}, entry.get("kustomize") or {}
    assert not (helm and kustomize)
    ref: dict[str, Any] = {"name": name}
    apply_defaults(cast("Any", ref), entry)
    assert ref["type"] == component_type(entry)
    if name in CHARTS:
        assert ref["source"] == helm["defaultRepository"]
        assert ref["chart"] == helm["defaultChart"].rpartition("/")[2]
        assert ref["version"] == helm["defaultVersion"]
    elif kustomize:
        assert ref["source"] == kustomize["defaultSource"]
    else:
        assert {**pulled(name), **ref}["manifestFiles"]
        assert "source" not in ref


@pytest.mark.covers("C-007", "C-021")
@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_every_entry_goes_through_the_resolution_of_a_recipe(name: str) -> None:
    """Read, given its defaults and its health check, hydrated; a broken entry could not be."""
    base: Any = {"metadata": {"name": "base"}, "spec": {"componentRefs": [pulled(name)]}}
    alone = Catalog(
        base=base,
        overlays={},
        mixins={},
        registry=catalog().registry,
        tree=catalog().tree,
        taught={},
    )
    recipe = resolve(alone, Criteria(service="eks"), coverage=False)
    (ref,) = recipe.document["componentRefs"]
    entry = REGISTRY[name]
    assert ref["type"] == "Helm"
    assert ref.get("namespace") == entry["helm"].get("defaultNamespace")
    assert ref.get("version") == entry["helm"].get("defaultVersion")
    assert ref["healthCheckAsserts"] == (RECIPES / entry["healthCheck"]["assertFile"]).read_text(
        encoding="utf-8"
    )
    assert isinstance(resolve_values(ref, catalog().tree), dict)


@pytest.mark.covers("C-002")
def test_the_catalogue_is_one_file_and_a_folder_of_defaults_for_each_component(
    tmp_path: Path,
) -> None:
    """registry.yaml holds every component; components/<name>/values.yaml is what its values start from."""
    assert [entry["name"] for entry in catalog().registry.entries] == list(REGISTRY)
    for name in REGISTRY:
        own = RECIPES / "components" / name / "values.yaml"
        expected = load(own) if own.exists() else {}
        assert resolve_values(cast("Any", {"name": name}), catalog().tree) == expected
    with pytest.raises(AicrError, match=r"registry\.yaml"):
        Catalog.from_dir(str(tmp_path))


@pytest.mark.covers("C-014", "C-060", "C-061", "C-062", "C-063")
@pytest.mark.parametrize("name", CHARTS)
def test_the_entry_of_a_chart_has_the_fields_of_the_seed(name: str) -> None:
    """Name, display name, the four defaults; a name with hyphens has a key that is easier to type."""
    entry = REGISTRY[name]
    assert entry["displayName"].strip()
    for field in HELM_FIELDS:
        assert entry["helm"][field], field
        assert isinstance(entry["helm"][field], str), field
    keys = entry.get("valueOverrideKeys", [])
    assert len(keys) == len(set(keys))
    if "-" in name:
        assert any("-" not in key for key in keys)
    for key in (name, *keys):
        found = catalog().registry.by_override_key(key)
        assert found is not None
        assert found["name"] == name


@pytest.mark.covers("C-015")
@pytest.mark.parametrize(
    "name", [name for name in CHARTS if "/" in REGISTRY[name]["helm"]["defaultChart"]]
)
def test_a_chart_written_with_its_repository_is_called_by_its_last_part(name: str) -> None:
    """`nvidia/gpu-operator` is the chart gpu-operator of the repository's address."""
    written = REGISTRY[name]["helm"]["defaultChart"]
    ref: dict[str, Any] = {"name": name}
    entry = catalog().registry.get(name)
    assert entry is not None
    apply_defaults(cast("Any", ref), entry)
    assert ref["chart"] == written.split("/")[1]
    assert ref["source"].startswith("https://")


@pytest.mark.covers("C-018")
@pytest.mark.parametrize(
    "file", sorted(path.name for path in RECIPES.glob("components/*/values-*.yaml"))
)
def test_values_of_one_context_come_only_by_the_overlay_that_names_them(file: str) -> None:
    """Nobody gets values-<context>.yaml by itself; over values.yaml it wins where it is named."""
    found = list(RECIPES.glob(f"components/*/{file}"))
    for path in found:
        name = path.parent.name
        named = path.relative_to(RECIPES).as_posix()
        assert [
            item
            for document in (*overlays().values(), *mixins().values())
            for item in document["spec"].get("componentRefs") or ()
            if item.get("valuesFile") == named
        ], f"no overlay refers to {named}"
        context = leaves(load(path), set())
        without = resolve_values(cast("Any", {"name": name}), catalog().tree)
        assert any(at(without, key) != value for key, value in context.items())
        with_it = resolve_values(cast("Any", {"name": name, "valuesFile": named}), catalog().tree)
        for key, value in context.items():
            # null takes an inherited value away (recipe spec 7).
            assert at(with_it, key) == value


# -- the boundary ------------------------------------------------------------------------------------


@pytest.mark.covers("C-140")
def test_an_entry_says_what_and_where_and_never_how_it_is_applied() -> None:
    """Only these keys, all of them data: no hook, command, wait, undo or polling anywhere."""
    assert {key for entry in REGISTRY.values() for key in entry} <= {
        "name",
        "displayName",
        "valueOverrideKeys",
        "helm",
        "kustomize",
        "nodeScheduling",
        "podScheduling",
        "storageClassPaths",
        "sharedStorageClassPaths",
        "validations",
        "healthCheck",
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
    assert {key for entry in REGISTRY.values() for key in entry.get("healthCheck", {})} == {
        "assertFile"
    }
    assert {key for entry in REGISTRY.values() for key in entry.get("upgrades", {})} == {"file"}
    assert {
        key
        for entry in REGISTRY.values()
        for check in entry.get("validations", ())
        for key in check
    } <= {"function", "severity", "conditions", "message"}


@pytest.mark.covers("C-140")
def test_the_folder_of_a_component_holds_data_and_no_program() -> None:
    """Values, manifests, a record of upgrades, a test of readiness: nothing that could be run."""
    kinds = ("values.yaml", "values-", "upgrades.yaml", "readiness.yaml")
    for path in sorted((RECIPES / "components").rglob("*")):
        if path.is_dir():
            continue
        inside = path.relative_to(RECIPES / "components").parts[1:]
        assert path.suffix == ".yaml", path
        assert not path.stat().st_mode & 0o111, path
        assert inside[0] == "manifests" if len(inside) == 2 else inside[0].startswith(kinds), path
