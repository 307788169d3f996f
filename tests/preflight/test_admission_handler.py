"""One admission with its ports: gangs, claims, events and meters (preflight spec 2.4, 2.6, 11.5)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.preflight.admission_cases import (
    ANNOTATION,
    DCGM,
    GANG,
    LOOPBACK,
    Reply,
    container,
    gpu_container,
    pod,
    prepared,
    request_for,
    without_gangs,
)

from aicr.errors import INTERNAL, NOT_FOUND, SERVICE_UNAVAILABLE, UNAUTHORIZED, AicrError
from aicr.preflight.admission import claims, gang_port
from aicr.preflight.admission.claim_lookup import ClusterClaims, DeviceClasses
from aicr.preflight.admission.decision import Decision
from aicr.preflight.admission.events import Events, make
from aicr.preflight.admission.gang_port import Membership
from aicr.preflight.admission.handler import Admission
from aicr.preflight.admission.pod import Pod, view
from aicr.preflight.admission.prepared import Prepared


class Meter:
    """Counts, in plain lists."""

    def __init__(self) -> None:
        self.outcomes: list[str] = []
        self.failures: list[str] = []

    def decided(self, outcome: str, seconds: float) -> None:
        """Keep the outcome."""
        assert seconds >= 0
        self.outcomes.append(outcome)

    def failed(self, what: str) -> None:
        """Keep what failed."""
        self.failures.append(what)


class Gangs:
    """A gang look-up that answers as it is told, and keeps what it was told."""

    def __init__(
        self, found: Membership | AicrError | None = GANG, refuses: AicrError | None = None
    ) -> None:
        self.found = found
        self.refuses = refuses
        self.asked: list[str] = []
        self.registered: list[tuple[str, tuple[str, ...], bool]] = []

    async def identify(self, pod: Mapping[str, Any], namespace: str) -> Membership | None:
        """What it was told to find."""
        self.asked.append(namespace)
        if isinstance(self.found, AicrError):
            raise self.found
        return self.found

    async def register(
        self, membership: Membership, pod: Mapping[str, Any], checks: Sequence[str], dry_run: bool
    ) -> None:
        """Keep it, and refuse if told to."""
        self.registered.append((membership.gang_id, tuple(checks), dry_run))
        if self.refuses is not None:
            raise self.refuses


class Sink:
    """Keeps the decisions that it is offered."""

    def __init__(self) -> None:
        self.offered: list[Decision] = []

    def offer(self, pod: Pod, decision: Decision) -> None:
        """Keep the decision."""
        self.offered.append(decision)


class Run:
    """One admission and all that it did."""

    def __init__(
        self,
        made: Any,
        config: Prepared,
        *,
        gangs: Gangs | None = None,
        lookup: claims.ClaimLookup | None = None,
        **more: Any,
    ) -> None:
        self.meter, self.sink = Meter(), Sink()
        admission = Admission(
            config, meter=self.meter, gangs=gangs, claims=lookup, events=self.sink
        )
        answer = asyncio.run(admission.review(request_for(made, **more)))
        self.reply = Reply(made, answer)


@pytest.mark.covers("P11-60", "P-171", "P-119", "P-130")
def test_a_gang_pod_is_identified_in_its_namespace_and_registered_with_its_checks() -> None:
    """The request's namespace counts when the pod names none; the gang hears of the final list."""
    gangs = Gangs()
    made = pod(metadata={"namespace": ""})
    run = Run(made, prepared(), gangs=gangs, namespace="team-b")
    assert gangs.asked == ["team-b"]
    assert gangs.registered == [(GANG.gang_id, (DCGM, LOOPBACK, "preflight-nccl-allreduce"), False)]
    assert run.reply.env()["GANG_ID"] == GANG.gang_id
    assert run.meter.outcomes == ["injected"]


@pytest.mark.covers("P11-62", "I10")
def test_a_dry_run_tells_the_gang_so_and_leaves_no_event() -> None:
    """Nothing is written, and the patch is that of a real admission."""
    gangs = Gangs()
    dry = Run(pod(), prepared(), gangs=gangs, dryRun=True)
    assert [dry_run for *_, dry_run in gangs.registered] == [True]
    assert dry.sink.offered == []
    assert dry.reply.patch == Run(pod(), prepared(), gangs=Gangs()).reply.patch


