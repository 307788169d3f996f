"""Laws of resolution on the catalogue that ships, which is larger than any that is drawn at random.

test_resolution_laws has them for small trees and any query; here are the same three for a few leaves
that differ in service, profile, mixins and number of layers.
"""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from aicr.catalog.catalog import Catalog
from aicr.errors import AicrError
from aicr.recipe.criteria import Criteria
from aicr.recipe.document import load_recipe
from aicr.recipe.hydrate import hydrate
from aicr.recipe.resolve import resolve

RECIPES: Final = Path(__file__).resolve().parents[2] / "recipes"
FIELDS: Final = ("service", "accelerator", "intent", "os", "platform")
LEAVES: Final = (
    "a100-any",
    "h100-aks-ubuntu-training-slurm",
    "h100-eks-ubuntu-training-kubeflow",
    "gb200-gke-cos-inference-dynamo",
    "gb200-oke-ubuntu-training",
    "h200-k0s-ubuntu-training",
    "h100-kind-inference-dynamo",
    "ocp-inference-nim",
    "vr200-rke2-ubuntu-inference",
)


@pytest.fixture(scope="module")
def shipped() -> Catalog:
    """The catalogue as it ships."""
    return Catalog.builtin()


@pytest.fixture(scope="module")
def expected(shipped: Catalog) -> dict[str, str]:
    """Leaf → its recipe in the catalogue as it ships, each written out."""
    return {leaf: outcome(shipped, leaf) for leaf in LEAVES}


def criteria(catalog: Catalog, leaf: str) -> Criteria:
    """What an overlay of the catalogue is for, without the words that stand for anything."""
    stated: dict[str, Any] = dict(catalog.overlays[leaf]["spec"]["criteria"])
    return Criteria(
        **{name: stated[name] for name in FIELDS if stated.get(name) not in (None, "", "any")}
    )


def outcome(catalog: Catalog, leaf: str) -> str:
    """The bytes of a leaf's recipe."""
    return resolve(catalog, criteria(catalog, leaf)).to_yaml()


def relaid(root: Path, chance: random.Random, *, keys: bool) -> Catalog:
    """A copy of the catalogue below *root* with other file names, other folders and another order.

    The entries of the registry are shuffled too, and with *keys* the keys of every map. Lists inside an
    overlay keep their order, which has a meaning.
    """
    shutil.copytree(RECIPES, root)
    for kind in ("overlays", "mixins"):
        texts = [path.read_text(encoding="utf-8") for path in sorted((root / kind).rglob("*.yaml"))]
        shutil.rmtree(root / kind)
        numbers = chance.sample(range(1000), len(texts))
        for number, text in zip(numbers, texts, strict=True):
            below = chance.choice(["", "a/", "z/y/"]) if kind == "overlays" else ""
            path = root / kind / f"{below}{number:03}.yaml"
            path.parent.mkdir(parents=True, exist_ok=True)
            if keys:
                text = written(turned(loaded(text), chance))
            path.write_text(text, encoding="utf-8")
    path = root / "registry.yaml"
    registry = loaded(path.read_text(encoding="utf-8"))
    chance.shuffle(registry["components"])
    path.write_text(written(turned(registry, chance) if keys else registry), encoding="utf-8")
    return Catalog.from_dir(str(root))


def loaded(text: str) -> Any:
    """A document, by another reader than ours."""
    return yaml.load(text, yaml.CSafeLoader)


def written(document: Any) -> str:
    """A document as text, with its keys in the order in which they are."""
    return yaml.dump(document, sort_keys=False)


def turned(value: Any, chance: random.Random) -> Any:
    """*value* with the keys of every map in another order."""
    if isinstance(value, dict):
        keys = list(value)
        chance.shuffle(keys)
        return {key: turned(value[key], chance) for key in keys}
    if isinstance(value, list):
        return [turned(item, chance) for item in value]
    return value


