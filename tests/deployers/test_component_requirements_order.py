"""The order that the components seed promises: edges, tiers, --serial and gates of all seven deployers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest
import yaml
from tests.bundle.sample_catalogues import World
from tests.bundle.stub_cluster import StubCluster, place
from tests.deployers import gitops_plans as plans
from tests.deployers import parse_back
from tests.deployers.chain_parsers import terraform_calls
from tests.deployers.deployer_plans import CATALOGUE, diamond, generate, real_files, real_plan

from aicr.bundle import output
from aicr.bundle.api import make_bundle
from aicr.bundle.options import BundleOptions
from aicr.catalog.catalog import Catalog
from aicr.recipe.criteria import Criteria
from aicr.recipe.recipe import Recipe
from aicr.recipe.resolve import resolve

SEVEN: Final = ("helm", "helmfile", "argocd", "argocd-helm", "flux", "terraform", "fleet")
TEST: Final = (
    "apiVersion: chainsaw.kyverno.io/v1alpha1\nkind: Test\nmetadata: {name: app}\nspec:\n"
    "  steps:\n    - try:\n        - assert:\n            resource:\n"
    "              {apiVersion: v1, kind: ConfigMap, metadata: {name: x}}\n"
)


def pair() -> Recipe:
    """`app`, which has a readiness test, and `dependent`, which needs it."""
    world = World(
        "app",
        {"name": "dependent", "dependencyRefs": ["app"]},
        files={"components/app/readiness.yaml": TEST},
    )
    return Recipe(world.recipe, world.catalog())  # type: ignore[arg-type]


# -- edges and tiers ---------------------------------------------------------------------------------


@pytest.mark.covers("C-103", "C-109", "C-110", "C-111")
@pytest.mark.parametrize("name", sorted(CATALOGUE))
def test_flux_and_terraform_have_the_same_edges(tmp_path: Path, name: str) -> None:
    """Read back from both bundles, component by component: the declared graph, no edge more."""
    output.write_bundle(real_files(name, "flux"), str(tmp_path / "b"))
    listed = parse_back.document(tmp_path / "b" / "bundle-info.yaml")["layout"]["releases"]
    owners = {item["name"]: item["component"] for item in listed}
    flux: dict[str, set[str]] = {owner: set() for owner in owners.values()}
    for release, needed in parse_back.flux_edges(tmp_path / "b").items():
        flux[owners[release]] |= {owners[each] for each in needed} - {owners[release]}
    calls = terraform_calls(real_files(name, "terraform"))
    labels = {label: label.replace("_", "-") for label in calls}
    terraform = {
        labels[label]: {
            labels[each.strip("${}").removeprefix("module.")] for each in call.get("depends_on", ())
        }
        for label, call in calls.items()
    }
    assert flux == terraform
    assert flux == {key: set(value) for key, value in real_plan(name).dependencies.items()}


@pytest.mark.covers("B10-56")
def test_an_edge_to_a_component_that_is_switched_off_is_not_written() -> None:
    """terraform: no depends_on argument, and nothing refers to the module that is not there."""
    with_it = make_bundle(pair(), BundleOptions(deployer="terraform")).files["main.tf"][0].decode()
    assert "depends_on = [module.app]" in re.sub(" +", " ", with_it)
    options = BundleOptions(deployer="terraform", set=["app:enabled=false"])
    text = make_bundle(pair(), options).files["main.tf"][0].decode()
    assert 'module "dependent"' in text
    assert "depends_on" not in text
    assert "module.app" not in text


@pytest.mark.covers("B10-78")
@pytest.mark.parametrize("deployer", SEVEN)
def test_the_same_input_gives_the_same_bytes_under_every_deployer(deployer: str) -> None:
    """Two runs, from the criteria on (decision 3)."""
    criteria, flags = CATALOGUE["gke-inference"]
    again = resolve(Catalog.builtin(), Criteria(**criteria))
    files = make_bundle(again, BundleOptions(deployer=deployer, **flags)).files
    assert files == real_files("gke-inference", deployer)


@pytest.mark.covers("C-104", "C-121")
def test_argo_waits_for_a_whole_tier_where_flux_waits_for_what_is_declared(tmp_path: Path) -> None:
    """dynamo never names aws-efa: its wave comes after all the same, its HelmRelease does not wait."""
    found = {}
    for deployer in ("argocd", "argocd-helm", "flux"):
        plan = plans.plan_of(*plans.graph(), deployer=deployer)
        found[deployer] = parse_back.before(plans.written(plan, tmp_path / deployer))["dynamo"]
    assert "aws-efa" in found["argocd"]
    assert found["argocd-helm"] == found["argocd"]
    assert "aws-efa" not in found["flux"]
    assert found["flux"] < found["argocd"]


@pytest.mark.covers("C-124")
def test_a_level_of_helmfile_links_only_the_releases_of_one_component() -> None:
    """pre, chart, post of gpu-operator in a row; no edge between components of a level."""
    files = generate("helmfile", diamond())
    edges = 0
    for path, (data, _) in files.items():
        if not path.startswith("level-"):
            continue
        for release in yaml.safe_load(data)["releases"]:
            own = release["name"].removesuffix("-post")
            for needed in release.get("needs", ()):
                name = needed.rpartition("/")[2]
                assert name.removesuffix("-pre").removesuffix("-post") == own
                edges += 1
    assert edges == 3


# -- one after another -------------------------------------------------------------------------------


@pytest.mark.covers("C-128", "C-129", "C-134")
@pytest.mark.parametrize("deployer", SEVEN)
@pytest.mark.parametrize("name", sorted(CATALOGUE))
def test_serial_changes_the_concurrent_deployers_and_not_the_linear_ones(
    name: str, deployer: str
) -> None:
    """For helm and fleet only the record of the flag and its checksum differ."""
    assert BundleOptions().serial is False
    plain, serial = real_files(name, deployer), real_files(name, deployer, True)
    changed = {path for path in plain.keys() | serial.keys() if plain.get(path) != serial.get(path)}
    recorded = {"bundle-info.yaml", "checksums.txt"}
    if deployer in ("helm", "fleet"):
        assert changed == recorded
    else:
        assert changed > recorded


# -- gates -------------------------------------------------------------------------------------------


@pytest.mark.covers("C-105", "C-127")
def test_a_gate_stands_between_a_component_and_its_dependents(tmp_path: Path) -> None:
    """deploy.sh installs app, then its gate, then what needs app; a gate that fails stops it there."""
    bundle = make_bundle(pair(), BundleOptions(readiness_hooks=True))
    script = place(bundle.files, tmp_path / "bundle") / "deploy.sh"
    cluster = StubCluster(tmp_path / "stub")
    assert cluster.run(script).returncode == 0
    assert cluster.installs() == ["app", "app-readiness", "dependent"]
    gate = next(call for call in cluster.calls("helm upgrade") if "app-readiness" in call)
    assert gate.endswith("--wait --timeout 1h35m")
    (tmp_path / "stub" / "calls").unlink()
    cluster.fail("upgrade-app-readiness")
    assert cluster.run(script).returncode == 1
    assert "dependent" not in cluster.installs()


@pytest.mark.covers("C-105", "C-119", "C-120")
@pytest.mark.parametrize("deployer", SEVEN)
def test_the_gate_of_a_tier_blocks_the_next_tier_under_every_deployer(
    tmp_path: Path, deployer: str
) -> None:
    """What needs app starts after app's gate; for Argo the gate is the last wave of app's band."""
    options = BundleOptions(deployer=deployer, readiness_hooks=True)
    make_bundle(pair(), options).write(str(tmp_path / "b"))
    before = parse_back.before(tmp_path / "b")
    assert before["dependent"] == {"app", "app-readiness"}
    assert before["app-readiness"] == {"app"}
    read = {
        "argocd": parse_back.argocd_waves,
        "argocd-helm": parse_back.argocd_helm_waves,
    }
    if deployer in read:
        waves = read[deployer](tmp_path / "b")
        assert waves == {"app": 1, "app-readiness": 3, "dependent": 5}


@pytest.mark.covers("C-117")
def test_the_gate_of_a_terraform_module_is_a_hook_that_its_release_waits_for() -> None:
    """helm blocks on a post-install hook, so no wait_for_jobs is needed."""
    files = make_bundle(pair(), BundleOptions(deployer="terraform", readiness_hooks=True)).files
    gate = files["002-app-readiness/templates/readiness.yaml"][0].decode()
    assert "helm.sh/hook: post-install,post-upgrade" in gate
    assert "kind: Job" in gate
    module = files["modules/component/main.tf"][0].decode()
    assert "wait_for_jobs" not in re.sub(r"(?m)#.*$", "", module)
