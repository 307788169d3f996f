"""Laws of deployment order and tiers, on any graph of components."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from aicr.catalog.dependencies import (
    check_dependencies,
    deployment_order,
    effective_dependencies,
    levels,
)
from aicr.errors import AicrError

#: A slow machine is no failure.
LAW = settings(deadline=None)

Refs = list[Any]
NAMES = "abcdefghij"


@st.composite
def graphs(draw: st.DrawFn, *, circles: bool = False) -> Refs:
    """Refs in any order, some disabled; without circles unless asked for."""
    count: int = draw(st.integers(0, len(NAMES)))
    names: list[str] = draw(st.permutations(NAMES[:count]))
    refs: Refs = []
    for index, name in enumerate(names):
        reachable = names if circles else names[:index]
        needs: list[str] = []
        if reachable:
            needs = draw(st.lists(st.sampled_from(reachable), max_size=4))
        ref: dict[str, Any] = {"name": name}
        if draw(st.booleans()) or needs:
            ref["dependencyRefs"] = needs
        switch = draw(st.sampled_from([None, None, "enabled", "install"]))
        if switch:
            ref["overrides"] = {switch: draw(st.booleans())}
        refs.append(ref)
    return list(draw(st.permutations(refs)))


def deployed(refs: Refs) -> dict[str, Any]:
    """Refs that no switch turns off, by name; written apart from the product's own rule."""
    return {
        ref["name"]: ref
        for ref in refs
        if False not in [ref.get("overrides", {}).get(key) for key in ("enabled", "install")]
    }


def waits_for(refs: Refs, name: str) -> set[str]:
    """Deployed components that *name* waits for, found by walking paths through disabled ones."""
    by_name = {ref["name"]: ref for ref in refs}
    on = deployed(refs)
    found: set[str] = set()
    stack = list(by_name[name].get("dependencyRefs", ()))
    while stack:
        step = stack.pop()
        if step in on:
            found.add(step)
        else:
            stack.extend(by_name[step].get("dependencyRefs", ()))
    return found


def naive_order(refs: Refs) -> list[str]:
    """Again and again the smallest name that has everything it needs."""
    left = {name: waits_for(refs, name) for name in deployed(refs)}
    order: list[str] = []
    while left:
        order.append(min(name for name, needs in left.items() if needs <= set(order)))
        del left[order[-1]]
    return order


@LAW
@given(graphs())
def test_the_order_is_that_of_the_naive_rule(refs: Refs) -> None:
    """Every deployed component once, after all it waits for, ties alphabetical."""
    assert deployment_order(refs) == naive_order(refs)


@LAW
@given(graphs())
def test_edges_pass_through_what_is_disabled(refs: Refs) -> None:
    """The effective graph is that of all paths through disabled components."""
    effective = effective_dependencies(refs)
    assert effective == {name: sorted(waits_for(refs, name)) for name in deployed(refs)}


@LAW
@given(graphs())
def test_tiers_partition_what_is_deployed(refs: Refs) -> None:
    """Each component is in one tier: the first after all of those it waits for."""
    tiers = levels(refs)
    flat = [name for tier in tiers for name in tier]
    assert sorted(flat) == sorted(deployed(refs))
    assert all(tier == sorted(tier) and tier for tier in tiers)
    depth = {name: index for index, tier in enumerate(tiers) for name in tier}
    for name in flat:
        assert depth[name] == 1 + max((depth[need] for need in waits_for(refs, name)), default=-1)


@LAW
@given(graphs(), st.randoms(use_true_random=False))
def test_the_order_of_writing_does_not_matter(refs: Refs, random: Any) -> None:
    """Shuffled refs, shuffled and repeated edges: the same order and the same tiers."""
    shuffled: Refs = [dict(ref) for ref in refs]
    random.shuffle(shuffled)
    for ref in shuffled:
        needs = list(ref.get("dependencyRefs", ()))
        needs += random.sample(needs, len(needs) // 2)
        random.shuffle(needs)
        ref["dependencyRefs"] = needs
    assert deployment_order(shuffled) == deployment_order(refs)
    assert levels(shuffled) == levels(refs)


@LAW
@given(graphs(circles=True))
def test_a_circle_is_found_exactly_when_there_is_one(refs: Refs) -> None:
    """What is printed is a walk along real edges that ends where it began."""
    edges = {ref["name"]: set(ref.get("dependencyRefs", ())) for ref in refs}
    remaining = dict(edges)
    while free := [name for name, needs in remaining.items() if not needs & remaining.keys()]:
        for name in free:
            del remaining[name]
    try:
        check_dependencies(refs)
    except AicrError as error:
        assert remaining
        text = error.chain()[-1].message
        assert text.startswith("circular dependency detected: [")
        walk = text.partition("[")[2].rstrip("]").split()
        assert walk[0] == walk[-1]
        assert len(walk) >= 2
        assert all(after in edges[before] for before, after in pairwise(walk))
        assert len(set(walk[1:])) == len(walk) - 1
    else:
        assert not remaining
        assert deployment_order(refs) == naive_order(refs)


@LAW
@given(graphs(circles=True))
def test_ordering_never_fails_otherwise_than_in_words(refs: Refs) -> None:
    """A circle among deployed components is refused; nothing else goes wrong."""
    for action in (deployment_order, levels):
        failure: AicrError | None = None
        try:
            action(refs)
        except AicrError as error:
            failure = error
        if failure is not None:
            assert failure.code == "INVALID_REQUEST"
            assert "circular dependencies exist" in failure.message


@LAW
@given(graphs())
def test_no_input_is_changed(refs: Refs) -> None:
    """Ordering only reads."""
    before = repr(refs)
    check_dependencies(refs)
    deployment_order(refs)
    levels(refs)
    assert repr(refs) == before
