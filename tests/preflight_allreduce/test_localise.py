"""Localisation by example: what is asked, what is blamed, in which words. Laws are in tests/laws."""

from __future__ import annotations

import pytest
from benchmarks.bench_localisation import KINDS, score
from tests.preflight_allreduce.slow_fabric import Fabric, localise

from aicr.preflight.checks.allreduce.localise import decide
from aicr.preflight.checks.allreduce.questions import Answer, Group, Question, as_answers, budget


def test_the_first_rounds_pair_neighbours() -> None:
    """An even gang needs two rounds for all links of its ring."""
    question = Question(4, 85)
    first = decide(question, [])
    assert first.groups == ((0, 1), (2, 3))
    answers = [Answer(group, 100.0) for group in first.groups]
    assert decide(question, [answers]).groups == ((1, 2), (0, 3))


@pytest.mark.parametrize("slow", range(8))
def test_one_slow_node_of_eight_is_found_in_four_rounds(slow: int) -> None:
    """Two with its neighbours, one more witness, and the gang without it."""
    verdict = localise(Fabric(8, {slow: 0.4}, noise=0))
    assert (verdict.nodes, verdict.links, verdict.suspects) == ((slow,), (), ())
    assert (verdict.rounds, verdict.rest) == (4, 100.0)
    assert verdict.reason == (
        "slow with every sound partner; without them the gang reaches 100.00 GB/s"
    )


def test_in_a_gang_of_three_two_witnesses_suffice_and_in_one_of_two_none_do() -> None:
    """Two nodes share their only link."""
    assert localise(Fabric(3, {1: 0.4}, noise=0)).nodes == (1,)
    verdict = localise(Fabric(2, {1: 0.4}))
    assert (verdict.nodes, verdict.rounds) == ((), 0)
    assert "cannot be told from its nodes" in verdict.reason


def test_a_slow_link_blames_neither_end() -> None:
    """It is measured twice, and named."""
    verdict = localise(Fabric(8, slow_links={(3, 4): 0.4}, noise=0))
    assert (verdict.nodes, verdict.links, verdict.rounds) == ((), ((3, 4),), 3)


def test_a_slow_link_between_distant_nodes_is_found_by_halving() -> None:
    """Pairs of neighbours never meet it."""
    verdict = localise(Fabric(16, slow_links={(2, 13): 0.4}, ring=False, noise=0))
    assert (verdict.nodes, verdict.links) == ((), ((2, 13),))
    assert verdict.rounds <= budget(16) == 12


@pytest.mark.parametrize(
    ("fabric", "threshold", "text"),
    [
        pytest.param(Fabric(8, everything=0.5), 85, "all pairs are slow: the threshold", id="all"),
        pytest.param(
            Fabric(8, {0: 0.4, 2: 0.4, 4: 0.4, 6: 0.4}, noise=0),
            85,
            "all pairs are slow",
            id="every second",
        ),
        pytest.param(
            Fabric(8, crowded=(4, 0.4), noise=0),
            85,
            "every pair is fast enough; only larger groups are slow",
            id="crowded",
        ),
        pytest.param(
            Fabric(8, {3: 0.4}, crowded=(4, 0.5), noise=0),
            85,
            "do not explain it; without them the gang reaches 50.00 GB/s",
            id="a slow node and more",
        ),
    ],
)
def test_what_no_node_explains_blames_nobody(fabric: Fabric, threshold: float, text: str) -> None:
    """And the words say how far it came."""
    verdict = localise(fabric, threshold)
    assert verdict.nodes == ()
    assert text in verdict.reason


def test_nodes_behind_one_slow_switch_are_not_blamed() -> None:
    """They are good with each other, which says that it is none of them."""
    behind = {node: int(node in (2, 6, 9)) for node in range(12)}
    verdict = localise(Fabric(12, leaf_of=behind, slow_uplinks={1: 0.4}, noise=0))
    assert verdict.nodes == ()
    assert verdict.links


def test_wrong_values_count_as_no_bandwidth_at_all() -> None:
    """A node that spoils data is found like a slow one."""
    assert localise(Fabric(8, {5: 0.0}, noise=0)).nodes == (5,)


def test_measurements_that_are_none_are_left_out() -> None:
    """Not a number, and not measured."""
    groups = ((0, 1), (2, 3), (4, 5))
    measured: dict[Group, float | None] = {(0, 1): float("nan"), (2, 3): None, (4, 5): 3.0}
    assert as_answers(groups, measured) == [Answer((4, 5), 3.0)]


def test_a_smaller_budget_is_kept_and_blames_nobody() -> None:
    """Nothing is settled in two rounds."""
    question = Question(8, 85, rounds=2)
    history: list[list[Answer]] = []
    fabric = Fabric(8, {3: 0.4}, noise=0)
    while (step := decide(question, history)).verdict is None:
        history.append([Answer(group, fabric.measure(group)) for group in step.groups])
    assert (len(history), step.verdict.nodes, step.verdict.suspects) == (2, (), (3,))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("nodes", [8, 24, 64])
def test_targets_of_decision_77_hold_in_simulated_gangs(kind: str, nodes: int) -> None:
    """Recall, no false blame, and rounds, with noise of a tenth; the benchmark has the whole table."""
    runs = 40
    one = score(kind, nodes, runs, seed=7, noise=0.1)
    assert one.false == 0
    assert one.most <= budget(nodes)
    if one.wanted:
        assert one.found >= KINDS[kind][1] * one.wanted
