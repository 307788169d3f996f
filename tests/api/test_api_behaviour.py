"""The public interface does what the commands do, changes nothing it is given, and raises one error."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cli.program import CRITERIA, EKS, tree
from tests.cli.program import aicr as run

import aicr
from aicr.version import __version__


@pytest.fixture(scope="module")
def catalog() -> aicr.Catalog:
    """The built-in catalogue."""
    return aicr.Catalog.builtin()


@pytest.fixture
def criteria() -> aicr.Criteria:
    """EKS, H100, training, Ubuntu."""
    return aicr.Criteria(**CRITERIA)  # type: ignore[arg-type]


def test_a_resolved_recipe_is_what_the_command_prints(
    catalog: aicr.Catalog, criteria: aicr.Criteria
) -> None:
    """One resolver: library and command line give the same bytes."""
    assert aicr.resolve(catalog, criteria).to_yaml() == run("recipe", *EKS).out


def test_a_hydrated_recipe_is_what_the_query_prints(
    catalog: aicr.Catalog, criteria: aicr.Criteria
) -> None:
    """The empty selector is the whole hydrated document."""
    printed = run("query", *EKS, "--selector", "").out
    assert yaml.safe_load(printed) == aicr.hydrate(aicr.resolve(catalog, criteria))


def test_a_bundle_is_what_the_command_writes(
    catalog: aicr.Catalog, criteria: aicr.Criteria, tmp_path: Path
) -> None:
    """One bundler: same files, same bytes, same modes."""
    recipe = aicr.resolve(catalog, criteria)
    text = tmp_path / "recipe.yaml"
    text.write_text(recipe.to_yaml())
    assert run("bundle", "-r", text, "-o", tmp_path / "one", "--set", "nfd:a.b=1").status == 0
    made = aicr.bundle(recipe, aicr.BundleOptions(set=["nfd:a.b=1"], version=__version__))
    made.write(tmp_path / "two")
    assert tree(tmp_path / "one") == tree(tmp_path / "two")
    assert {path: (mode, data) for path, (data, mode) in made.files.items()} == {
        path: entry for path, entry in tree(tmp_path / "two").items() if entry[1] is not None
    }


def test_nothing_that_is_passed_in_is_changed(
    catalog: aicr.Catalog, criteria: aicr.Criteria
) -> None:
    """Neither the criteria nor the recipe nor, through it, the catalogue."""
    recipe = aicr.resolve(catalog, criteria)
    before = copy.deepcopy(recipe.document)
    aicr.hydrate(recipe)
    aicr.bundle(recipe, aicr.BundleOptions(set=["gpu-operator:toolkit.enabled=false"]))
    assert recipe.document == before
    assert criteria == aicr.Criteria(**CRITERIA)  # type: ignore[arg-type]
    hydrated = aicr.hydrate(recipe)
    hydrated["components"]["gpu-operator"]["values"].clear()
    assert aicr.hydrate(recipe)["components"]["gpu-operator"]["values"]


def test_a_changed_recipe_does_not_leak_into_the_next(
    catalog: aicr.Catalog, criteria: aicr.Criteria
) -> None:
    """What a caller does to a document stays with that document."""
    first: Any = aicr.resolve(catalog, criteria).document
    expected = copy.deepcopy(first)
    first["componentRefs"][0].clear()
    first["constraints"].clear()
    first["deploymentOrder"].reverse()
    assert aicr.resolve(catalog, criteria).document == expected


def test_files_of_an_overlay_folder_go_into_the_bundle(
    catalog: aicr.Catalog, tmp_path: Path
) -> None:
    """What --data brings is in data/, from Python as well, unless the options name such files."""
    (tmp_path / "registry.yaml").write_text(
        "kind: ComponentRegistry\napiVersion: aicr.run/v1beta1\ncomponents: []\n"
    )
    (tmp_path / "note.txt").write_text("mine\n")
    recipe = aicr.resolve(
        catalog.overlay(str(tmp_path)), aicr.Criteria(service="eks", intent="training")
    )
    files = aicr.bundle(recipe).files
    assert files["data/note.txt"][0] == b"mine\n"
    assert "data/registry.yaml" in files
    own = aicr.bundle(recipe, aicr.BundleOptions(data_files={"other.txt": b"x"})).files
    assert sorted(path for path in own if path.startswith("data/")) == ["data/other.txt"]


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda catalog: aicr.Criteria(nodes=-1), "INVALID_REQUEST"),
        (lambda catalog: aicr.resolve(catalog, aicr.Criteria(service="x")), "INVALID_REQUEST"),
        (
            lambda catalog: aicr.resolve(catalog, aicr.Criteria(service="eks"), profile="x"),
            "INVALID_REQUEST",
        ),
        (lambda catalog: aicr.Catalog.from_dir("/nowhere"), "NOT_FOUND"),
        (lambda catalog: catalog.overlay("/nowhere"), "NOT_FOUND"),
        (
            lambda catalog: aicr.bundle(
                aicr.resolve(catalog, aicr.Criteria(service="eks", intent="training")),
                aicr.BundleOptions(deployer="x"),
            ),
            "INVALID_REQUEST",
        ),
        (
            lambda catalog: aicr.bundle(
                aicr.resolve(catalog, aicr.Criteria(service="eks", intent="training")),
                aicr.BundleOptions(set_file=["nfd:a=b"]),
            ),
            "INVALID_REQUEST",
        ),
        (
            lambda catalog: aicr.bundle(
                aicr.resolve(catalog, aicr.Criteria(service="eks", intent="training"))
            ).write("/proc/version"),
            "INVALID_REQUEST",
        ),
    ],
)
def test_every_failure_is_the_one_error_with_a_code(
    call: Callable[[aicr.Catalog], object], code: str, catalog: aicr.Catalog
) -> None:
    """Decision 37: callers catch AicrError and branch on its code."""
    with pytest.raises(aicr.AicrError) as caught:
        call(catalog)
    assert caught.value.code == code
    assert str(caught.value).startswith(f"[{code}] ")
    assert any(link.hint for link in caught.value.chain()) or "nodes" in caught.value.message
