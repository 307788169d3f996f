"""How well a slow node or link of a gang is found: simulated gangs with noise, a row for each fault.

    python -m benchmarks.bench_localisation [--runs 200] [--seed 1] [--noise 0.1]

Run from the root of a checkout. The planner is the product's; only the measurements are made up: a healthy
group reaches 100 GB/s, the threshold is 85, a fault leaves 20 to 70 %, and every measurement is off by
up to the noise. Targets (decision 77): recall 0.95 for one node, 0.9 for two, three or one link, no false
blame, and at most 2·log2(N)+4 rounds. "False blame" counts nodes, of all runs, that were named and are
sound; the last rows have no node to blame at all.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tests.preflight_allreduce.slow_fabric import Fabric, localise, pairs

from aicr.preflight.checks.allreduce.questions import budget

SIZES: Final = (8, 12, 16, 24, 32, 64, 96, 128, 256, 512)


@dataclass
class Score:
    """Sums over the runs of one row."""

    wanted: int = 0
    found: int = 0
    named: int = 0
    false: int = 0
    rounds: int = 0
    most: int = 0


def _severity(chance: random.Random) -> float:
    return chance.uniform(0.2, 0.7)


def bad_nodes(count: int) -> Callable[[int, random.Random], Fabric]:
    """A gang with *count* slow nodes."""

    def made(nodes: int, chance: random.Random) -> Fabric:
        return Fabric(
            nodes, {node: _severity(chance) for node in chance.sample(range(nodes), count)}
        )

    return made


def ring_link(nodes: int, chance: random.Random) -> Fabric:
    """One slow link between neighbours of the ring that the collective uses."""
    first = chance.randrange(nodes)
    link = tuple(sorted((first, (first + 1) % nodes)))
    return Fabric(nodes, slow_links={(link[0], link[1]): _severity(chance)})


def any_link(nodes: int, chance: random.Random) -> Fabric:
    """One slow link between any two nodes, which every group with both uses."""
    return Fabric(nodes, slow_links={chance.choice(pairs(nodes)): _severity(chance)}, ring=False)


def slow_uplink(nodes: int, chance: random.Random) -> Fabric:
    """A leaf switch of four nodes that is slow to all others: no node is at fault."""
    leaf_of = {node: node // 4 for node in range(nodes)}
    return Fabric(
        nodes, leaf_of=leaf_of, slow_uplinks={chance.randrange(nodes // 4): _severity(chance)}
    )


def crowded(nodes: int, chance: random.Random) -> Fabric:
    """A fabric that is slow only when many talk at once."""
    return Fabric(nodes, crowded=(max(3, nodes // 2), _severity(chance)))


def all_slow(nodes: int, chance: random.Random) -> Fabric:
    """A threshold that this fabric never reaches."""
    return Fabric(nodes, everything=_severity(chance))


KINDS: Final[dict[str, tuple[Callable[[int, random.Random], Fabric], float]]] = {
    "one node": (bad_nodes(1), 0.95),
    "two nodes": (bad_nodes(2), 0.9),
    "three nodes": (bad_nodes(3), 0.9),
    "one ring link": (ring_link, 0.9),
    "one link of any two": (any_link, 0.9),
    "slow leaf uplink": (slow_uplink, 0.0),
    "slow when crowded": (crowded, 0.0),
    "all slow": (all_slow, 0.0),
}


def score(kind: str, nodes: int, runs: int, seed: int, noise: float) -> Score:
    """Simulate *runs* gangs of one kind and size."""
    total = Score()
    for run in range(runs):
        chance = random.Random(f"{seed}/{kind}/{nodes}/{run}")
        fabric = KINDS[kind][0](nodes, chance)
        fabric.noise, fabric.chance = noise, chance
        verdict = localise(fabric)
        wanted: set[object] = {*fabric.slow_nodes, *fabric.slow_links}
        named: set[object] = {*verdict.nodes, *verdict.links}
        total.wanted += len(wanted)
        total.named += len(named)
        total.found += len(wanted & named)
        total.false += len(set(verdict.nodes) - set(fabric.slow_nodes))
        total.rounds += verdict.rounds
        total.most = max(total.most, verdict.rounds)
    return total


def main() -> int:
    """Print the table; 1 when a target is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--noise", type=float, default=0.1)
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}, {arguments.runs} gangs a row, noise ±{arguments.noise:.0%}\n")
    print("| fault | nodes | recall | precision | false blame | rounds, mean | most | allowed |")
    print("|---|---|---|---|---|---|---|---|")
    missed = 0
    for kind, (_, target) in KINDS.items():
        for nodes in SIZES:
            one = score(kind, nodes, arguments.runs, arguments.seed, arguments.noise)
            recall = one.found / one.wanted if one.wanted else 1.0
            precision = one.found / one.named if one.named and one.wanted else 1.0
            shown = f"{recall:.3f} | {precision:.3f}" if one.wanted else "– | –"
            good = recall >= target and not one.false and one.most <= budget(nodes)
            missed += not good
            print(
                f"| {kind} | {nodes} | {shown} | {one.false} | {one.rounds / arguments.runs:.1f} "
                f"| {one.most} | {budget(nodes)} |{'' if good else ' MISSED'}",
                flush=True,
            )
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
