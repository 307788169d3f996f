"""A whole run of the snapshot agent against a small API server: order, waiting, failing, cleaning up."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from aiohttp import web
from tests.kube.fakeapi import FakeApi, refuse
from tests.kube.loopback import cluster, run

from aicr.assertions.timing import Clock
from aicr.collectors import agent, staging
from aicr.collectors.agent_options import AgentOptions
from aicr.collectors.limits import Limits
from aicr.errors import CONFLICT, SERVICE_UNAVAILABLE, TIMEOUT, UNAUTHORIZED, AicrError
from aicr.kube import kinds
from aicr.kube.client import Client

RUN = "20261130-100000-00000000000000ff"
SNAPSHOT: dict[str, Any] = {
    "kind": "Snapshot",
    "apiVersion": "aicr.run/v1",
    "metadata": {"source-node": "n1"},
    "measurements": [
        {"type": "OS", "subtypes": [{"subtype": "release", "data": {"ID": "ubuntu"}}]}
    ],
}
REVIEWS = r"POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


class Cluster:
    """A fake cluster in which the Job does what the test says."""

    def __init__(self) -> None:
        self.api = FakeApi()
        self.denied: set[str] = set()
        self.said: list[str] = []
        self.slept = 0.0
        #: Called at each pause with the number of pauses so far.
        self.meanwhile: Callable[[int], Awaitable[None]] | None = None
        self.pauses = 0

    async def review(self, request: web.Request) -> web.StreamResponse:
        """Answer an access review."""
        asked = (await request.json())["spec"]["resourceAttributes"]
        allowed = f"{asked['verb']} {asked['resource']}" not in self.denied
        return web.json_response({**(await request.json()), "status": {"allowed": allowed}})

    async def sleep(self, seconds: float) -> None:
        """Let time pass, and the Job go on."""
        self.slept += seconds
        self.pauses += 1
        if self.meanwhile is not None:
            await self.meanwhile(self.pauses)

    def clock(self) -> Clock:
        """Time that only `sleep` moves."""
        return Clock(lambda: self.slept, self.sleep)

    async def job(self) -> dict[str, Any]:
        """The Job of the run."""
        return next(iter(self.api.objects["jobs.batch"].values()))

    async def finish(self, document: dict[str, Any] = SNAPSHOT) -> None:
        """What the agent's pod and the Job controller do."""
        name = f"aicr-agent-snapshot-{RUN}"
        marks = {"aicr.run/run-id": RUN}
        parts = staging.config_maps(staging.pack(document), name=name, namespace="ns", marks=marks)
        for number, part in enumerate(parts):
            part["metadata"]["uid"] = f"uid-part-{number}"
            await self.api.store("ADDED", kinds.CONFIG_MAP, part)
        job = await self.job()
        conditions = [{"type": "Complete", "status": "True"}]
        await self.api.store("MODIFIED", kinds.JOB, {**job, "status": {"conditions": conditions}})

    async def pod(self, status: dict[str, Any]) -> None:
        """A pod of the Job in some state."""
        job = await self.job()
        owner = {"kind": "Job", "uid": job["metadata"]["uid"], "controller": True}
        metadata = {
            "name": "aicr-pod",
            "namespace": "ns",
            "uid": "uid-pod",
            "labels": {"aicr.run/run-id": RUN},
            "ownerReferences": [owner],
        }
        spec = {"containers": [{"name": "agent", "image": "x"}]}
        document = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
        await self.api.store("ADDED", kinds.POD, {**document, "spec": spec, "status": status})

    def capture(self, **options: Any) -> dict[str, Any]:
        """Run the agent."""
        times = options.pop("times", Limits())
        asked = AgentOptions(namespace="ns", run_id=RUN, times=times, **options)

        async def body() -> dict[str, Any]:
            async with cluster(self.api) as (_, client):
                return await self.captured(client, asked)

        return run(body())

    async def captured(self, client: Client, asked: AgentOptions) -> dict[str, Any]:
        """As `capture`, with a client."""
        # Scripted once for each question that a run could ask.
        self.api.next(REVIEWS, self.review, times=60)
        return await agent.capture(client, asked, say=self.said.append, clock=self.clock())

    def error(self, **options: Any) -> AicrError:
        """The error that the run ends with."""
        with pytest.raises(AicrError) as caught:
            self.capture(**options)
        return caught.value

    def left(self) -> list[str]:
        """What of the run is still there."""
        kinds_of_runs = {one.qualified for one in agent._KINDS.values()}
        return sorted(
            f"{kind}/{name}"
            for kind, table in self.api.objects.items()
            if kind in kinds_of_runs
            for _, name in table
        )


