"""Which node, or which link, makes an all-reduce slow: plans groups to measure and reads the answers. Pure.

`decide` is a function of the question and of everything measured so far; it gives the groups of the next
round, which are disjoint and so run at the same time, or the verdict. There is no state beside the
history, so every rank comes to the same plan.

1. Neighbours in rank order, in two rounds (three for an odd number): each node with two partners.
2. A node with no good pair is a suspect, and is paired with other sound nodes. It is isolated only when
   three different sound partners (two in a gang of three) were all slow with it, and when it is slow
   with every other suspect too. A pair that is slow between two sound nodes is a link, when it is slow
   again; where such links separate parts of the gang, witnesses from both sides are asked for. A leaf
   switch with a slow uplink thus blames nobody: its nodes are good with each other.
3. If pairs explain nothing, groups are halved by the bits of the node numbers: the slow half says which
   bit the two ends of a bad link share, and a second pass over sums of two bits resolves those in which
   they differ. That takes at most 2·log2(N)-1 rounds for N nodes; the pair that it names is measured.
4. The rest of the gang is measured without the isolated nodes. They are blamed only if it is fast then:
   half an explanation may be a wrong one.

A measurement is slow below the threshold and also below 80 % of what sound groups of its kind reach: a
threshold that is too high for the fabric, or a fabric that is slow everywhere, blames nobody. Nor is
blame laid on half of the gang or more.

Units: GB/s of bus bandwidth, 0 when wrong values arrived. It must not know: how groups are measured.
Source: decisions 20 and 77.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Final

from aicr.preflight.checks.allreduce.questions import (
    Group,
    History,
    Question,
    Step,
    Verdict,
    by_parity,
    ring_rounds,
)

#: Share of what sound groups reach, below which a measurement is slow.
SLOW: Final = 0.8
#: Share of what sound pairs reach that the gang must reach without the nodes to blame.
REST: Final = 0.85
#: Different sound partners that must all be slow with a node.
WITNESSES: Final = 3
#: Times that a pair of sound nodes must be slow to be called a bad link.
REPEATS: Final = 2
#: Of all pairs, the share that may be faster than what is taken for sound.
_UPPER: Final = 0.1


def decide(question: Question, history: History) -> Step:
    """The next groups, or the verdict, from all that was measured.

    Args:
        question: the gang.
        history: every round so far; a group that could not be measured is left out of its round.
    """
    return _Search(question, history).step()


class _Search:
    """One run of `decide`."""

    def __init__(self, question: Question, history: History) -> None:
        self.question, self.history, self.nodes = question, history, question.nodes
        self.pairs: dict[tuple[int, int], list[float]] = {}
        for answer in (one for answers in history for one in answers):
            if len(answer.group) == 2:
                first, second = answer.group
                self.pairs.setdefault((first, second), []).append(answer.gbps)
        values = [one for found in self.pairs.values() for one in found]
        self.reference = _reached(values, _UPPER)
        self.cut = min(question.threshold, SLOW * self.reference)

    def step(self) -> Step:
        done = len(self.history)
        if self.nodes < 3:
            return self._end("a gang of two has one link, which cannot be told from its nodes")
        ring = ring_rounds(self.nodes)
        if done < min(len(ring), self.question.limit):
            return Step(ring[done])
        if done < self.question.limit:
            groups = self._witness_round()
            if not groups and not self._explained():
                groups = self._halving_round()
            if not groups:
                groups = self._rest_round()
            if groups:
                return Step(groups)
        return self._end()

    # What pairs say

    @cached_property
    def sound(self) -> frozenset[int]:
        """Nodes that did well with somebody, and so are not what makes other pairs slow."""
        return frozenset(
            node
            for pair, found in self.pairs.items()
            if any(value >= self.cut for value in found)
            for node in pair
        )

    @cached_property
    def suspects(self) -> dict[int, set[int]]:
        """Node with no good pair → sound partners that were slow with it."""
        found: dict[int, set[int]] = {}
        for first, second in self.pairs:
            for node, partner in ((first, second), (second, first)):
                if node not in self.sound:
                    partners = found.setdefault(node, set())
                    if partner in self.sound:
                        partners.add(partner)
        return found

    @property
    def needed(self) -> int:
        """Witnesses that it takes in a gang of this size."""
        return min(WITNESSES, self.nodes - 1)

    @cached_property
    def isolated(self) -> tuple[int, ...]:
        """Suspects with enough witnesses; nobody if that were half of the gang."""
        enough = [
            node
            for node, seen in self.suspects.items()
            if not self._wanted(seen) and not self._unmet(node)
        ]
        return tuple(sorted(enough)) if 2 * len(enough) < self.nodes else ()

    @cached_property
    def sides(self) -> tuple[frozenset[int], ...]:
        """Parts of the gang whose sound nodes are good with each other, and slow links lead between."""
        part = {node: node for node in self.sound}

        def top(node: int) -> int:
            while part[node] != node:
                node = part[node] = part[part[node]]
            return node

        for (first, second), found in self.pairs.items():
            if any(value >= self.cut for value in found):
                part[top(first)] = top(second)
        ends = {top(node) for pair in self.slow_links for node in pair}
        if len(ends) < 2:
            return ()
        return tuple(
            frozenset(node for node in self.sound if top(node) == end) for end in sorted(ends)
        )

    def _wanted(self, seen: set[int]) -> frozenset[int]:
        """Sound nodes of which one more witness is wanted beside *seen*; empty when they suffice."""
        for side in self.sides:
            if side.isdisjoint(seen):
                return side
        return self.sound if len(seen) < self.needed else frozenset()

    def _unmet(self, node: int) -> list[int]:
        """Other suspects that *node* has not been measured with: they might be good together."""
        return [
            other
            for other in sorted(self.suspects)
            if other != node and (min(node, other), max(node, other)) not in self.pairs
        ]

    @cached_property
    def slow_links(self) -> dict[tuple[int, int], int]:
        """Pair of sound nodes that was never good → times that it was slow."""
        return {
            pair: len(found)
            for pair, found in self.pairs.items()
            if self.sound.issuperset(pair) and all(value < self.cut for value in found)
        }

    @cached_property
    def links(self) -> tuple[tuple[int, int], ...]:
        """Slow links that were measured often enough."""
        return tuple(sorted(pair for pair, n in self.slow_links.items() if n >= REPEATS))

    @property
    def _all_slow(self) -> bool:
        """Whether not even the best pairs reach the threshold."""
        return self.reference < self.question.threshold

    def _explained(self) -> bool:
        return bool(self.isolated or self.links)

    def _witness_round(self) -> tuple[Group, ...]:
        """Pairs that settle suspects and links."""
        busy: set[int] = set()
        groups: list[Group] = []

        def add(first: int, second: int) -> None:
            groups.append((min(first, second), max(first, second)))
            busy.update((first, second))

        open_ = {node: seen for node, seen in self.suspects.items() if self._wanted(seen)}
        for pair, times in sorted(self.slow_links.items()):
            if times < REPEATS and busy.isdisjoint(pair):
                add(*pair)
        for node in sorted(open_, key=lambda one: (len(open_[one]), one)):
            partner = self._witness_for(node, self._wanted(open_[node]) - busy)
            if partner is not None:
                add(node, partner)
        for node in sorted(self.suspects.keys() - open_.keys()):
            met = next(
                (other for other in self._unmet(node) if busy.isdisjoint((node, other))), None
            )
            if met is not None:
                add(node, met)
        return tuple(sorted(groups))

    def _witness_for(self, node: int, among: frozenset[int]) -> int | None:
        """One of *among* that has not been with *node*, from far away if it can be."""
        start = node + self.nodes // 2 + len(self.history)
        for offset in range(self.nodes):
            partner = (start + offset) % self.nodes
            pair = (min(node, partner), max(node, partner))
            if partner in among and pair not in self.pairs:
                return partner
        return None

    # What halves say

    @cached_property
    def halves(self) -> dict[Group, float]:
        """Groups of the halving, as measured."""
        return {
            answer.group: answer.gbps
            for answers in self.history
            for answer in answers
            if len(answer.group) > 2
        }

    def _slow_half(self, mask: int) -> int | None:
        """Which half by the parity of *mask* is slow: 0, 1, or -1 for neither; None: not measured.

        Raises:
            _UnclearError: both halves are slow.
        """
        slow = []
        for number, half in enumerate(by_parity(self.nodes, mask)):
            verdict = self._is_slow(half)
            if verdict is None:
                return None
            if verdict:
                slow.append(number)
        if len(slow) == 2:
            raise _UnclearError
        return slow[0] if slow else -1

    def _is_slow(self, half: Group) -> bool | None:
        """Whether a half is slow; None while it was not measured. A half of one node cannot be."""
        if len(half) < 2:
            return False
        if len(half) == 2:
            found = self.pairs.get((half[0], half[1]))
            return found[-1] < self.cut if found else None
        if half not in self.halves:
            return None
        sound = _reached(list(self.halves.values()), 0.0)
        return self.halves[half] < min(self.question.threshold, SLOW * sound)

    @cached_property
    def halving(self) -> tuple[int | None, tuple[int, int] | None]:
        """(mask to measure next or None, the two ends when they are known).

        The ends of a node's fault are the node twice.
        """
        first: dict[int, int] = {}
        differ: list[int] = []
        for bit in range((self.nodes - 1).bit_length()):
            half = self._slow_half(1 << bit)
            if half is None:
                return 1 << bit, None
            if half >= 0:
                first[bit] = half
            else:
                differ.append(bit)
        second = dict(first)
        if differ:
            base, *others = differ
            first[base], second[base] = 0, 1
            for bit in others:
                half = self._slow_half(1 << base | 1 << bit)
                if half is None:
                    return 1 << base | 1 << bit, None
                if half < 0:
                    raise _UnclearError
                first[bit], second[bit] = half, 1 - half
        ends = tuple(sum(value << bit for bit, value in code.items()) for code in (first, second))
        if max(ends) >= self.nodes:
            raise _UnclearError
        return None, (min(ends), max(ends))

    def _halving_round(self) -> tuple[Group, ...]:
        # With fewer than six nodes a half is a pair or a single node, and pairs have spoken.
        if self.nodes < 6 or self.suspects or self.slow_links or self._all_slow:
            return ()
        try:
            mask, ends = self.halving
        except _UnclearError:
            return ()
        if mask is not None:
            return tuple(half for half in by_parity(self.nodes, mask) if len(half) > 1)
        assert ends is not None
        return () if ends[0] == ends[1] or ends in self.pairs else (ends,)

    @cached_property
    def rest(self) -> Group:
        """The gang without the isolated nodes."""
        return tuple(node for node in range(self.nodes) if node not in self.isolated)

    @cached_property
    def rest_gbps(self) -> float | None:
        """What the rest reaches; None while it was not measured, or there is nobody to leave out."""
        if not self.isolated:
            return None
        if len(self.rest) == 2:
            return max(self.pairs.get((self.rest[0], self.rest[1]), [0.0]))
        return self.halves.get(self.rest)

    def _rest_round(self) -> tuple[Group, ...]:
        return (self.rest,) if self.isolated and self.rest_gbps is None else ()

    # The verdict

    def _end(self, reason: str = "") -> Step:
        rest = self.rest_gbps
        explained = rest is not None and rest >= self._fast
        nodes = self.isolated if explained else ()
        return Step(
            verdict=Verdict(
                nodes,
                self.links,
                len(self.history),
                reason or self._reason(nodes),
                rest,
                tuple(sorted(self.suspects.keys() - set(nodes))),
            )
        )

    @property
    def _fast(self) -> float:
        """What the rest of the gang must reach."""
        good = [value for found in self.pairs.values() for value in found if value >= self.cut]
        return min(self.question.threshold, REST * _reached(good, 0.5))

    def _reason(self, nodes: tuple[int, ...]) -> str:
        parts = []
        if nodes:
            parts.append("slow with every sound partner")
        elif self.isolated:
            parts.append("nodes that are slow with every sound partner do not explain it")
        if self.rest_gbps is not None:
            parts.append(f"without them the gang reaches {self.rest_gbps:.2f} GB/s")
        if self.links:
            parts.append("slow links between nodes that are sound with others")
        if parts:
            return "; ".join(parts)
        if not self.pairs:
            return "no pair could be measured"
        if self._all_slow:
            return "all pairs are slow: the threshold or the whole fabric, and not one node"
        if self.suspects or self.slow_links:
            return "some pairs are slow, and none of it can be laid on one node or link"
        return f"every pair is fast enough; {self._narrowed()}"

    def _narrowed(self) -> str:
        try:
            _, ends = self.halving
        except _UnclearError:
            return "only larger groups are slow, in more than one part"
        if ends is None:
            return "only larger groups are slow"
        if ends[0] == ends[1]:
            return f"only larger groups with node {ends[0]} are slow"
        return f"larger groups with nodes {ends[0]} and {ends[1]} are slow"


def _reached(values: Sequence[float], above: float) -> float:
    """What sound groups reach: the value with at most the share *above* of all over it."""
    ordered = sorted(values, reverse=True)
    return ordered[min(len(ordered) - 1, math.floor(above * len(ordered)))] if ordered else 0.0


class _UnclearError(Exception):
    """More than one part of the gang is slow, so halving leads nowhere."""