@pytest.mark.parametrize(
    ("made", "outcome"),
    [
        (pod(container()), "skipped_no_gpu"),
        (pod(annotations={ANNOTATION: ""}), "skipped_no_checks"),
        (pod(annotations={ANNOTATION: "x"}), "rejected"),
        ("x", "error"),
    ],
)
def test_a_pod_that_gets_no_checks_is_not_registered(made: Any, outcome: str) -> None:
    """The gang only hears of pods that take part, and every outcome is counted."""
    gangs = Gangs()
    run = Run(made, prepared(), gangs=gangs)
    assert gangs.registered == []
    assert run.meter.outcomes == [outcome]


@pytest.mark.covers("P11-65")
def test_a_config_map_that_cannot_be_written_does_not_deny_the_pod() -> None:
    """The volume is optional; the failure is counted and logged."""
    gangs = Gangs(refuses=AicrError(UNAUTHORIZED, "configmaps is forbidden"))
    run = Run(pod(), prepared(), gangs=gangs)
    assert run.reply.allowed
    assert run.reply.patch
    assert run.meter.failures == ["register"]


@pytest.mark.covers("P-043")
def test_a_member_that_comes_second_with_another_list_is_refused_at_registration() -> None:
    """Two pods may be admitted at the same time; the one that loses hears of both."""
    gangs = Gangs(refuses=gang_port.refusal("pod w-1 has a, pod w-0 has b"))
    run = Run(pod(), prepared(), gangs=gangs)
    assert run.reply.message == "failed to inject init containers: pod w-1 has a, pod w-0 has b"
    assert run.meter.outcomes == ["rejected"]


def test_a_gang_look_up_that_fails_warns_and_admits_without_a_gang() -> None:
    """Errors of the gang look-up never deny a pod (spec 2.4), and are seen by who made it."""
    run = Run(pod(), prepared(), gangs=Gangs(AicrError(SERVICE_UNAVAILABLE, "down")))
    assert run.reply.allowed
    assert "GANG_ID" not in run.reply.env()
    assert any("gang could not be found out" in warning for warning in run.reply.warnings)
    assert run.meter.failures == ["gang"]


def test_a_pod_without_any_namespace_is_in_no_gang() -> None:
    """A gang is looked up in a namespace, so there is nothing to ask."""
    gangs = Gangs()
    run = Run(pod(metadata={"namespace": ""}), prepared(), gangs=gangs, namespace="")
    assert gangs.asked == []
    assert run.reply.patch


def test_a_pod_that_brings_its_checks_is_registered_without_a_patch() -> None:
    """Its gang waits for it all the same."""
    gangs = Gangs()
    made = Run(pod(), prepared(), gangs=Gangs()).reply.pod
    assert Run(made, prepared(), gangs=gangs).reply.patch == []
    assert len(gangs.registered) == 1


@pytest.mark.covers("P11-64")
def test_many_admissions_at_once_are_all_answered() -> None:
    """200 members of a gang; the look-up is asked for each, and none is lost or mixed up."""

    async def go() -> list[Any]:
        gangs = Gangs()
        admission = Admission(prepared(), meter=Meter(), gangs=gangs)
        bodies = [request_for(pod(metadata={"name": f"w-{i}"}), uid=f"u{i}") for i in range(200)]
        answers = await asyncio.gather(*(admission.review(body) for body in bodies))
        assert len(gangs.registered) == 200
        return [json.loads(answer)["response"] for answer in answers]

    for number, response in enumerate(asyncio.run(go())):
        assert response["uid"] == f"u{number}"
        assert response["allowed"]
        assert response["patch"]


# --- resource claims -------------------------------------------------------------------------------


class Objects:
    """The little of a cluster that look-ups and events use."""

    def __init__(self, found: dict[str, Any] | None = None, *, hangs: bool = False) -> None:
        self.found = found or {}
        self.hangs = hangs
        self.asked: list[tuple[str, str, str]] = []
        self.created: list[dict[str, Any]] = []
        self.listed: list[dict[str, Any]] = []
        self.refuses: AicrError | None = None

    async def get(self, kind: str, name: str, *, namespace: str = "", subresource: str = "") -> Any:
        """The object of that name."""
        self.asked.append((kind, namespace, name))
        if self.hangs:
            await asyncio.sleep(60)
        found = self.found.get(name)
        if isinstance(found, AicrError):
            raise found
        if found is None:
            raise AicrError(NOT_FOUND, f'{kind} "{name}" not found')
        return found

    async def list(self, kind: str) -> list[dict[str, Any]]:
        """What is listed, whatever the kind."""
        assert kind == "deviceclasses.resource.k8s.io"
        if self.refuses is not None:
            raise self.refuses
        return self.listed

    async def create(self, document: Any, *, namespace: str = "", dry_run: bool = False) -> Any:
        """Keep the document."""
        if self.refuses is not None:
            raise self.refuses
        self.created.append(document)
        return document