@pytest.fixture
def fake() -> Cluster:
    """A cluster whose agent delivers at the first look."""
    found = Cluster()

    async def finish(pause: int) -> None:
        if pause == 1:
            await found.finish()

    found.meanwhile = finish
    return found


def test_a_run_makes_what_it_needs_in_order_and_leaves_nothing(fake: Cluster) -> None:
    """Permissions are asked first; roles come before the Job; the namespace stays."""
    assert fake.capture() == SNAPSHOT
    written = [
        line.split("?")[0]
        for line in fake.api.seen
        if line.startswith("POST") and "selfsubject" not in line
    ]
    assert [line.rpartition("/")[2] for line in written] == [
        *("namespaces", "serviceaccounts", "roles", "rolebindings", "clusterroles"),
        *("clusterrolebindings", "jobs"),
    ]
    first_write = fake.api.seen.index(
        next(line for line in fake.api.seen if "namespaces/ns" in line)
    )
    assert any("selfsubject" in line for line in fake.api.seen[:first_write])
    assert fake.left() == []
    assert ("", "ns") in fake.api.objects["namespaces"]


def test_a_snapshot_in_many_parts_arrives_whole(fake: Cluster) -> None:
    """Each part is read and removed."""
    import random

    chance = random.Random(3)
    data = {f"k{n}": f"{chance.getrandbits(512):x}" for n in range(30_000)}
    large = {
        **SNAPSHOT,
        "measurements": [{"type": "OS", "subtypes": [{"subtype": "sysctl", "data": data}]}],
    }

    async def finish(pause: int) -> None:
        if pause == 1:
            await fake.finish(large)

    fake.meanwhile = finish
    assert fake.capture() == large
    assert fake.left() == []


def test_provider_readings_are_merged_on_this_side(fake: Cluster) -> None:
    """The dump never enters the cluster."""
    reading = {"subtype": "oke-addons", "data": {"nvidia-gpu-plugin": "installed"}}
    found = fake.capture(provider=[reading])
    assert found["measurements"][0] == {"type": "K8s", "subtypes": [reading]}


def test_what_is_not_allowed_is_told_at_once_and_nothing_is_made(fake: Cluster) -> None:
    """Two refusals are one error with both."""
    fake.denied = {"create jobs", "delete clusterroles"}
    error = fake.error()
    assert error.code == UNAUTHORIZED
    assert error.context["missing"] == [
        "create jobs.batch in namespace ns",
        "delete clusterroles.rbac.authorization.k8s.io in the whole cluster",
    ]
    assert fake.left() == []
    assert "namespaces" not in fake.api.objects


def test_an_account_of_the_callers_needs_no_rights_to_grant(fake: Cluster) -> None:
    """The run makes no roles, and does not ask whether it might."""
    fake.denied = {"create clusterroles", "create serviceaccounts"}

    async def body() -> dict[str, Any]:
        async with cluster(fake.api) as (api, client):
            account = {
                "apiVersion": "v1",
                "kind": "ServiceAccount",
                "metadata": {"name": "mine", "namespace": "ns", "uid": "1"},
            }
            await api.store("ADDED", kinds.SERVICE_ACCOUNT, account)
            asked = AgentOptions(namespace="ns", run_id=RUN, service_account="mine")
            return await fake.captured(client, asked)

    assert run(body()) == SNAPSHOT
    assert not fake.api.objects.get("clusterroles.rbac.authorization.k8s.io")
    assert fake.left() == ["serviceaccounts/mine"]


