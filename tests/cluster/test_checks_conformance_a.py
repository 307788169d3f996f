"""Conformance checks as the real program on a real API server: gangs, metrics, health.

Components are real Deployments and DaemonSets on hollow nodes, and real objects of their API groups. What
KAI would do, binding a gang, is done by a small stand-in in this file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.cluster.check_runs import (
    FAILED,
    HOLLOWS,
    PASSED,
    SKIPPED,
    CheckRuns,
    Stage,
    left_behind,
    meanwhile,
    recipe,
    registered,
)
from tests.cluster.checks_table import COULD_NOT_TELL, FAIL, PASS, SKIP, reaches
from tests.controlplane.client import Client, Document
from tests.controlplane.plane import ControlPlane

from aicr.checks.conformance.gang_scheduling import DEPLOYMENTS

pytestmark = pytest.mark.cluster

KAI = "kai-scheduler"


@pytest.fixture
def runs(plane: ControlPlane, tmp_path: Path) -> CheckRuns:
    """Runs checks against the shared plane."""
    return CheckRuns(plane, tmp_path)


@pytest.fixture
def stage(api: Client) -> Iterator[Stage]:
    """Objects of one test."""
    with Stage(api) as found:
        yield found


# gang-scheduling


def kai(stage: Stage) -> Callable[[int], Callable[[], None]]:
    """KAI's parts; returns what makes one turn of its scheduler, for gangs of at least so many pods."""
    stage.namespace(KAI)
    for name in DEPLOYMENTS:
        stage.workload("Deployment", KAI, name)
    group = "scheduling.run.ai"
    root = stage.crd(group, "v2", "Queue", "queues", namespaced=False)
    stage.crd(group, "v2alpha2", "PodGroup", "podgroups", namespaced=True)
    queue = {"apiVersion": f"{group}/v2", "kind": "Queue", "metadata": {"name": "default-queue"}}
    stage.put(queue, f"{root}/queues")
    api = stage.api

    def scheduler(members: int) -> Callable[[], None]:
        chosen: set[str] = set()

        def turn() -> None:
            waiting = [
                each
                for each in api.list("Pod", fieldSelector=f"spec.schedulerName={KAI}")
                if not each["spec"].get("nodeName")
                and each["metadata"]["labels"].get("pod-group.scheduling.run.ai/name")
            ]
            if not chosen and len(waiting) >= 2:
                chosen.update(each["metadata"]["uid"] for each in waiting[:members])
            for each in waiting:
                meta = each["metadata"]
                if meta["uid"] not in chosen:
                    continue
                binding = {
                    "apiVersion": "v1",
                    "kind": "Binding",
                    "metadata": {"name": meta["name"]},
                    "target": {"apiVersion": "v1", "kind": "Node", "name": "runs-1"},
                }
                path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/binding"
                api.call("POST", path, binding)

        return turn

    return scheduler


@reaches(PASS, "gang-scheduling")
@reaches(FAIL, "gang-scheduling")
def test_a_gang_that_is_bound_whole_passes_and_half_of_one_fails(
    runs: CheckRuns, stage: Stage
) -> None:
    """Both workers run on a real node; the moments are those of the API server."""
    scheduler = kai(stage)
    with meanwhile(scheduler(2)):
        ended = runs.run("gang-scheduling", recipe(KAI), factor="0.2")
    assert ended.status == PASSED, ended.message
    assert ended.lines[-1].startswith("Spread of the moments of scheduling: ")
    with meanwhile(scheduler(1)):
        half = runs.run("gang-scheduling", recipe(KAI), factor="0.06")
    assert (half.status, half.code) == (FAILED, "")
    assert "the gang of 2 did not run" in half.message
    assert left_behind(stage.api, "gang-scheduling-test-") == []


@reaches(SKIP, "gang-scheduling")
@reaches(FAIL, "gang-scheduling")
def test_without_kai_it_skips_unless_it_was_promised(runs: CheckRuns) -> None:
    """The capability contract, with the API server's own 404."""
    assert runs.run("gang-scheduling", recipe("gpu-operator")).status == SKIPPED
    promised = runs.run("gang-scheduling", recipe(KAI))
    assert (promised.status, promised.code) == (FAILED, "")
    assert promised.message.startswith("[NOT_FOUND] kai-scheduler")


# accelerator-metrics and ai-service-metrics


@reaches(PASS, "accelerator-metrics")
@reaches(FAIL, "accelerator-metrics")
@reaches(SKIP, "accelerator-metrics")
def test_an_exporter_that_serves_all_metrics_passes_and_one_that_lacks_some_fails(
    runs: CheckRuns, stage: Stage
) -> None:
    """A pod answers, through the endpoints that the real controller wrote."""
    assert runs.run("accelerator-metrics").status == SKIPPED
    other = {"name": "gpu-operator", "namespace": "gpu-operator-two"}
    for namespace, page in (("gpu-operator", "metrics"), ("gpu-operator-two", "empty")):
        stage.namespace(namespace)
        stage.serve(namespace, "nvidia-dcgm-exporter", 9400, page)
    good = runs.run("accelerator-metrics", recipe("gpu-operator"))
    assert good.status == PASSED, good.message
    assert "  DCGM_FI_DEV_GPU_TEMP: 1 sample(s)" in good.lines
    lacking = runs.run("accelerator-metrics", recipe(other))
    assert (lacking.status, lacking.code) == (FAILED, "")
    assert "no DCGM_FI_DEV_FB_USED, DCGM_FI_DEV_GPU_TEMP" in lacking.message