@pytest.mark.covers("E1")
@pytest.mark.parametrize("seed", [1, 2])
def test_permuting_the_files_of_the_catalogue_changes_nothing(
    seed: int, tmp_path: Path, shipped: Catalog, expected: dict[str, str]
) -> None:
    """Names, folders and order of files and of registry entries have no meaning: the same bytes."""
    other = relaid(tmp_path / "recipes", random.Random(seed), keys=False)
    assert other.overlays.keys() == shipped.overlays.keys()
    assert list(other.overlays) != list(shipped.overlays)
    for leaf in LEAVES:
        assert outcome(other, leaf) == expected[leaf], leaf


def test_the_order_of_keys_changes_no_value(
    tmp_path: Path, shipped: Catalog, expected: dict[str, str]
) -> None:
    """Maps are written as they were found, so only their order may differ; lists may not."""
    other = relaid(tmp_path / "recipes", random.Random(3), keys=True)
    for leaf in LEAVES:
        found = outcome(other, leaf)
        assert loaded(found) == loaded(expected[leaf]), leaf


def stranger(words: dict[str, str], base: str | None) -> dict[str, Any]:
    """An overlay that would be noticed anywhere: a version, a value, a constraint, a check."""
    spec: dict[str, Any] = {
        "criteria": words,
        "constraints": [{"name": "K8s.server.version", "value": ">= 9.99"}],
        "componentRefs": [
            {
                "name": "gpu-operator",
                "version": "v0.0.1",
                "overrides": {"driver": {"version": "0"}},
            },
            {"name": "kueue", "type": "Helm"},
        ],
        "validation": {"deployment": {"checks": ["stranger"]}},
    }
    if base:
        spec["base"] = base
    return {
        "kind": "RecipeMetadata",
        "apiVersion": "aicr.run/v1beta1",
        "metadata": {"name": "stranger"},
        "spec": spec,
    }


def data_directory(folder: Path, document: dict[str, Any]) -> Path:
    """A directory for `--data` with one overlay."""
    (folder / "overlays").mkdir(parents=True)
    (folder / "registry.yaml").write_text(
        "kind: ComponentRegistry\napiVersion: aicr.run/v1beta1\ncomponents: []\n"
    )
    (folder / "overlays" / "stranger.yaml").write_text(yaml.dump(document))
    return folder


@pytest.mark.parametrize("base", [None, "eks-training", "h200-k0s-ubuntu-training"])
@pytest.mark.parametrize(
    "more",
    [{}, {"intent": "training"}, {"accelerator": "h100", "os": "ubuntu", "intent": "training"}],
)
def test_an_overlay_for_another_service_changes_nothing_here(
    base: str | None,
    more: dict[str, str],
    tmp_path: Path,
    shipped: Catalog,
    expected: dict[str, str],
) -> None:
    """Whatever it inherits from and however many words it shares, only its own service sees it."""
    document = stranger({"service": "elsewhere", **more}, base)
    other = shipped.overlay(str(data_directory(tmp_path / "data", document)))
    for leaf in LEAVES:
        assert outcome(other, leaf) == expected[leaf], leaf


def test_the_same_overlay_for_this_service_is_noticed(
    tmp_path: Path, shipped: Catalog, expected: dict[str, str]
) -> None:
    """The law above is not vacuous: with the service of a leaf the same content changes its recipe."""
    document = stranger({"service": "k0s", "os": "ubuntu"}, None)
    other = shipped.overlay(str(data_directory(tmp_path / "data", document)))
    changed = []
    for leaf in LEAVES:
        try:
            changed += [leaf] * (outcome(other, leaf) != expected[leaf])
        except AicrError:
            changed.append(leaf)
    assert changed == ["h200-k0s-ubuntu-training"]


@pytest.mark.parametrize("leaf", LEAVES)
def test_hydrating_a_resolved_recipe_is_idempotent(leaf: str, shipped: Catalog) -> None:
    """Once, twice, or after writing the recipe and reading it again: the same values and document."""
    recipe = resolve(shipped, criteria(shipped, leaf))
    before = recipe.to_yaml()
    once = hydrate(recipe)
    assert hydrate(recipe) == once
    assert recipe.to_yaml() == before
    again = load_recipe(before, "recipe.yaml", shipped)
    assert again.to_yaml() == before
    assert hydrate(again) == once
