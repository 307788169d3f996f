"""The gang controller on a server: what it writes as pods come and go, and what it survives."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from tests.kube.fakeapi import refuse
from tests.kube.loopback import run
from tests.preflight_gang.builders import MAP, pod_document
from tests.preflight_gang.world import (
    TIMES,
    TOGETHER,
    VOLCANO_GROUP,
    Recorded,
    complete,
    members,
    quiet,
    until,
    volcano_group,
    world,
)

from aicr.kube.kinds import CONFIG_MAP, POD
from aicr.preflight import names
from aicr.preflight.gang import configmap as cm
from aicr.preflight.gang import naming

Document = dict[str, Any]


@pytest.mark.covers("P-129", "P-131")
def test_a_gang_is_written_as_its_pods_get_addresses() -> None:
    """From nothing to complete; what happened is logged for operators and counted."""

    async def body() -> None:
        metrics = Recorded()
        async with world(metrics=metrics, times=TOGETHER) as made:
            await made.put(volcano_group(), *members(addresses=False))
            await until(lambda: made.state().expected == 3, "the size")
            assert made.names() == []
            await made.put(*members(2))
            await until(lambda: made.names() == ["w-0", "w-1"], "two peers")
            await made.put(members()[2])
            await until(lambda: made.state().complete, "the gang")
            document = made.get()
            assert document is not None
            assert document["metadata"]["ownerReferences"][0]["uid"] == "group-1"
            assert document["metadata"]["labels"][names.MANAGED_BY_LABEL] == "preflight"
            await quiet()
            assert made.writes("configmaps") <= 4
            assert metrics.told[0] == ("leading", True)
            assert ("completed", 3) in metrics.told
            assert ("written", "created") in metrics.told

    run(body())


@pytest.mark.covers("J1")
def test_a_replaced_pod_makes_the_next_generation() -> None:
    """On a server, with real events."""

    async def body() -> None:
        async with world() as made:
            await complete(made)
            await made.remove(POD, "w-1")
            await until(lambda: made.state().generation == 2, "the next generation")
            assert made.names() == ["w-0", "w-2"]
            await made.put(pod_document("w-1-x7k2", "10.0.9.9"))
            await until(lambda: made.state().complete, "the gang")
            assert made.names() == ["w-0", "w-1-x7k2", "w-2"]
            assert made.state().expected == 3

    run(body())


@pytest.mark.covers("J4", "P11-85")
def test_a_gang_that_is_gone_leaves_an_empty_config_map_and_the_next_starts_anew() -> None:
    """Nobody can read the old peers; its owner's collection is the garbage collector's work."""

    async def body() -> None:
        async with world() as made:
            await complete(made)
            for n in range(3):
                await made.remove(POD, f"w-{n}")
            await until(lambda: made.state().expected == 0, "the empty gang")
            assert made.names() == []
            assert made.state().generation == 2
            await quiet()
            # It has an owner, so nothing of ours deletes it.
            assert not any(line.startswith("DELETE") for line in made.api.seen)
            await made.put(
                volcano_group(2, uid="group-2"),
                *(pod_document(f"w-{n}", f"10.1.0.{n}", uid=f"new-{n}") for n in range(2)),
            )
            await until(lambda: made.state().complete, "the second gang")
            assert made.state().expected == 2
            assert made.state().generation == 2
            document = made.get()
            assert document is not None
            assert [one["uid"] for one in document["metadata"]["ownerReferences"]] == ["group-2"]

    run(body())


@pytest.mark.covers("J12", "P11-80")
def test_conflicts_are_retried_on_fresh_data() -> None:
    """Three times 409 and then it works; what the other wrote is still there."""

    async def body() -> None:
        async with world() as made:
            await made.put(volcano_group(), *members(addresses=False))
            await until(lambda: made.state().expected == 3, "the size")
            conflict = refuse(409, "Conflict", "modified", details={"name": MAP})
            made.api.next("PUT .*/configmaps", conflict, times=3)
            document = made.get()
            assert document is not None
            document["data"]["note"] = "x"
            await made.put(document, *members())
            await until(lambda: made.state().complete, "the gang")
            document = made.get()
            assert document is not None
            assert document["data"]["note"] == "x"

    run(body())


@pytest.mark.covers("J12")
def test_a_config_map_that_somebody_deleted_is_made_again() -> None:
    """Complete as it was, under a generation that was not used before (known bug S14)."""

    async def body() -> None:
        async with world() as made:
            await complete(made)
            await made.remove(CONFIG_MAP, MAP)
            await until(lambda: made.get() is not None, "the ConfigMap")
            assert made.names() == ["w-0", "w-1", "w-2"]
            assert made.state().generation == 2

    run(body())


@pytest.mark.covers("P11-85")
def test_a_config_map_that_went_with_its_group_is_not_made_again() -> None:
    """Until the group is there again."""

    async def body() -> None:
        async with world() as made:
            await complete(made)
            await made.remove(VOLCANO_GROUP, "train")
            await asyncio.sleep(1.05)
            await made.remove(CONFIG_MAP, MAP)
            await quiet()
            assert made.get() is None
            await made.put(volcano_group(uid="group-2"))
            await until(lambda: made.get() is not None and made.state().complete, "the gang")

    run(body())


@pytest.mark.covers("J12")
def test_pods_that_went_while_the_watch_was_expired_are_noticed() -> None:
    """410: listed again, and who is gone leaves."""

    async def body() -> None:
        async with world() as made:
            await complete(made)
            async with made.api.changed:
                made.api.version += 1
                del made.api.objects[POD.qualified]["team-a", "w-2"]
            await made.api.forget_history()
            await made.api.cut()
            await until(lambda: made.names() == ["w-0", "w-1"], "the loss to be noticed")
            assert made.state().generation == 2

    run(body())


def test_nothing_is_decided_on_a_cache_that_lost_its_server() -> None:
    """Pods of an old cache may be gone, and pods that it lacks may be there: nothing is written."""

    async def body() -> None:
        async with world() as made:
            await complete(made)
            down = refuse(503, "ServiceUnavailable", "down")
            made.api.next("GET /api/v1/pods", down, times=10_000)
            await made.api.cut()
            await made.remove(POD, "w-1")
            document = made.get()
            assert document is not None
            document["data"][cm.PEERS] = "spoiled"
            await made.put(document)
            await quiet()
            assert made.state().peers == ()
            assert made.state().generation == 1
            made.api.scripted.clear()
            await until(lambda: made.names() == ["w-0", "w-2"], "the loss to be noticed")
            assert made.state().generation == 2

    run(body())


@pytest.mark.covers("P11-69", "P-157")
def test_a_group_that_comes_late_gives_size_and_owner() -> None:
    """Retried while it is absent, while its size is wrong, and while reading it is forbidden."""

    async def body() -> None:
        async with world() as made:
            await made.put(*members(mounts=MAP))
            await made.put(
                cm.skeleton(MAP, "team-a", "volcano-team-a-train", 29500) | {"kind": "ConfigMap"}
            )
            await until(lambda: made.names() == ["w-0", "w-1", "w-2"], "the peers")
            assert made.state().expected == 0
            await made.put(volcano_group("3"))
            await quiet()
            assert made.state().expected == 0
            made.api.next("podgroups", refuse(403, "Forbidden", "cannot get"), times=3)
            await made.put(volcano_group(3))
            await until(lambda: made.state().complete, "the gang")
            document = made.get()
            assert document is not None
            assert document["metadata"]["ownerReferences"][0]["name"] == "train"

    run(body())


@pytest.mark.covers("P11-81")
def test_the_mounted_config_map_counts_and_the_derived_one_is_deleted() -> None:
    """Known bug #1142; one that another pod mounts, or that is not ours, stays."""

    async def body() -> None:
        async with world() as made:
            mounted = "preflight-from-the-label"
            derived = cm.skeleton(MAP, "team-a", "volcano-team-a-train", 29500)
            derived["metadata"]["uid"] = "derived"
            await made.put(derived, volcano_group(), *members(mounts=mounted))
            await until(lambda: made.state(mounted).complete, "the mounted gang")
            await until(lambda: made.get(MAP) is None, "the orphan to be deleted")
        async with world() as made:
            foreign = cm.with_data(derived, {cm.GANG_ID: "volcano-other-train"})
            await made.put(foreign, volcano_group(), *members(mounts=mounted))
            await until(lambda: made.state(mounted).complete, "the mounted gang")
            await quiet()
            assert made.get(MAP) is not None

    run(body())


