"""Laws of resolution that hold for any small catalogue and any query."""

from __future__ import annotations

import copy
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.recipe.trees import base, catalog, chart, overlay, registry, snapshot

from aicr.catalog.catalog import Catalog
from aicr.catalog.load import taught_values
from aicr.catalog.registry import Registry
from aicr.errors import AicrError
from aicr.recipe.criteria import Criteria
from aicr.recipe.document import load_recipe
from aicr.recipe.hydrate import hydrate
from aicr.recipe.resolve import resolve
from aicr.values.merge import copy_tree

#: A slow machine is no failure.
LAW = settings(deadline=None)

DIMENSIONS = {
    "service": ["eks", "gke"],
    "accelerator": ["h100", "b200"],
    "intent": ["training", "inference"],
    "os": ["ubuntu", "cos"],
}
NAMES = [f"o{n}" for n in range(7)]
COMPONENTS = ["x", "y", "z"]
KEYS = st.sampled_from(["a", "b", "c"])
SCALARS = st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["t", ""])
VALUES = st.recursive(
    SCALARS | st.lists(st.integers(0, 3), max_size=2),
    lambda inner: st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)


def words(values: dict[str, list[str]], wildcards: bool) -> st.SearchStrategy[dict[str, str]]:
    """Criteria over some dimensions."""
    extra = ["any", ""] if wildcards else []
    return st.fixed_dictionaries(
        {}, optional={key: st.sampled_from([*found, *extra]) for key, found in values.items()}
    )


@st.composite
def refs(draw: st.DrawFn) -> dict[str, Any]:
    """A component ref; dependencies only go to earlier letters, so there are no circles."""
    name = draw(st.sampled_from(COMPONENTS))
    ref: dict[str, Any] = {"name": name}
    if draw(st.booleans()):
        ref["version"] = draw(st.sampled_from(["", "1.0.0", "2.0.0"]))
    if draw(st.booleans()):
        ref["overrides"] = draw(st.dictionaries(KEYS, VALUES, max_size=3))
    earlier = COMPONENTS[: COMPONENTS.index(name)]
    needs: list[str] = draw(st.lists(st.sampled_from(earlier), max_size=2)) if earlier else []
    if needs:
        ref["dependencyRefs"] = needs
    if draw(st.integers(0, 7)) == 0:
        ref.setdefault("overrides", {})["enabled"] = draw(st.booleans())
    return ref


@st.composite
def specs(draw: st.DrawFn, parents: list[str]) -> dict[str, Any]:
    """The spec of an overlay."""
    spec: dict[str, Any] = {}
    if draw(st.integers(0, 9)) > 0:
        spec["criteria"] = draw(words(DIMENSIONS, wildcards=True))
    parent: str | None = draw(st.sampled_from([None, *parents]))
    if parent:
        spec["base"] = parent
    spec["componentRefs"] = draw(st.lists(refs(), max_size=2, unique_by=lambda ref: ref["name"]))
    if draw(st.booleans()):
        value = draw(st.sampled_from([">= 1.30", ">= 1.34", "1.33"]))
        spec["constraints"] = [{"name": "K8s.server.version", "value": value}]
    checks: list[str] | None = draw(
        st.none() | st.lists(st.sampled_from(["p", "q"]), max_size=2, unique=True)
    )
    if checks is not None:
        spec["validation"] = {"deployment": {"checks": checks}}
    return spec


@st.composite
def worlds(draw: st.DrawFn) -> dict[str, dict[str, Any]]:
    """Specs of overlays by name; a parent is always an earlier name, so there are no circles."""
    count = draw(st.integers(0, len(NAMES)))
    return {name: draw(specs(NAMES[:index])) for index, name in enumerate(NAMES[:count])}


QUERIES = words(DIMENSIONS, wildcards=False)
ROOT: dict[str, Any] = {"componentRefs": [chart(name) for name in COMPONENTS]}
READINGS = snapshot({"K8s.server": {"version": "v1.33.2"}})


class NoFiles:
    """A tree without files."""

    def paths(self) -> list[str]:
        """None."""
        return []

    def exists(self, path: str) -> bool:
        """Never."""
        return False

    def place(self, path: str) -> str:
        """The path itself."""
        return path


