"""Laws of provenance: tagging layers and merging them is merging them (decision 28)."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from aicr.recipe.explain_values import explain_path
from aicr.recipe.hydrate import layered
from aicr.recipe.provenance import Layer, Stack, Tag, leaves, plain, tagged
from aicr.values.merge import deep_merge

KEYS = st.sampled_from(["a", "b", "c"])
LEAVES = st.one_of(st.none(), st.booleans(), st.integers(0, 3), st.lists(st.integers(0, 2)))
TREES = st.dictionaries(
    KEYS, st.recursive(LEAVES, lambda inner: st.dictionaries(KEYS, inner, max_size=3), max_leaves=6)
)


class _Nowhere:
    """Origins whose layers stand in no file."""

    def where(self, layer: Layer, *keys: str | int) -> str:
        return f"{layer.name}:{'.'.join(map(str, keys))}"


def _stack(files: list[Any], overrides: list[Any]) -> Stack:
    layers = [Layer("values", f"f{n}", tree) for n, tree in enumerate(files)]
    above = [Layer("overlay", f"o{n}", tree) for n, tree in enumerate(overrides)]
    merged: dict[str, Any] = {}
    for layer in above:
        merged = deep_merge(merged, tagged(layer, layer.content), null_deletes=False)
    trees = [tagged(layer, layer.content) for layer in layers]
    return Stack([*layers, *above], layered(*trees, merged))


@given(st.lists(TREES, max_size=2), st.lists(TREES, max_size=4))
def test_a_tagged_merge_is_the_merge(files: list[Any], overrides: list[Any]) -> None:
    """Without its tags, the outcome is what the untagged layers add up to."""
    merged: dict[str, Any] = {}
    for tree in overrides:
        merged = deep_merge(merged, tree, null_deletes=False)
    assert plain(_stack(files, overrides).merged) == layered(*files, merged)


# An overlay's null that a later overlay fills again lets the values file through.
@example([{"a": {"b": 1}}], [{"a": None}, {"a": {"c": 2}}])
@given(st.lists(TREES, max_size=2), st.lists(TREES, max_size=4))
def test_every_leaf_has_one_layer_in_force_that_says_so(
    files: list[Any], overrides: list[Any]
) -> None:
    """The step in force holds the value of the outcome, at a path that its layer really has."""
    stack = _stack(files, overrides)
    origins: Any = _Nowhere()
    items = explain_path(origins, stack, (), "v")
    present = [item for item in items if item["state"] == "set"]
    outcome = plain(stack.merged)
    assert len(present) == (len(list(leaves(outcome))) if outcome else 0)
    for item in items:
        deciding = [step for step in item["steps"] if step["inForce"]]
        assert len(deciding) == 1, item
        if item["state"] == "set" and item["value"] != {}:
            assert deciding[0].get("value") == item["value"]
            assert type(deciding[0].get("value")) is type(item["value"])


@given(TREES)
def test_tags_name_the_layer_they_were_made_for(tree: Any) -> None:
    """Tagging keeps the shape of a tree and marks each leaf but nulls."""
    layer = Layer("overlay", "x", tree)
    marked = tagged(layer, tree)
    assert plain(marked) == tree
    for keys in leaves(marked):
        node = marked
        for key in keys:
            node = node[key]
        assert node is None or node == {} or (isinstance(node, Tag) and node.layer is layer)
