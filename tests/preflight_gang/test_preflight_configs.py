"""PreflightConfig objects: which one counts, what each is told, and which discoverer a pod gets."""

from __future__ import annotations

import copy
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.kube.fakeapi import refuse
from tests.kube.loopback import run
from tests.preflight_gang.builders import VOLCANO, pod_document
from tests.preflight_gang.world import (
    NATIVE_GROUP,
    TIMES,
    VOLCANO_GROUP,
    World,
    quiet,
    settings,
    until,
    world,
)

from aicr.preflight.controller import judging
from aicr.preflight.controller.judging import PREFLIGHT_CONFIG, Outcome, in_order, statuses
from aicr.preflight.controller.service import Gangs

Document = dict[str, Any]
NOW = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)
INVALID: Document = {"name": "volcano"}
DEFAULT = settings(gangDiscovery={})


def config(
    name: str = "default",
    block: Document | None = VOLCANO,
    *,
    created: str = "2026-11-30T00:00:00Z",
    **status: Any,
) -> Document:
    """A PreflightConfig of namespace team-a; *block* None has no gangDiscovery."""
    document: Document = {
        "apiVersion": PREFLIGHT_CONFIG.api_version,
        "kind": "PreflightConfig",
        "metadata": {
            "name": name,
            "namespace": "team-a",
            "uid": f"uid-of-{name}",
            "creationTimestamp": created,
            "generation": 1,
        },
        "spec": {} if block is None else {"gangDiscovery": block},
    }
    return document | ({"status": status} if status else {})


def told(document: Document) -> tuple[str, str, str, str]:
    """(discoverer, Ready, reason, message) of an object's status."""
    status = document["status"]
    (condition,) = status["conditions"]
    assert condition["type"] == "Ready"
    assert condition["observedGeneration"] == status["observedGeneration"] == 1
    return (
        status.get("discoverer", ""),
        condition["status"],
        condition["reason"],
        condition["message"],
    )


async def recognised(gangs: Gangs) -> str | None:
    """The discoverer that recognises a pod which carries both anchors."""
    pod = pod_document("p", mounts=None, schedulingGroup={"podGroupName": "train"})
    found = await gangs.identify(pod, "team-a")
    return found.discoverer if found else None


async def becomes(made: World, expected: str) -> None:
    """Wait for the discoverer of namespace team-a."""
    parts = made.replicas[0]._parts
    assert parts is not None
    resolver = parts.registration._resolver
    await until(lambda: resolver.of("team-a").name == expected, expected)
    assert await recognised(made.replicas[0]) == expected


def status_of(made: World, name: str = "default") -> Document | None:
    """An object's status on the server."""
    table = made.api.objects.get(PREFLIGHT_CONFIG.qualified, {})
    found = table.get(("team-a", name), {})
    status: Document | None = found.get("status")
    return status


# What each is told

OTHER = 'PreflightConfig "a" is already active in this namespace; only one is allowed'
SUPERSEDED = (
    'superseded by older PreflightConfig "a" (not active: invalid configuration); '
    "only one is allowed per namespace"
)
ACTIVE = ("volcano", "True", "DiscovererActive", "discoverer active")


@pytest.mark.covers("P11-90", "P11-91", "P11-92", "P-147", "P-149")
@pytest.mark.parametrize(
    ("names", "outcome", "expected"),
    [
        (["a"], Outcome("volcano"), [ACTIVE]),
        (
            ["a"],
            Outcome(error="no such thing"),
            [("", "False", "InvalidOrConflicting", "invalid configuration: no such thing")],
        ),
        (
            ["a", "b", "c"],
            Outcome("volcano"),
            [ACTIVE, *[("", "False", "InvalidOrConflicting", OTHER)] * 2],
        ),
        (
            ["a", "b"],
            Outcome(error="x"),
            [
                ("", "False", "InvalidOrConflicting", "invalid configuration: x"),
                ("", "False", "InvalidOrConflicting", SUPERSEDED),
            ],
        ),
    ],
    ids=["one", "one invalid", "three", "invalid and a younger one"],
)
def test_statuses_say_who_is_active_and_why_others_are_not(
    names: list[str], outcome: Outcome, expected: list[tuple[str, str, str, str]]
) -> None:
    """The words that operators search for."""
    changed = statuses([config(name) for name in names], outcome, NOW)
    assert [told(document) for document in changed] == expected


