"""``aicr bom`` of a bundle: what is in it, and what cannot be seen (decision 58)."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests import tools
from tests.bom.sample_bundle import contents, sample
from tests.cli.program import EKS, aicr

from aicr.artifacts import cyclonedx
from aicr.bundle import bom, bom_page
from aicr.bundle.chart_render import Helm, app_version
from aicr.bundle.output import write_bundle
from aicr.errors import AicrError

GOLDEN = Path(__file__).with_name("golden")


def golden(name: str, text: str) -> None:
    """Compare with a committed file; AICR_WRITE_GOLDEN=1 writes it, to be looked at in the diff."""
    path = GOLDEN / name
    if os.environ.get("AICR_WRITE_GOLDEN") == "1":
        GOLDEN.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text


@pytest.fixture
def bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The sample bundle on disk, with a real helm on PATH."""
    folder = Path(tools.helm()).parent
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    write_bundle(sample(), str(tmp_path / "b"))
    return str(tmp_path / "b")


def test_the_cyclonedx_document_of_a_small_bundle(bundle: str) -> None:
    """The committed document, byte for byte; a vendored chart is rendered with its appVersion."""
    result = aicr("bom", bundle)
    assert result.status == 0
    golden("small.cdx.json", result.out)
    assert "quay.io/acme/inner:v7.1" in result.out
    assert "3 components, 8 images, 1 charts not looked into" in result.err


def test_the_page_of_a_small_bundle(bundle: str) -> None:
    """The committed page, byte for byte."""
    golden("small.md", aicr("bom", bundle, "--format", "markdown").out)


def test_the_document_fits_the_published_schema(bundle: str) -> None:
    """CycloneDX's own library accepts it (8.2)."""
    result = aicr("bom", bundle, "--validate")
    assert result.status == 0, result.err
    cyclonedx.validate(aicr("bom").out)


def test_a_document_that_does_not_fit_is_refused() -> None:
    """The check checks."""
    with pytest.raises(AicrError, match=r"does not fit the CycloneDX 1\.6 schema"):
        cyclonedx.validate('{"bomFormat": "Other"}')