def template(device_class: str) -> dict[str, Any]:
    """A ResourceClaimTemplate with one request."""
    request = {"name": "r", "exactly": {"deviceClassName": device_class}}
    return {"spec": {"spec": {"devices": {"requests": [request]}}}}


def dra_pod(*names: str) -> dict[str, Any]:
    """A pod with claims made from the templates *names*."""
    return pod(
        container(),
        resourceClaims=[{"name": n, "resourceClaimTemplateName": n} for n in names],
    )


def lookup(objects: Objects, **more: Any) -> ClusterClaims:
    """The look-up on *objects*."""
    return ClusterClaims(objects, ["gpu.nvidia.com"], **more)  # type: ignore[arg-type]


def test_claims_are_looked_up_in_the_pods_namespace() -> None:
    """Templates and claims by their kinds; one with GPUs is enough, also beside one that is missing."""
    objects = Objects({"gpus": template("gpu.nvidia.com")})
    run = Run(dra_pod("gpus", "missing"), without_gangs(), lookup=lookup(objects))
    assert run.reply.order[0] == DCGM
    assert ("resourceclaimtemplates.resource.k8s.io", "team-a", "gpus") in objects.asked
    other = Objects({"net": {"spec": template("nic")["spec"]["spec"]}})
    made = pod(container(), resourceClaims=[{"name": "n", "resourceClaimName": "net"}])
    assert Run(made, without_gangs(), lookup=lookup(other)).reply.patch == []
    assert other.asked == [("resourceclaims.resource.k8s.io", "team-a", "net")]


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(
            pod(gpu_container(), resourceClaims=[{"name": "g", "resourceClaimName": "c"}]), id="GPUs"
        ),
        pytest.param(pod(container()), id="no claims"),
        pytest.param({**dra_pod("g"), "metadata": {"annotations": {ANNOTATION: ""}}}, id="opted out"),
    ],
)  # fmt: skip
def test_nothing_is_looked_up_that_decides_nothing(made: Any) -> None:
    """Each look-up delays a pod, so only pods that depend on it wait for one."""
    objects = Objects()
    assert Run(made, without_gangs(), lookup=lookup(objects)).reply.allowed
    assert objects.asked == []


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ({}, "ResourceClaimTemplate team-a/g does not exist; create it, then retry"),
        ({"g": AicrError(UNAUTHORIZED, "forbidden")}, "ResourceClaimTemplate team-a/g: forbidden"),
    ],
)
def test_a_claim_that_cannot_be_looked_up_follows_the_failure_policy(found: Any, said: str) -> None:
    """Decision 73: denied under Fail; admitted with a warning, and counted, under Ignore."""
    strict = Run(dra_pod("g"), without_gangs(), lookup=lookup(Objects(found)))
    assert not strict.reply.allowed
    assert said in strict.reply.message
    assert strict.meter.failures == ["claims"]
    lax = Run(dra_pod("g"), without_gangs(failurePolicy="Ignore"), lookup=lookup(Objects(found)))
    assert lax.reply.allowed
    assert lax.reply.patch == []
    assert lax.meter.outcomes == ["error"]
    assert said.partition(";")[0] in lax.reply.warnings[0]


@pytest.mark.covers("I4")
def test_device_classes_are_read_in_the_background(caplog: pytest.LogCaptureFixture) -> None:
    """They cause a warning; that they cannot be read is said once and stops nothing."""

    async def go() -> None:
        objects = Objects()
        classes = DeviceClasses(objects)  # type: ignore[arg-type]
        objects.refuses = AicrError(UNAUTHORIZED, "deviceclasses is forbidden")
        await classes.refresh()
        await classes.refresh()
        assert classes.backed == {}
        objects.refuses = None
        spec = {"extendedResourceName": "nvidia.com/gpu"}
        objects.listed = [{"metadata": {"name": "gpu.nvidia.com"}, "spec": spec}]
        await classes.refresh()
        admission = Admission(without_gangs(), meter=Meter(), backed=lambda: classes.backed)
        reply = Reply(pod(), await admission.review(request_for(pod())))
        assert "served by claim (DeviceClass gpu.nvidia.com)" in reply.warnings[0]

    with caplog.at_level("INFO"):
        asyncio.run(go())
    assert caplog.text.count("Device classes cannot be read") == 1


