"""Charts of every kind under the GitOps deployers: built by Kustomize, vendored, gates; and notes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.bundle.sample_plans import CONFIG_MAP, chart, component
from tests.deployers import gitops_plans as plans
from tests.deployers import gitops_shapes as shapes
from tests.deployers import parse_back

from aicr.bundle import deployers, layout, output
from aicr.bundle.deployers import argocd, argocd_helm, fleet, flux
from aicr.bundle.plan import Plan
from aicr.errors import AicrError
from aicr.yamlio import read

OURS = ("argocd", "argocd-helm", "fleet", "flux")
OCI_OUTPUT = {"oci_reference": "oci://r.example/o/b:1.0.0"}


def vendored(name: str, namespace: str = "ns") -> layout.Folder:
    """The folder of an upstream chart that was pulled into the bundle (bundler spec 2.3)."""
    wrapper = (
        f"apiVersion: v2\nname: {name}\nversion: 0.1.0\n"
        f'dependencies:\n  - name: {name}-chart\n    version: 1.2.3\n    repository: ""\n'
    )
    return layout.Folder(
        dir=f"001-{name}",
        release=name,
        parent=name,
        phase="primary",
        kind=layout.LOCAL_HELM,
        namespace=namespace,
        create_namespace=True,
        values={f"{name}-chart": {"a": 1}},
        files={
            "Chart.yaml": (wrapper.encode(), 0o644),
            "values.yaml": (f"{name}-chart:\n  a: 1\n".encode(), 0o644),
            "cluster-values.yaml": (b"{}\n", 0o644),
            f"charts/{name}-chart-1.2.3.tgz": (b"\x1f\x8b\x00\xff", 0o644),
        },
    )


def files_with(plan: Plan, folders: list[layout.Folder]) -> dict[str, tuple[bytes, int]]:
    """The files of a plan whose folders are given."""
    return plans.files_of(plan, folders)


@pytest.mark.covers("C-102", "B10-54")
@pytest.mark.parametrize("deployer", OURS)
def test_a_kustomize_component_is_a_chart_like_any_other(tmp_path: Path, deployer: str) -> None:
    """It is built when the bundle is made, so every deployer can install it (decision 54)."""
    plan = plans.plan_of(component("k", type="Kustomize", path="deploy"), deployer=deployer)
    built = CONFIG_MAP.encode()
    folders = layout.folders(plan, run=lambda _command, _seconds: (0, built, b""))
    files = files_with(plan, folders)
    assert files["001-k/templates/manifest.yaml"][0] == built
    output.write_bundle(files, str(tmp_path / "b"))
    assert parse_back.before(tmp_path / "b") == {"k": set()}


@pytest.mark.parametrize("deployer", OURS)
def test_a_vendored_chart_is_read_from_the_bundle(deployer: str) -> None:
    """The archive is in the folder, and no repository is named (bundler spec 5.8)."""
    plan = plans.plan_of(chart("a"), deployer=deployer)
    files = files_with(plan, [vendored("a")])
    assert files["001-a/charts/a-chart-1.2.3.tgz"][0] == b"\x1f\x8b\x00\xff"
    others = b"".join(
        data for path, (data, _) in files.items() if path not in ("recipe.yaml", "README.md")
    )
    assert b"charts.example.com" not in others


def test_a_vendored_chart_keeps_its_nested_values_under_flux() -> None:
    """A subchart finds its values below its own name (bundler spec 2.3)."""
    plan = plans.plan_of(chart("a"), deployer="flux")
    text = files_with(plan, [vendored("a")])["001-a/helmrelease.yaml"][0].decode()
    assert read.load(text, source="h")["spec"]["values"] == {"a-chart": {"a": 1}}


def test_values_for_a_vendored_chart_are_nested_at_installation(tmp_path: Path) -> None:
    """argocd-helm puts what is given below the name of the subchart."""
    plan = plans.plan_of(chart("a"), deployer="argocd-helm")
    output.write_bundle(files_with(plan, [vendored("a")]), str(tmp_path / "b"))
    made = parse_back.rendered(
        tmp_path / "b", "--set", "a.x=2", "--set", "deployer.includeRootApp=false"
    )
    [item] = made
    source = item["spec"]["source"]
    assert read.load(source["helm"]["values"], source="values") == {"a-chart": {"x": 2}}
    assert source["path"] == "001-a"
    assert shapes.object_problems(item) == []


def test_a_vendored_chart_cannot_be_a_helm_op() -> None:
    """A HelmOp has no files (bundler spec 5.7)."""
    plan = plans.plan_of(chart("a"), deployer="fleet", fleet_mode="helmop")
    with pytest.raises(AicrError, match="chart inside the bundle"):
        files_with(plan, [vendored("a")])


def test_a_gate_is_an_application_of_the_last_wave_of_its_tier() -> None:
    """It is applied only when it differs, and blocks the next tier (C-120, bundler spec 5.3)."""
    plan = plans.plan_of(chart("a"), chart("b", dependencyRefs=["a"]), deployer="argocd")
    folders = layout.folders(plan)
    gate = vendored("a-readiness")
    gate.dir, gate.parent, gate.phase, gate.values = "002-a-readiness", "a", "readiness", {}
    folders.insert(1, gate)
    files = files_with(plan, folders)
    item: dict[str, Any] = read.load(
        files["002-a-readiness/application.yaml"][0].decode(), source="g"
    )
    assert item["metadata"]["annotations"] == {"argocd.argoproj.io/sync-wave": "3"}
    assert "ApplyOutOfSyncOnly=true" in item["spec"]["syncPolicy"]["syncOptions"]
    assert "ignoreDifferences" not in item["spec"]


@pytest.mark.parametrize(
    ("deployer", "options", "noted"),
    [
        ("argocd", {}, True),
        ("argocd", {"repo": "https://git.example/b.git"}, False),
        ("argocd", {"oci_reference": "oci://r.example/b:1.0.0"}, False),
        ("argocd-helm", {}, True),
        ("argocd-helm", {"oci_reference": "oci://r.example/b:1.0.0"}, False),
        ("flux", {}, True),
        ("flux", {"oci_reference": "oci://r.example/b:1.0.0"}, False),
        ("fleet", {}, True),
        ("fleet", {"oci_reference": "oci://r.example/b:1.0.0"}, True),
        ("fleet", {"repo": "https://git.example/b.git"}, False),
        ("fleet", {"fleet_mode": "helmop"}, False),
    ],
)
def test_a_placeholder_is_pointed_out(deployer: str, options: dict[str, Any], noted: bool) -> None:
    """Whoever has to edit something is told so (bundler spec 5.0.6)."""
    modules: dict[str, Any] = {
        "argocd": argocd,
        "argocd-helm": argocd_helm,
        "fleet": fleet,
        "flux": flux,
    }
    assert bool(modules[deployer].notes(plans.plan_of(deployer=deployer, **options))) is noted


@pytest.mark.parametrize("name", OURS)
def test_each_says_what_it_makes_and_how_it_is_deployed(name: str) -> None:
    """For the result of the command (bundler spec 5.0.1)."""
    loaded = deployers.load(name)
    assert loaded.BUILD_TYPE.startswith(name)
    assert loaded.STEPS


@pytest.mark.parametrize(
    ("deployer", "options", "expected"),
    [
        ("argocd", {}, ["push the content", "cd ", "kubectl", "kubectl apply -f app-of-apps.yaml"]),
        ("argocd", OCI_OUTPUT, ["cd ", "kubectl", "kubectl apply -f app-of-apps.yaml"]),
        (
            "argocd",
            {"repo": "oci://r.example/o/b:2.0.0"},
            ["publish the content of <output folder> as oci://r.example/o/b:2.0.0", "cd "],
        ),
        ("argocd", {**OCI_OUTPUT, "repo": "https://git.example/b.git"}, ["push the content"]),
        (
            "argocd-helm",
            {},
            ["cd ", "kubectl", "helm package . --destination .. && helm push ../", "helm upgrade"],
        ),
        (
            "argocd-helm",
            OCI_OUTPUT,
            [
                "cd ",
                "kubectl",
                "helm upgrade --install b oci://r.example/o/b --version 1.0.0 --namespace argocd",
            ],
        ),
        ("flux", {}, ["push the content", "cd ", "kubectl apply -k ."]),
        (
            "flux",
            OCI_OUTPUT,
            [
                "flux create source oci aicr-bundle --namespace flux-system "
                "--url oci://r.example/o/b --tag 1.0.0",
                "flux create kustomization aicr-bundle ",
            ],
        ),
    ],
)
def test_the_steps_say_what_is_left_to_do(
    deployer: str, options: dict[str, Any], expected: list[str]
) -> None:
    """What is published needs no push, and is deployed from there (bundler spec 1.5)."""
    plan = plans.plan_of(deployer=deployer, **options)
    found = deployers.steps(deployers.load(deployer), plan.options)
    assert len(found) >= len(expected)
    for step, start in zip(found, expected, strict=False):
        assert step.startswith(start)


@pytest.mark.parametrize("options", [{}, {"oci_reference": "oci://r.example/o/b:1.0.0"}])
@pytest.mark.parametrize("name", OURS)
def test_readme_has_the_commands_of_the_steps(name: str, options: dict[str, Any]) -> None:
    """The page and the command's own words do not differ but for the version of a chart."""
    plan = plans.plan_of(*plans.pair(), deployer=name, **options)
    page = plans.files_of(plan)["README.md"][0].decode()
    for step in deployers.steps(deployers.load(name), plan.options):
        if step.startswith(("kubectl", "helm", "flux")):
            assert all(part in page for part in step.split("*"))


def test_the_steps_of_fleet_follow_its_flags() -> None:
    """The other mode needs no repository, the local workspace no label."""
    plan = plans.plan_of(deployer="fleet", fleet_mode="helmop", fleet_workspace="fleet-local")
    assert fleet.steps(plan.options) == ("cd <output folder>", "kubectl apply -f helmops.yaml")
    plan = plans.plan_of(deployer="fleet", app_name="stack")
    assert fleet.steps(plan.options)[-1].endswith("aicr.run/bundle=stack")