def in_memory(world: dict[str, dict[str, Any]]) -> Catalog:
    """A catalogue of these overlays without a disk."""
    found: dict[str, Any] = {
        name: {"name": name, "path": f"{name}.yaml", "origin": "embedded", "spec": copy_tree(spec)}
        for name, spec in world.items()
    }
    root: Any = {"name": "base", "path": "base.yaml", "origin": "embedded", "spec": copy_tree(ROOT)}
    tree: Any = NoFiles()
    return Catalog(
        base=root,
        overlays=found,
        mixins={},
        registry=Registry([]),
        tree=tree,
        taught=taught_values([root, *found.values()]),
    )


def outcome(found: Catalog, query: dict[str, str], **options: Any) -> str:
    """The bytes of the recipe, or what it was refused for."""
    try:
        return resolve(found, Criteria(**query), **options).to_yaml()  # type: ignore[arg-type]
    except AicrError as error:
        return f"{error.code} {error.message}"


def frozen(found: Catalog) -> str:
    """Everything a catalogue says, leaving out what it merely remembers."""
    return repr((found.base, found.overlays, found.mixins, found.registry.entries, found.taught))


@LAW
@given(worlds(), QUERIES, st.randoms(use_true_random=False))
def test_the_order_of_overlays_changes_nothing(
    world: dict[str, dict[str, Any]], query: dict[str, str], random: Any
) -> None:
    """Whatever order a catalogue lists its overlays in, the bytes are the same (case E1)."""
    names = list(world)
    random.shuffle(names)
    shuffled = {name: world[name] for name in names}
    for options in ({}, {"coverage": False}, {"snapshot": READINGS}):
        expected = outcome(in_memory(world), query, **options)
        assert outcome(in_memory(shuffled), query, **options) == expected


@settings(LAW, max_examples=25)
@given(worlds(), QUERIES, st.randoms(use_true_random=False))
def test_the_names_of_files_change_nothing(
    world: dict[str, dict[str, Any]], query: dict[str, str], random: Any
) -> None:
    """Files may be called and placed as one likes: the identity is metadata.name."""
    outcomes = []
    for _ in range(2):
        numbers = random.sample(range(100), len(world))
        files = {
            f"overlays/{random.choice(['', 'd/', 'd/e/'])}{number:03}.yaml": overlay(name, **spec)
            for number, (name, spec) in zip(numbers, world.items(), strict=True)
        }
        files |= {"overlays/base.yaml": base(**ROOT), "registry.yaml": registry()}
        with tempfile.TemporaryDirectory() as folder:
            outcomes.append(outcome(catalog(Path(folder), files), query, coverage=False))
    outcomes.append(outcome(in_memory(world), query, coverage=False))
    assert len(set(outcomes)) == 1


@LAW
@given(worlds(), QUERIES, st.sampled_from(["any", "", " ANY "]))
def test_a_wildcard_is_the_same_as_nothing(
    world: dict[str, dict[str, Any]], query: dict[str, str], wildcard: str
) -> None:
    """Writing `any` or "" for every dimension that an overlay leaves out changes nothing (E1)."""
    spelt = copy_tree(world)
    for spec in spelt.values():
        if "criteria" in spec:
            spec["criteria"] = dict.fromkeys(DIMENSIONS, wildcard) | spec["criteria"]
    assert outcome(in_memory(spelt), query) == outcome(in_memory(world), query)
    full = dict.fromkeys(DIMENSIONS, wildcard) | query
    assert outcome(in_memory(world), full) == outcome(in_memory(world), query)


@LAW
@given(worlds(), QUERIES, specs(NAMES), st.sampled_from(["lke", "kind"]))
def test_an_overlay_for_another_service_changes_nothing(
    world: dict[str, dict[str, Any]], query: dict[str, str], spec: dict[str, Any], service: str
) -> None:
    """What is only for lke is not seen by eks, whatever it inherits from and whatever it says."""
    query = {"service": "eks"} | query
    other = {**spec, "criteria": spec.get("criteria", {}) | {"service": service}}
    if other.get("base") not in world:
        other.pop("base", None)
    more = {**world, "stranger": other}
    assert outcome(in_memory(more), query) == outcome(in_memory(world), query)