@pytest.mark.covers("P11-93", "P-146")
def test_the_oldest_counts_and_then_the_first_by_name() -> None:
    """Whatever order they come in."""
    old = config("z", created="2026-11-29T00:00:00Z")
    names = [one["metadata"]["name"] for one in in_order([config("b"), config("a"), old])]
    assert names == ["z", "a", "b"]


@pytest.mark.covers("P11-95")
def test_nothing_is_written_when_nothing_has_changed() -> None:
    """And the time of transition moves only when Ready does."""
    (first,) = statuses([config()], Outcome("volcano"), NOW)
    before = copy.deepcopy(first)
    later = datetime(2026, 12, 1, tzinfo=UTC)
    assert statuses([first], Outcome("volcano"), later) == []
    (renamed,) = statuses([first], Outcome("other"), later)
    assert renamed["status"]["conditions"][0]["lastTransitionTime"] == "2026-11-30T12:00:00Z"
    (flipped,) = statuses([first], Outcome(error="x"), later)
    assert flipped["status"]["conditions"][0]["lastTransitionTime"] == "2026-12-01T00:00:00Z"
    assert flipped["status"]["discoverer"] == ""
    assert first == before


# On a server


@pytest.mark.covers("P-139", "P-140", "P-142", "P-143", "P-161", "P11-90")
def test_an_object_sets_its_namespaces_discoverer_and_its_deletion_removes_it() -> None:
    """At run time; other namespaces keep the default."""

    async def body() -> None:
        async with world(VOLCANO_GROUP, NATIVE_GROUP, config=DEFAULT) as made:
            await becomes(made, "kubernetes")
            await made.put(config())
            await becomes(made, "volcano")
            await until(lambda: status_of(made), "a status")
            table = made.api.objects[PREFLIGHT_CONFIG.qualified]
            assert told(table["team-a", "default"]) == ACTIVE
            pod = pod_document("p", namespace="team-b", schedulingGroup={"podGroupName": "g"})
            found = await made.replicas[0].identify(pod, "team-b")
            assert found is not None
            assert found.discoverer == "kubernetes"
            changed = config(block={**VOLCANO, "name": "other"})
            await made.put(changed)
            await becomes(made, "other")
            await made.remove(PREFLIGHT_CONFIG, "default")
            await becomes(made, "kubernetes")

    run(body())


@pytest.mark.covers("P-141", "P-144", "P-145")
@pytest.mark.parametrize(
    ("block", "expected"), [(None, "volcano"), ({}, "kubernetes")], ids=["no block", "empty block"]
)
def test_no_block_means_the_default_and_an_empty_block_the_native_api(
    block: Document | None, expected: str
) -> None:
    """Decision 75; both are told that they are active."""

    async def body() -> None:
        async with world(VOLCANO_GROUP, NATIVE_GROUP, config=settings()) as made:
            document = config(block=block)
            # Room for what else a namespace may want to set one day.
            document["spec"]["laterSetting"] = {"x": 1}
            await made.put(document)
            await becomes(made, expected)
            await until(lambda: status_of(made), "a status")
            status = status_of(made)
            assert status is not None
            assert status["discoverer"] == expected
            assert status["conditions"][0]["status"] == "True"

    run(body())


@pytest.mark.covers("P11-91", "P11-94", "P-162")
def test_a_second_object_disturbs_nothing_until_the_first_goes() -> None:
    """Then it is active on that event."""

    async def body() -> None:
        async with world(VOLCANO_GROUP, NATIVE_GROUP, config=DEFAULT) as made:
            await made.put(config("a"))
            await becomes(made, "volcano")
            younger = config("b", {**VOLCANO, "name": "b"}, created="2026-12-01T00:00:00Z")
            await made.put(younger)
            await until(lambda: status_of(made, "b"), "a status")
            table = made.api.objects[PREFLIGHT_CONFIG.qualified]
            assert told(table["team-a", "b"])[3] == OTHER
            assert await recognised(made.replicas[0]) == "volcano"
            await made.remove(PREFLIGHT_CONFIG, "a")
            await becomes(made, "b")
            await until(lambda: told(table["team-a", "b"])[1] == "True", "the new status")

    run(body())


