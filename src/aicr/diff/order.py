"""Which components of a deployment order really moved.

A component that is new pushes all others down without any of them moving. What stays in its order is
the longest run that both orders have in common; only the rest moved.
"""

from __future__ import annotations

from aicr.diff.changes import MOVED, Change

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_FIRST = "first"


def compare(before: Sequence[str], after: Sequence[str]) -> list[Change]:
    """The components that moved, in the new order; each side names what comes right before it."""
    place = {name: index for index, name in enumerate(after)}
    common = [name for name in before if name in place]
    kept = set(_longest_rising([place[name] for name in common]))
    moved = sorted(
        (name for name in common if place[name] not in kept), key=lambda name: place[name]
    )
    return [
        Change(
            "order",
            component=name,
            change=MOVED,
            before=_predecessor(before, name),
            after=_predecessor(after, name),
        )
        for name in moved
    ]


def _predecessor(order: Sequence[str], name: str) -> str:
    index = list(order).index(name)
    return f"after {order[index - 1]}" if index else _FIRST


def _longest_rising(numbers: Sequence[int]) -> list[int]:
    """The longest strictly rising subsequence."""
    from bisect import bisect_left

    tails: list[int] = []
    chain: list[int] = []
    ends: list[int] = []
    previous: list[int] = []
    for index, number in enumerate(numbers):
        spot = bisect_left(tails, number)
        previous.append(ends[spot - 1] if spot else -1)
        if spot == len(tails):
            tails.append(number)
            ends.append(index)
        else:
            tails[spot] = number
            ends[spot] = index
    index = ends[-1] if ends else -1
    while index >= 0:
        chain.append(numbers[index])
        index = previous[index]
    return chain[::-1]
