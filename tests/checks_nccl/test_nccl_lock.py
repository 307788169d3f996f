"""The Lease of NCCL runs and the ownership of their namespaces (validators spec 7.2 "Execution")."""

from __future__ import annotations

import asyncio
import functools
import itertools
from dataclasses import replace
from typing import Any

import pytest
from tests.checks.contexts import Seen, put
from tests.checks_nccl.bench import NAMESPACE, NOW, RUN_ID, SHORT, lease
from tests.kube.fakeapi import FakeApi, refuse
from tests.kube.loopback import cluster, run

from aicr.checks.performance import nccl_lock
from aicr.checks.performance.nccl_lock import LOCK, OWNERSHIP, decide
from aicr.checks.sdk.context import Context
from aicr.contract import labels
from aicr.errors import CONFLICT, AicrError
from aicr.kube import kinds

Document = dict[str, Any]


@pytest.mark.parametrize(
    ("holder", "age", "taken"),
    [
        ("", 0, True),
        ("other", 1199, False),
        ("other", 1200, False),
        ("other", 1201, True),
        ("me", 10, True),
    ],
    ids=["nobody", "fresh", "at the limit", "stale", "ours"],
)
def test_a_lease_is_taken_when_it_is_nobodys(holder: str, age: float, taken: bool) -> None:
    """The version that was read is kept, so that only one of two can write."""
    there = lease(holder, age=age)
    there["metadata"]["resourceVersion"] = "7"
    if not taken:
        with pytest.raises(AicrError, match="another NCCL run holds the lock: other") as caught:
            decide(there, "me", NAMESPACE, NOW, 1200)
        assert caught.value.code == CONFLICT
        return
    made = decide(there, "me", NAMESPACE, NOW, 1200)
    assert made["spec"]["holderIdentity"] == "me"
    assert made["metadata"]["resourceVersion"] == "7"
    assert there["spec"]["holderIdentity"] == holder


def test_a_lease_without_a_time_is_stale() -> None:
    """Nobody can say that it is fresh."""
    there = {**lease("other", age=0), "spec": {"holderIdentity": "other", "renewTime": "x"}}
    assert decide(there, "me", NAMESPACE, NOW, 1200)["spec"]["holderIdentity"] == "me"


@pytest.mark.covers("V-298")
@pytest.mark.parametrize(
    ("has", "phases", "said"),
    [
        ({}, [], "is not this run's"),
        ({**OWNERSHIP, labels.RUN_ID: "another"}, [], "is not this run's"),
        ({**OWNERSHIP, labels.RUN_ID: RUN_ID}, ["Running"], "has live pods: p0"),
        ({**OWNERSHIP, labels.RUN_ID: RUN_ID}, ["Succeeded", "Pending"], "has live pods: p1"),
        ({**OWNERSHIP, labels.RUN_ID: RUN_ID}, ["Succeeded", "Failed"], ""),
    ],
    ids=["no labels", "another run", "running", "pending", "dead"],
)
def test_a_namespace_is_replaced_only_when_it_is_ours_and_dead(
    has: dict[str, str], phases: list[str], said: str
) -> None:
    """CONFLICT otherwise."""
    pods = [{"metadata": {"name": f"p{i}"}, "status": {"phase": p}} for i, p in enumerate(phases)]
    problem = nccl_lock.claim({"metadata": {"name": "n", "labels": has}}, pods, RUN_ID)
    if not said:
        assert problem is None
        return
    assert problem is not None
    assert (problem.code, said in problem.message) == (CONFLICT, True)


def test_the_namespaces_name_is_of_the_run() -> None:
    """Eight digits of the digest of its id; variants of one run differ."""
    assert nccl_lock.name_of("default", "run-1") == "aicr-nccl-perf-default-4e65d3fb"
    names = {nccl_lock.name_of(word, RUN_ID) for word in ("default", "net", "nvls")}
    assert len(names) == 3
    assert {name[-8:] for name in names} == {nccl_lock.name_of("net", RUN_ID)[-8:]}


def with_lock(act: Any, *stored: Document, faults: tuple[tuple[str, Any], ...] = ()) -> Seen:
    """Run *act* with a context on a fake cluster that has the Leases *stored*."""
    seen = Seen()

    async def scenario() -> None:
        async with cluster(FakeApi()) as (api, client):
            await put(api, kinds.LEASE, *stored)
            for pattern, answer in faults:
                api.next(pattern, answer, times=20)
            context = seen.context(
                client,
                run_id=RUN_ID,
                namespace=NAMESPACE,
                wall=functools.partial(next, itertools.count(int(NOW))),
                timeouts=replace(SHORT, nccl_lock_stale_age=0.2),
            )
            await act(context, api)

    run(scenario())
    return seen


async def _renewed(api: FakeApi) -> None:
    async with api.changed:
        await api.changed.wait_for(
            lambda: sum(1 for _, kind, *_ in api.history if kind == "MODIFIED") > 1
        )


def test_a_lock_is_renewed_while_it_is_held_and_gone_afterwards() -> None:
    """Renewals keep others away for as long as it takes."""

    async def act(context: Context, api: FakeApi) -> None:
        async with nccl_lock.held(context) as lock:
            await _renewed(api)
            assert not await nccl_lock.lost(context, lock)
        assert not api.objects["leases.coordination.k8s.io"]

    with_lock(act)


def test_a_lock_that_somebody_took_over_is_lost_and_stays_theirs() -> None:
    """Our namespace is left alone, with the command, and the Lease is not deleted."""

    async def act(context: Context, api: FakeApi) -> None:
        async with nccl_lock.held(context) as lock:
            async with nccl_lock.namespace(context, lock, "default") as mine:
                (there,) = api.objects["leases.coordination.k8s.io"].values()
                theirs = {**there, "spec": {**there["spec"], "holderIdentity": "thief"}}
                await api.store("MODIFIED", kinds.LEASE, theirs)
            assert ("", mine.name) in api.objects["namespaces"]
            assert mine.problem is None
        (left,) = api.objects["leases.coordination.k8s.io"].values()
        assert left["spec"]["holderIdentity"] == "thief"

    assert "the lock is lost; left alone: kubectl delete namespaces" in with_lock(act).log


def test_two_that_take_a_free_lock_at_once_get_one() -> None:
    """The one whose write is refused stops with CONFLICT."""

    async def act(context: Context, api: FakeApi) -> None:
        with pytest.raises(AicrError, match="faster to take the lock") as caught:
            async with nccl_lock.held(context):
                raise AssertionError
        assert caught.value.code == CONFLICT

    with_lock(act, faults=(("POST .*/leases", refuse(409, "AlreadyExists", "there")),))


def test_a_cancelled_run_takes_its_namespace_and_lock_back() -> None:
    """As when the time of the check is over."""

    async def act(context: Context, api: FakeApi) -> None:
        made = asyncio.Event()

        async def work() -> None:
            async with (
                nccl_lock.held(context) as lock,
                nccl_lock.namespace(context, lock, "net"),
            ):
                made.set()
                await asyncio.sleep(60)

        task = asyncio.create_task(work())
        await made.wait()
        assert api.objects["namespaces"]
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not api.objects["namespaces"]
        assert not api.objects["leases.coordination.k8s.io"]

    assert LOCK == "aicr-nccl-run-lock"
    with_lock(act)
