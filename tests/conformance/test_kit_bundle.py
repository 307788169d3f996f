"""Every bundle of the kit: 32 whole ones, 97 variants, 47 refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.conformance.bundles import build_nothing, golden_bundle, our_bundle
from tests.conformance.conftest import Judge
from tests.conformance.kit import Kit, kit
from tests.conformance.product import Product, golden_refusal, option, refusal, settle_words

KIT: Kit = kit()
INDEX: dict[str, Any] = KIT.load("bundle/index.yaml")
#: Flags of Argo CD bundles, which come with a later issue; the bundle is compared without them.
_ARGOCD = ("argocd", "--repo")


@pytest.fixture
def bundler(product: Product, monkeypatch: pytest.MonkeyPatch) -> Product:
    """The product with a Kustomize tool that builds nothing, because its sources need a network."""
    monkeypatch.setattr("aicr.bundle.kustomize.run_process", build_nothing)
    monkeypatch.setattr("aicr.bundle.kustomize._which", lambda program: f"/usr/bin/{program}")
    return product


def _observe(bundler: Product, args: list[str], folder: Path, *, argocd: bool) -> dict[str, Any]:
    """Run a command line with its bundle in *folder*."""
    if argocd:
        args = _without(args, "-d", "--repo")
    moved = [str(folder) if word == "out" else word for word in args]
    status, console = bundler.run(moved)
    if not console.errors:
        assert status == 0
        return {"document": our_bundle(KIT, folder, argocd=argocd)}
    assert not folder.exists(), "a refusal must not leave a bundle behind"
    found = refusal(console.errors[0])
    found["refused"]["message"] = found["refused"]["message"].replace(str(folder), "out")
    return found


def _without(args: list[str], *flags: str) -> list[str]:
    kept: list[str] = []
    for place, word in enumerate(args):
        if word not in flags and (place == 0 or args[place - 1] not in flags):
            kept.append(word)
    return kept


def _check(
    part: str, case: dict[str, Any], bundler: Product, conformance: Judge, folder: Path
) -> None:
    args = [str(word) for word in case["args"]]
    argocd = "argocd" in args
    expected = {"document": golden_bundle(KIT, INDEX, case)}
    actual = _observe(bundler, args, folder, argocd=argocd)
    settle_words(expected, actual)
    source = option(args, "-r")
    assert source is not None
    facts = {"catalog": KIT.catalog, "recipe": KIT.load(source)}
    conformance(part, case["id"], expected, actual, facts=facts)


@pytest.mark.parametrize("case", INDEX["bases"], ids=[case["id"] for case in INDEX["bases"]])
def test_whole_bundle_agrees_with_the_original(
    case: dict[str, Any], bundler: Product, conformance: Judge, tmp_path: Path
) -> None:
    """Order, charts, values and manifests are the original's, but for what a rule names."""
    _check("bundle-base", case, bundler, conformance, tmp_path / "out")


@pytest.mark.parametrize("case", INDEX["variants"], ids=[case["id"] for case in INDEX["variants"]])
def test_variant_agrees_with_the_original(
    case: dict[str, Any], bundler: Product, conformance: Judge, tmp_path: Path
) -> None:
    """Flags and unusual recipes change what they change in the original, but for what a rule names."""
    _check("bundle-variant", case, bundler, conformance, tmp_path / "out")


@pytest.mark.parametrize("case", INDEX["errors"], ids=[case["id"] for case in INDEX["errors"]])
def test_refusal_agrees_with_the_original(
    case: dict[str, Any], bundler: Product, conformance: Judge, tmp_path: Path
) -> None:
    """What the original refuses is refused, in its words where they are comparable."""
    args = [str(word) for word in case["args"]]
    actual = _observe(bundler, args, tmp_path / "out", argocd=case["id"].endswith("-argocd"))
    if "error" in case:
        expected = golden_refusal(case["error"], case["exit"])
    else:
        expected = {"document": case["leftBehind"]}
    if "document" in actual:
        actual = {"document": "a full bundle"}
    settle_words(expected, actual)
    conformance("bundle-error", case["id"], expected, actual)


def test_argocd_is_refused_by_name_until_its_issue(bundler: Product, tmp_path: Path) -> None:
    """A deployer that is not there yet is refused, never replaced by another."""
    args = [
        "bundle",
        "-r",
        INDEX["bases"][0]["recipe"],
        "-o",
        str(tmp_path / "out"),
        "-d",
        "argocd",
    ]
    status, console = bundler.run(args)
    assert status == 2
    assert console.errors[0].chain()[-1].message == 'invalid deployer "argocd": must be one of helm'
    assert option(args, "-d") in _ARGOCD


def test_the_recipe_in_a_bundle_has_todays_header(bundler: Product, tmp_path: Path) -> None:
    """A recipe of v0.11.1 is converted when it is read, so a bundle never carries its header."""
    folder = tmp_path / "out"
    status, _ = bundler.run(["bundle", "-r", INDEX["bases"][0]["recipe"], "-o", str(folder)])
    assert status == 0
    recipe = KIT.comparer.load(folder / "recipe.yaml")
    assert (recipe["kind"], recipe["apiVersion"]) == ("RecipeResult", "aicr.run/v1")
