"""From what is left of a Job to a verdict: every situation of the table, and nothing passes by accident."""

from __future__ import annotations

from typing import Any

import pytest

from aicr.errors import AicrError
from aicr.validate import extraction, pods
from aicr.validate.timing import Timing

NAME = "aicr-a-00112233"


def pod(state: dict[str, Any] | None, name: str = "validator", **status: Any) -> dict[str, Any]:
    """A pod whose container is in a state; None for no status at all."""
    found = [] if state is None else [{"name": name, "state": state}]
    return {
        "metadata": {"name": "p", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {
            "nodeName": "n1",
            "containers": [{"name": "validator", "image": "aicr.local/x:v1"}],
        },
        "status": {"containerStatuses": found, **status},
    }


def ended(code: int, message: str = "", **more: Any) -> dict[str, Any]:
    """A pod whose container has ended."""
    return pod({"terminated": {"exitCode": code, "message": message, **more}})


def job(type_: str = "", **condition: Any) -> dict[str, Any]:
    """A Job, with a condition that is true."""
    conditions = [{"type": type_, "status": "True", **condition}] if type_ else []
    return {
        "metadata": {"name": NAME, "uid": "u"},
        "spec": {"activeDeadlineSeconds": 330},
        "status": {"conditions": conditions},
    }


@pytest.mark.covers("V-082", "V-083", "V-084", "G4")
@pytest.mark.parametrize(
    ("code", "status"),
    [(0, "passed"), (1, "failed"), (2, "skipped"), (3, "other"), (137, "other"), (143, "other")],
)
def test_exit_codes_are_statuses(code: int, status: str) -> None:
    """Pass, fail, skip; everything else is no verdict."""
    found = extraction.after_wait(job("Complete"), ended(code, "why"))
    assert (found.exit_code, found.status, found.message) == (code, status, "why")
    assert extraction.Verdict(extraction.UNDECIDED).status == "other"


@pytest.mark.covers("V10-41")
def test_a_container_out_of_memory_is_named() -> None:
    """The exit code stays, so it reads as other."""
    found = extraction.after_wait(job("Failed"), ended(137, reason="OOMKilled"))
    assert (found.exit_code, found.status, found.message) == (137, "other", "Container OOMKilled")


@pytest.mark.covers("V10-44", "V-087")
def test_a_long_message_is_cut_between_characters() -> None:
    """4096 bytes are kept, no half character, and how much is missing."""
    found = extraction.after_wait(job("Failed"), ended(1, "é" * 2500))
    assert found.message == "é" * 2048 + "... [truncated 904 bytes]"
    odd = extraction.after_wait(job("Failed"), ended(1, "x" + "é" * 2500))
    assert odd.message.startswith("x" + "é" * 2047 + "... [truncated ")


def test_times_come_from_the_container() -> None:
    """Duration in milliseconds; absent times are zero."""
    found = extraction.after_wait(
        job("Complete"),
        ended(0, startedAt="2026-01-01T00:00:00Z", finishedAt="2026-01-01T00:00:07Z"),
    )
    assert (found.started, found.duration_ms) == ("2026-01-01T00:00:00Z", 7000)
    assert extraction.after_wait(job("Complete"), ended(0)).duration_ms == 0


@pytest.mark.covers("G4")
@pytest.mark.parametrize(
    ("found", "message"),
    [
        (
            pod({"waiting": {"reason": "CreateContainerError", "message": "no such file"}}),
            "CreateContainerError: no such file",
        ),
        (pod({"running": {}}), "container still running after wait completed"),
        (pod(None), 'container "validator" not found (validator package contract)'),
        (
            pod({"terminated": {"exitCode": 0}}, "sidecar"),
            'container "validator" not found (validator package contract)',
        ),
        (
            pod(None, phase="Failed", reason="Evicted", message="out of disk"),
            'container "validator" not found (validator package contract); pod Evicted: out of disk',
        ),
    ],
    ids=["waiting", "running", "no status", "a sidecar", "evicted"],
)
def test_without_an_ended_container_nothing_is_decided(found: dict[str, Any], message: str) -> None:
    """Also when the Job says that it is complete."""
    verdict = extraction.after_wait(job("Complete"), found)
    assert (verdict.exit_code, verdict.status) == (-1, "other")
    assert verdict.message == message


def test_an_evicted_container_says_that_its_pod_was() -> None:
    """The program could not say why it was ended."""
    found = ended(137)
    found["status"] |= {"reason": "Evicted", "message": "low on memory"}
    assert extraction.after_wait(job("Failed"), found).message == "pod Evicted: low on memory"


@pytest.mark.covers("V10-42")
def test_a_job_over_its_deadline_without_a_pod_failed() -> None:
    """The one verdict without a container: the Job controller has deleted the pod, and says why."""
    found = extraction.after_wait(
        job("Failed", reason="DeadlineExceeded", message="too long"), None, name=NAME
    )
    assert (found.exit_code, found.status, found.code) == (1, "failed", "TIMEOUT")
    assert found.message == (
        "validator Job did not complete within its 5m30s deadline; no pod remains for it, so its "
        "logs are unavailable (Job condition Failed/DeadlineExceeded: too long)"
    )


@pytest.mark.covers("V10-43")
def test_a_pod_that_could_not_be_looked_for_is_not_a_pod_that_is_gone() -> None:
    """A listing that failed confirms nothing, also when the Job is over its deadline."""
    problem = AicrError("SERVICE_UNAVAILABLE", "500")
    found = extraction.after_wait(
        job("Failed", reason="DeadlineExceeded"), None, problem, name=NAME
    )
    assert found.status == "other"
    assert found.message == f"pod not found for Job {NAME}: [SERVICE_UNAVAILABLE] 500"
    assert found.code == "SERVICE_UNAVAILABLE"


def test_a_failed_job_without_a_pod_is_undecided() -> None:
    """It names the Job's reason."""
    found = extraction.after_wait(
        job("Failed", reason="BackoffLimitExceeded", message="m"), None, name=NAME
    )
    assert found.status == "other"
    assert found.message.startswith(f"Job {NAME} failed (BackoffLimitExceeded): m; pod not found: ")
    complete = extraction.after_wait(job("Complete"), None, name=NAME)
    assert complete.status == "other"
    assert complete.message.startswith(f"pod not found for Job {NAME}: ")


@pytest.mark.covers("V10-40", "G4")
def test_a_wait_that_ran_out_says_so_and_why() -> None:
    """The budget of the check is named; what the pod waits for is added."""
    unready = pod({"waiting": {"reason": "ContainerCreating", "message": ""}})
    found = extraction.after_error(unready, None, "2m0s")
    assert found.message.startswith("timeout: validator did not complete within 2m0s")
    assert found.message.endswith("; ContainerCreating")
    assert (found.exit_code, found.code) == (-1, "TIMEOUT")
    unplaced = pod(
        None,
        conditions=[
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3"}
        ],
    )
    found = extraction.after_error(unplaced, AicrError("TIMEOUT", "validator wait timeout"), "2m0s")
    assert found.message == (
        "timeout: validator did not complete within 2m0s "
        '(container "validator" not found - validator package contract); Unschedulable: 0/3'
    )
    assert extraction.after_error(None, None, "2m0s").message == "pod never reached running state"


def test_an_error_of_the_wait_is_quoted() -> None:
    """Row 40b: what kept us from waiting, while the container still runs."""
    cause = AicrError("SERVICE_UNAVAILABLE", "connection refused")
    found = extraction.after_error(pod({"running": {}}), cause, "2m0s")
    assert found.message == "validation failed: [SERVICE_UNAVAILABLE] connection refused"
    assert (found.status, found.code) == ("other", "SERVICE_UNAVAILABLE")


def test_a_container_that_ended_meanwhile_decides() -> None:
    """Row 40c: the verdict that came just after the deadline counts."""
    assert extraction.after_error(ended(0), None, "2m0s").status == "passed"
    assert extraction.hopeless(pods.Hopeless("m", "TIMEOUT"), ended(1, "why")).status == "failed"


def test_a_lost_node_is_named() -> None:
    """The timeout says what is wrong with the node of the pod."""
    found = extraction.after_error(
        pod({"running": {}}), None, "2m0s", trouble="node n1 is not ready"
    )
    assert found.message.endswith("within 2m0s; node n1 is not ready")


def test_a_job_that_could_not_be_made_is_a_result() -> None:
    """The next check goes on."""
    found = extraction.not_deployed(AicrError("UNAUTHORIZED", "exceeded quota"))
    assert found.message == "failed to deploy Job: [UNAUTHORIZED] exceeded quota"
    assert (found.exit_code, found.code) == (-1, "UNAUTHORIZED")


@pytest.mark.covers("G4")
def test_of_two_pods_the_one_that_did_not_pass_speaks() -> None:
    """Zero and one is a failure."""
    passed, failed = ended(0), ended(1)
    for found in ([passed, failed], [failed, passed]):
        chosen = pods.choose(found)
        assert chosen is failed
    assert pods.choose([pod({"running": {}}), passed]) is passed
    assert pods.choose([]) is None


# -- when waiting ends early -----------------------------------------------------------------------

TIMING = Timing()


def waits(reason: str, message: str = "m") -> dict[str, Any]:
    """A pod that waits."""
    return pod({"waiting": {"reason": reason, "message": message}})


@pytest.mark.parametrize("reason", ["InvalidImageName", "ErrImageNeverPull"])
def test_what_no_second_attempt_mends_ends_at_once(reason: str) -> None:
    """Decision 14; an image that is never pulled comes with how to load it."""
    found = pods.Patience(TIMING).judge(waits(reason), 0.0)
    assert found is not None
    assert reason in found.message
    assert ("kind load" in found.message) is (reason == "ErrImageNeverPull")


@pytest.mark.parametrize(
    ("waiting", "seconds"),
    [
        (waits("ErrImagePull"), TIMING.pull),
        (waits("CreateContainerConfigError"), TIMING.pull),
        (
            pod(
                None,
                conditions=[
                    {
                        "type": "PodScheduled",
                        "status": "False",
                        "reason": "Unschedulable",
                        "message": "0/3 nodes",
                    }
                ],
            ),
            TIMING.schedule,
        ),
    ],
    ids=["pull", "config", "unschedulable"],
)
def test_what_may_mend_gets_its_time_and_no_more(waiting: dict[str, Any], seconds: float) -> None:
    """The result names the cause; a pod that moves on starts anew."""
    patience = pods.Patience(TIMING)
    assert patience.judge(waiting, 100.0) is None
    assert patience.judge(waiting, 100.0 + seconds - 1) is None
    found = patience.judge(waiting, 100.0 + seconds)
    assert found is not None
    assert pods.explained(waiting).partition(":")[0] in found.message
    patience = pods.Patience(TIMING)
    patience.judge(waiting, 100.0)
    patience.judge(pod({"running": {}}), 101.0)
    assert patience.judge(waiting, 100.0 + seconds) is None


def test_a_change_from_pull_error_to_back_off_is_the_same_trouble() -> None:
    """The node alternates between the two while it tries."""
    patience = pods.Patience(TIMING)
    assert patience.judge(waits("ErrImagePull"), 0.0) is None
    assert patience.judge(waits("ImagePullBackOff"), TIMING.pull) is not None


def test_a_pod_that_may_not_be_made_ends_with_the_servers_words() -> None:
    """The Job's events say why; without them the wait goes on."""
    patience = pods.Patience(TIMING)
    assert patience.judge(None, 0.0) is None
    assert not patience.without_pod(TIMING.pod_created - 1)
    assert patience.without_pod(TIMING.pod_created)
    events = [
        {"type": "Normal", "reason": "SuccessfulCreate", "message": "x"},
        {
            "type": "Warning",
            "reason": "FailedCreate",
            "message": "pods is forbidden: exceeded quota",
        },
    ]
    refused = pods.refusal(events)
    found = patience.judge(None, TIMING.pod_created, refused)
    assert found == pods.Hopeless(
        "validator pod cannot be created: pods is forbidden: exceeded quota", "UNAUTHORIZED"
    )
    assert pods.refusal([]) == ""
