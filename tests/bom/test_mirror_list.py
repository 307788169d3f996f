"""``aicr mirror list``: images and charts in the forms that mirroring tools read."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.bom.sample_bundle import sample
from tests.cli.program import EKS, aicr

from aicr.bundle.output import write_bundle

IMAGES = [
    "docker.io/library/busybox:latest",
    f"ghcr.io/a/b@sha256:{'a' * 64}",
    "ghcr.io/acme/tools:1.4.0",
    "nvcr.io/nvidia/driver:580.95.05-ubuntu24.04",
    "quay.io/x/y:1",
    "registry.example:5000/a/b:2",
]
CHART = {
    "name": "gpu-operator",
    "repository": "https://charts.example/nvidia",
    "version": "v26.7.0",
}


@pytest.fixture
def bundle(tmp_path: Path) -> str:
    """The sample bundle without a vendored chart."""
    write_bundle(sample(vendored=False), str(tmp_path / "b"))
    return str(tmp_path / "b")


@pytest.mark.parametrize("form", ["yaml", "json"])
def test_the_plain_list_has_images_charts_and_what_it_cannot_know(form: str, bundle: str) -> None:
    """Sorted, each once; an unrendered chart is a warning in the list and on stderr (9.5)."""
    result = aicr("mirror", "list", bundle, "--format", form)
    document = yaml.safe_load(result.out) if form == "yaml" else json.loads(result.out)
    assert result.status == 0
    assert document["images"] == IMAGES
    assert document["charts"] == [CHART]
    assert document["warnings"] == [
        "driver: rendered: no (not pulled); images that only its chart names are missing",
        "driver: 001-driver/values.yaml: node.image",
    ]
    for warning in document["warnings"]:
        assert f"warning: {warning}" in result.err


def test_hauler_gets_two_documents(bundle: str) -> None:
    """Images aicr-images and Charts aicr-charts (9.5)."""
    images, charts = yaml.safe_load_all(aicr("mirror", "list", bundle, "-t", "hauler").out)
    assert images == {
        "apiVersion": "content.hauler.cattle.io/v1",
        "kind": "Images",
        "metadata": {"name": "aicr-images"},
        "spec": {"images": [{"name": image} for image in IMAGES]},
    }
    assert (charts["kind"], charts["metadata"]) == ("Charts", {"name": "aicr-charts"})
    assert charts["spec"]["charts"] == [
        {"name": CHART["name"], "repoURL": CHART["repository"], "version": CHART["version"]}
    ]


def test_zarf_gets_a_package(bundle: str) -> None:
    """Package aicr with the component aicr-images (9.5)."""
    document = yaml.safe_load(aicr("mirror", "list", bundle, "-t", "zarf").out)
    assert document["kind"] == "ZarfPackageConfig"
    assert document["metadata"]["name"] == "aicr"
    assert document["components"] == [{"name": "aicr-images", "required": True, "images": IMAGES}]


def test_a_recipe_is_listed_without_a_bundle_on_disk(tmp_path: Path) -> None:
    """--set counts, and nothing is written."""
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(aicr("recipe", *EKS).out, encoding="utf-8")
    result = aicr(
        *("mirror", "list", "-r", recipe, "--format", "json"),
        *("--set", "aws-efa:image.repository=mirror.local/efa"),
        *("--set", "aws-efa:image.tag=v1"),
    )
    assert "mirror.local/efa:v1" in json.loads(result.out)["images"]
    assert [path.name for path in tmp_path.iterdir()] == ["recipe.yaml"]


@pytest.mark.parametrize("command", [("mirror", "list"), ("mirror", "check"), ("bom",)])
def test_a_folder_that_cannot_be_read_ends_the_run(
    command: tuple[str, ...], bundle: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A list that left it out would be believed."""
    real = os.scandir

    def scandir(path: Any = ".") -> Any:
        if os.fspath(path).endswith("002-tools"):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    result = aicr(*command, bundle)
    assert result.status == 2
    assert result.out == ""
    assert "002-tools cannot be read: Permission denied" in result.err
