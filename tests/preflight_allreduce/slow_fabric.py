"""A gang with faults, as a planner sees it: what a group measures, with noise of a seed.

Two ways in which a collective uses links: along the ring of its members in rank order, or between any two
of them. Noise is a factor, even over 1 ± `noise`, for each measurement anew.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from aicr.preflight.checks.allreduce.localise import decide
from aicr.preflight.checks.allreduce.questions import Answer, Group, Question, Verdict

HEALTHY = 100.0
THRESHOLD = 85.0


@dataclass
class Fabric:
    """Nodes and links that are slower than they should be, as shares of the healthy bandwidth."""

    nodes: int
    slow_nodes: Mapping[int, float] = field(default_factory=dict)
    slow_links: Mapping[tuple[int, int], float] = field(default_factory=dict)
    #: Node → leaf switch, and leaf → share of its uplink.
    leaf_of: Mapping[int, int] = field(default_factory=dict)
    slow_uplinks: Mapping[int, float] = field(default_factory=dict)
    #: Share that every group of this many nodes or more gets.
    crowded: tuple[int, float] | None = None
    everything: float = 1.0
    ring: bool = True
    noise: float = 0.1
    seed: int = 0

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)

    def true(self, group: Group) -> float:
        """Bandwidth of a group without noise."""
        shares = [1.0, *(self.slow_nodes.get(node, 1.0) for node in group)]
        if self.slow_links:
            shares += [self.slow_links.get(link, 1.0) for link in self._links(group)]
        leaves = {self.leaf_of.get(node, -1) for node in group}
        if len(leaves) > 1:
            shares += [self.slow_uplinks.get(leaf, 1.0) for leaf in leaves]
        if self.crowded and len(group) >= self.crowded[0]:
            shares.append(self.crowded[1])
        return HEALTHY * self.everything * min(shares)

    def _links(self, group: Group) -> list[tuple[int, int]]:
        if not self.ring:
            return [link for link in self.slow_links if set(link) <= set(group)]
        around = zip(group, group[1:] + group[:1], strict=True)
        return [(min(link), max(link)) for link in around]

    def measure(self, group: Group) -> float:
        """One measurement."""
        return self.true(group) * (1 + self.noise * self.chance.uniform(-1, 1))


def localise(fabric: Fabric, threshold: float = THRESHOLD) -> Verdict:
    """Ask and measure until there is a verdict; every round must be one that can be run."""
    question = Question(fabric.nodes, threshold)
    history: list[list[Answer]] = []
    while True:
        step = decide(question, history)
        if step.verdict is not None:
            return step.verdict
        assert step.groups
        assert is_round(step.groups, fabric.nodes)
        history.append([Answer(group, fabric.measure(group)) for group in step.groups])
        assert len(history) <= question.limit


def pairs(nodes: int) -> list[tuple[int, int]]:
    """Every link."""
    return list(combinations(range(nodes), 2))


def is_round(groups: Sequence[Group], nodes: int) -> bool:
    """Whether groups can be measured at the same time: known nodes, ascending, none in two groups."""
    members = [node for group in groups for node in group]
    return (
        all(len(group) > 1 and list(group) == sorted(group) for group in groups)
        and len(members) == len(set(members))
        and all(0 <= node < nodes for node in members)
    )