def test_whether_an_account_exists_is_never_guessed(fake: Cluster) -> None:
    """403 on the account ends the run: a prefix would run without its cloud identity."""
    fake.api.next("/serviceaccounts/mine", refuse(403, "Forbidden", "no"))
    assert fake.error(service_account="mine").code == UNAUTHORIZED
    assert fake.left() == []


def test_a_failure_in_the_middle_removes_what_was_made(fake: Cluster) -> None:
    """Roles of a run whose Job is refused do not stay granted."""
    fake.api.next("POST .*/jobs", refuse(403, "Forbidden", "quota"))
    assert fake.error().code == UNAUTHORIZED
    assert fake.left() == []


def test_an_object_of_that_name_that_is_not_ours_stays(fake: Cluster) -> None:
    """Removal is by UID: what somebody put in its place is left alone."""

    async def replaced(pause: int) -> None:
        role = fake.api.objects["clusterroles.rbac.authorization.k8s.io"]
        (key,) = role
        role[key] = {**role[key], "metadata": {**role[key]["metadata"], "uid": "foreign"}}
        await fake.finish()

    fake.meanwhile = replaced
    fake.capture()
    assert fake.left() == [f"clusterroles.rbac.authorization.k8s.io/aicr-node-reader-{RUN}"]


def test_what_could_not_be_removed_is_named_with_the_command(fake: Cluster) -> None:
    """A cluster role that stays is a right that stays."""
    fake.api.next("DELETE .*/clusterrolebindings/", refuse(500, "InternalError", "etcd"), times=9)
    assert fake.capture() == SNAPSHOT
    assert f"could not remove ClusterRoleBinding aicr-node-reader-{RUN}" in fake.said[-1]
    assert (
        f"kubectl delete clusterrole,clusterrolebinding -l aicr.run/run-id={RUN}" in fake.said[-1]
    )


def test_waiting_ends_with_the_callers_patience(fake: Cluster) -> None:
    """--timeout, to the second of a clock that the test moves."""
    fake.meanwhile = None
    error = fake.error(times=replace(Limits(), agent=20, poll=5))
    assert (error.code, fake.slept) == (TIMEOUT, 20)
    assert "within 20 s" in error.message
    assert fake.left() == []


def test_a_pod_without_a_place_gets_a_grace_and_no_more(fake: Cluster) -> None:
    """30 s by default, since an autoscaler may be at work (decision 14)."""

    async def unplaced(pause: int) -> None:
        condition = {"type": "PodScheduled", "reason": "Unschedulable", "message": "0/3 fit"}
        if pause == 1:
            await fake.pod({"conditions": [condition]})

    fake.meanwhile = unplaced
    error = fake.error()
    assert error.code == TIMEOUT
    assert error.message == "the agent's pod finds no node: 0/3 fit"
    assert fake.slept == 31


def test_a_failed_agent_is_quoted_with_the_end_of_its_log(fake: Cluster) -> None:
    """Its own code, and what it logged on stderr of the caller."""
    fake.api.logs["aicr-pod"] = [b"2026-11-30T10:00:00Z first", b"2026-11-30T10:00:01Z second"]
    ended = {"exitCode": 6, "message": "[SERVICE_UNAVAILABLE] K8s: down"}

    async def fails(pause: int) -> None:
        if pause == 1:
            await fake.pod(
                {"containerStatuses": [{"name": "agent", "state": {"terminated": ended}}]}
            )

    fake.meanwhile = fails
    error = fake.error()
    assert error.code == SERVICE_UNAVAILABLE
    assert error.message == "the agent failed: K8s: down"
    assert fake.said[1:] == ["agent: first", "agent: second"]
    assert fake.left() == []


def test_a_part_that_was_changed_on_the_way_is_refused(fake: Cluster) -> None:
    """The digest tells; the run is cleaned up all the same."""

    async def tampered(pause: int) -> None:
        await fake.finish()
        table = fake.api.objects["configmaps"]
        (key,) = table
        data = {staging.KEY: base64.b64encode(b"other").decode()}
        table[key] = {**table[key], "binaryData": data}

    fake.meanwhile = tampered
    assert "digest" in fake.error().message
    assert fake.left() == []