@pytest.mark.covers("P11-92", "P-150", "P-151")
def test_an_invalid_object_leaves_the_default_and_is_tried_again() -> None:
    """Its CRD may be installed later (known bug S18); an older invalid one blocks a younger."""

    async def body() -> None:
        times = replace(TIMES, invalid=0.05)
        async with world(NATIVE_GROUP, config=DEFAULT, times=times) as made:
            await made.put(config("a"), config("b", {}, created="2026-12-01T00:00:00Z"))
            await until(lambda: status_of(made, "b"), "both statuses")
            table = made.api.objects[PREFLIGHT_CONFIG.qualified]
            discoverer, ready, _, message = told(table["team-a", "a"])
            assert (discoverer, ready) == ("", "False")
            assert message.startswith(
                "invalid configuration: gangDiscovery.podGroupGVR validation failed: resource "
            )
            assert told(table["team-a", "b"])[3] == SUPERSEDED
            assert await recognised(made.replicas[0]) == "kubernetes"
            made.api.resources.append(VOLCANO_GROUP)
            made.client.discovery.forget()
            await becomes(made, "volcano")

    run(body())


@pytest.mark.parametrize(
    "block",
    [INVALID, {**VOLCANO, "minCountExpr": "podGroup.("}, {**VOLCANO, "name": 7}],
    ids=["incomplete", "expression", "wrong type"],
)
@pytest.mark.covers("P-151")
def test_blocks_that_are_wrong_are_said_in_the_status(block: Document) -> None:
    """Each with its reason, and the namespace keeps the default."""

    async def body() -> None:
        async with world(VOLCANO_GROUP, NATIVE_GROUP, config=DEFAULT) as made:
            await made.put(config(block=block))
            await until(lambda: status_of(made), "a status")
            status = status_of(made)
            assert status is not None
            assert status["conditions"][0]["message"].startswith("invalid configuration: ")
            assert await recognised(made.replicas[0]) == "kubernetes"

    run(body())


def test_what_cannot_be_judged_now_changes_nothing() -> None:
    """The discovery of an API that is away is tried again, and nobody is called invalid for it."""

    async def body() -> None:
        async with world(VOLCANO_GROUP, NATIVE_GROUP, config=DEFAULT) as made:
            await made.put(config())
            await becomes(made, "volcano")
            made.api.stale = {VOLCANO_GROUP.api_version}
            made.client.discovery.forget()
            await made.put(config(block={**VOLCANO, "name": "other"}))
            await quiet()
            assert await recognised(made.replicas[0]) == "volcano"
            made.api.stale = set()
            made.client.discovery.forget()
            await becomes(made, "other")

    run(body())


def test_only_the_leader_writes_statuses_and_every_replica_follows() -> None:
    """One write for two replicas."""

    async def body() -> None:
        async with world(VOLCANO_GROUP, NATIVE_GROUP, config=DEFAULT) as made:
            await until(lambda: made.replicas[0].leads, "a leader")
            second = await made.replica("two")
            await until(lambda: second.unready() == "", "readiness")
            await made.put(config())
            await until(lambda: status_of(made), "a status")
            await quiet()
            assert made.writes("preflightconfigs") == 1
            assert await recognised(second) == "volcano"

    run(body())


def test_a_status_that_cannot_be_written_is_written_later() -> None:
    """A conflict, a failing server, an object deleted meanwhile."""

    async def body() -> None:
        async with world(VOLCANO_GROUP, NATIVE_GROUP, config=DEFAULT) as made:
            down = refuse(503, "ServiceUnavailable", "down")
            made.api.next("PUT .*/preflightconfigs", down, times=2)
            await made.put(config())
            await until(lambda: status_of(made), "a status")

    run(body())


def test_a_cluster_without_the_crd_is_ready_and_uses_the_default() -> None:
    """Helm installs CRDs once and never again; that must not stop admissions."""

    async def body() -> None:
        async with world(VOLCANO_GROUP, replica=False) as made:
            made.api.resources.remove(PREFLIGHT_CONFIG)
            gangs = await made.replica()
            await until(lambda: gangs.unready() == "", "readiness")
            assert await recognised(gangs) == "volcano"

    run(body())


def test_the_kind_is_what_the_chart_installs() -> None:
    """Group, version, plural and short name (preflight specification 3.6)."""
    assert judging.PREFLIGHT_CONFIG.qualified == "preflightconfigs.preflight.nvsentinel.nvidia.com"
    assert judging.PREFLIGHT_CONFIG.version == "v1alpha1"
    assert judging.PREFLIGHT_CONFIG.namespaced
    assert judging.PREFLIGHT_CONFIG.short_names == ("pfc",)
