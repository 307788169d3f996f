"""Is a workload ready (validators spec 5.4, VerifyResource)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.checks.contexts import Seen, put
from tests.kube.fakeapi import refuse
from tests.kube.loopback import cluster, refused, run

from aicr.checks.sdk import resources
from aicr.errors import INTERNAL, INVALID_REQUEST, NOT_FOUND, UNAUTHORIZED
from aicr.kube import kinds


def workload(kind: str, spec: dict[str, Any], status: dict[str, Any], generation: int = 0) -> Any:
    """An object of *kind*."""
    metadata = {"name": "x", "namespace": "n"} | ({"generation": generation} if generation else {})
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": spec, "status": status}


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (
            workload("Deployment", {"replicas": 2}, {"availableReplicas": 2}),
            (True, "2/2 available"),
        ),
        (
            workload("Deployment", {"replicas": 2}, {"availableReplicas": 1}),
            (False, "1/2 available"),
        ),
        (workload("Deployment", {}, {"availableReplicas": 1}), (True, "1/1 available")),
        (workload("Deployment", {}, {}), (False, "0/1 available")),
        (workload("Deployment", {"replicas": 0}, {}), (True, "0/0 available")),
        (
            workload("Deployment", {}, {"availableReplicas": 1, "observedGeneration": 1}, 2),
            (False, "its controller has not seen the latest change yet"),
        ),
        (
            workload("Deployment", {}, {"availableReplicas": 1, "observedGeneration": 2}, 2),
            (True, "1/1 available"),
        ),
        (
            workload("DaemonSet", {}, {"desiredNumberScheduled": 3, "numberReady": 3}),
            (True, "3/3 ready"),
        ),
        (
            workload("DaemonSet", {}, {"desiredNumberScheduled": 3, "numberReady": 2}),
            (False, "2/3 ready"),
        ),
        (
            workload("DaemonSet", {}, {"desiredNumberScheduled": 0, "numberReady": 0}),
            (True, "0/0 ready"),
        ),
        (workload("DaemonSet", {}, {}), (False, "its controller has not reported yet")),
        (workload("StatefulSet", {"replicas": 1}, {"readyReplicas": 1}), (True, "1/1 ready")),
        (workload("StatefulSet", {}, {"availableReplicas": 1}), (False, "0/1 ready")),
        (workload("Service", {}, {}), (True, "exists")),
        (workload("ConfigMap", {}, {}), (True, "exists")),
        (workload("Secret", {}, {}), (True, "exists")),
    ],
)
def test_readiness_is_read_off_replicas_of_the_current_generation(
    document: Any, expected: tuple[bool, str]
) -> None:
    """Available or ready replicas reach what is wanted; others need only exist."""
    assert resources.state(document["kind"], document) == expected


def test_an_object_is_read_and_judged() -> None:
    """The state for the evidence, or an error with the object's name and the code of the cause."""

    async def scenario() -> None:
        async with cluster() as (api, client):
            context = Seen().context(client)
            ready = workload("Deployment", {}, {"availableReplicas": 1})
            ready["apiVersion"] = "apps/v1"
            await put(api, kinds.DEPLOYMENT, ready)
            assert await resources.verify(context, "Deployment", "n", "x") == "1/1 available"
            ready["status"] = {}
            await put(api, kinds.DEPLOYMENT, ready)
            error = await refused(resources.verify(context, "Deployment", "n", "x"))
            assert error.code == INTERNAL
            assert error.message == "Deployment n/x is not ready: 0/1 available"
            error = await refused(resources.verify(context, "Secret", "n", "gone"))
            assert error.code == NOT_FOUND
            api.next("GET .*secrets", refuse(403, "Forbidden", 'cannot get resource "secrets"'))
            error = await refused(resources.verify(context, "Secret", "n", "gone"))
            assert error.code == UNAUTHORIZED
            error = await refused(resources.verify(context, "Pod", "n", "x"))
            assert error.code == INVALID_REQUEST
            assert error.message == 'kind "Pod" cannot be verified'

    run(scenario())