def test_look_ups_share_a_budget() -> None:
    """An API server that hangs does not eat the webhook's time."""
    run = Run(dra_pod("g"), without_gangs(), lookup=lookup(Objects(hangs=True), budget=0.01))
    assert "no answer within 0.01 s" in run.reply.message


@pytest.mark.covers("P11-12", "P11-27")
def test_with_dra_off_claims_are_not_looked_at() -> None:
    """The webhook then needs no access to an API server at all (decision 74)."""
    run = Run(dra_pod("g"), without_gangs(gpuDraEnabled=False))
    assert run.reply.response == {"uid": "u-1", "allowed": True}


def test_without_access_claims_are_a_refusal_and_not_a_guess() -> None:
    """What cannot be told is never passed over."""
    assert "no access to the API server" in Run(dra_pod("g"), without_gangs()).reply.message


def test_a_bug_in_a_look_up_is_not_taken_for_an_answer() -> None:
    """Only AicrErrors are failures of the cluster; anything else goes up and fails the request."""
    objects = Objects({"g": {"spec": {"spec": {"devices": {"requests": 7}}}}})
    with pytest.raises(TypeError):
        Run(dra_pod("g"), without_gangs(), lookup=lookup(objects))


# --- events ----------------------------------------------------------------------------------------

NOW = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)
OWNER = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "u", "controller": True}


@pytest.mark.parametrize(
    ("decision", "kind", "reason", "said"),
    [
        (Decision("injected", "why", checks=("a", "b")), "Normal", "PreflightInjected", "a, b"),
        (Decision("rejected", "why", "failed to x"), "Warning", "PreflightRejected", "failed to x"),
        (Decision("skipped_no_checks", "opted out"), "Normal", "PreflightSkipped", "opted out"),
        (
            Decision("error", "api down", warnings=["w"]),
            "Warning",
            "PreflightFailed",
            "api down; w",
        ),
    ],
)
def test_an_event_says_on_the_owner_what_was_decided(
    decision: Decision, kind: str, reason: str, said: str
) -> None:
    """The pod has no identity yet, so its controller is the subject, or else its namespace."""
    owned = make(view(pod(metadata={"ownerReferences": [OWNER]})), decision, NOW)
    assert owned is not None
    assert (owned["type"], owned["reason"]) == (kind, reason)
    assert said in owned["message"]
    assert owned["involvedObject"]["kind"] == "Job"
    assert owned["firstTimestamp"] == "2030-01-02T03:04:05Z"
    alone = make(view(pod()), decision, NOW)
    assert alone is not None
    assert alone["involvedObject"] == {
        "apiVersion": "v1",
        "kind": "Namespace",
        "name": "team-a",
        "namespace": "team-a",
    }


def test_pods_without_gpus_make_no_events() -> None:
    """They are most pods, and nobody asks why they were left alone."""
    assert make(view(pod()), Decision("skipped_no_gpu", "no GPU"), NOW) is None
    assert make(view(pod(metadata={"namespace": ""})), Decision("injected", "x"), NOW) is None


def test_an_event_is_sent_once_in_a_while_and_never_waits() -> None:
    """A thousand pods of a job are one Event; a full queue drops, and a refusal is survived."""

    async def go() -> None:
        objects, now = Objects(), NOW
        lost: list[int] = []
        events = Events(
            objects,  # type: ignore[arg-type]
            failed=lambda: lost.append(1),
            now=lambda: now,
            quiet=60,
            waiting=2,
        )
        decision = Decision("injected", "why")
        for _ in range(1000):
            events.offer(view(pod()), decision)
        running = asyncio.create_task(events.run())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert len(objects.created) == 1
        now += timedelta(seconds=61)
        objects.refuses = AicrError(INTERNAL, "no")
        events.offer(view(pod()), decision)
        await asyncio.sleep(0)
        objects.refuses = None
        for number in range(5):
            events.offer(view(pod(metadata={"namespace": f"n{number}"})), decision)
        assert len(lost) == 4
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert [event["metadata"]["namespace"] for event in objects.created[1:]] == ["n0", "n1"]
        for number in range(50):
            events.offer(view(pod(metadata={"namespace": f"m{number}"})), decision)
            await asyncio.sleep(0)
        assert len(events._sent) <= 8
        running.cancel()

    asyncio.run(go())
