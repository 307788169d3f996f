"""gang-scheduling: KAI's parts, and two workers bound together (validators spec 6.2)."""

from __future__ import annotations

from typing import Any

import pytest
from aiohttp import web
from tests.checks.contexts import validation
from tests.checks_conformance.scene import IMPATIENT, Scene, workload
from tests.checks_deployment.answers import COULD_NOT_LOOK
from tests.checks_deployment.kubelet import Ends

from aicr.checks.conformance.gang_scheduling import (
    CHECK,
    CRDS,
    DEPLOYMENTS,
    queue_of,
    spread_of,
    worker,
)
from aicr.checks.sdk.outcome import could_not_tell, skip_in
from aicr.errors import INTERNAL, NOT_FOUND, TIMEOUT, AicrError
from aicr.kube import kinds
from aicr.kube.kinds import Resource

Document = dict[str, Any]
NS = "kai-scheduler"
QUEUE = Resource("scheduling.run.ai", "v2", "queues", "Queue", False)
GROUP = Resource("scheduling.run.ai", "v2alpha2", "podgroups", "PodGroup", True)


def scheduled(second: int, minute: int = 0) -> Document:
    """A status of a pod that got its node then."""
    moment = f"2026-11-30T00:{minute:02d}:{second:02d}Z"
    return {
        "conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": moment}]
    }


def together(pod: Document) -> Ends:
    """Both workers at once."""
    return Ends(logs={"worker": "ran"}, status=scheduled(int(pod["metadata"]["name"][-1])))


def crd(name: str, established: str = "True") -> Document:
    """A CustomResourceDefinition."""
    conditions = [{"type": "Established", "status": established}]
    return {"metadata": {"name": name}, "status": {"conditions": conditions}}


def scene(
    *, without: str = "", down: str = "", queues: tuple[str, ...] = ("default-queue",), **more: Any
) -> Scene:
    """KAI, whole but for what is named."""
    found = Scene(CHECK, **{"served": (QUEUE, GROUP), "behave": together, **more})
    for name in DEPLOYMENTS:
        if name != without:
            found.put(
                kinds.DEPLOYMENT, workload("Deployment", name, NS, ready=0 if name == down else 1)
            )
    for name in CRDS:
        if name != without:
            state = "False" if name == down else "True"
            found.put(kinds.CUSTOM_RESOURCE_DEFINITION, crd(name, state))
    return found.put(QUEUE, *({"metadata": {"name": name}, "spec": {}} for name in queues))


def test_two_workers_that_are_bound_together_pass_and_nothing_is_left() -> None:
    """In a namespace of the run, by KAI, without GPUs or claims."""
    made: list[Document] = []

    def behave(pod: Document) -> Ends:
        made.append(pod)
        return together(pod)

    found = scene(behave=behave)
    assert found.judge() is None
    assert found.left == []
    assert found.seen.lines[-1] == "Spread of the moments of scheduling: 1 s (limit 30 s)"
    assert {pod["metadata"]["name"] for pod in made} == {"worker-0", "worker-1"}
    for pod in made:
        assert pod["metadata"]["namespace"].startswith("gang-scheduling-test-")
        assert pod["metadata"]["labels"]["pod-group.scheduling.run.ai/name"] == "gang"
        assert pod["spec"]["schedulerName"] == "kai-scheduler"
        assert "resourceClaims" not in pod["spec"]
        assert "nvidia.com/gpu" not in str(pod["spec"])
    assert found.api is not None
    (group,) = found.api.objects["podgroups.scheduling.run.ai"].values()
    assert group["spec"] == {"minMember": 2, "queue": "default-queue"}


@pytest.mark.covers("V-134")
def test_the_users_node_selector_and_tolerations_come_first() -> None:
    """On both workers."""
    made: list[Document] = []

    def behave(pod: Document) -> Ends:
        made.append(pod)
        return together(pod)

    tolerations = [{"key": "x", "operator": "Exists"}]
    found = scene(behave=behave)
    found.settings = {"node_selector": {"pool": "a"}, "tolerations": tolerations}
    assert found.judge() is None
    assert [pod["spec"]["nodeSelector"] for pod in made] == [{"pool": "a"}] * 2
    assert [pod["spec"]["tolerations"] for pod in made] == [tolerations] * 2


