"""Bundles of real recipes: the order each tool will follow, and the shape of every object."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
from tests import tools
from tests.deployers import gitops_shapes as shapes
from tests.deployers import parse_back

from aicr.artifacts import checksums
from aicr.bundle.api import make_bundle
from aicr.bundle.options import BundleOptions
from aicr.catalog.catalog import Catalog
from aicr.recipe.criteria import Criteria
from aicr.recipe.recipe import Recipe
from aicr.recipe.resolve import resolve
from aicr.yamlio import read

OURS: Final = ("argocd", "argocd-helm", "fleet", "flux")
RECIPES: Final[dict[str, dict[str, Any]]] = {
    "eks": {
        "service": "eks",
        "accelerator": "h100",
        "intent": "training",
        "os": "ubuntu",
        "platform": "kubeflow",
    },
    "gke": {
        "service": "gke",
        "accelerator": "h100",
        "intent": "inference",
        "os": "cos",
        "platform": "dynamo",
    },
}
FLAGS: Final[dict[str, Any]] = {
    "system_node_selector": ["pool=system"],
    "accelerated_node_selector": ["pool=gpu"],
    "accelerated_node_tolerations": ["nvidia.com/gpu=present:NoSchedule"],
    "storage_class": "standard",
}


@cache
def recipe(name: str) -> Recipe:
    """A resolved recipe of the built-in catalogue."""
    return resolve(Catalog.builtin(), Criteria(**RECIPES[name]))


def written(name: str, deployer: str, folder: Path, **flags: Any) -> Path:
    """The bundle of a recipe, written to a new folder."""
    options = BundleOptions(deployer=deployer, version="1.0.0", **{**FLAGS, **flags})
    make_bundle(recipe(name), options).write(str(folder))
    return folder


def objects(bundle: Path) -> list[dict[str, Any]]:
    """Every object that the bundle gives to a cluster, as the tool reads it."""
    deployer = parse_back.document(bundle / "bundle-info.yaml")["build"]["deployer"]
    if deployer == "argocd":
        paths = [bundle / "app-of-apps.yaml", *bundle.glob("*/application.yaml")]
    elif deployer == "flux":
        listed = parse_back.document(bundle / "kustomization.yaml")["resources"]
        paths = [bundle / path for path in listed]
    elif deployer == "fleet":
        paths = [bundle / "gitrepo.yaml"]
    else:
        return parse_back.rendered(bundle)
    return [parse_back.document(path) for path in paths]


@pytest.mark.covers("C-103", "C-105", "C-107", "C-128")
@pytest.mark.parametrize("deployer", sorted(parse_back.READERS))
@pytest.mark.parametrize("name", sorted(RECIPES))
@pytest.mark.parametrize("serial", [False, True])
def test_every_deployer_follows_the_order_of_the_recipe(
    tmp_path: Path, name: str, deployer: str, serial: bool
) -> None:
    """Read back from the files; with --serial it is one chain (bundler spec 5.0.2, 5.0.4)."""
    bundle = written(name, deployer, tmp_path / "b", serial=serial)
    found, wanted = parse_back.before(bundle), parse_back.expected(bundle)
    assert found.keys() == wanted.keys()
    late = {name: needed - found[name] for name, needed in wanted.items()}
    assert not any(late.values()), late
    if serial or deployer in ("helm", "fleet"):
        assert found == parse_back.closure(parse_back.chained(parse_back.releases(bundle)))


@pytest.mark.covers("F1")
@pytest.mark.parametrize("deployer", sorted(parse_back.READERS))
def test_order_reaches_through_a_disabled_component(tmp_path: Path, deployer: str) -> None:
    """What needs nfd still comes after what nfd needs, and nobody waits for nfd (F1)."""
    bundle = written("eks", deployer, tmp_path / "b", set=["nfd:enabled=false"])
    refs = [dict(ref) for ref in recipe("eks").document["componentRefs"]]
    for ref in refs:
        if ref["name"] == "nfd":
            ref["overrides"] = {"enabled": False}
    found, wanted = parse_back.before(bundle), parse_back.expected(bundle, refs)
    assert "nfd" not in found
    assert all(found[name] >= needed for name, needed in wanted.items())
    assert wanted["gpu-operator"]


@pytest.mark.parametrize("deployer", OURS)
@pytest.mark.parametrize("name", sorted(RECIPES))
@pytest.mark.parametrize("published", [False, True])
def test_objects_have_the_published_shapes(
    tmp_path: Path, name: str, deployer: str, published: bool
) -> None:
    """No field that the tool's API does not have, none missing, none of another type."""
    flags = {"oci_reference": "oci://r.example:5000/team/stack:1.2.3"} if published else {}
    bundle = written(name, deployer, tmp_path / "b", **flags)
    assert checksums.verify_tree(str(bundle)) == []
    found = objects(bundle)
    assert found
    for item in found:
        assert shapes.object_problems(item) == [], item["metadata"]["name"]
    for path in bundle.glob("*/fleet.yaml"):
        assert shapes.problems(parse_back.document(path), shapes.FLEET_YAML) == [], path


