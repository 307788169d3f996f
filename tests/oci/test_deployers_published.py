"""Bundles of every deployer go through a registry, verify, and are read by the bill of materials."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from tests import tools
from tests.cli.program import EKS, aicr

from aicr.bundle.deployers import names


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current folder of its own, with a recipe in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "recipe.yaml").write_text(aicr("recipe", *EKS).out, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("deployer", names())
def test_each_deployer_is_published_pulled_and_listed(
    deployer: str, registry: str, work: Path
) -> None:
    """What arrives verifies, and names the same images whatever the deployer."""
    address = f"oci://{registry}/published/{deployer}-bundle:1.0.0"
    made = aicr("bundle", "-r", "recipe.yaml", "-d", deployer, "-o", address, "--plain-http")
    assert made.status == 0, made.err
    assert aicr("pull", address, "-o", "out", "--plain-http").status == 0
    assert aicr("verify", "out").status == 0
    listed = json.loads(aicr("mirror", "list", "out", "--format", "json").out)
    plain = json.loads(aicr("mirror", "list", "-r", "recipe.yaml", "--format", "json").out)
    assert listed["images"] == plain["images"]
    assert len(listed["images"]) >= 4
    assert listed["charts"] == plain["charts"]
    assert (work / "bundle").is_dir()


def test_helm_pulls_the_chart_of_argocd_helm(registry: str, work: Path) -> None:
    """The chart artifact is what helm expects of one, with the digest that we printed (7.5)."""
    address = f"oci://{registry}/published/chart"
    made = aicr(
        *("bundle", "-r", "recipe.yaml", "-d", "argocd-helm", "-o", f"{address}:2.1.0"),
        *("--plain-http", "--image-refs", "refs"),
    )
    assert made.status == 0, made.err
    done = subprocess.run(
        [tools.helm(), "pull", address, "--version", "2.1.0", "--plain-http"],
        cwd=work,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (work / "refs").read_text().strip() in done.stdout + done.stderr
    assert (work / "chart-2.1.0.tgz").is_file()


@pytest.mark.covers("B10-52")
def test_a_tag_that_is_no_version_is_refused_for_argocd_helm(registry: str, work: Path) -> None:
    """Nothing is pushed and nothing written."""
    address = f"oci://{registry}/published/wrong:1.0_rc"
    result = aicr("bundle", "-r", "recipe.yaml", "-d", "argocd-helm", "-o", address, "--plain-http")
    assert result.status == 2
    assert not (work / "bundle").exists()