@pytest.mark.parametrize(
    ("settings", "code", "words"),
    [
        ({"without": "binder"}, NOT_FOUND, "Deployment kai-scheduler/binder not found"),
        (
            {"down": "admission", "timeouts": IMPATIENT},
            INTERNAL,
            "admission was not available within",
        ),
        ({"without": CRDS[0]}, NOT_FOUND, "queues.scheduling.run.ai not found"),
        ({"down": CRDS[1]}, INTERNAL, "podgroups.scheduling.run.ai is not established"),
        ({"queues": ()}, NOT_FOUND, "no queue"),
    ],
    ids=["no deployment", "not available", "no CRD", "CRD not established", "no queue"],
)
def test_a_part_that_is_missing_fails_before_anything_is_created(
    settings: Document, code: str, words: str
) -> None:
    """A verdict."""
    found = scene(**settings)
    error = found.judge()
    assert error is not None
    assert error.code == code
    assert words in error.message
    assert could_not_tell(error) == ""
    assert found.api is not None
    assert not any(line.startswith("POST") for line in found.api.seen)


@pytest.mark.parametrize("bound", [0, 1])
def test_a_gang_that_does_not_run_whole_fails(bound: int) -> None:
    """None, or one of two: what KAI is there for."""

    def behave(pod: Document) -> Ends | None:
        return together(pod) if int(pod["metadata"]["name"][-1]) < bound else None

    found = scene(behave=behave, timeouts=IMPATIENT)
    error = found.judge()
    assert error is not None
    assert (error.code, could_not_tell(error)) == (TIMEOUT, "")
    assert "the gang of 2 did not run" in error.message
    assert found.left == []


def test_workers_that_were_scheduled_far_apart_fail() -> None:
    """Bound one by one, although both ran."""

    def behave(pod: Document) -> Ends:
        return Ends(logs={"worker": "ran"}, status=scheduled(31 * int(pod["metadata"]["name"][-1])))

    error = scene(behave=behave).judge()
    assert error is not None
    assert (error.code, could_not_tell(error)) == (INTERNAL, "")
    assert "scheduled 31 s apart, the limit is 30 s" in error.message


def test_a_worker_that_fails_is_a_verdict_and_one_without_an_image_is_not() -> None:
    """The second says nothing about KAI."""
    failed = scene(behave=lambda _: Ends("Failed")).judge()
    assert failed is not None
    assert could_not_tell(failed) == ""
    waiting = {"name": "worker", "state": {"waiting": {"reason": "ImagePullBackOff"}}}
    status: Document = {"containerStatuses": [waiting]}
    stuck = scene(behave=lambda _: Ends("Pending", status=status)).judge()
    assert stuck is not None
    assert could_not_tell(stuck) == INTERNAL


def test_without_kai_it_fails_where_it_was_promised_and_skips_elsewhere() -> None:
    """The capability contract."""
    declared = Scene(CHECK, validation=validation("kai-scheduler")).judge()
    assert declared is not None
    assert (declared.code, skip_in(declared)) == (NOT_FOUND, None)
    undeclared = Scene(CHECK, validation=validation("gpu-operator")).judge()
    assert undeclared is not None
    assert skip_in(undeclared) is not None


@pytest.mark.parametrize(
    "pattern",
    [
        "GET .*/deployments/kai-scheduler-default",
        "GET .*/deployments/binder",
        "GET .*/customresourcedefinitions/",
        "GET .*/queues",
        "POST .*/podgroups",
        "POST .*/pods",
    ],
)
@pytest.mark.parametrize(("answer", "code"), COULD_NOT_LOOK)
def test_a_request_that_fails_could_not_be_told(
    pattern: str, answer: web.Response, code: str
) -> None:
    """Never a skip, and nothing is left."""
    found = scene().fault(pattern, answer)
    error = found.judge()
    assert error is not None
    assert could_not_tell(error) == code
    assert skip_in(error) is None
    assert found.left == []


@pytest.mark.parametrize(
    ("queues", "chosen"),
    [
        ([("root", ""), ("b", "root"), ("a", "root")], "a"),
        ([("default-parent-queue", ""), ("a", ""), ("default-queue", "x")], "default-queue"),
        ([("default-queue", ""), ("team", "default-queue")], "team"),
    ],
    ids=["first leaf", "preferred", "preferred is a parent"],
)
def test_workers_go_into_a_leaf_queue(queues: list[tuple[str, str]], chosen: str) -> None:
    """KAI schedules into leaves only."""
    found = [{"metadata": {"name": name}, "spec": {"parentQueue": up}} for name, up in queues]
    assert queue_of(found) == chosen


def test_a_pod_that_does_not_say_when_it_was_scheduled_cannot_be_judged() -> None:
    """INTERNAL."""
    pod: Document = {"status": scheduled(5)}
    assert spread_of({"a": pod, "b": {"status": scheduled(3, minute=1)}}) == 58
    with pytest.raises(AicrError, match="does not say when") as caught:
        spread_of({"a": pod, "b": worker("b", "q")})
    assert could_not_tell(caught.value) == INTERNAL