@LAW
@given(worlds(), st.lists(QUERIES, min_size=1, max_size=3))
def test_resolving_changes_neither_catalogue_nor_criteria(
    world: dict[str, dict[str, Any]], queries: list[dict[str, str]]
) -> None:
    """Not with a snapshot, not without coverage, and not by changing what was handed out."""
    found = in_memory(world)
    before = frozen(found)
    readings = copy.deepcopy(READINGS)
    for query in queries:
        criteria = Criteria(**query)  # type: ignore[arg-type]
        for options in ({}, {"coverage": False}, {"snapshot": readings}):
            try:
                recipe = resolve(found, criteria, **options)
            except AicrError:
                continue
            hydrate(recipe)
            for ref in recipe.document["componentRefs"]:
                ref.setdefault("overrides", {})["spoilt"] = True
                ref.setdefault("dependencyRefs", []).append("spoilt")
            recipe.document["deploymentOrder"].append("spoilt")
            for constraint in recipe.document.get("constraints", []):
                constraint["value"] = "spoilt"
            for phase in recipe.document.get("validation", {}).values():
                phase.setdefault("checks", []).append("spoilt")
        assert criteria == Criteria(**query)  # type: ignore[arg-type]
    assert frozen(found) == before
    assert readings == READINGS
    for query in queries:
        assert outcome(found, query) == outcome(in_memory(world), query)


@LAW
@given(worlds(), QUERIES)
def test_what_is_applied_is_what_the_rules_say(
    world: dict[str, dict[str, Any]], query: dict[str, str]
) -> None:
    """A naive reading of matching, maximal leaves and merge order gives the same overlays."""
    stated = {
        name: {k: v for k, v in spec["criteria"].items() if v not in ("any", "")}
        for name, spec in world.items()
        if "criteria" in spec
    }
    parents = {name: spec.get("base") for name, spec in world.items()}

    def line(name: str | None) -> list[str]:
        return [*line(parents[name]), name] if name else []

    matching = [name for name, found in stated.items() if found.items() <= query.items()]
    leaves = [
        name
        for name in matching
        if not any(name in line(other) for other in matching if other != name)
    ]
    leaves.sort(key=lambda name: (len(stated[name]), name))
    expected = list(dict.fromkeys(["base", *(step for leaf in leaves for step in line(leaf))]))
    try:
        recipe = resolve(in_memory(world), Criteria(**query), coverage=False)  # type: ignore[arg-type]
    except AicrError:
        # Only what has no source of its own can be incoherent here; other laws look at refusals.
        return
    assert recipe.document["metadata"]["appliedOverlays"] == expected


@LAW
@given(worlds(), QUERIES)
def test_a_resolved_recipe_covers_what_was_asked(
    world: dict[str, dict[str, Any]], query: dict[str, str]
) -> None:
    """Every stated word is carried by an applied overlay, whenever there is a recipe at all."""
    try:
        recipe = resolve(in_memory(world), Criteria(**query))  # type: ignore[arg-type]
    except AicrError:
        return
    applied = recipe.document["metadata"]["appliedOverlays"][1:]
    for key, word in query.items():
        assert any(world[name].get("criteria", {}).get(key) == word for name in applied)


@LAW
@given(worlds(), QUERIES)
def test_a_recipe_survives_writing_and_reading(
    world: dict[str, dict[str, Any]], query: dict[str, str]
) -> None:
    """Loaded again it is the same document, and hydration gives the same values each time."""
    found = in_memory(world)
    try:
        recipe = resolve(found, Criteria(**query), coverage=False)  # type: ignore[arg-type]
    except AicrError:
        return
    again = load_recipe(recipe.to_yaml(), "recipe.yaml", found)
    assert again.document == recipe.document
    assert again.to_yaml() == recipe.to_yaml()
    first = hydrate(recipe)
    assert hydrate(recipe) == first
    assert hydrate(again) == first


@LAW
@given(worlds(), QUERIES)
def test_a_snapshot_only_takes_away(
    world: dict[str, dict[str, Any]], query: dict[str, str]
) -> None:
    """What is applied with a snapshot is applied without it, and what is missing is explained."""
    found = in_memory(world)
    options: dict[str, Any] = {"coverage": False}
    try:
        plain = resolve(found, Criteria(**query), **options)  # type: ignore[arg-type]
        seen = resolve(found, Criteria(**query), snapshot=READINGS, **options)  # type: ignore[arg-type]
    except AicrError:
        return
    metadata = seen.document["metadata"]
    without, with_it = (
        doc["metadata"]["appliedOverlays"] for doc in (plain.document, seen.document)
    )
    # Not the same order: a base that two chains share comes with the first of them that is left.
    assert set(with_it) <= set(without)
    for place, name in enumerate(with_it[1:], start=1):
        assert world[name].get("base") in (None, *with_it[:place])
    excluded = {entry["name"] for entry in metadata.get("excludedOverlays", [])}
    assert excluded <= set(without) - {"base"}
    assert {warning["overlay"] for warning in metadata.get("constraintWarnings", [])} == excluded
    assert (with_it == without) or excluded
