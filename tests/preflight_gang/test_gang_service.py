"""The gang controllers as a service: discovery, replicas, election, readiness, and what is cached."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.kube.fakeapi import refuse
from tests.kube.loopback import refused, run
from tests.preflight_gang.builders import MAP, VOLCANO, VOLCANO_KEY, pod_document
from tests.preflight_gang.world import (
    NATIVE_GROUP,
    TOGETHER,
    VOLCANO_GROUP,
    complete,
    members,
    quiet,
    settings,
    until,
    volcano_group,
    world,
)

from aicr.errors import INTERNAL
from aicr.kube.kinds import LEASE, POD
from aicr.kube.lease import Terms
from aicr.preflight import names
from aicr.preflight.controller.judging import PREFLIGHT_CONFIG
from aicr.preflight.gang import configmap as cm
from aicr.preflight.gang import naming

Document = dict[str, Any]


@pytest.mark.covers("P11-70", "P-093", "P-099")
def test_a_native_gang_is_read_from_its_pod_group() -> None:
    """Kubernetes 1.36; without the PodGroup its size is not known (decision 71)."""
    config = settings(gangDiscovery={})
    mounted = "preflight-kubernetes-team-a-train"

    def native(n: int) -> Document:
        place = {"podGroupName": "train"}
        return pod_document(f"w-{n}", f"10.0.0.{n}", mounts=mounted, schedulingGroup=place)

    async def body() -> None:
        async with world(NATIVE_GROUP, config=config) as made:
            await made.put(
                cm.skeleton(mounted, "team-a", "kubernetes-team-a-train", 29500), native(0)
            )
            await until(lambda: made.names(mounted) == ["w-0"], "the first peer")
            assert made.state(mounted).expected == 0
            group = {
                "apiVersion": NATIVE_GROUP.api_version,
                "kind": "PodGroup",
                "metadata": {"name": "train", "namespace": "team-a", "uid": "g"},
                "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}},
            }
            await made.put(group, native(1))
            await until(lambda: made.state(mounted).complete, "the gang")
            assert made.state(mounted).expected == 2

    run(body())


@pytest.mark.covers("J15")
def test_two_gangs_whose_masters_share_a_host_network_use_two_ports() -> None:
    """The first keeps the usual port."""

    async def body() -> None:
        async with world() as made:
            maps = [naming.config_map_name(f"volcano-team-a-{name}") for name in ("one", "two")]
            for index, (group, mounted) in enumerate(zip(("one", "two"), maps, strict=True)):
                await made.put(
                    volcano_group(2, name=group, uid=group),
                    *(
                        pod_document(
                            f"{group}-{n}",
                            f"10.0.{index}.{n}",
                            group=group,
                            mounts=mounted,
                            node="node-1",
                            host_network=True,
                        )
                        for n in range(2)
                    ),
                )
            await until(lambda: all(made.state(name).complete for name in maps), "both gangs")
            ports = sorted(made.state(name).master_port for name in maps)
            assert ports == [29500, 29501]

    run(body())


@pytest.mark.covers("P-158", "P-159", "P-160")
def test_a_gang_that_was_split_by_a_change_of_discovery_never_looks_complete() -> None:
    """Two of four under each id: both wait for four."""

    async def body() -> None:
        async with world() as made:
            other = "preflight-native-team-a-train"
            await made.put(
                volcano_group(4),
                *members(2),
                *(pod_document(f"x-{n}", f"10.0.5.{n}", mounts=other) for n in range(2)),
            )
            await until(lambda: made.names() == ["w-0", "w-1"], "one half")
            await until(lambda: made.names(other) == ["x-0", "x-1"], "the other half")
            await quiet()
            for name in (MAP, other):
                assert made.state(name).expected == 4
                assert not made.state(name).complete

    run(body())


@pytest.mark.covers("P-163", "P-164")
def test_two_replicas_elect_one_and_the_other_takes_over() -> None:
    """Each change is written once; after the leader's end the other goes on."""

    async def body() -> None:
        async with world(identity="one", times=TOGETHER) as made:
            first = made.replicas[0]
            await until(lambda: first.leads, "a leader")
            second = await made.replica("two", times=TOGETHER)
            await complete(made)
            await quiet()
            assert made.writes("configmaps") == 1
            assert (first.leads, second.leads) == (True, False)
            assert second.unready() == ""
            task = made.tasks.pop(0)
            task.cancel()
            await asyncio.wait({task})
            assert first.unready() == "the gang controllers do not run"
            await made.remove(POD, "w-1")
            await until(lambda: made.state().generation == 2, "the new leader's write")
            assert second.leads

    run(body())