def test_a_run_that_is_cancelled_cleans_up(fake: Cluster) -> None:
    """Ctrl-C while waiting removes roles and Job."""
    fake.meanwhile = None

    async def body() -> None:
        async with cluster(fake.api) as (_, client):
            fake.api.next(REVIEWS, fake.review, times=60)
            asked = AgentOptions(namespace="ns", run_id=RUN)
            started = asyncio.Event()

            async def forever(seconds: float) -> None:
                started.set()
                await asyncio.Event().wait()

            clock = Clock(lambda: 0.0, forever)
            task = asyncio.create_task(agent.capture(client, asked, clock=clock))
            await started.wait()
            assert fake.left()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    run(body())
    assert fake.left() == []


@pytest.mark.parametrize("kind", ["clusterrolebindings", "jobs"])
def test_what_is_being_made_when_a_run_is_cancelled_is_removed_too(
    fake: Cluster, kind: str
) -> None:
    """The server has made it, and its answer is still on the way when Ctrl-C comes."""
    fake.meanwhile = None

    async def body() -> None:
        async with cluster(fake.api) as (_, client):
            fake.api.next(REVIEWS, fake.review, times=60)
            made, told = asyncio.Event(), asyncio.Event()

            async def late(request: web.Request) -> web.StreamResponse:
                answer = await fake.api.handle(request)
                made.set()
                await told.wait()
                return answer

            fake.api.next(f"POST .*/{kind}", late)
            asked = AgentOptions(namespace="ns", run_id=RUN)
            task = asyncio.create_task(agent.capture(client, asked, clock=fake.clock()))
            await made.wait()
            task.cancel()
            await asyncio.sleep(0)
            told.set()
            with pytest.raises(asyncio.CancelledError):
                await task

    run(body())
    assert fake.left() == []


def test_a_namespace_that_may_not_be_looked_at_is_taken_to_be_there(fake: Cluster) -> None:
    """A user whose rights end at the namespace can still run the agent in it."""
    fake.api.next("GET /api/v1/namespaces/ns$", refuse(403, "Forbidden", "no"))
    assert fake.capture() == SNAPSHOT
    assert "namespaces" not in fake.api.objects


def test_what_an_agent_wrote_before_its_run_failed_is_removed_too(fake: Cluster) -> None:
    """Parts without a Job that completed."""

    async def half(pause: int) -> None:
        if pause == 1:
            await fake.finish()
            job = await fake.job()
            conditions = [{"type": "Failed", "status": "True", "reason": "DeadlineExceeded"}]
            await fake.api.store(
                "MODIFIED", kinds.JOB, {**job, "status": {"conditions": conditions}}
            )

    fake.meanwhile = half
    assert fake.error().code == TIMEOUT
    assert fake.left() == []


def test_a_namespace_that_somebody_else_makes_meanwhile_is_fine(fake: Cluster) -> None:
    """CONFLICT on creation means that it is there."""
    fake.api.next("POST /api/v1/namespaces", refuse(409, "AlreadyExists", "there"))
    assert fake.capture() == SNAPSHOT
    assert CONFLICT not in " ".join(fake.said)


def test_a_run_without_an_id_gets_one_of_the_agreed_form(fake: Cluster) -> None:
    """Time in UTC and sixteen hex digits (validators spec 1.7)."""
    fake.meanwhile = None
    said: list[str] = []

    async def body() -> None:
        async with cluster(fake.api) as (_, client):
            fake.api.next(REVIEWS, fake.review, times=60)
            await agent.capture(
                client,
                AgentOptions(namespace="ns", times=replace(Limits(), agent=0.001)),
                say=said.append,
                clock=fake.clock(),
                now=lambda: datetime(2026, 11, 30, 10, 0, tzinfo=UTC),
                token=lambda: "00000000000000ff",
            )

    with pytest.raises(AicrError):
        run(body())
    assert f"run {RUN}" in said[0]
