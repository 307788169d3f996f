"""What is written for a gang while its pods are admitted, and which pods are refused."""

from __future__ import annotations

import asyncio
import base64
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from importlib import resources
from typing import Any

import pytest
from aiohttp import web
from tests.kube.fakeapi import refuse
from tests.kube.loopback import refused, run
from tests.preflight_gang.admitting import Silent, patched, review
from tests.preflight_gang.builders import GANG_ID, MAP, pod_document
from tests.preflight_gang.world import TIMES, quiet, settings, until, volcano_group, world

from aicr.errors import INVALID_REQUEST, TIMEOUT, UNAUTHORIZED
from aicr.preflight import names
from aicr.preflight.admission.gang_port import Membership, is_refusal
from aicr.preflight.admission.handler import Admission
from aicr.preflight.admission.prepared import prepare
from aicr.preflight.config import load
from aicr.preflight.controller.service import Gangs
from aicr.preflight.gang import configmap as cm
from aicr.preflight.gang import naming

Document = dict[str, Any]
BOTH = ("dcgm", "allreduce")


def new_pod(name: str, group: str = "train", **fields: Any) -> Document:
    """A pod as it is created: no UID, no namespace, no status."""
    document = pod_document(name, mounts=None, group=group, **fields)
    document["metadata"] = {
        key: document["metadata"][key]
        for key in ("name", "annotations")
        if key in document["metadata"]
    }
    document.pop("status")
    return document


async def admit(
    gangs: Gangs,
    name: str,
    checks: tuple[str, ...] = BOTH,
    *,
    group: str = "train",
    dry_run: bool = False,
) -> Membership:
    """Admit a pod as the webhook does."""
    document = new_pod(name, group)
    found = await gangs.identify(document, "team-a")
    assert found is not None
    await gangs.register(found, document, checks, dry_run)
    return found


@pytest.mark.covers("P11-67", "P-119", "P-121", "P-130")
def test_the_first_admission_makes_the_skeleton() -> None:
    """Labels, the seed's five keys and ours, the group's owner and minimum."""

    async def body() -> None:
        async with world() as made:
            await made.put(volcano_group())
            found = await admit(made.replicas[0], "w-0")
            assert found.gang_id == GANG_ID
            assert found.config_map == MAP
            assert (found.discoverer, found.expected) == ("volcano", 3)
            document = made.get()
            assert document is not None
            metadata = document["metadata"]
            assert metadata["labels"] == {
                names.GANG_ID_LABEL: "volcano-team-a-train",
                names.MANAGED_BY_LABEL: "preflight",
            }
            assert [one["uid"] for one in metadata["ownerReferences"]] == ["group-1"]
            assert document["data"] == {
                cm.GANG_ID: GANG_ID,
                cm.EXPECTED: "3",
                cm.MASTER_PORT: "29500",
                cm.PEERS: "",
                cm.MASTER_ADDR: "",
                cm.MEMBERS: "[]",
                cm.MISSING: "",
                cm.CHECKS: "dcgm,allreduce",
                cm.GENERATION: "1",
            }

    run(body())


@pytest.mark.covers("P-122", "P11-69")
def test_without_its_group_a_gang_is_admitted_with_size_zero_and_no_owner() -> None:
    """Schedulers may make the PodGroup later; the next admission fills the owner in."""

    async def body() -> None:
        async with world() as made:
            gangs = made.replicas[0]
            found = await admit(gangs, "w-0")
            assert found.expected is None
            document = made.get()
            assert document is not None
            assert document["data"][cm.EXPECTED] == "0"
            assert "ownerReferences" not in document["metadata"]
            await made.put(volcano_group())
            await asyncio.sleep(1.05)
            await admit(gangs, "w-1")
            document = made.get()
            assert document is not None
            assert document["metadata"]["ownerReferences"][0]["uid"] == "group-1"

    run(body())


def test_a_pod_of_no_gang_is_no_member() -> None:
    """Nothing is asked of the server for it."""

    async def body() -> None:
        async with world() as made:
            await quiet()
            seen = len(made.api.seen)
            assert await made.replicas[0].identify(new_pod("x", group=""), "team-a") is None
            assert made.asked(seen) == []

    run(body())