def test_a_leader_that_loses_its_lease_stops_and_stands_again() -> None:
    """Admissions go on meanwhile; the process does not end."""

    async def body() -> None:
        async with world(terms=Terms(duration=1.0, deadline=0.6, retry=0.1)) as made:
            gangs = made.replicas[0]
            await until(lambda: gangs.leads, "a leader")
            down = refuse(503, "ServiceUnavailable", "down")
            made.api.next(f"/{LEASE.plural}", down, times=10_000)
            await until(lambda: not gangs.leads, "the loss of the lease")
            made.api.scripted.clear()
            await until(lambda: gangs.leads, "a leader again")
            await complete(made)
            assert not made.tasks[0].done()

    run(body())


def test_readiness_names_what_is_missing() -> None:
    """Caches that were never filled, and why."""

    async def body() -> None:
        async with world(replica=False) as made:
            denied = refuse(403, "Forbidden", 'User "u" cannot list resource "pods"')
            made.api.next("GET /api/v1/pods", denied, times=10_000)
            gangs = await made.replica()
            await until(lambda: "cannot list resource" in gangs.unready(), "the reason")
            made.api.scripted.clear()
            await until(lambda: gangs.unready() == "", "readiness")

    run(body())


@pytest.mark.covers("P-164", "P-165")
def test_the_cache_keeps_of_a_pod_what_coordination_reads() -> None:
    """Nothing of containers, other volumes, conditions or managed fields."""

    async def body() -> None:
        async with world() as made:
            document = pod_document("w-0", "10.0.0.0", labels={"a": "b"})
            document["metadata"]["managedFields"] = [{"manager": "x"}]
            document["metadata"]["annotations"][
                "kubectl.kubernetes.io/last-applied-configuration"
            ] = "{}"
            document["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
            await made.put(document)
            parts = made.replicas[0]._parts
            assert parts is not None
            store = parts.caches.pods.store
            await until(lambda: store.get("w-0", "team-a") is not None, "the pod")
            kept = store.get("w-0", "team-a")
            assert kept is not None
            assert set(kept.__struct_fields__) == {"metadata", "spec", "status"}
            assert set(kept.metadata.__struct_fields__) == {
                *("name", "generate_name", "namespace", "uid", "resource_version"),
                *("creation_timestamp", "deletion_timestamp", "labels", "annotations"),
            }
            assert set(kept.spec.__struct_fields__) == {
                *("node_name", "host_network", "scheduling_group", "workload_ref", "volumes"),
            }
            assert set(kept.status.__struct_fields__) == {"phase", "pod_ip", "pod_ips"}
            assert [volume.name for volume in kept.spec.volumes or ()] == [names.GANG_VOLUME]
            assert kept.annotations == {VOLCANO_KEY: "train"}

    run(body())


def test_pods_that_no_discoverer_recognises_wait_for_one_that_does() -> None:
    """A PreflightConfig that comes later is enough: the gangs of its namespace are looked at again."""

    async def body() -> None:
        config = settings(gangDiscovery={})
        async with world(NATIVE_GROUP, VOLCANO_GROUP, config=config) as made:
            await made.put(volcano_group(), *members())
            await quiet()
            assert made.get() is None
            await made.put(
                {
                    "apiVersion": PREFLIGHT_CONFIG.api_version,
                    "kind": "PreflightConfig",
                    "metadata": {"name": "default", "namespace": "team-a", "uid": "p"},
                    "spec": {"gangDiscovery": VOLCANO},
                }
            )
            await until(lambda: made.state().complete, "the gang")

    run(body())


def test_a_mistake_of_ours_ends_the_service_and_says_where() -> None:
    """Going on would hide it; the process ends, and another is started."""

    async def body() -> None:
        async with world(replica=False) as made:
            gangs = await made.replica()
            parts = gangs._parts
            assert parts is not None

            def fails(change: object) -> None:
                raise ValueError("a mistake")

            parts.caches.pods.add_handler(fails)
            await made.put(*members())
            task = made.tasks.pop()
            error = await refused(task)
            assert error.code == INTERNAL
            assert "a mistake" in str(error)

    run(body())
