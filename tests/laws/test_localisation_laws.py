"""Laws of localisation: whatever is wrong with a gang, in whatever place."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.preflight_allreduce.slow_fabric import (
    HEALTHY,
    THRESHOLD,
    Fabric,
    is_round,
    localise,
    pairs,
)

from aicr.preflight.checks.allreduce.localise import decide
from aicr.preflight.checks.allreduce.questions import (
    Answer,
    Question,
    budget,
    by_parity,
    ring_rounds,
)

SIZES = st.integers(2, 40)
#: With noise of a tenth these can always be told from a healthy 1.0; the benchmark goes to 0.7.
SHARES = st.floats(0.05, 0.65)
SEEDS = st.integers(0, 2**32)


@st.composite
def faulty(draw: st.DrawFn) -> Fabric:
    """A gang with slow nodes, up to two slow links, slow leaf switches, and a seed for the noise."""
    nodes = draw(SIZES)
    number = st.integers(0, nodes - 1)
    leaf_of = draw(
        st.one_of(
            st.just({}),
            st.just({node: node // 3 for node in range(nodes)}),
            st.just({node: node % max(1, nodes // 3) for node in range(nodes)}),
        )
    )
    return Fabric(
        nodes,
        draw(st.dictionaries(number, SHARES, max_size=nodes)),
        draw(st.dictionaries(st.sampled_from(pairs(nodes)), SHARES, max_size=2)),
        leaf_of,
        draw(st.dictionaries(number, SHARES, max_size=2)) if leaf_of else {},
        draw(st.one_of(st.none(), st.tuples(st.integers(3, 40), SHARES))),
        draw(st.one_of(st.just(1.0), SHARES)),
        draw(st.booleans()),
        seed=draw(SEEDS),
    )


@settings(max_examples=150, deadline=None)
@given(faulty())
def test_nobody_who_is_sound_is_blamed(fabric: Fabric) -> None:
    """An isolated node is in truth slow with every other; and never half of the gang.

    Where switches may be slow, or a gang is so small that two links are all that a node has, such a node
    need not be slow itself: nobody could tell. Elsewhere it is.
    """
    verdict = localise(fabric)
    assert 2 * len(verdict.nodes) < fabric.nodes
    for node in verdict.nodes:
        others = (other for other in range(fabric.nodes) if other != node)
        pairs_of = [(min(node, other), max(node, other)) for other in others]
        assert all(fabric.true(pair) < THRESHOLD for pair in pairs_of), (node, verdict)
        if not fabric.slow_uplinks and fabric.nodes > 3:
            assert node in fabric.slow_nodes, (node, verdict)


@settings(max_examples=150, deadline=None)
@given(faulty())
def test_rounds_are_disjoint_and_never_more_than_allowed(fabric: Fabric) -> None:
    """2·log2(N)+4, whatever is wrong; `localise` checks each round."""
    verdict = localise(fabric)
    assert verdict.rounds <= budget(fabric.nodes)
    assert verdict.reason


@settings(max_examples=150, deadline=None)
@given(st.integers(8, 300), st.data(), SEEDS)
def test_up_to_three_slow_nodes_are_always_found(
    nodes: int, data: st.DataObject, seed: int
) -> None:
    """Whatever their places are, with noise of a tenth."""
    slow = data.draw(
        st.dictionaries(st.integers(0, nodes - 1), SHARES, min_size=1, max_size=min(3, nodes // 3))
    )
    fabric = Fabric(nodes, slow, seed=seed)
    assert localise(fabric).nodes == tuple(sorted(slow))


@settings(max_examples=150, deadline=None)
@given(st.integers(8, 300), st.data(), SEEDS, st.booleans())
def test_one_slow_link_is_found_and_blames_no_node(
    nodes: int, data: st.DataObject, seed: int, ring: bool
) -> None:
    """Between any two nodes when every group with both uses it; between neighbours on a ring."""
    first = data.draw(st.integers(0, nodes - 1))
    second = (first + 1) % nodes if ring else data.draw(st.integers(0, nodes - 1))
    if first == second:
        return
    link = (min(first, second), max(first, second))
    verdict = localise(Fabric(nodes, slow_links={link: 0.5}, ring=ring, seed=seed))
    assert verdict.nodes == ()
    # A number of nodes that is no power of two has the rounds of the next one below.
    if (nodes & (nodes - 1)) == 0 or ring or verdict.rounds < budget(nodes):
        assert verdict.links == (link,)


@settings(max_examples=100, deadline=None)
@given(st.integers(3, 64), st.floats(0.1, 0.85), SEEDS)
def test_a_gang_that_is_slow_everywhere_blames_nobody(nodes: int, share: float, seed: int) -> None:
    """The threshold may be too high for this fabric."""
    verdict = localise(Fabric(nodes, everything=share, seed=seed), THRESHOLD * 1.2)
    assert (verdict.nodes, verdict.links) == ((), ())


@given(st.integers(3, 200))
def test_the_first_rounds_pair_all_neighbours_once(nodes: int) -> None:
    """Each link of the ring is measured exactly once."""
    rounds = ring_rounds(nodes)
    assert all(is_round(groups, nodes) for groups in rounds)
    measured = [group for groups in rounds for group in groups]
    ring = {(min(a, b), max(a, b)) for a, b in ((one, (one + 1) % nodes) for one in range(nodes))}
    assert len(measured) == len(ring)
    assert set(measured) == ring


@given(st.integers(2, 200), st.integers(1, 255))
def test_halves_hold_everybody_once(nodes: int, mask: int) -> None:
    """Whatever bits they are made from."""
    even, odd = by_parity(nodes, mask)
    assert sorted((*even, *odd)) == list(range(nodes))


@settings(deadline=None)
@given(st.integers(3, 40), st.data())
def test_the_plan_depends_on_the_measurements_alone(nodes: int, data: st.DataObject) -> None:
    """Every rank comes to the same groups, and lost measurements do no harm."""
    question = Question(nodes, THRESHOLD)
    history: list[list[Answer]] = []
    for _ in range(budget(nodes) + 1):
        step = decide(question, history)
        assert step == decide(question, [list(answers) for answers in history])
        if step.verdict is not None:
            break
        values = st.one_of(st.none(), st.floats(0, 2 * HEALTHY))
        measured = {group: data.draw(values) for group in step.groups}
        history.append([Answer(group, v) for group, v in measured.items() if v is not None])
    assert step.verdict is not None
    assert len(history) <= budget(nodes)