@pytest.mark.covers("P11-82")
def test_a_gang_volume_without_config_map_uses_the_derived_name() -> None:
    """And the derived ConfigMap is not taken for an orphan."""

    async def body() -> None:
        async with world() as made:
            await made.put(volcano_group(), *members(mounts=""))
            await until(lambda: made.state().complete, "the gang")
            await quiet()
            assert made.get() is not None

    run(body())


@pytest.mark.covers("P11-86", "P11-87", "P-042")
def test_pods_of_the_group_without_checks_are_not_waited_for() -> None:
    """A CPU pod and one that opted out; when they are gone the size is the minimum again."""

    async def body() -> None:
        async with world() as made:
            await made.put(volcano_group(4), *members(2))
            await until(lambda: made.state().expected == 4, "the size")
            loose = [pod_document(name, "10.0.1.1", mounts=None) for name in ("cpu", "opted-out")]
            await made.put(*loose)
            await until(lambda: made.state().complete, "the gang of two")
            assert made.state().expected == 2

    run(body())


@pytest.mark.covers("J5")
def test_a_pod_that_mounts_another_gangs_config_map_is_not_put_into_it() -> None:
    """It could only happen while ConfigMaps could not be written; two gangs are never mixed."""

    async def body() -> None:
        async with world() as made:
            name = naming.config_map_name("volcano-team-a-job.1")
            own = [
                pod_document(f"a-{n}", f"10.0.0.{n}", group="job.1", mounts=name) for n in (1, 2)
            ]
            stray = pod_document("b-1", "10.0.0.9", group="job-1", mounts=name)
            await made.put(
                cm.skeleton(name, "team-a", "volcano-team-a-job.1", 29500),
                volcano_group(2, name="job.1"),
                stray,
                *own,
            )
            await until(lambda: made.state(name).complete, "the gang")
            await quiet()
            assert made.names(name) == ["a-1", "a-2"]

    run(body())


