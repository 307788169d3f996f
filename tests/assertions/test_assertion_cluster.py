"""Checks through the real client: what discovery says decides between absent and unknown."""

from __future__ import annotations

from typing import Any

import pytest
from tests.assertions.fake_cluster import check
from tests.kube import fakeapi, loopback
from tests.kube.fakeapi import FakeApi

from aicr.assertions.runner import run
from aicr.assertions.timing import Timing
from aicr.errors import NOT_FOUND, SERVICE_UNAVAILABLE
from aicr.kube import kinds
from aicr.kube.kinds import Resource
from aicr.kube.port import Cluster

METRICS = Resource("metrics.k8s.io", "v1beta1", "nodes", "NodeMetrics", False)
#: Short, but long enough for a loaded machine; nothing asserts on time.
FAST = Timing(budget=2.0, retry=0.05, absent_grace=0.3)
NODE_METRICS = "{apiVersion: metrics.k8s.io/v1beta1, kind: NodeMetrics}"
GADGET = "{apiVersion: nowhere.test/v1, kind: Gadget}"
POD = "{apiVersion: v1, kind: Pod, metadata: {namespace: ns}, status: {phase: %s}}"


def judge(api: FakeApi, *texts: str) -> list[dict[str, Any]]:
    """Results of checks against a served API."""

    async def body() -> list[dict[str, Any]]:
        async with loopback.cluster(api) as (_, client):
            port: Cluster = client
            entries = [{"name": f"c{number}", "yaml": text} for number, text in enumerate(texts)]
            return await run(port, entries, timing=FAST)

    return loopback.run(body())


@pytest.mark.covers("V10-74", "V-398", "V-399")
@pytest.mark.parametrize("aggregated", [True, False])
def test_an_absent_kind_is_absent_and_an_unreachable_group_unknown(aggregated: bool) -> None:
    """A broken group leaves its own kinds unknown, and those of no other group (8.7)."""
    api = FakeApi(
        aggregated=aggregated,
        stale={"metrics.k8s.io/v1beta1"},
        resources=[*fakeapi.SERVED, METRICS],
    )
    absent, missing, unknown, unsure = judge(
        api,
        check("error", GADGET),
        check("assert", GADGET),
        check("error", NODE_METRICS),
        check("assert", NODE_METRICS),
    )
    assert absent["verdict"] == "pass"
    assert (missing["verdict"], missing["code"]) == ("fail", NOT_FOUND)
    for result in (unknown, unsure):
        assert (result["verdict"], result["code"]) == ("unknown", SERVICE_UNAVAILABLE)
        assert "an API group cannot be reached" in result["message"]


@pytest.mark.covers("H10")
def test_a_refusal_is_told_at_the_deadline_and_a_failing_server_is_asked_again() -> None:
    """403 with its words; 500 twice and then the answer."""
    api = FakeApi()
    api.next("GET .*/pods", fakeapi.refuse(403, "Forbidden", "pods is forbidden: no"), times=1000)
    (denied,) = judge(api, check("error", POD % "Failed"))
    assert denied["verdict"] == "unknown"
    assert "HTTP 403" in denied["message"]
    assert "pods is forbidden: no" in denied["message"]
    api = FakeApi()
    api.next("GET .*/pods", fakeapi.refuse(500, "InternalError", "etcd is away"), times=2)
    (passed,) = judge(api, check("error", POD % "Failed"))
    assert passed["verdict"] == "pass"
    assert sum("/pods" in line for line in api.seen) == 3


def test_objects_are_found_by_name_and_by_list() -> None:
    """Named and unnamed look-ups reach the paths of the API."""
    api = FakeApi()
    document = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "ns", "labels": {"app": "x"}},
        "status": {"phase": "Running"},
    }
    loopback.run(api.store("ADDED", kinds.POD, document))
    named = (
        "{apiVersion: v1, kind: Pod, metadata: {namespace: ns, name: p}, status: {phase: Running}}"
    )
    labelled = "{apiVersion: v1, kind: Pod, metadata: {namespace: ns, labels: {app: x}}}"
    results = judge(api, check("assert", named, labelled, POD % "Running"))
    assert results[0]["message"] == ""
    assert any("labelSelector=app" in line for line in api.seen)