@pytest.mark.covers("P-119")
def test_a_dry_run_checks_and_writes_nothing() -> None:
    """Decision 21; a mismatch is found all the same."""

    async def body() -> None:
        async with world() as made:
            gangs = made.replicas[0]
            await made.put(volcano_group())
            await admit(gangs, "w-0", dry_run=True)
            assert made.get() is None
            await admit(gangs, "w-0")
            writes = made.writes()
            error = await refused(admit(gangs, "w-1", ("dcgm",), dry_run=True))
            assert is_refusal(error)
            assert made.writes() == writes

    run(body())


@pytest.mark.covers("J9", "P-042", "P-043", "P11-88")
def test_a_member_with_other_checks_is_refused_and_told_who_was_first() -> None:
    """At the second admission; both pods and both lists are named (decision 70)."""

    async def body() -> None:
        async with world() as made:
            gangs = made.replicas[0]
            await made.put(volcano_group())
            await admit(gangs, "w-0")
            error = await refused(admit(gangs, "w-1", ("dcgm",)))
            assert is_refusal(error)
            assert error.message == (
                'pod "w-1" selects checks [dcgm], but pod "w-0" of the same gang '
                "volcano-team-a-train selects [dcgm, allreduce]: all members must name the same "
                "checks"
            )
            found = await gangs.identify(new_pod("w-1"), "team-a")
            assert found is not None
            assert (found.checks, found.agreed_by) == (BOTH, "w-0")
            error = await refused(admit(gangs, "w-2", ("allreduce", "dcgm")))
            assert error.message.endswith(": the order must be the same in all members")
            await admit(gangs, "w-1")

    run(body())


def test_live_members_speak_for_a_gang_and_an_old_agreement_for_nobody() -> None:
    """A job that is submitted again with other checks is not held to its predecessor's."""

    async def body() -> None:
        hour = datetime.now(UTC) - timedelta(hours=1)
        async with world() as made:
            gangs = made.replicas[0]
            await made.put(volcano_group())
            await until(lambda: gangs.unready() == "", "readiness")
            live = pod_document("w-9", "10.0.0.9", checks="dcgm")
            await made.put(live)
            await until(lambda: made.names() == ["w-9"], "the live member")
            error = await refused(admit(gangs, "w-1"))
            assert 'pod "w-9" of the same gang' in error.message
            await made.put({**live, "status": {"phase": "Succeeded"}})
            await until(lambda: made.names() == [], "the end of the live member")
            document = made.get()
            assert document is not None
            document["data"][cm.CHECKS] = "dcgm"
            document["metadata"]["annotations"] |= {cm.AGREED_AT: hour.isoformat()}
            await made.put(document)
            await admit(gangs, "w-1")
            document = made.get()
            assert document is not None
            assert document["data"][cm.CHECKS] == "dcgm,allreduce"
            assert document["metadata"]["annotations"][cm.AGREED_BY] == "w-1"

    run(body())


@pytest.mark.covers("J5")
def test_groups_whose_names_collide_get_config_maps_of_their_own() -> None:
    """``job.1``, ``job-1``, ``job--1``, ``Job_1``: the ids stay as they are."""

    async def body() -> None:
        async with world() as made:
            gangs = made.replicas[0]
            groups = ["job.1", "job-1", "job--1", "Job_1"]
            found = [await admit(gangs, f"w-{n}", group=name) for n, name in enumerate(groups)]
            assert [one.gang_id for one in found] == [f"volcano-team-a-{name}" for name in groups]
            maps = [one.config_map for one in found]
            assert maps[0] == "preflight-volcano-team-a-job-1"
            assert len(set(maps)) == 4
            for one in found:
                document = made.get(one.config_map)
                assert document is not None
                assert document["data"][cm.GANG_ID] == one.gang_id
            await asyncio.sleep(1.05)
            again = [await gangs.identify(new_pod("x", name), "team-a") for name in groups]
            assert [one and one.config_map for one in again] == maps

    run(body())


@pytest.mark.covers("J5")
def test_of_two_gangs_that_take_a_name_at_one_moment_one_is_refused() -> None:
    """Its pod is made again by whoever made it, and then gets the other name."""

    async def body() -> None:
        async with world() as made:
            gangs = made.replicas[0]
            first, second = new_pod("a", "job.1"), new_pod("b", "job-1")
            both = [await gangs.identify(one, "team-a") for one in (first, second)]
            assert both[0] is not None
            assert both[1] is not None
            assert both[0].config_map == both[1].config_map
            await gangs.register(both[0], first, BOTH, False)
            error = await refused(gangs.register(both[1], second, BOTH, False))
            assert is_refusal(error)
            assert "was taken by gang volcano-team-a-job.1" in error.message

    run(body())


