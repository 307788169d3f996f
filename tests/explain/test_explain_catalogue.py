"""Over the whole catalogue, what explain says is in force is what the recipe and the bundle hold."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aicr.bundle.flag_layers import bundle_layers
from aicr.bundle.options import BundleOptions
from aicr.bundle.plan import plan
from aicr.catalog.catalog import Catalog
from aicr.catalog.fields import REF_ORDER
from aicr.errors import AicrError
from aicr.recipe import explain_order, explain_policy, explain_refs
from aicr.recipe.criteria import Criteria
from aicr.recipe.explain_values import explain_path
from aicr.recipe.hydrate import hydrate
from aicr.recipe.match import stated_words
from aicr.recipe.provenance import Origins, leaves, plain
from aicr.recipe.recipe import Recipe
from aicr.recipe.resolve import resolve

RECIPES = Path(__file__).resolve().parents[2] / "recipes"
INTERFACES = [{"interfaceName": f"eth{n}", "network": f"vpc-gpu-nic-{n}"} for n in range(1, 9)]
TCPXO: dict[str, Any] = {"gke": {"tcpxoInterfaces": INTERFACES}}
SLURM: dict[str, Any] = {"slurm": {"accounting": {"mode": "aicr-provided"}}}


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    """The tree of this checkout, whatever is installed."""
    return Catalog.from_dir(str(RECIPES))


def _resolved(catalog: Catalog, words: dict[str, Any], profile: str) -> Recipe:
    configuration = SLURM if words.get("platform") == "slurm" else {}
    options: dict[str, Any] = {"coverage": False, "profile": profile}
    try:
        return resolve(catalog, Criteria(**words), configuration=configuration, **options)
    except AicrError as error:
        if "tcpxoInterfaces" not in str(error):
            raise
        return resolve(catalog, Criteria(**words), configuration=TCPXO, **options)


def _recipes(catalog: Catalog) -> Iterator[tuple[str, Recipe]]:
    """The recipe of every overlay's own criteria, with every value of a declared profile."""
    for name, overlay in catalog.overlays.items():
        if overlay["spec"].get("criteria") is None:
            continue
        words: dict[str, Any] = {**stated_words(overlay)}
        found = _resolved(catalog, words, "")
        yield name, found
        for applied in found.document["metadata"]["appliedOverlays"][1:]:
            profile = catalog.overlays[applied]["spec"].get("profile")
            for value in profile["values"] if profile else ():
                if profile is not None and value != profile["default"]:
                    yield name, _resolved(catalog, words, f"{profile['name']}={value}")


@pytest.fixture(scope="module")
def recipes(catalog: Catalog) -> list[tuple[str, Recipe]]:
    """All of them; resolving each once is enough for every test here."""
    return list(_recipes(catalog))


def _at(tree: Any, keys: tuple[str, ...]) -> Any:
    for key in keys:
        tree = tree[key]
    return tree


def _deciding(item: Any) -> Any:
    (step,) = [step for step in item["steps"] if step["inForce"]]
    return step


def test_every_value_in_force_is_the_hydrated_one(recipes: list[tuple[str, Recipe]]) -> None:
    """For every leaf of every component: one step is in force, and its value is hydrate's."""
    checked = 0
    for name, recipe in recipes:
        origins = Origins(recipe)
        for component, found in hydrate(recipe)["components"].items():
            values = found.get("values", {})
            stack = origins.values(component)
            assert plain(stack.merged) == values, (name, component)
            items = explain_path(origins, stack, (), "")
            present = [item for item in items if item["state"] == "set"]
            assert len(present) == len(list(leaves(values))) if values else not present
            for keys, item in zip(leaves(values), present, strict=bool(values)):
                value = _at(values, keys)
                assert item["value"] == value, (name, component, keys)
                step = _deciding(item)
                if value != {}:
                    assert step.get("value") == value, (name, component, keys)
                checked += 1
            for item in items[len(present) :]:
                assert _deciding(item)["action"] in ("deletes", "replaces"), (name, component)
    assert checked > 1000


def test_the_line_of_a_value_in_force_holds_its_key(recipes: list[tuple[str, Recipe]]) -> None:
    """The place of a step is the line on which the last key of the path stands."""
    texts: dict[str, list[str]] = {}
    checked = 0
    for _, recipe in recipes:
        origins = Origins(recipe)
        for component in origins.by_name:
            stack = origins.values(component)
            for keys, item in zip(leaves(plain(stack.merged)), _set(origins, stack), strict=False):
                step = _deciding(item)
                if not keys or step["kind"] == "configuration":
                    continue
                file, _, line = step["where"].rpartition(":")
                if file not in texts:
                    texts[file] = Path(file).read_text(encoding="utf-8").splitlines()
                assert keys[-1] in texts[file][int(line) - 1], (component, keys, step["where"])
                checked += 1
    assert checked > 1000