def test_validating_without_the_extra_says_which(
    bundle: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One error with the pip line (decision 39)."""
    import sys

    monkeypatch.setitem(sys.modules, "cyclonedx.schema", None)
    aicr("bom", bundle, "--validate").refused(2, "needs the extra bom", "pip install 'aicr[bom]'")


def test_components_images_and_dependencies_have_the_promised_form(bundle: str) -> None:
    """Ids, properties and purl of 8.2; every id that is pointed to exists."""
    document = json.loads(aicr("bom", bundle).out)
    parts: dict[str, Any] = {part["bom-ref"]: part for part in document["components"]}
    assert (document["specVersion"], document["metadata"]["component"]["name"]) == ("1.6", "aicr")
    driver = {item["name"]: item["value"] for item in parts["aicr/driver"]["properties"]}
    assert driver["aicr:component:type"] == "helm"
    assert driver["aicr:helm:repository"] == "https://charts.example/nvidia"
    assert driver["aicr:helm:chart"] == "gpu-operator"
    assert driver["aicr:helm:version"] == "v26.7.0"
    assert driver["aicr:helm:namespace"] == "driver"
    assert driver["aicr:version:pinned"] == "true"
    assert driver["aicr:rendered"] == "no (not pulled)"
    assert "aicr:render:warning" in driver
    image = parts["img:nvcr.io/nvidia/driver:580.95.05-ubuntu24.04"]
    assert (image["type"], image["purl"]) == (
        "container",
        "pkg:oci/driver?repository_url=nvcr.io/nvidia/driver&tag=580.95.05-ubuntu24.04",
    )
    ids = set(parts) | {document["metadata"]["component"]["bom-ref"]}
    for item in document["dependencies"]:
        assert {item["ref"], *item.get("dependsOn", [])} <= ids
    assert "timestamp" not in document["metadata"]


def test_the_same_bundle_gives_the_same_bytes(bundle: str, tmp_path: Path) -> None:
    """Serial number included, wherever the bundle lies (decision 3)."""
    write_bundle(sample(), str(tmp_path / "elsewhere"))
    assert aicr("bom", bundle).out == aicr("bom", tmp_path / "elsewhere").out


@pytest.mark.parametrize(("vendored", "status"), [(True, 8), (False, 8)])
def test_strict_fails_while_a_chart_was_not_looked_into(
    vendored: bool, status: int, tmp_path: Path
) -> None:
    """The component is named with the reason; without --strict it is only said (decision 58)."""
    write_bundle(sample(vendored=vendored), str(tmp_path / "b"))
    result = aicr("bom", tmp_path / "b", "--strict")
    assert result.status == status
    assert "driver: rendered: no (not pulled)" in result.err
    assert aicr("bom", tmp_path / "b").status == 0


def test_strict_passes_when_all_charts_are_at_hand(bundle: str, tmp_path: Path) -> None:
    """A bundle of manifests and vendored charts alone."""
    del bundle
    files = sample()
    about = files["bundle-info.yaml"][0].decode()
    start = about.index("    - name: driver")
    end = about.index("    - name: tools")
    kept = {path: held for path, held in files.items() if not path.startswith("001-driver")}
    kept["bundle-info.yaml"] = ((about[:start] + about[end:]).encode(), 0o644)
    made = bom.of_bundle(contents(kept), Helm(), version="1")
    assert made.unrendered == []
    from aicr.artifacts import checksums

    kept["checksums.txt"] = (checksums.checksums_txt(kept), 0o600)
    write_bundle(kept, str(tmp_path / "whole"))
    assert aicr("bom", tmp_path / "whole", "--strict").status == 0


def test_without_helm_a_vendored_chart_is_read_by_its_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reason is said, and an empty tag still takes the chart's appVersion (L1)."""
    write_bundle(sample(), str(tmp_path / "b"))
    monkeypatch.setenv("PATH", str(tmp_path))
    result = aicr("bom", tmp_path / "b", "--format", "markdown")
    assert "| no (helm is not on PATH) | 1 |" in result.out
    assert "`quay.io/acme/inner:v7.1`" in result.out
    assert aicr("bom", tmp_path / "b", "--strict").status == 8


def test_a_chart_that_helm_refuses_is_said_with_its_words(bundle: str) -> None:
    """Best effort: the rest of the bill is still made (9.5)."""
    place = Path(bundle) / "003-inner" / "values.yaml"
    place.write_text("inner: {image: {repository: quay.io/acme/inner, tag: [1]}}\n")
    (Path(bundle) / "003-inner" / "Chart.yaml").write_text("apiVersion: v9\n")
    result = aicr("bom", bundle, "--format", "markdown")
    assert result.status == 0
    assert "no (helm template failed:" in result.out
    assert str(bundle) not in result.out
    assert "warning: the bundle is not as it was made: 003-inner/Chart.yaml" in result.err


@pytest.mark.covers("B10-85")
def test_a_malformed_image_in_a_bundle_is_fatal(tmp_path: Path) -> None:
    """Exit 2 with the file and the path."""
    values = {"a": {"image": {"name": "x", "repository": "", "tag": "1"}}}
    write_bundle(sample(vendored=False, values=values), str(tmp_path / "b"))
    for command in (("bom",), ("mirror", "list"), ("mirror", "check")):
        result = aicr(*command, tmp_path / "b")
        result.refused(2, "needs a repository", "001-driver/values.yaml: a.image.repository")


@pytest.mark.parametrize(
    "recipe",
    [
        "",
        "- a",
        "componentRefs: 3",
        "componentRefs: [3]",
        "componentRefs: [{name: [nfd]}]",
        "componentRefs: [{type: Helm}]",
        "componentRefs: [{name: nfd, source: [x]}]",
        "componentRefs: [{name: nfd, source: x, version: 1.2}]",
    ],
)
def test_a_bundle_whose_recipe_is_none_has_no_bill(recipe: str, bundle: str) -> None:
    """A bundle may have been changed by hand; that is said in words, with the file."""
    (Path(bundle) / "recipe.yaml").write_text(f"{recipe}\n")
    for command in (("bom",), ("mirror", "list"), ("mirror", "check")):
        done = aicr(*command, bundle)
        done.refused(2, "the bundle's recipe has no list of components", "where: recipe.yaml")


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["none"], 3, "no such folder"),
        (["."], 2, "this is no bundle: it has no bundle-info.yaml"),
        (["-r", "none.yaml"], 3, "recipe file not found"),
        (["x", "-r", "y"], 2, "a bundle and a recipe are named"),
        (["--set", "a:b=c"], 2, "--set goes with a recipe"),
        (["--format", "markdwn"], 2, "did you mean markdown?"),
        (["--full"], 2, "--full is for --check"),
        (["--validate", "--format", "markdown"], 2, "--validate is for CycloneDX"),
        (["--check", "x", "--format", "markdown"], 2, "--check compares and writes nothing"),
        (["--check", "none.md"], 3, "page not found"),
    ],
)
def test_usage_errors_of_the_command(
    words: list[str], status: int, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each says what to write instead."""
    monkeypatch.chdir(tmp_path)
    aicr("bom", *words).refused(status, said)


def test_the_bill_of_a_recipe_is_that_of_its_bundle(tmp_path: Path) -> None:
    """-r makes the same bundle in memory."""
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(aicr("recipe", *EKS).out, encoding="utf-8")
    assert aicr("bundle", "-r", recipe, "-o", tmp_path / "b").status == 0
    assert aicr("bom", "-r", recipe).out == aicr("bom", tmp_path / "b").out


def test_a_recipe_that_needs_flags_says_to_bundle_first(tmp_path: Path) -> None:
    """The cause is the bundler's own message."""
    recipe = tmp_path / "recipe.yaml"
    criteria = ("--service", "aks", "--accelerator", "h100", "--intent", "training")
    recipe.write_text(aicr("recipe", *criteria, "--os", "ubuntu").out, encoding="utf-8")
    result = aicr("bom", "-r", recipe, "--set", "gpu-operator:nope.a=1", "--set", "nope:a=1")
    result.refused(2, "the bundle can then be named here", 'unknown component "nope"')


def test_images_inside_of_values_that_a_document_carries_are_found() -> None:
    """GitOps objects hold values files as text; their split forms are read as well."""
    files = contents(sample(vendored=False))
    del files["001-driver/values.yaml"]
    files["001-driver/application.yaml"] = (
        b"kind: Application\nspec:\n  source:\n    helm:\n      values: |\n"
        b"        image: {repository: nvcr.io/a/b, tag: '1'}\n"
    )
    made = bom.of_bundle(files, None, version="1")
    assert [str(image) for image in made.entries[0].images] == ["nvcr.io/a/b:1"]


def test_what_an_operator_catalogue_installs_is_not_passed_off_as_seen() -> None:
    """A Subscription names no image, so it is listed as decided elsewhere (pain 75)."""
    files = contents(sample(vendored=False))
    files["002-tools/templates/all.yaml"] = (
        b"kind: Subscription\nmetadata: {name: gpu-operator}\nspec: {channel: stable}\n"
    )
    made = bom.of_bundle(files, None, version="1")
    assert made.entries[1].partial == [
        "Subscription gpu-operator: an operator catalogue decides the images"
    ]


@pytest.mark.parametrize("data", [b"", b"no archive"])
def test_a_chart_that_cannot_be_read_has_no_version_of_its_application(data: bytes) -> None:
    """The bill goes on; the chart then counts as unrendered."""
    assert app_version(data) == ""


def test_the_page_keeps_what_stands_around_the_bill(bundle: str, tmp_path: Path) -> None:
    """Only the part between the marks is written anew (8.2)."""
    page = tmp_path / "page.md"
    page.write_text(f"# Mine\n\nWords.\n\n{bom_page.BEGIN}\nold\n{bom_page.END}\n\nMore words.\n")
    assert aicr("bom", bundle, "--format", "markdown", "-o", page).status == 0
    text = page.read_text()
    assert text.startswith("# Mine\n\nWords.\n\n<!-- BEGIN AICR-BOM -->\n\n3 components")
    assert text.endswith("<!-- END AICR-BOM -->\n\nMore words.\n")
    assert aicr("bom", bundle, "--check", page, "--full").status == 0
    page.write_text("no marks\n")
    for flags in (("--format", "markdown", "-o", page), ("--check", page)):
        done = aicr("bom", bundle, *flags)
        done.refused(2, "once each, in this order", f"where: {page}\n", "a new file gets both")
