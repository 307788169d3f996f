"""Every bundle of the kit: 32 whole ones, 97 variants, 47 refusals."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.bundles import build_nothing, golden_bundle, notes, our_bundle, our_waves
from tests.conformance.conftest import Judge
from tests.conformance.kit import Kit, kit
from tests.conformance.product import (
    Listener,
    Product,
    golden_refusal,
    option,
    refusal,
    settle_words,
)

KIT: Kit = kit()
INDEX: dict[str, Any] = KIT.load("bundle/index.yaml")
ARGOCD = [base for base in INDEX["bases"] if base["id"].startswith("argocd/")]


@pytest.fixture
def bundler(product: Product, monkeypatch: pytest.MonkeyPatch) -> Product:
    """The product with a Kustomize tool that builds nothing, because its sources need a network.

    What signs a bundle without a key needs one too, and is taken for not installed.
    """
    monkeypatch.setattr("aicr.bundle.kustomize.run_process", build_nothing)
    monkeypatch.setattr("aicr.bundle.kustomize._which", lambda program: f"/usr/bin/{program}")
    monkeypatch.setitem(sys.modules, "sigstore", None)
    return product


def _run(bundler: Product, args: list[str], folder: Path) -> tuple[Listener, dict[str, Any] | None]:
    """Run a command line with its bundle in *folder*; the second is its refusal, if it is one."""
    moved = [str(folder) if word == "out" else word for word in args]
    status, console = bundler.run(moved)
    if not console.errors:
        assert status == 0
        return console, None
    assert not folder.exists(), "a refusal must not leave a bundle behind"
    found = refusal(console.errors[0])
    found["refused"]["message"] = found["refused"]["message"].replace(str(folder), "out")
    return console, found


def _check(
    part: str, case: dict[str, Any], bundler: Product, conformance: Judge, folder: Path
) -> None:
    args = [str(word) for word in case["args"]]
    argocd = "argocd" in args
    expected = {"document": golden_bundle(KIT, INDEX, case)}
    console, actual = _run(bundler, args, folder)
    if actual is None:
        bundle = our_bundle(KIT, folder, argocd=argocd)
        actual = {"document": {**bundle, "notes": notes(console.stderr.splitlines())}}
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
    _, found = _run(bundler, args, tmp_path / "out")
    actual = found or {"document": "a full bundle"}
    if "error" in case:
        expected = golden_refusal(case["error"], case["exit"])
    else:
        expected = {"document": case["leftBehind"]}
    settle_words(expected, actual)
    conformance("bundle-error", case["id"], expected, actual)


@pytest.mark.parametrize("case", ARGOCD, ids=[case["id"] for case in ARGOCD])
def test_applications_sync_after_all_that_their_component_waits_for(
    case: dict[str, Any], bundler: Product, tmp_path: Path
) -> None:
    """Waves keep every dependency of the recipe apart, and the steps of a component in order."""
    _, found = _run(bundler, [str(word) for word in case["args"]], tmp_path / "out")
    assert found is None
    waves = our_waves(KIT, tmp_path / "out")
    for ref in KIT.load(case["recipe"])["componentRefs"]:
        own = waves[ref["name"]]
        assert own == sorted(set(own)), ref["name"]
        for dependency in ref.get("dependencyRefs") or ():
            assert waves[dependency][-1] < own[0], (ref["name"], dependency)


@pytest.mark.parametrize(
    "line",
    [
        "  ⚠ Warning: some-thing is enabled but --some-flag is not set. First. Second.",
        "warning: some-thing: --some-flag is not set. First. Second",
    ],
)
def test_warnings_read_the_same_in_both(line: str) -> None:
    """What is compared of a warning is its component, its flag and its advice."""
    assert notes([line, "warning: something else"]) == [
        ["some-thing", "--some-flag", "First. Second"]
    ]


def test_the_recipe_in_a_bundle_has_todays_header(bundler: Product, tmp_path: Path) -> None:
    """A recipe of v0.11.1 is converted when it is read, so a bundle never carries its header."""
    folder = tmp_path / "out"
    status, _ = bundler.run(["bundle", "-r", INDEX["bases"][0]["recipe"], "-o", str(folder)])
    assert status == 0
    recipe = KIT.comparer.load(folder / "recipe.yaml")
    assert (recipe["kind"], recipe["apiVersion"]) == ("RecipeResult", "aicr.run/v1")
