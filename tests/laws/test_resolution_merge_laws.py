"""Laws of merging refs and phases, where they hold: not every merge is associative, and on purpose."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from aicr.catalog.fields import REF_ORDER
from aicr.recipe.hydrate import layered
from aicr.recipe.merge import as_written, merge_phase, merge_ref, union
from aicr.values.merge import copy_tree

#: A slow machine is no failure.
LAW = settings(deadline=None)

LEAVES = st.none() | st.integers(-3, 3) | st.lists(st.integers(0, 2), max_size=2)


def shaped(depth: int, leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Trees in which a key is a map everywhere or nowhere; with mixed kinds no merge associates."""
    optional: dict[str, st.SearchStrategy[Any]] = {"a": leaves, "b": leaves}
    if depth:
        optional |= {"m": shaped(depth - 1, leaves), "n": shaped(depth - 1, leaves)}
    return st.fixed_dictionaries({}, optional=optional)


TEXTS = st.sampled_from(["", "1", "2"])
LISTS = st.lists(st.sampled_from("pqr"), max_size=3, unique=True)
REFS = st.fixed_dictionaries(
    {"name": st.just("x")},
    optional={
        "namespace": TEXTS,
        "version": TEXTS,
        "valuesFile": TEXTS,
        "overrides": shaped(2, LEAVES),
        "patches": LISTS,
        "dependencyRefs": LISTS,
        "manifestFiles": LISTS,
        "cleanup": st.booleans(),
        "healthCheckSkip": st.booleans(),
    },
)
CONSTRAINTS = st.lists(
    st.fixed_dictionaries({"name": st.sampled_from("abc"), "value": st.sampled_from("12")}),
    min_size=1,
    max_size=3,
    unique_by=lambda constraint: constraint["name"],
)
PHASES = st.fixed_dictionaries(
    {},
    optional={
        "timeout": st.sampled_from(["", "5m", "9m"]),
        "checks": st.lists(st.sampled_from("pqr"), min_size=1, max_size=3, unique=True),
        "constraints": CONSTRAINTS,
        "nodeSelection": st.fixed_dictionaries({"maxNodes": st.integers(1, 3)}),
        "infrastructure": TEXTS,
    },
)


@LAW
@given(REFS, REFS, REFS)
def test_merging_refs_is_associative(one: Any, two: Any, three: Any) -> None:
    """A chain may be folded from either end, so intermediate overlays can be reasoned about."""
    left = merge_ref(merge_ref(one, two), three)
    right = merge_ref(one, merge_ref(two, three))
    assert as_written(left) == as_written(right)


@LAW
@given(REFS, REFS)
def test_merging_refs_is_idempotent_and_has_an_identity(one: Any, two: Any) -> None:
    """Laying the same overlay twice is laying it once; an empty ref changes nothing."""
    once = merge_ref(one, two)
    assert as_written(merge_ref(once, two)) == as_written(once)
    assert as_written(merge_ref(one, {"name": "x"})) == as_written(one)
    assert as_written(merge_ref({"name": "x"}, one)) == as_written(one)


@LAW
@given(REFS, REFS)
def test_merging_refs_shares_and_changes_nothing(one: Any, two: Any) -> None:
    """Inputs stay as they are, also when the result is spoilt; the result is in wire order."""
    before = copy_tree([one, two])
    merged: Any = merge_ref(one, two)
    assert list(merged) == [key for key in REF_ORDER if key in merged]
    for value in merged.values():
        if isinstance(value, list):
            value.append("spoilt")
        elif isinstance(value, dict):
            value["spoilt"] = True
            for inner in value.values():
                if isinstance(inner, dict):
                    inner["spoilt"] = True
                elif isinstance(inner, list):
                    inner.append("spoilt")
    assert [one, two] == before


@LAW
@given(PHASES, PHASES, PHASES)
def test_merging_phases_is_associative_without_clearing(one: Any, two: Any, three: Any) -> None:
    """As long as no list is emptied on the way."""
    left = merge_phase(merge_phase(one, two), three)
    right = merge_phase(one, merge_phase(two, three))
    drop = ("", None)
    assert {k: v for k, v in left.items() if v not in drop} == {
        k: v for k, v in right.items() if v not in drop
    }


def test_clearing_is_why_phases_do_not_always_associate() -> None:
    """An empty list clears what lies below it at its place in the chain, and only that."""
    one, two, three = ({"checks": checks} for checks in (["a"], [], ["b"]))
    given_: Any = [one, two, three]
    left = merge_phase(merge_phase(given_[0], given_[1]), given_[2])
    right = merge_phase(given_[0], merge_phase(given_[1], given_[2]))
    assert left == {"checks": ["b"]}
    assert right == {"checks": ["a", "b"]}


@LAW
@given(st.lists(st.sampled_from("abc")), st.lists(st.sampled_from("abc")))
def test_a_union_keeps_first_places(first: list[str], second: list[str]) -> None:
    """Every entry of both, once, in the order of first appearance."""
    found = union(first, second)
    assert set(found) == {*first, *second}
    assert len(found) == len(set(found))
    together = [*first, *second]
    assert found == sorted(found, key=together.index)


@LAW
@given(st.lists(shaped(2, LEAVES), max_size=4))
def test_layers_follow_the_rule_of_nulls_path_by_path(layers: list[dict[str, Any]]) -> None:
    """For each leaf: the highest layer that names it decides; its null deletes what any set."""
    before = copy_tree(layers)
    found = layered(*layers)
    assert layers == before
    paths = {path for layer in layers for path, _ in leaves_of(layer)}
    actual = dict(leaves_of(found))
    for path in paths:
        named = [dict(leaves_of(layer))[path] for layer in layers if path in dict(leaves_of(layer))]
        if named[-1] is not None:
            assert actual[path] == named[-1]
        elif any(value is not None for value in named):
            assert path not in actual
        else:
            assert path in actual
            assert actual[path] is None
    assert actual.keys() <= paths


def leaves_of(
    tree: dict[str, Any], trail: tuple[str, ...] = ()
) -> list[tuple[tuple[str, ...], Any]]:
    """Paths and values of all leaves; empty maps have none."""
    found: list[tuple[tuple[str, ...], Any]] = []
    for key, value in tree.items():
        if isinstance(value, dict):
            found += leaves_of(value, (*trail, key))
        else:
            found.append(((*trail, key), value))
    return found


@LAW
@given(st.lists(shaped(2, LEAVES.filter(lambda leaf: leaf is not None)), max_size=4))
def test_layers_without_nulls_fold_either_way(layers: list[dict[str, Any]]) -> None:
    """Then layering is plain deep merging."""
    if len(layers) < 2:
        return
    head, *rest = layers
    assert layered(head, layered(*rest)) == layered(*layers)
    assert layered(layered(*layers[:-1]), layers[-1]) == layered(*layers)
