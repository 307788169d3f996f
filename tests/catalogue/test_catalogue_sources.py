"""Every fact of the catalogue has a source line, and no source line is dead (decision 56)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.catalogue.catalogue_files import (
    RECIPES,
    SOURCES,
    load,
    mixins,
    overlays,
    registry,
    upgrades,
)
from tools.catalogue_report import leaf_paths, named_objects

DATA: dict[str, Any] = load(SOURCES)
COMPONENTS: dict[str, Any] = DATA["components"]
REGISTRY = registry()


def _cited(value: Any) -> set[str]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return set().union(*map(_cited, value))
    return {value}


def test_every_component_has_an_entry_and_no_entry_is_left_over() -> None:
    """The components of the source data are those of the registry."""
    assert sorted(COMPONENTS) == sorted(REGISTRY)


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_a_pin_has_a_source_exactly_where_there_is_a_pin(name: str) -> None:
    """A chart version in the registry is a claim and so has a source."""
    pinned = bool(REGISTRY[name].get("helm", {}).get("defaultVersion"))
    assert ("pin" in COMPONENTS[name]) == pinned


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_every_leaf_of_every_values_file_has_a_source(name: str) -> None:
    """Leaves of the values files and lines of the source data are the same set."""
    files = sorted((RECIPES / "components" / name).glob("values*.yaml"))
    found = {path.name: sorted(leaf_paths(load(path))) for path in files}
    stated = {file: sorted(lines) for file, lines in COMPONENTS[name].get("values", {}).items()}
    assert stated == found


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_every_object_of_a_health_check_has_a_source(name: str) -> None:
    """Objects that a check asserts and lines of the source data are the same set."""
    check = load(RECIPES / REGISTRY[name]["healthCheck"]["assertFile"])
    assert set(COMPONENTS[name]["objects"]) == named_objects(check)


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_every_manifest_has_a_source(name: str) -> None:
    """A manifest rests on at least one source."""
    files = sorted(path.name for path in (RECIPES / "components" / name).glob("manifests/*.yaml"))
    stated = COMPONENTS[name].get("manifests", {})
    assert sorted(stated) == files
    assert all(stated.values())


def test_every_overlay_and_every_mixin_has_a_source() -> None:
    """Constraints, thresholds and overrides rest on at least one source."""
    for kind, names in (("overlays", overlays()), ("mixins", mixins())):
        assert sorted(DATA[kind]) == sorted(names)
        assert all(DATA[kind].values())


def test_every_template_of_a_benchmark_has_a_source() -> None:
    """Images, variables and devices in a template are claims about third parties."""
    folder = RECIPES / "validators" / "performance" / "testdata"
    found = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.yaml"))
    assert list(DATA["benchmarks"]) == found
    assert all(DATA["benchmarks"].values())


def test_every_upgrade_record_has_a_source() -> None:
    """A record is a claim about a third party's release."""
    assert {name for name in COMPONENTS if "upgrades" in COMPONENTS[name]} == set(upgrades())


def test_what_is_cited_is_declared_and_what_is_declared_is_cited() -> None:
    """No dangling citation and no unused source."""
    used = _cited([COMPONENTS, DATA["overlays"], DATA["mixins"], DATA["benchmarks"]])
    assert used == set(DATA["sources"])


def test_the_unknown_is_listed_and_counted(record_property: Any) -> None:
    """What no source was found for is said in words, once, about something of the catalogue."""
    unknown = DATA["unknown"]
    assert {entry["subject"] for entry in unknown} <= set(REGISTRY) | set(overlays())
    texts = [entry["what"] for entry in unknown]
    assert len(texts) == len(set(texts))
    assert all(text.endswith(".") for text in texts)
    record_property("catalogue_unknown", len(unknown))
    print(f"catalogue: {len(unknown)} unknown")