@pytest.mark.covers("P11-64", "P-171")
def test_200_admissions_at_once_make_one_config_map_and_few_requests() -> None:
    """They share what is read and written."""

    async def body() -> None:
        async with world() as made:
            gangs = made.replicas[0]
            await made.put(volcano_group(200))
            await quiet()
            seen = len(made.api.seen)
            await asyncio.gather(*(admit(gangs, f"w-{n}") for n in range(200)))
            assert made.writes() == 1
            assert len(made.asked(seen)) <= 20

    run(body())


@pytest.mark.covers("P11-65")
def test_what_the_server_refuses_is_an_error_and_no_refusal() -> None:
    """The admission goes on; its log has the reason."""

    async def body() -> None:
        async with world() as made:
            made.api.next("POST .*/configmaps", refuse(403, "Forbidden", "cannot create"), times=9)
            error = await refused(admit(made.replicas[0], "w-0"))
            assert error.code == UNAUTHORIZED
            assert not is_refusal(error)

    run(body())


def test_a_server_that_does_not_answer_leaves_the_gang_known_and_its_facts_open() -> None:
    """A gang pod is not admitted as a single pod because reading failed."""

    async def body() -> None:
        async with world() as made:
            gangs = made.replicas[0]
            down = refuse(503, "ServiceUnavailable", "down")
            made.api.next("GET .*/(podgroups|configmaps)/", down, times=9)
            found = await gangs.identify(new_pod("w-0"), "team-a")
            assert found is not None
            assert (found.gang_id, found.config_map) == (GANG_ID, MAP)
            assert (found.expected, found.checks, found.mismatch) == (None, None, "")

    run(body())


def test_others_who_write_at_the_same_time_are_read_again() -> None:
    """A conflict, and an object that was made or deleted in between."""

    async def body() -> None:
        async with world() as made:
            gangs = made.replicas[0]
            await made.put(volcano_group())
            conflict = refuse(409, "Conflict", "modified", details={"name": MAP})
            made.api.next("POST .*/configmaps", conflict, times=3)
            await admit(gangs, "w-0")
            assert made.get() is not None
            await asyncio.sleep(1.05)
            made.api.next("POST .*/configmaps", conflict, times=9)
            error = await refused(admit(gangs, "w-0", group="other"))
            assert "changed 4 times while it was written" in error.message
            assert not is_refusal(error)

    run(body())


@pytest.mark.covers("P-134", "P-135")
def test_the_topology_config_map_is_made_once_and_never_changed() -> None:
    """Only with name and data; an existing one stays as it is; its failure stops nobody."""
    config = settings(
        gangCoordination={"enabled": True, "ncclTopoConfigMap": "topo", "ncclTopoData": "<system/>"}
    )

    async def body() -> None:
        async with world(config=config) as made:
            await admit(made.replicas[0], "w-0")
            document = made.get("topo")
            assert document is not None
            assert document["data"] == {"topo.xml": "<system/>"}
            assert document["metadata"]["labels"] == {
                "app.kubernetes.io/component": "nccl-topo",
                "app.kubernetes.io/name": "nvsentinel",
            }
            assert "ownerReferences" not in document["metadata"]
        async with world(config=config) as made:
            mine = {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "topo", "namespace": "team-a"},
                "data": {"topo.xml": "mine"},
            }
            await made.put(mine)
            await admit(made.replicas[0], "w-0")
            document = made.get("topo")
            assert document is not None
            assert document["data"] == {"topo.xml": "mine"}
        async with world(config=config) as made:
            down = refuse(503, "ServiceUnavailable", "down")
            made.api.next("configmaps/topo", down, times=9)
            await admit(made.replicas[0], "w-0")
            assert made.get() is not None
        async with world(config=settings()) as made:
            await admit(made.replicas[0], "w-0")
            assert made.get("topo") is None

    run(body())


def test_coordination_that_was_not_started_says_so() -> None:
    """A mistake of ours, not of a pod."""

    async def body() -> None:
        async with world(replica=False) as made:
            gangs = Gangs(made.client, made.config, namespace="x")
            error = await refused(gangs.identify(new_pod("w-0"), "team-a"))
            assert "before it was started" in error.message
            assert "has not been validated" in gangs.unready()

    run(body())