def _set(origins: Origins, stack: Any) -> list[Any]:
    return [i for i in explain_path(origins, stack, (), "") if i["state"] == "set"]


def test_every_field_constraint_and_check_is_accounted_for(
    recipes: list[tuple[str, Recipe]],
) -> None:
    """Fields, constraints and checks of the recipe each have one step in force, with its value."""
    for name, recipe in recipes:
        origins = Origins(recipe)
        for component, ref in origins.by_name.items():
            fields: Any = ref
            for field in REF_ORDER:
                if field == "overrides" or not fields.get(field):
                    continue
                items = explain_refs.field(origins, component, field)
                whole = field not in explain_refs.UNITED
                got = items[0]["value"] if whole else [item["value"] for item in items]
                assert got == fields[field], (name, component, field)
                for item in items:
                    step = _deciding(item)
                    assert step["where"], (name, component, field)
                    assert step.get("value", item["value"]) == item["value"]
        narrowed = explain_policy.constraints(origins)
        assert [(item["selector"], item["value"]) for item in narrowed] == [
            (f"constraints.{c['name']}", c["value"]) for c in recipe.document["constraints"]
        ]
        for item in narrowed:
            assert _deciding(item)["where"]
            if _deciding(item)["action"] != "tightens":
                assert _deciding(item)["value"] == item["value"]
        for phase, block in (recipe.document.get("validation") or {}).items():
            listed = [
                item["value"]
                for item in explain_policy.phase(
                    origins, [phase, "checks"] if block.get("checks") else [phase]
                )
                if item["state"] == "set" and ".checks." in item["selector"]
            ]
            assert listed == block.get("checks", [])


def test_every_dependency_has_a_line_and_every_tier_a_chain(
    recipes: list[tuple[str, Recipe]],
) -> None:
    """The chain behind a place is as long as the tier is high, unless it runs through a disabled one."""
    for name, recipe in recipes:
        origins = Origins(recipe)
        for row in explain_order.order(origins):
            found = explain_order.place(origins, row["component"])
            assert len(found["edges"]) >= row["tier"], (name, row)
            assert all(edge["where"] for edge in found["edges"])
            for waited in row["waitsFor"]:
                assert explain_order.path(origins, row["component"], waited)


FLAGS = BundleOptions(
    set=["gpu-operator:driver.version=580.1", "gpu-operator:dcgm.enabled=null"],
    set_json=['gpu-operator:driver.rdma={"enabled":null,"useHostMofed":true}'],
    system_node_selector=["pool=system"],
    system_node_tolerations=["dedicated=system:NoSchedule"],
    accelerated_node_selector=["pool=gpu"],
    accelerated_node_tolerations=["nvidia.com/gpu=present:NoSchedule"],
    workload_selector=["team=train"],
    workload_gate="ready=no:NoSchedule",
    storage_class="fast",
    shared_storage_class="shared",
    nodes=8,
)
SELECTORS = BundleOptions(system_node_selector=["pool=system"])


@pytest.mark.parametrize("options", [FLAGS, SELECTORS], ids=["all flags", "defaults"])
def test_values_with_bundle_flags_are_those_of_the_plan(
    recipes: list[tuple[str, Recipe]], options: BundleOptions
) -> None:
    """The stack with flags on top adds up to what the bundler plans for each chart."""
    refusals: list[str] = []
    for name, recipe in recipes[::4]:
        if "gpu-operator" not in recipe.document["deploymentOrder"]:
            continue
        try:
            planned = plan(recipe.document, recipe.catalog, options)
        except AicrError as error:
            refusals.append(str(error))
            continue
        origins = Origins(recipe)
        extend = bundle_layers(recipe, options)
        for component in planned.components:
            stack = origins.values(component.name)
            extend(component.name, stack)
            values = plain(stack.merged)
            values.pop("enabled", None)
            assert values == component.values, (name, component.name)
            for item in explain_path(origins, stack, (), ""):
                _deciding(item)
    # What the bundler refuses has no values to compare with; all else must have been compared.
    stated = ("requires --", "owned by", "refuses component")
    assert all(any(words in text for words in stated) for text in refusals), refusals
    assert len(refusals) < len(recipes[::4]) / 2