def test_a_config_map_without_owner_that_no_pod_mounts_is_deleted_in_the_end() -> None:
    """Exactly the one that was seen; with an owner it is left to the garbage collector."""

    async def body() -> None:
        async with world(times=replace(TIMES, unused=0.05)) as made:
            orphan = cm.skeleton(MAP, "team-a", "volcano-team-a-train", 29500)
            orphan["metadata"]["uid"] = "one"
            owned = cm.with_owner(
                cm.skeleton("preflight-x", "team-a", "x", 29500),
                {"apiVersion": "v1", "kind": "PodGroup", "name": "x", "uid": "y"},
            )
            await made.put(orphan, owned)
            await until(lambda: made.get() is None, "the deletion")
            await quiet()
            assert made.get("preflight-x") is not None

    run(body())


@pytest.mark.covers("P11-80", "J12")
def test_a_config_map_that_changes_all_the_time_is_tried_again_later() -> None:
    """Four tries, then a pause, then four more; other failures are tried again as well."""

    async def body() -> None:
        metrics = Recorded()
        async with world(metrics=metrics) as made:
            conflict = refuse(409, "AlreadyExists", "exists", details={"name": MAP})
            made.api.next("POST .*/configmaps", conflict, times=6)
            await made.put(volcano_group(), *members())
            await until(lambda: made.state().complete, "the gang")
            assert metrics.told.count(("written", "conflict")) == 6
            down = refuse(503, "ServiceUnavailable", "down")
            made.api.next("PUT .*/configmaps", down, times=2)
            await made.remove(POD, "w-2")
            await until(lambda: made.state().generation == 2, "the next generation")

    run(body())


def test_a_config_map_that_was_used_again_is_not_deleted() -> None:
    """The deletion is of exactly the object that was seen."""

    async def body() -> None:
        async with world(times=replace(TIMES, unused=0.02)) as made:
            conflict = refuse(409, "Conflict", "modified", details={"name": MAP})
            made.api.next("DELETE .*/configmaps", conflict, times=1)
            skeleton = cm.skeleton(MAP, "team-a", "volcano-team-a-train", 29500)
            skeleton["metadata"]["uid"] = "one"
            await made.put(skeleton)
            await until(lambda: not made.api.scripted, "the refused deletion")
            assert made.get() is not None
            (body,) = [line for line in made.api.seen if line.startswith("DELETE")]
            assert MAP in body

    run(body())
