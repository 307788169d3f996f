"""Requirements of components and bundler cases that a command line shows best, on real recipes."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from tests.cli.program import EKS, aicr

import aicr as library
from aicr.bundle.options import BundleOptions

SEVEN = "argocd, argocd-helm, fleet, flux, helm, helmfile, terraform"


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recipe of the built-in catalogue on disk."""
    path = tmp_path_factory.mktemp("recipe") / "recipe.yaml"
    made = aicr("recipe", *EKS)
    assert made.status == 0, made.err
    path.write_text(made.out, encoding="utf-8")
    return path


def tree(folder: Path) -> dict[str, bytes]:
    """The files of a bundle."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.mark.covers("B10-1")
@pytest.mark.parametrize("refs", ["", " []"])
def test_a_recipe_of_nothing_makes_no_bundle(tmp_path: Path, refs: str) -> None:
    """Exit 2, and the output folder does not appear."""
    path = tmp_path / "recipe.yaml"
    path.write_text(f"kind: RecipeResult\napiVersion: aicr.run/v1\ncomponentRefs:{refs}\n")
    aicr("bundle", "-r", path, "-o", tmp_path / "b").refused(2, "nothing to bundle")
    assert not (tmp_path / "b").exists()


@pytest.mark.covers("B10-2")
def test_a_recipe_that_is_not_there_is_not_found(tmp_path: Path) -> None:
    """Exit 3 with the name; the output folder does not appear."""
    missing = tmp_path / "missing.yaml"
    aicr("bundle", "-r", missing, "-o", tmp_path / "b").refused(
        3, "[NOT_FOUND]", f"recipe file not found: {missing}"
    )
    assert not (tmp_path / "b").exists()


@pytest.mark.covers("B10-3")
@pytest.mark.parametrize("name", ["HELM ", "helm", ""])
def test_the_name_of_a_deployer_may_be_written_loosely(
    recipe: Path, tmp_path: Path, name: str
) -> None:
    """Case and blanks do not matter, and nothing means helm."""
    made = aicr("bundle", "-r", recipe, "-o", tmp_path / "b", "-d", name)
    assert made.status == 0, made.err
    about = yaml.safe_load((tmp_path / "b" / "bundle-info.yaml").read_text())
    assert about["build"]["deployer"] == "helm"


@pytest.mark.covers("B10-4")
def test_an_unknown_deployer_lists_the_seven_in_order(recipe: Path, tmp_path: Path) -> None:
    """Exit 2, and nothing is written."""
    made = aicr("bundle", "-r", recipe, "-o", tmp_path / "b", "-d", "kustomize")
    made.refused(2, "[INVALID_REQUEST]", f"must be one of {SEVEN}")
    assert not (tmp_path / "b").exists()


@pytest.mark.covers("B10-37", "C-054", "C-059")
def test_a_storage_class_for_prometheus_asks_for_its_nodes(recipe: Path, tmp_path: Path) -> None:
    """The bare bundle passes; with a class and no selector nothing is written."""
    assert aicr("bundle", "-r", recipe, "-o", tmp_path / "bare").status == 0
    flags = ("--storage-class", "gp3")
    made = aicr("bundle", "-r", recipe, "-o", tmp_path / "b", *flags)
    made.refused(
        2, 'component "kube-prometheus-stack" requires --system-node-selector to be set', "next: "
    )
    assert not (tmp_path / "b").exists()
    more = (*flags, "--system-node-selector", "pool=system")
    assert aicr("bundle", "-r", recipe, "-o", tmp_path / "b", *more).status == 0


@pytest.mark.covers("C-060", "C-061", "C-062")
def test_a_component_is_set_by_its_name_or_by_its_shorter_key(recipe: Path, tmp_path: Path) -> None:
    """gpu-operator: and gpuoperator: give the same bundle, byte for byte."""
    for key in ("gpu-operator", "gpuoperator"):
        flags = ("--set", f"{key}:driver.version=580.1.2")
        assert aicr("bundle", "-r", recipe, "-o", tmp_path / key, *flags).status == 0
    assert tree(tmp_path / "gpu-operator") == tree(tmp_path / "gpuoperator")
    (values,) = (tmp_path / "gpuoperator").glob("*-gpu-operator/values.yaml")
    assert yaml.safe_load(values.read_text())["driver"]["version"] == "580.1.2"


@pytest.mark.covers("C-088")
def test_the_eviction_label_is_one_setting_in_three_forms(recipe: Path, tmp_path: Path) -> None:
    """Flag, config field and library option make one bundle; there is no switch beside it."""
    label = "example.com/evict=on"
    flags = ("--dra-eviction-node-label", label)
    assert aicr("bundle", "-r", recipe, "-o", tmp_path / "flag", *flags).status == 0
    config = tmp_path / "config.yaml"
    config.write_text(
        "apiVersion: aicr.run/v1beta1\nkind: AICRConfig\nspec:\n  bundle:\n    scheduling:\n"
        f"      draEvictionNodeLabel: {label}\n"
    )
    made = aicr("bundle", "-r", recipe, "-o", tmp_path / "config", "--config", config)
    assert made.status == 0, made.err
    assert tree(tmp_path / "config") == tree(tmp_path / "flag")
    criteria = library.Criteria(service="eks", accelerator="h100", intent="training", os="ubuntu")
    resolved = library.resolve(library.Catalog.builtin(), criteria)
    options = BundleOptions(dra_eviction_node_label=label)
    values = {item.name: item.values for item in library.bundle(resolved, options).plan.components}
    (written,) = (tmp_path / "flag").glob("*-nvidia-dra-driver-gpu/values.yaml")
    assert yaml.safe_load(written.read_text()) == values["nvidia-dra-driver-gpu"]
    assert [name for name in BundleOptions.__slots__ if "dra" in name or "evict" in name] == [
        "dra_eviction_node_label"
    ]


@pytest.mark.covers("C-020")
@pytest.mark.parametrize(
    ("intent", "flags", "said"),
    [
        ("training", (), True),
        ("training", ("--workload-selector", "job=train"), False),
        ("inference", (), False),
    ],
)
def test_a_validation_of_the_registry_warns_when_the_bundle_is_made(
    tmp_path: Path, intent: str, flags: tuple[str, ...], said: bool
) -> None:
    """Its conditions decide; the warning is a note of the run and of the README, and blocks nothing."""
    criteria = ("--service", "eks", "--accelerator", "h100", "--os", "ubuntu", "--intent", intent)
    path = tmp_path / "recipe.yaml"
    path.write_text(aicr("recipe", *criteria).out)
    made = aicr("bundle", "-r", path, "-o", tmp_path / "b", *flags)
    assert made.status == 0, made.err
    words = "nodewright-customizations: --workload-selector is not set"
    assert (words in made.out + made.err) is said
    assert (words in (tmp_path / "b" / "README.md").read_text()) is said


@pytest.mark.covers("C-020")
def test_a_validation_of_severity_error_keeps_the_bundle_from_being_made(tmp_path: Path) -> None:
    """AKS without a keyed toleration: exit 2 with what to pass, and no folder."""
    criteria = ("--service", "aks", "--accelerator", "h100", "--os", "ubuntu")
    path = tmp_path / "recipe.yaml"
    path.write_text(aicr("recipe", *criteria, "--intent", "training").out)
    made = aicr("bundle", "-r", path, "-o", tmp_path / "b")
    made.refused(2, "nodewright-customizations", "--accelerated-node-toleration")
    assert not (tmp_path / "b").exists()
