"""Whether the agent's Job has ended, goes on, or cannot: read off Job and pods."""

from __future__ import annotations

from typing import Any

import pytest

from aicr.collectors import agent_wait
from aicr.errors import INTERNAL, SERVICE_UNAVAILABLE, TIMEOUT, UNAUTHORIZED, AicrError


def job(*conditions: str, reason: str = "", message: str = "") -> dict[str, Any]:
    """A Job with these conditions true."""
    listed = [
        {"type": one, "status": "True", "reason": reason, "message": message} for one in conditions
    ]
    return {"metadata": {"name": "aicr-x"}, "status": {"conditions": listed}}


def pod(state: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """A pod whose agent container is in *state*."""
    statuses = [{"name": "sidecar", "state": {"terminated": {"exitCode": 9}}}]
    if state is not None:
        statuses.append({"name": "agent", "state": state})
    return {
        "metadata": {"name": "aicr-x-1", **more},
        "spec": {"nodeName": "n1", "containers": [{"image": "aicr.local/aicr-agent:latest"}]},
        "status": {"containerStatuses": statuses},
    }


def failure(found: dict[str, Any], *pods: dict[str, Any]) -> AicrError:
    """The error that a state raises."""
    with pytest.raises(AicrError) as caught:
        agent_wait.state(found, list(pods))
    return caught.value


@pytest.mark.parametrize(
    ("found", "pods", "state"),
    [
        (job(), [], agent_wait.RUNNING),
        (job(), [pod({"running": {}})], agent_wait.RUNNING),
        (job(), [pod({"waiting": {"reason": "ContainerCreating"}})], agent_wait.RUNNING),
        (job(), [pod({"waiting": {"reason": "ErrImagePull"}})], agent_wait.RUNNING),
        (job(), [pod({"terminated": {"exitCode": 0}})], agent_wait.RUNNING),
        (job("Complete"), [pod({"terminated": {"exitCode": 0}})], agent_wait.SUCCEEDED),
        (job("Complete"), [], agent_wait.SUCCEEDED),
    ],
    ids=["new", "running", "creating", "one-pull", "ended", "complete", "pod-gone"],
)
def test_a_job_goes_on_until_it_is_complete(
    found: dict[str, Any], pods: list[dict[str, Any]], state: str
) -> None:
    """Only the Job's own condition says complete; other containers do not matter."""
    assert agent_wait.state(found, pods) == state


@pytest.mark.parametrize(
    "reason",
    [
        *("ErrImageNeverPull", "ImagePullBackOff", "InvalidImageName", "CreateContainerError"),
        "CreateContainerConfigError",
    ],
)
def test_a_pod_that_cannot_start_ends_the_waiting(reason: str) -> None:
    """The cause is Kubernetes' own word (decision 14)."""
    error = failure(job(), pod({"waiting": {"reason": reason, "message": "why"}}))
    assert error.code == SERVICE_UNAVAILABLE
    assert error.message == f"the agent cannot start: {reason}: why"
    assert error.hint


def test_an_image_of_ours_that_is_not_loaded_says_how_to_load_it() -> None:
    """It is never pulled (decision 41)."""
    error = failure(job(), pod({"waiting": {"reason": "ErrImageNeverPull"}}))
    assert "build aicr-agent from containers/Dockerfile" in error.hint


def test_the_agents_own_error_keeps_its_code() -> None:
    """The termination message begins with it."""
    ended = {"exitCode": 4, "message": "[UNAUTHORIZED] K8s: you may not\n"}
    error = failure(job(), pod({"terminated": ended}))
    assert (error.code, error.where) == (UNAUTHORIZED, "node n1")
    assert error.message == "the agent failed: K8s: you may not"


@pytest.mark.parametrize(
    ("ended", "words"),
    [
        ({"exitCode": 137, "reason": "OOMKilled"}, "exit code 137: OOMKilled"),
        ({"exitCode": 1, "message": "[WHATEVER] x"}, "exit code 1: [WHATEVER] x"),
        ({"exitCode": 139}, "exit code 139: it said nothing"),
    ],
)
def test_an_end_without_words_of_ours_is_internal(ended: dict[str, Any], words: str) -> None:
    """Killed for memory, unknown codes, silence."""
    error = failure(job(), pod({"terminated": ended}))
    assert error.code == INTERNAL
    assert words in error.message
    assert bool(error.hint) == (ended.get("reason") == "OOMKilled")


@pytest.mark.parametrize(
    ("reason", "code"), [("DeadlineExceeded", TIMEOUT), ("BackoffLimitExceeded", INTERNAL)]
)
def test_a_failed_job_without_a_pod_says_its_condition(reason: str, code: str) -> None:
    """The pod may be gone with its log."""
    error = failure(job("Failed", reason=reason, message="m"))
    assert error.code == code
    assert f"({reason}): m" in error.message


def test_pods_are_the_jobs_own_by_their_controller() -> None:
    """A label can be anybody's."""
    mine = pod(ownerReferences=[{"uid": "u", "controller": True}])
    foreign = pod(ownerReferences=[{"uid": "other", "controller": True}])
    loose = pod(ownerReferences=[{"uid": "u"}])
    assert agent_wait.owned([foreign, mine, loose, pod()], "u") == [mine]


def test_a_pod_without_a_place_says_what_the_scheduler_said() -> None:
    """Unschedulable only; another reason is not a missing place."""
    waiting = pod()
    waiting["status"]["conditions"] = [
        {"type": "PodScheduled", "reason": "Unschedulable", "message": "0/3 nodes"}
    ]
    assert agent_wait.unscheduled([pod(), waiting]) == "0/3 nodes"
    waiting["status"]["conditions"][0]["reason"] = "SchedulingGated"
    assert agent_wait.unscheduled([waiting]) == ""
