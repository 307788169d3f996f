"""The flags of `aicr bundle` about dynamic values, gates, charts and single deployers."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from tests.cli.program import Result, aicr


def bundle(recipe_file: Path, target: Path, *flags: object) -> Result:
    """Run `aicr bundle` with these flags."""
    return aicr("bundle", "-r", recipe_file, "-o", target, *flags)


def read(target: Path, pattern: str) -> str:
    """The text of the only file that matches."""
    (path,) = target.glob(pattern)
    return path.read_text(encoding="utf-8")


def test_a_dynamic_value_is_left_open_in_the_bundle(recipe_file: Path, tmp_path: Path) -> None:
    """It leaves values.yaml for cluster-values.yaml (bundler spec 2.4)."""
    target = tmp_path / "out"
    made = bundle(recipe_file, target, "--dynamic", "gpuoperator:driver.version")
    assert made.status == 0, made.err
    static = yaml.safe_load(read(target, "*-gpu-operator/values.yaml"))
    deferred = yaml.safe_load(read(target, "*-gpu-operator/cluster-values.yaml"))
    assert "version" not in static["driver"]
    assert list(deferred["driver"]) == ["version"]


def test_gates_are_numbered_folders_and_the_bundle_says_how_it_was_made(
    recipe_file: Path, tmp_path: Path
) -> None:
    """--readiness-hooks and --serial are recorded (bundler spec 2.8, 2.10)."""
    target = tmp_path / "out"
    made = bundle(recipe_file, target, "--readiness-hooks", "--serial")
    assert made.status == 0, made.err
    assert list(target.glob("*-gpu-operator-readiness/templates/readiness.yaml"))
    settings = yaml.safe_load(read(target, "bundle-info.yaml"))["build"]["settings"]
    assert (settings["readinessHooks"], settings["serial"]) == (True, True)


def test_the_gates_image_follows_the_registry_of_the_environment(
    recipe_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One variable moves all our images to a mirror (decision 41)."""
    monkeypatch.setenv("AICR_VALIDATOR_IMAGE_REGISTRY", "mirror.example.com/x")
    target = tmp_path / "out"
    assert bundle(recipe_file, target, "--readiness-hooks").status == 0
    values = yaml.safe_load(read(target, "*-gpu-operator-readiness/values.yaml"))
    assert values["image"].startswith("mirror.example.com/x/aicr-gate:")
    assert values["imagePullPolicy"] == "IfNotPresent"


@pytest.mark.parametrize("registry", ["bad reg", "http://mirror.example.com", "Mirror/X", "a/B"])
def test_a_registry_that_no_image_can_have_is_refused(
    registry: str, recipe_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its images would only fail when the gates are installed; nothing is written."""
    monkeypatch.setenv("AICR_VALIDATOR_IMAGE_REGISTRY", registry)
    made = bundle(recipe_file, tmp_path / "out", "--readiness-hooks")
    made.refused(
        2,
        f"{registry!r} cannot be the registry of an image",
        "where: AICR_VALIDATOR_IMAGE_REGISTRY",
        "next: write HOST[:PORT][/PATH]",
    )
    assert not (tmp_path / "out").exists()
    assert bundle(recipe_file, tmp_path / "out").status == 0


def test_what_the_dra_contract_writes_is_printed(recipe_file: Path, tmp_path: Path) -> None:
    """Every change of a value is said (decision 6), and so is what the label asks of the nodes."""
    made = bundle(recipe_file, tmp_path / "out", "--dra-eviction-node-label", "k.example.com/a=b")
    assert made.status == 0, made.err
    changed = [line for line in made.lines if line.startswith("set ")]
    assert any("kubeletPlugin.nodeSelector: (unset)" in line for line in changed)
    assert any("NODE_LABEL_FOR_GPU_POD_EVICTION" in line for line in changed)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--dynamic", "gpu-operator:driver"], ["driver.enabled is given at install time"]),
        (["--dynamic", "gpu-operator"], ["--dynamic", "component:path"]),
        (["--dynamic", "gpu-operatr:a"], ['unknown component "gpu-operatr"', "did you mean"]),
        (["--dynamic", "gpu-operator:a", "-d", "argocd"], ["--dynamic", "argocd-helm"]),
        (["--dra-eviction-node-label", ""], ["--dra-eviction-node-label", "key=value"]),
        (["--dra-eviction-node-label", "key"], ["--dra-eviction-node-label", "key=value"]),
        (["--flux-namespace", "flux-system"], ["--flux-namespace", "only flux uses it"]),
        (["--flux-oci-source-name", "x", "-d", "fleet"], ["--flux-oci-source-name"]),
        (["--fleet-mode", "helmop"], ["--fleet-mode", "only fleet uses it"]),
        (["--fleet-workspace", "fleet-default"], ["--fleet-workspace"]),
        (["--app-name", "x"], ["--app-name", "argocd, argocd-helm, fleet"]),
        (["--app-name", "X", "-d", "argocd"], ["--app-name", "object name"]),
        (["--terraform-child-module"], ["--terraform-child-module"]),
        (["--terraform-cluster-rollover", "-d", "flux"], ["--terraform-cluster-rollover"]),
        (["--app-name", "a", "--app-name", "b"], ["--app-name can only be specified once"]),
        (["--repo", "a", "--repo", "b"], ["--repo can only be specified once"]),
    ],
)
def test_flags_that_do_not_go_together_are_refused_and_nothing_is_written(
    recipe_file: Path, tmp_path: Path, flags: list[str], words: list[str]
) -> None:
    """Each refusal names the flag (bundler spec 1.1, 1.8)."""
    target = tmp_path / "out"
    made = bundle(recipe_file, target, *flags)
    made.refused(2, *words)
    assert not target.exists()


def test_a_chart_folder_that_is_not_there_is_not_found(recipe_file: Path, tmp_path: Path) -> None:
    """--chart-dir names a folder (decision 60)."""
    made = bundle(recipe_file, tmp_path / "out", "--chart-dir", tmp_path / "none")
    made.refused(3, "cannot read the charts")
    assert not (tmp_path / "out").exists()