@pytest.mark.covers("P-118", "P-138", "P-129")
@pytest.mark.parametrize("coordination", [True, False], ids=["on", "off"])
def test_the_webhook_gives_a_gang_pod_all_checks_and_its_config_map(coordination: bool) -> None:
    """With the product's own configuration; with coordination off there is no gang to be in."""
    text = (resources.files("aicr.preflight") / "default_config.yaml").read_text()
    config, _ = load(text, source="default_config.yaml")
    config = replace(config, gangs=replace(config.gangs, enabled=coordination))

    async def body() -> None:
        async with world() as made:
            await made.put(volcano_group())
            gangs = made.replicas[0] if coordination else None
            admission = Admission(prepare(config), meter=Silent(), gangs=gangs)
            document = new_pod("w-0")
            gpus = {"nvidia.com/gpu": "8"}
            document["spec"]["containers"][0]["resources"] = {"limits": gpus, "requests": gpus}
            reply = await admission.review(review(document, "team-a"))
            patch = json.loads(base64.b64decode(json.loads(reply)["response"]["patch"]))
            added = patched(document, patch)["spec"]["initContainers"]
            injected = [one["name"] for one in added]
            checks = ["preflight-dcgm-diag", "preflight-nccl-loopback"]
            assert injected == [*checks, *(["preflight-nccl-allreduce"] if coordination else [])]
            assert all(one["image"] for one in added)
            assert (names.GANG_VOLUME in json.dumps(patch)) == coordination
            assert (made.get() is not None) == coordination

    run(body())


@pytest.mark.covers("J5")
def test_a_gang_both_of_whose_names_are_taken_is_refused() -> None:
    """It never uses another's ConfigMap; whoever made the group has to rename it."""

    async def body() -> None:
        async with world() as made:
            for name in naming.names_of(GANG_ID):
                await made.put(cm.skeleton(name, "team-a", "volcano-team-a-Train", 29500))
            found = await made.replicas[0].identify(new_pod("w-0"), "team-a")
            assert found is not None
            assert found.mismatch == (
                "every ConfigMap name of gang volcano-team-a-train is taken by gang "
                "volcano-team-a-Train; rename the group"
            )

    run(body())


def test_a_membership_that_another_made_is_registered_too() -> None:
    """Only the port's fields are needed; the pod then has to say where it is created."""

    async def body() -> None:
        async with world() as made:
            gangs = made.replicas[0]
            plain = Membership(gang_id=GANG_ID, config_map=MAP, discoverer="volcano")
            await gangs.register(plain, pod_document("w-0", mounts=None), BOTH, False)
            assert made.get() is not None
            nobody = Membership(gang_id="", config_map=MAP, discoverer="volcano")
            writes = made.writes()
            await gangs.register(nobody, pod_document("w-1", mounts=None), BOTH, False)
            assert made.writes() == writes

    run(body())


def test_a_pod_that_cannot_be_read_is_an_error() -> None:
    """Wrong types are found before anything is asked."""

    async def body() -> None:
        async with world() as made:
            broken = {"metadata": {"name": 7}, "spec": {}}
            error = await refused(made.replicas[0].identify(broken, "team-a"))
            assert error.code == INVALID_REQUEST
            assert "the pod cannot be read" in error.message

    run(body())


@pytest.mark.covers("P-171")
def test_an_api_server_that_is_slow_does_not_use_up_the_webhooks_time() -> None:
    """Each wait of an admission ends in time; what was under way is finished later."""

    async def body() -> None:
        async with world(times=replace(TIMES, admission=0.1)) as made:
            gangs = made.replicas[0]
            gate = asyncio.Event()

            async def slow(request: web.Request) -> web.StreamResponse:
                await gate.wait()
                return refuse(404, "NotFound", "not found", details={"name": "x"})

            made.api.next("GET .*/(podgroups|configmaps)/", slow, times=9)
            found = await gangs.identify(new_pod("w-0"), "team-a")
            assert found is not None
            assert (found.expected, found.checks) == (None, None)
            error = await refused(gangs.register(found, new_pod("w-0"), BOTH, False))
            assert error.code == TIMEOUT
            assert not is_refusal(error)
            assert made.get() is None
            gate.set()
            await until(lambda: made.get() is not None, "the ConfigMap")

    run(body())