@pytest.mark.parametrize("name", sorted(RECIPES))
def test_values_are_the_same_under_every_deployer(tmp_path: Path, name: str) -> None:
    """One definition of a component gives one set of values (requirement C-102)."""
    plain = written(name, "argocd", tmp_path / "argocd")
    charts = written(name, "argocd-helm", tmp_path / "argocd-helm")
    flux = written(name, "flux", tmp_path / "flux")
    fleet = written(name, "fleet", tmp_path / "fleet")
    made = {item["metadata"]["name"]: item for item in parse_back.rendered(charts)}
    for folder in sorted(plain.glob("[0-9]*/")):
        values = parse_back.document(folder / "values.yaml")
        release = parse_back.document(flux / folder.name / "helmrelease.yaml")["spec"]
        assert release.get("values", {}) == values, folder.name
        assert parse_back.document(fleet / folder.name / "values.yaml") == values
        if not (folder / "Chart.yaml").exists():
            text = made[folder.name[4:]]["spec"]["source"]["helm"]["values"]
            assert read.load(text, source=folder.name) == values


@pytest.mark.parametrize("name", sorted(RECIPES))
def test_helm_lints_the_chart_of_a_real_recipe(tmp_path: Path, name: str) -> None:
    """helm lint --strict finds nothing."""
    bundle = written(name, "argocd-helm", tmp_path / "b")
    done = parse_back.run_helm("lint", "--strict", str(bundle))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.covers("F2")
@pytest.mark.parametrize("name", sorted(RECIPES))
def test_kubectl_hands_the_flux_objects_on_unchanged(tmp_path: Path, name: str) -> None:
    """`kubectl apply -k` builds the kustomization first; nothing is lost or rewritten in it."""
    bundle = written(name, "flux", tmp_path / "b")
    done = subprocess.run(
        [tools.kubectl(), "kustomize", str(bundle)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    built = read.load_all(done.stdout, source="kustomize")
    by_name = {(item["kind"], item["metadata"]["name"]): item for item in built}
    wanted = {(item["kind"], item["metadata"]["name"]): item for item in objects(bundle)}
    assert by_name == wanted


@pytest.mark.parametrize(
    ("item", "problem"),
    [
        ({"name": "x", "other": 1}, ".other is unknown"),
        ({}, ".name is missing"),
        ({"name": 1}, ".name is 1"),
        ({"name": "x", "list": [True]}, ".list[0] is True"),
        ({"name": "x", "list": "text"}, ".list is no list"),
    ],
)
def test_the_shape_check_finds_what_is_wrong(item: dict[str, Any], problem: str) -> None:
    """A check that finds nothing proves nothing."""
    assert shapes.problems(item, {"name": str, "list?": [int]}) == [problem]
