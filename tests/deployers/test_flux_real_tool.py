"""The real flux on what we write: it builds our kustomization as its controller would.

`flux build kustomization --dry-run` reads files alone. It does what the controller does before it
applies: runs kustomize and substitutes variables.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.bundle.sample_plans import chart
from tests.deployers import gitops_plans as plans
from tests.deployers import parse_back
from tests.deployers.built_tools import built, run
from tests.deployers.test_argocd_flux_fleet_catalogue import RECIPES, written
from tests.tools_build import TOOLS

from aicr.yamlio import read, write

pytestmark = pytest.mark.tools


def objects(bundle: Path, home: Path, **spec: Any) -> list[dict[str, Any]]:
    """What flux makes of a bundle, for a Flux Kustomization with this more in its spec."""
    home.mkdir()
    kustomization = home / "kustomization.yaml"
    kustomization.write_text(
        write.dump(
            {
                "apiVersion": "kustomize.toolkit.fluxcd.io/v1",
                "kind": "Kustomization",
                "metadata": {"name": "aicr", "namespace": "flux-system"},
                "spec": {
                    "interval": "10m",
                    "path": "./",
                    "prune": True,
                    "sourceRef": {"kind": "GitRepository", "name": "bundle"},
                    **spec,
                },
            }
        )
    )
    text = run(
        *(built("flux"), "build", "kustomization", "aicr", "--dry-run", "--path", str(bundle)),
        *("--kustomization-file", str(kustomization)),
        home=home,
    )
    return read.load_all(text, source="flux build")


def identities(found: list[dict[str, Any]]) -> set[tuple[str, str]]:
    """Kind and name of each object."""
    return {(each["kind"], each["metadata"]["name"]) for each in found}


def test_flux_is_of_the_pinned_release(tmp_path: Path) -> None:
    """What the report of a run names is what was built."""
    wanted = TOOLS["flux"].version.removeprefix("v")
    assert run(built("flux"), "--version", home=tmp_path).strip() == f"flux version {wanted}"


@pytest.mark.parametrize("serial", [False, True])
@pytest.mark.parametrize("name", sorted(RECIPES))
def test_flux_builds_every_object_of_a_bundle(tmp_path: Path, name: str, serial: bool) -> None:
    """All listed objects come out, each with the spec that stands in its file."""
    bundle = written(name, "flux", tmp_path / "b", serial=serial)
    listed = parse_back.document(bundle / "kustomization.yaml")["resources"]
    wanted = [parse_back.document(bundle / path) for path in listed]
    found = objects(bundle, tmp_path / "home")
    assert identities(found) == identities(wanted)
    specs = {(each["kind"], each["metadata"]["name"]): each["spec"] for each in found}
    for each in wanted:
        assert specs[each["kind"], each["metadata"]["name"]] == each["spec"]


@pytest.mark.covers("F2")
def test_flux_substitutes_nothing_in_values(tmp_path: Path) -> None:
    """A cluster whose Kustomization substitutes variables still gets the very texts (F2)."""
    plan = plans.plan_of(chart("a", values={"texts": plans.EATEN}), deployer="flux")
    bundle = plans.written(plan, tmp_path / "b")
    variables = dict.fromkeys(("ACCESS_KEY", "X", "NODE_NAME", "i"), "EATEN")
    found = objects(bundle, tmp_path / "home", postBuild={"substitute": variables})
    (release,) = [each for each in found if each["kind"] == "HelmRelease"]
    assert release["spec"]["values"]["texts"] == plans.EATEN


def test_flux_would_substitute_in_an_object_without_the_annotation(tmp_path: Path) -> None:
    """A check that finds nothing proves nothing: our annotation is what keeps the texts."""
    plan = plans.plan_of(chart("a", values={"t": "${NODE_NAME}"}), deployer="flux")
    bundle = plans.written(plan, tmp_path / "b")
    (path,) = bundle.glob("*/helmrelease.yaml")
    release = parse_back.document(path)
    del release["metadata"]["annotations"]
    path.write_text(write.dump(release))
    found = objects(bundle, tmp_path / "home", postBuild={"substitute": {"NODE_NAME": "EATEN"}})
    (release,) = [each for each in found if each["kind"] == "HelmRelease"]
    assert release["spec"]["values"]["t"] == "EATEN"
