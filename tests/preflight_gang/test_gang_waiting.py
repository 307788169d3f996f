"""Waiting times, pauses between writes, and questions that are asked once for many."""

from __future__ import annotations

import asyncio

import pytest

from aicr.errors import SERVICE_UNAVAILABLE, AicrError
from aicr.preflight.controller.pace import Pace
from aicr.preflight.gang.coordination import Rules
from aicr.preflight.gang.reading import Shared
from aicr.preflight.gang.registration import ARRIVAL
from aicr.preflight.times import Times


def test_the_products_waiting_times_are_these() -> None:
    """Decision 67: tests shorten them, so the real ones are said here."""
    assert Times() == Times(
        coalesce=0.1,
        stale=0.0,
        stale_again=0.5,
        absent=2.0,
        forming=10.0,
        unused=3600.0,
        invalid=60.0,
        admission=2.5,
        longest=10.0,
    )
    assert Rules() == Rules(settle=5.0, hold=120.0)
    assert ARRIVAL == 30.0


class Clock:
    """Time that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        """The time."""
        return self.now


@pytest.mark.parametrize(("members", "cap"), [(4, 1.0), (200, 6.0), (1024, 30.0), (9000, 30.0)])
def test_pauses_between_writes_double_up_to_a_limit_by_size(members: int, cap: float) -> None:
    """The first write is at once; the pause of a small gang never exceeds a second."""
    clock = Clock()
    pace = Pace(clock)
    assert pace.pause("g", members) == 0.0
    pauses = []
    for _ in range(14):
        pace.wrote("g", anew=False)
        pauses.append(pace.pause("g", members))
        clock.now += pauses[-1]
        assert pace.pause("g", members) == pytest.approx(0.0)
    assert pauses[:3] == pytest.approx([0.1, 0.2, 0.4])
    assert pauses[-1] == pytest.approx(cap)


def test_a_new_membership_begins_with_short_pauses_again() -> None:
    """And a gang that is forgotten with none."""
    clock = Clock()
    pace = Pace(clock)
    for _ in range(8):
        pace.wrote("g", anew=False)
    pace.wrote("g", anew=True)
    assert pace.pause("g", 1024) == pytest.approx(0.1)
    pace.forget("g")
    assert pace.pause("g", 1024) == 0.0


def test_ten_minutes_of_addresses_are_fewer_than_forty_writes() -> None:
    """A thousand members that come evenly over the longest time that a gang has by default."""
    clock = Clock()
    pace = Pace(clock)
    writes = 0
    for _ in range(6000):
        clock.now += 0.1
        if pace.pause("g", 1024) == 0.0:
            pace.wrote("g", anew=False)
            writes += 1
    assert writes < 40


def test_questions_that_overlap_are_one_and_its_answer_serves_for_a_moment() -> None:
    """Then it is asked again; `forget` ends the moment."""

    async def body() -> None:
        clock, asked = Clock(), 0
        shared: Shared[int] = Shared(clock)

        async def ask() -> int:
            nonlocal asked
            asked += 1
            await asyncio.sleep(0)
            return asked

        assert await asyncio.gather(*(shared.get("k", ask) for _ in range(5))) == [1] * 5
        clock.now += 1.0
        assert await shared.get("k", ask) == 1
        clock.now += 0.1
        assert await shared.get("k", ask) == 2
        shared.forget("k")
        assert await shared.get("k", ask) == 3
        assert await shared.get("other", ask) == 4

    asyncio.run(body())


def test_a_failure_is_told_to_all_who_waited_and_is_not_kept() -> None:
    """And one who gives up does not take the answer from the others."""

    async def body() -> None:
        shared: Shared[int] = Shared(Clock())
        gate = asyncio.Event()

        async def fail() -> int:
            await gate.wait()
            raise AicrError(SERVICE_UNAVAILABLE, "down")

        waiting = [asyncio.ensure_future(shared.get("k", fail)) for _ in range(2)]
        await asyncio.sleep(0)
        gate.set()
        results = await asyncio.gather(*waiting, return_exceptions=True)
        assert [str(one) for one in results] == ["[SERVICE_UNAVAILABLE] down"] * 2

        async def answer() -> int:
            await asyncio.sleep(0.01)
            return 7

        first = asyncio.ensure_future(shared.get("k", answer))
        second = asyncio.ensure_future(shared.get("k", answer))
        await asyncio.sleep(0)
        first.cancel()
        assert await second == 7

    asyncio.run(body())


def test_old_answers_are_let_go() -> None:
    """A webhook lives for months and sees many gangs."""

    async def body() -> None:
        clock = Clock()
        shared: Shared[int] = Shared(clock)

        async def ask() -> int:
            return 1

        for number in range(3000):
            clock.now += 0.01
            await shared.get(number, ask)
            await asyncio.sleep(0)
        assert len(shared._answers) <= 1024

    asyncio.run(body())
