"""What localisation asks and hears: groups of nodes, what they measured, the verdict. Pure.

Also the groups that can be planned without an answer. It must not know: which of them is asked for when.
Units: GB/s of bus bandwidth, 0 when wrong values arrived. Source: decisions 20 and 77.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

#: Nodes by their rank, ascending.
Group = tuple[int, ...]


@dataclass(frozen=True)
class Question:
    """A gang that is too slow."""

    nodes: int
    #: GB/s that the gang was to reach.
    threshold: float
    #: Most rounds; 0 for `budget(nodes)`.
    rounds: int = 0

    @property
    def limit(self) -> int:
        """Most rounds that may be measured."""
        return min(self.rounds, budget(self.nodes)) if self.rounds else budget(self.nodes)


@dataclass(frozen=True)
class Answer:
    """One measured group."""

    group: Group
    gbps: float


#: What was measured, a round each.
History = Sequence[Sequence[Answer]]


@dataclass(frozen=True)
class Verdict:
    """What the measurements say."""

    #: To blame: slow with every sound partner, and without them the gang is fast.
    nodes: tuple[int, ...] = ()
    #: Slow between two nodes that are both sound.
    links: tuple[tuple[int, int], ...] = ()
    #: Rounds that were measured.
    rounds: int = 0
    #: One sentence for a person.
    reason: str = ""
    #: GB/s of the gang without the isolated nodes; None when it was not measured.
    rest: float | None = None
    #: Slow with all partners, but it takes more to blame them.
    suspects: tuple[int, ...] = ()


@dataclass(frozen=True)
class Step:
    """What comes next: groups to measure at the same time, or the verdict."""

    groups: tuple[Group, ...] = ()
    verdict: Verdict | None = None


def budget(nodes: int) -> int:
    """Most rounds for a gang of *nodes* (decision 77): 2·log2(N)+4."""
    return math.floor(2 * math.log2(max(nodes, 1)) + 4 + 1e-9)


def ring_rounds(nodes: int) -> tuple[tuple[Group, ...], ...]:
    """Every two neighbours in rank order, the last with the first, in as few rounds as it takes."""
    pairs = [(node, node + 1) for node in range(nodes - 1)]
    rounds = [tuple(pairs[0::2]), tuple(pairs[1::2])]
    if nodes % 2 == 0:
        rounds[1] = (*rounds[1], (0, nodes - 1))
    else:
        rounds.append(((0, nodes - 1),))
    return tuple(rounds)


def by_parity(nodes: int, mask: int) -> tuple[Group, Group]:
    """The nodes whose number has an even, and an odd, number of the bits of *mask*."""
    even = tuple(node for node in range(nodes) if (node & mask).bit_count() % 2 == 0)
    odd = tuple(node for node in range(nodes) if (node & mask).bit_count() % 2 == 1)
    return even, odd


def as_answers(groups: Sequence[Group], measured: Mapping[Group, float | None]) -> list[Answer]:
    """The answers of one round; what could not be measured is left out."""
    found = []
    for group in groups:
        value = measured.get(group)
        if value is not None and math.isfinite(value):
            found.append(Answer(group, value))
    return found
