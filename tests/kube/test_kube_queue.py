"""Keys to reconcile: once each, never two at a time, later again after a failure."""

from __future__ import annotations

import asyncio

import pytest
from tests.kube.virtual_time import now, run

from aicr.errors import INTERNAL, SERVICE_UNAVAILABLE, AicrError
from aicr.kube.queue import DONE, Queue, Result, work


def queue() -> Queue[str]:
    """A queue without jitter."""
    return Queue(first=1.0, longest=8.0, random=lambda: 0.0)


def test_a_key_that_waits_is_one_piece_of_work() -> None:
    """Added three times, handed out once; in the order of the first adding."""

    async def body() -> None:
        made = queue()
        for key in ("a", "b", "a", "a"):
            made.add(key)
        assert len(made) == 2
        assert [await made.get(), await made.get()] == ["a", "b"]
        assert len(made) == 0

    run(body())


def test_a_key_added_while_it_is_worked_on_comes_again_afterwards() -> None:
    """Nobody else gets it meanwhile, and the change is not missed."""

    async def body() -> None:
        made = queue()
        made.add("a")
        assert await made.get() == "a"
        made.add("a")
        made.add("a")
        assert len(made) == 0
        made.done("a")
        assert await made.get() == "a"
        made.done("a")
        assert len(made) == 0

    run(body())


def test_failures_pause_longer_each_time_until_forgotten() -> None:
    """Doubling up to the limit; a success starts anew."""

    async def body() -> None:
        made = queue()
        times = []
        for _ in range(5):
            began = now()
            made.add_failed("a")
            assert await made.get() == "a"
            times.append(now() - began)
            made.done("a")
        assert times == [1, 2, 4, 8, 8]
        assert made.failures("a") == 5
        made.forget("a")
        assert made.add_failed("a") == 1

    run(body())


def test_of_several_wishes_the_earliest_counts() -> None:
    """And adding at once ends a pause."""

    async def body() -> None:
        made = queue()
        made.add_after("a", 10)
        made.add_after("a", 3)
        made.add_after("a", 20)
        assert await made.get() == "a"
        assert now() == 3
        made.done("a")
        made.add_after("b", 50)
        made.add("b")
        assert await made.get() == "b"
        made.done("b")
        assert now() == 3
        made.add_after("c", 0)
        assert len(made) == 1
        await asyncio.sleep(100)
        assert len(made) == 1

    run(body())


def test_a_shut_queue_hands_out_what_waits_and_then_ends_everybody() -> None:
    """Nothing new, nothing delayed."""

    async def body() -> None:
        made = queue()
        made.add("a")
        made.add_after("late", 5)
        made.shut()
        made.add("b")
        made.add_after("c", 1)
        assert await made.get() == "a"
        made.done("a")
        assert set(await asyncio.gather(made.get(), made.get())) == {None}

    run(body())


def test_workers_share_keys_and_never_one_key() -> None:
    """Each key is serial; different keys are not."""

    async def body() -> None:
        made = queue()
        active: list[str] = []
        most = 0
        done: list[str] = []

        async def reconcile(key: str) -> Result:
            nonlocal most
            assert key not in active
            active.append(key)
            most = max(most, len(active))
            if len(done) < 4:
                made.add(key)
            await asyncio.sleep(1)
            active.remove(key)
            done.append(key)
            if len(done) >= 6:
                made.shut()
            return DONE

        for key in ("a", "b"):
            made.add(key)
        await work(made, reconcile, workers=3)
        assert most == 2
        assert set(done) == {"a", "b"}

    run(body())


def test_results_decide_when_a_key_comes_again() -> None:
    """Done, again after a while, or a failure that is tried again."""

    async def body() -> None:
        made = queue()
        seen: list[tuple[float, int]] = []

        async def reconcile(key: str) -> Result:
            seen.append((now(), made.failures(key)))
            if len(seen) == 1:
                raise AicrError(SERVICE_UNAVAILABLE, "not now")
            if len(seen) == 2:
                return Result(requeue_after=30)
            made.shut()
            return DONE

        made.add("a")
        await work(made, reconcile)
        assert seen == [(0, 0), (1, 1), (31, 0)]

    run(body())


def test_a_mistake_in_a_reconciler_ends_the_work() -> None:
    """It is not retried for ever in silence."""

    async def body() -> None:
        made = queue()

        async def reconcile(key: str) -> Result:
            raise KeyError(key)

        made.add("a")
        with pytest.raises(ExceptionGroup) as caught:
            await work(made, reconcile)
        error = caught.value.exceptions[0]
        assert isinstance(error, AicrError)
        assert error.code == INTERNAL
        assert "reconciling a failed: KeyError" in error.message

    run(body())