@reaches(PASS, "ai-service-metrics")
@reaches(FAIL, "ai-service-metrics")
@reaches(SKIP, "ai-service-metrics")
@reaches(COULD_NOT_TELL, "ai-service-metrics")
def test_prometheus_with_series_needs_the_custom_metrics_api_too(
    runs: CheckRuns, stage: Stage
) -> None:
    """First nobody serves the API, then its server is down, then it answers."""
    stack = {"name": "kube-prometheus-stack", "namespace": "monitoring"}
    assert runs.run("ai-service-metrics").status == SKIPPED
    namespace = stage.namespace("monitoring")
    stage.serve(namespace, "prom", 9090, "series", **{"app.kubernetes.io/name": "prometheus"})
    absent = runs.run("ai-service-metrics", recipe(stack))
    assert (absent.status, absent.code) == (FAILED, "")
    assert "custom.metrics.k8s.io/v1beta1 is not served" in absent.message
    group = "custom.metrics.k8s.io"
    with Stage(stage.api) as down:
        down.put(api_service(group, "v1beta1"), APISERVICES)
        registered(down.api, group)
        unreachable = runs.run("ai-service-metrics", recipe(stack))
        assert (unreachable.status, unreachable.code) == (FAILED, "SERVICE_UNAVAILABLE")
    stage.crd(group, "v1beta1", "MetricValueList", "pods", namespaced=True)
    good = runs.run("ai-service-metrics", recipe(stack))
    assert good.status == PASSED, good.message
    assert good.lines[0] == "Prometheus monitoring/prom: 1 series of DCGM_FI_DEV_GPU_UTIL"


APISERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"


def api_service(group: str, version: str) -> Document:
    """An aggregated API whose server is not there."""
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": f"{version}.{group}"},
        "spec": {
            "group": group,
            "version": version,
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
            "insecureSkipTLSVerify": True,
            "service": {"namespace": "monitoring", "name": "adapter-is-down", "port": 443},
        },
    }


# gpu-operator-health and platform-health


@reaches(PASS, "gpu-operator-health")
@reaches(FAIL, "gpu-operator-health")
@pytest.mark.covers("V-271")
def test_the_operators_policy_decides_and_cordons_do_not(runs: CheckRuns, stage: Stage) -> None:
    """Absent, not ready, ready; with every GPU node cordoned."""
    declared = recipe("gpu-operator")
    absent = runs.run("gpu-operator-health", declared)
    assert (absent.status, absent.code) == (FAILED, "")
    assert absent.message.startswith("[NOT_FOUND] ")
    namespace = stage.namespace("gpu-operator")
    labels = {"app.kubernetes.io/name": "gpu-operator"}
    stage.workload("Deployment", namespace, "gpu-operator", labels)
    stage.workload("DaemonSet", namespace, "nvidia-dcgm-exporter")
    root = stage.crd("nvidia.com", "v1", "ClusterPolicy", "clusterpolicies", namespaced=False)
    policy: Document = {
        "apiVersion": "nvidia.com/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": "cluster-policy"},
        "status": {"state": "notReady"},
    }
    stage.put(policy, f"{root}/clusterpolicies")
    waiting = runs.run("gpu-operator-health", declared)
    assert (waiting.status, waiting.code) == (FAILED, "")
    assert '"notReady", not "ready"' in waiting.message
    path = f"{root}/clusterpolicies/cluster-policy"
    ready = {"status": {"state": "ready"}}
    stage.api.call("PATCH", path, ready, content_type="application/merge-patch+json")
    stage.cordon("runs-1", "runs-2", *HOLLOWS)
    good = runs.run("gpu-operator-health", declared)
    assert good.status == PASSED, good.message


@reaches(PASS, "platform-health")
@reaches(FAIL, "platform-health")
def test_a_platform_is_as_healthy_as_its_parts(runs: CheckRuns, stage: Stage) -> None:
    """A Deployment that real controllers made available, then one that is not there."""
    namespace = stage.namespace("platform-a")
    stage.workload("Deployment", namespace, "main")
    part = {"kind": "Deployment", "name": "main"}
    component = {"name": "a", "namespace": namespace, "expectedResources": [part]}
    good = runs.run("platform-health", recipe(component))
    assert good.status == PASSED, good.message
    assert "  Deployment platform-a/main: 1/1 available" in good.lines
    component = {**component, "expectedResources": [part, {"kind": "Service", "name": "gone"}]}
    bad = runs.run("platform-health", recipe(component, "never-made"))
    assert (bad.status, bad.code) == (FAILED, "")
    assert bad.message.startswith("[NOT_FOUND] 2 of 4 parts")


# Somebody without access


@reaches(
    COULD_NOT_TELL,
    "gang-scheduling",
    "accelerator-metrics",
    "ai-service-metrics",
    "gpu-operator-health",
    "platform-health",
)
@pytest.mark.covers("V10-53", "V-146", "V-155")
@pytest.mark.parametrize(
    "check",
    [
        *("gang-scheduling", "accelerator-metrics", "ai-service-metrics"),
        *("gpu-operator-health", "platform-health"),
    ],
)
def test_who_may_not_look_at_components_cannot_tell(check: str, runs: CheckRuns) -> None:
    """The API server's own refusal, for what the recipe promised: neither passed nor skipped."""
    ended = runs.without_access(check, recipe(KAI, "gpu-operator", "kube-prometheus-stack"))
    assert (ended.status, ended.code) == (FAILED, "UNAUTHORIZED"), ended.message
