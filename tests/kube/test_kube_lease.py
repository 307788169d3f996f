"""Leader election: what is written when, and that never two lead."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from tests.kube.virtual_time import now, run

from aicr.errors import CONFLICT, NOT_FOUND, SERVICE_UNAVAILABLE, TIMEOUT, AicrError
from aicr.kube import lease
from aicr.kube.kinds import LEASE
from aicr.kube.lease import Decision, Elector, Seen, Terms
from aicr.kube.port import Cluster, Document

START = datetime(2026, 11, 30, 10, tzinfo=UTC)
TERMS = Terms()


def held(by: str, **spec: Any) -> Document:
    """A Lease as another writes it."""
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "l", "namespace": "n", "resourceVersion": "7"},
        "spec": {
            "holderIdentity": by,
            "leaseDurationSeconds": 15,
            "acquireTime": "2026-11-30T09:00:00.000000Z",
            "renewTime": "2026-11-30T09:59:59.000000Z",
            "leaseTransitions": 3,
            **spec,
        },
    }


def decide(found: Document | None, seen: Seen | None = None, clock: float = 100.0) -> Decision:
    """What "me" decides."""
    return lease.decide(
        found,
        identity="me",
        name="l",
        namespace="n",
        terms=TERMS,
        seen=seen,
        clock=clock,
        now=START,
    )


def spec_of(decision: Decision) -> dict[str, Any]:
    """The spec that is to be written."""
    assert decision.document is not None
    spec: dict[str, Any] = decision.document["spec"]
    return spec


def test_a_lease_that_is_not_there_is_made() -> None:
    """With the fields that other electors read."""
    decision = decide(None)
    assert spec_of(decision) == {
        "holderIdentity": "me",
        "leaseDurationSeconds": 15,
        "acquireTime": "2026-11-30T10:00:00.000000Z",
        "renewTime": "2026-11-30T10:00:00.000000Z",
        "leaseTransitions": 0,
    }
    assert decision.document is not None
    assert decision.document["metadata"] == {"name": "l", "namespace": "n"}


def test_a_lease_of_another_is_left_until_it_has_not_changed_for_its_duration_here() -> None:
    """Its renewTime is not compared with our clock: the clocks may differ by hours."""
    found = held("you", renewTime="2020-01-01T00:00:00.000000Z")
    first = decide(found, clock=100)
    assert (first.document, first.holder) == (None, "you")
    assert decide(found, first.seen, 114.9).document is None
    taken = decide(found, first.seen, 115)
    assert spec_of(taken)["holderIdentity"] == "me"
    assert spec_of(taken)["leaseTransitions"] == 4
    assert spec_of(taken)["acquireTime"] == "2026-11-30T10:00:00.000000Z"
    assert taken.document is not None
    assert taken.document["metadata"]["resourceVersion"] == "7"


def test_a_renewal_by_another_starts_the_wait_anew() -> None:
    """Any change of the record counts."""
    first = decide(held("you"), clock=100)
    renewed = held("you", renewTime="2026-11-30T10:00:09.000000Z")
    second = decide(renewed, first.seen, 114)
    assert decide(renewed, second.seen, 128).document is None
    assert decide(renewed, second.seen, 129).document is not None


def test_the_duration_that_counts_is_the_holders() -> None:
    """Replicas may be configured differently during an upgrade."""
    found = held("you", leaseDurationSeconds=60)
    first = decide(found, clock=0)
    assert decide(found, first.seen, 59).document is None
    assert decide(found, first.seen, 60).document is not None


def test_a_renewal_of_our_own_keeps_what_it_does_not_change() -> None:
    """acquireTime, transitions and fields of others."""
    spec = spec_of(decide(held("me", strategy="OldestEmulationVersion")))
    assert spec["acquireTime"] == "2026-11-30T09:00:00.000000Z"
    assert spec["leaseTransitions"] == 3
    assert spec["renewTime"] == "2026-11-30T10:00:00.000000Z"
    assert spec["strategy"] == "OldestEmulationVersion"


def test_a_lease_that_was_given_back_is_taken_at_once() -> None:
    """Nobody holds it."""
    spec = spec_of(decide(held("", leaseDurationSeconds=1)))
    assert (spec["holderIdentity"], spec["leaseTransitions"]) == ("me", 4)


def test_only_our_own_lease_is_given_back() -> None:
    """A lease that somebody took over is theirs."""
    assert lease.release(held("you"), "me", START) is None
    given = lease.release(held("me"), "me", START)
    assert given is not None
    assert given["spec"]["holderIdentity"] == ""
    assert given["spec"]["leaseDurationSeconds"] == 1


@pytest.mark.parametrize("terms", [(15, 15, 2), (15, 10, 9), (10, 15, 2), (15, 10, 0)])
def test_times_that_could_give_two_leaders_are_refused(terms: tuple[float, float, float]) -> None:
    """A leader must have stopped before another may start."""
    with pytest.raises(AicrError):
        Terms(*terms)


class Leases:
    """The part of the port that electors use, in memory; can be made to fail."""

    def __init__(self) -> None:
        self.stored: Document | None = None
        self.version = 0
        self.down: set[str] = set()
        #: Replica → seconds that the answer to a write takes to reach it.
        self.late: dict[str, float] = {}
        self.hanging = False

    def seen_by(self, who: str) -> Cluster:
        """The port as one replica has it."""
        return cast("Cluster", _View(self, who))


class _View:
    def __init__(self, leases: Leases, who: str) -> None:
        self._leases = leases
        self._who = who

    async def _reach(self) -> None:
        await asyncio.sleep(0.01)
        if self._leases.hanging:
            await asyncio.sleep(10_000)
        if self._who in self._leases.down:
            raise AicrError(SERVICE_UNAVAILABLE, "connection refused")

    async def get(self, kind: object, name: str, *, namespace: str) -> Document:
        assert kind is LEASE
        await self._reach()
        if self._leases.stored is None:
            raise AicrError(NOT_FOUND, "no lease")
        return self._leases.stored

    async def create(self, document: Mapping[str, Any]) -> Document:
        await self._reach()
        if self._leases.stored is not None:
            raise AicrError(CONFLICT, "exists")
        return await self._written(document)

    async def update(self, document: Mapping[str, Any]) -> Document:
        await self._reach()
        if document["metadata"]["resourceVersion"] != str(self._leases.version):
            raise AicrError(CONFLICT, "changed")
        return await self._written(document)

    async def _written(self, document: Mapping[str, Any]) -> Document:
        written = self._write(document)
        await asyncio.sleep(self._leases.late.get(self._who, 0.0))
        return written

    def _write(self, document: Mapping[str, Any]) -> Document:
        self._leases.version += 1
        version = str(self._leases.version)
        metadata = {**document["metadata"], "resourceVersion": version}
        self._leases.stored = {**document, "metadata": metadata}
        return self._leases.stored


class Scene:
    """Replicas in virtual time, and who led when."""

    def __init__(self) -> None:
        self.leases = Leases()
        self.leading: set[str] = set()
        self.log: list[tuple[str, str]] = []

    def elector(self, who: str) -> Elector:
        """A replica."""
        return Elector(
            *(self.leases.seen_by(who), "l", "n", who),
            clock=now,
            now=lambda: START + timedelta(seconds=now()),
            random=lambda: 0.5,
        )

    def work(self, who: str, seconds: float = 1e6) -> Callable[[], Any]:
        """What a leader does; fails if another does it too."""

        async def led() -> None:
            assert not self.leading
            self.leading.add(who)
            self.log.append((who, "leads"))
            try:
                await asyncio.sleep(seconds)
            finally:
                self.leading.discard(who)
                self.log.append((who, "stops"))

        return led


def test_of_several_replicas_one_leads_at_a_time() -> None:
    """When its work is done the next takes over, in a moment."""

    async def body() -> None:
        scene = Scene()
        await asyncio.gather(
            *(scene.elector(who).lead(scene.work(who, 100)) for who in ("a", "b", "c"))
        )
        assert len(scene.log) == 6
        assert all(what == "leads" for _, what in scene.log[::2])
        assert now() < 315

    run(body())


@pytest.mark.parametrize("how", ["refused", "hanging"])
def test_a_leader_that_cannot_renew_stops_before_another_starts(how: str) -> None:
    """Work is cancelled and TIMEOUT raised; the other waits out the lease."""

    async def body() -> None:
        scene = Scene()
        first = asyncio.ensure_future(scene.elector("a").lead(scene.work("a")))
        await asyncio.sleep(5)
        second = asyncio.ensure_future(scene.elector("b").lead(scene.work("b", 3)))
        await asyncio.sleep(30)
        assert scene.log == [("a", "leads")]
        if how == "refused":
            scene.leases.down.add("a")
            await asyncio.wait({first, second}, return_when=asyncio.ALL_COMPLETED)
        else:
            scene.leases.hanging = True
            await asyncio.wait({first})
            scene.leases.hanging = False
            second.cancel()
            await asyncio.wait({second})
        error = first.exception()
        assert isinstance(error, AicrError)
        assert error.code == TIMEOUT
        assert scene.log[:2] == [("a", "leads"), ("a", "stops")]
        if how == "refused":
            assert scene.log[2:] == [("b", "leads"), ("b", "stops")]

    run(body())


def test_an_error_of_the_work_gives_the_lease_back() -> None:
    """The error is passed on; the next leader need not wait."""

    async def body() -> None:
        scene = Scene()

        async def failing() -> None:
            raise AicrError(CONFLICT, "no")

        with pytest.raises(AicrError):
            await scene.elector("a").lead(failing)
        assert scene.leases.stored is not None
        assert scene.leases.stored["spec"]["holderIdentity"] == ""

    run(body())


def test_a_leader_that_is_cancelled_stops_its_work_and_gives_back() -> None:
    """As at the end of a process."""

    async def body() -> None:
        scene = Scene()
        elector = scene.elector("a")
        task = asyncio.ensure_future(elector.lead(scene.work("a")))
        await asyncio.sleep(5)
        assert elector.is_leader
        task.cancel()
        await asyncio.wait({task})
        assert scene.log == [("a", "leads"), ("a", "stops")]
        assert not elector.is_leader
        assert scene.leases.stored is not None
        assert scene.leases.stored["spec"]["holderIdentity"] == ""

    run(body())


def test_a_lease_taken_by_force_ends_the_leader() -> None:
    """Somebody edited it: the holder it names is believed."""

    async def body() -> None:
        scene = Scene()
        task = asyncio.ensure_future(scene.elector("a").lead(scene.work("a")))
        await asyncio.sleep(5)
        stored = scene.leases.stored
        assert stored is not None
        scene.leases.stored = {**stored, "spec": {**stored["spec"], "holderIdentity": "x"}}
        await asyncio.wait({task})
        assert isinstance(task.exception(), AicrError)
        assert scene.log == [("a", "leads"), ("a", "stops")]
        assert scene.leases.stored["spec"]["holderIdentity"] == "x"

    run(body())


def test_a_replica_waits_while_the_server_is_away() -> None:
    """And an identity is needed."""

    async def body() -> None:
        scene = Scene()
        scene.leases.down.add("a")
        task = asyncio.ensure_future(scene.elector("a").acquire())
        await asyncio.sleep(60)
        assert not task.done()
        scene.leases.down.clear()
        await task
        with pytest.raises(AicrError):
            scene.elector("")

    run(body())


@pytest.mark.parametrize("seconds", [8.0, 9.9])
def test_an_answer_that_comes_late_does_not_make_a_leader_stay_too_long(seconds: float) -> None:
    """Others count from when the lease was written, not from when the writer hears of it."""

    async def body() -> None:
        scene = Scene()
        scene.leases.late["a"] = seconds
        first = asyncio.ensure_future(scene.elector("a").lead(scene.work("a")))
        await asyncio.sleep(0.1)
        second = asyncio.ensure_future(scene.elector("b").lead(scene.work("b", 3)))
        await asyncio.sleep(seconds)
        scene.leases.down.add("a")
        await asyncio.wait({first, second}, return_when=asyncio.ALL_COMPLETED)
        error = first.exception()
        assert isinstance(error, AicrError)
        assert error.code == TIMEOUT
        assert second.exception() is None
        assert [who for who, what in scene.log if what == "leads"] == ["a", "b"]

    run(body())


def test_an_answer_that_comes_too_late_makes_no_leader() -> None:
    """Another may be about to start by then; the attempt is made again."""

    async def body() -> None:
        scene = Scene()
        scene.leases.late["a"] = 14.0
        elector = scene.elector("a")
        task = asyncio.ensure_future(elector.lead(scene.work("a", 1)))
        await asyncio.sleep(9.9)
        assert scene.log == []
        scene.leases.late.clear()
        await task
        assert now() > 10
        assert scene.log == [("a", "leads"), ("a", "stops")]

    run(body())


def test_the_duration_that_others_wait_is_never_shorter_than_ours() -> None:
    """Whole seconds are written: 1.4 as 2, because with 1 another would start too soon."""
    found = lease.decide(
        None,
        identity="me",
        name="l",
        namespace="n",
        terms=Terms(1.4, 1.2, 0.5),
        seen=None,
        clock=0.0,
        now=START,
    )
    assert spec_of(found)["leaseDurationSeconds"] == 2
