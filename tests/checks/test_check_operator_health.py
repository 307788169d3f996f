"""operator-health (validators spec 6.1, case 57)."""

from __future__ import annotations

import pytest
from tests.checks.contexts import Seen, pod, put
from tests.kube.fakeapi import refuse
from tests.kube.loopback import cluster, refused, run

from aicr.checks.deployment.operator_health import CHECK
from aicr.checks.sdk.outcome import could_not_tell
from aicr.errors import INTERNAL, NOT_FOUND, SERVICE_UNAVAILABLE, UNAUTHORIZED, AicrError
from aicr.kube import kinds

LABELS = {"app": "gpu-operator"}


def judge(*phases: str) -> tuple[Seen, AicrError | None]:
    """What the check says about operator pods in these phases."""
    seen = Seen()

    async def scenario() -> AicrError | None:
        async with cluster() as (api, client):
            for number, phase in enumerate(phases):
                one = pod(f"gpu-operator-{number}", "gpu-operator", phase=phase, labels=LABELS)
                await put(api, kinds.POD, one)
            await put(api, kinds.POD, pod("gpu-operator-x", "elsewhere", labels=LABELS))
            await put(api, kinds.POD, pod("driver", "gpu-operator", labels={"app": "driver"}))
            try:
                await CHECK.run(seen.context(client))
            except AicrError as error:
                return error
            return None

    return seen, run(scenario())


@pytest.mark.covers("V10-57", "V-228")
def test_one_running_pod_of_two_passes_with_every_pod_as_evidence() -> None:
    """Not all need to run."""
    seen, error = judge("Running", "Pending")
    assert error is None
    assert seen.lines == [
        "Found 2 gpu-operator pod(s):",
        "  gpu-operator-0: Running",
        "  gpu-operator-1: Pending",
        "Running: 1/2",
    ]


def test_the_pods_are_looked_for_where_the_recipe_puts_the_component() -> None:
    """os-talos moves the operator; in the usual namespace it would be missing for ever."""
    seen = Seen()
    stated = {"componentRefs": [{"name": "gpu-operator", "namespace": "privileged-gpu-operator"}]}

    async def scenario() -> None:
        async with cluster() as (api, client):
            one = pod("gpu-operator-0", "privileged-gpu-operator", phase="Running", labels=LABELS)
            await put(api, kinds.POD, one)
            await CHECK.run(seen.context(client, validation=stated))

    run(scenario())
    assert seen.lines[-1] == "Running: 1/1"


@pytest.mark.covers("V-229")
def test_no_running_pod_fails_after_the_evidence() -> None:
    """INTERNAL, a verdict."""
    seen, error = judge("Pending", "Failed")
    assert error is not None
    assert (error.code, error.message) == (INTERNAL, "no pods in Running state")
    assert could_not_tell(error) == ""
    assert seen.lines[-1] == "Running: 0/2"


@pytest.mark.covers("V-228")
def test_no_pod_at_all_is_not_found() -> None:
    """Pods of other namespaces and other labels do not count."""
    seen, error = judge()
    assert error is not None
    assert (error.code, error.message) == (NOT_FOUND, "no gpu-operator pods found")
    assert seen.lines == []


@pytest.mark.covers("V-230")
@pytest.mark.parametrize(
    ("status", "reason", "code"),
    [(403, "Forbidden", UNAUTHORIZED), (500, "InternalError", SERVICE_UNAVAILABLE)],
)
def test_a_list_that_fails_is_internal_and_could_not_be_told(
    status: int, reason: str, code: str
) -> None:
    """Neither passed nor skipped; what is published says why."""

    async def scenario() -> None:
        async with cluster() as (api, client):
            api.next("GET .*/pods", refuse(status, reason, "no"))
            error = await refused(CHECK.run(Seen().context(client)))
            assert (error.code, error.message) == (INTERNAL, "failed to list gpu-operator pods")
            assert could_not_tell(error) == code

    run(scenario())
