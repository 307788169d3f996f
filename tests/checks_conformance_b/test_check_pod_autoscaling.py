"""pod-autoscaling: the metrics APIs, and an autoscaler that acts (validators spec 6.2)."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web
from tests.checks.contexts import Seen, pod
from tests.checks_conformance_b.bench import (
    METRICS,
    SHORT,
    Bench,
    autoscaler,
    declared,
    external_values,
)
from tests.checks_deployment.answers import COULD_NOT_LOOK
from tests.kube.fakeapi import FakeApi, refuse

from aicr.checks.conformance import hpa
from aicr.checks.conformance.pod_autoscaling import CHECK, CUSTOM_PODS
from aicr.checks.sdk.outcome import could_not_tell, skip_in
from aicr.errors import INTERNAL, NOT_FOUND, TIMEOUT
from aicr.kube import kinds

Document = dict[str, Any]
EXPORTER: Document = {"labels": {"app": "nvidia-dcgm-exporter"}}
RECIPE = declared("gpu-operator")
#: For metrics that never come.
NO_WARMUP = replace(SHORT, metrics_api_warmup=0.1)


def bench(
    *,
    values: tuple[str, ...] = ("70",),
    exporter: bool = True,
    beside: Callable[[FakeApi], Awaitable[None]] = autoscaler,
    validation: Document | None = RECIPE,
    **more: Any,
) -> Bench:
    """A cluster whose autoscaler works, but for what is named."""
    found = Bench(CHECK, validation=validation, beside=beside, **{"served": METRICS, **more})
    if exporter:
        found.put(kinds.POD, pod("dcgm-1", "gpu-operator", **EXPORTER))
    return found.put(hpa.EXTERNAL_METRIC, *external_values(*values))


def test_an_autoscaler_that_acts_on_the_metric_passes_and_nothing_is_left() -> None:
    """In a namespace of the run."""
    found = bench(values=("70", "71"))
    assert found.judge() is None
    assert found.left == []
    name = found.seen.lines[-1].split()[1].rstrip(":")
    assert name.startswith("hpa-test-")
    assert len(name) == len("hpa-test-") + 8
    assert found.seen.lines == [
        "DCGM exporter pods: 1/1 running",
        "custom.metrics.k8s.io/v1beta1: answers",
        "GPU metrics of pods: none",
        "External metric dcgm_gpu_power_usage: 2 item(s) (70, 71)",
        f"Autoscaler {name}: wants 3, began with 1",
        f"Deployment {name}: 3 pods",
    ]
    (made,) = found.stored(hpa.HPA)
    assert (made["spec"]["minReplicas"], made["spec"]["maxReplicas"]) == (1, 3)
    (metric,) = made["spec"]["metrics"]
    assert metric["external"]["target"] == {"type": "AverageValue", "averageValue": "10"}
    (load,) = found.stored(kinds.DEPLOYMENT)
    (container,) = load["spec"]["template"]["spec"]["containers"]
    assert (container["image"], container["command"]) == ("busybox:1.37", ["sleep", "3600"])


@pytest.mark.covers("V-134")
def test_the_users_node_selector_and_tolerations_come_first() -> None:
    """In the pods of the Deployment; without them nothing is stated."""
    tolerations = [{"key": "x", "operator": "Exists"}]
    found = bench(settings={"node_selector": {"pool": "a"}, "tolerations": tolerations})
    assert found.judge() is None
    spec = found.stored(kinds.DEPLOYMENT)[0]["spec"]["template"]["spec"]
    assert (spec["nodeSelector"], spec["tolerations"]) == ({"pool": "a"}, tolerations)
    plain = hpa.deployment(hpa.Load("x", 3), Seen().context())["spec"]["template"]["spec"]
    assert "nodeSelector" not in plain
    assert "tolerations" not in plain


@pytest.mark.parametrize(
    ("settings", "code", "words"),
    [
        ({"exporter": False}, NOT_FOUND, "gpu-operator: pods of the DCGM exporter not found"),
        ({"served": METRICS[:1]}, NOT_FOUND, "custom.metrics.k8s.io/v1beta1 is not served"),
        (
            {"values": (), "timeouts": NO_WARMUP},
            NOT_FOUND,
            "external metric dcgm_gpu_power_usage has no value",
        ),
        (
            {
                "beside": functools.partial(autoscaler, wanted=1),
                "timeouts": replace(SHORT, hpa_scale=0.3),
            },
            TIMEOUT,
            "did not want more than 1 pod within",
        ),
        (
            {
                "beside": functools.partial(autoscaler, pods=1),
                "timeouts": replace(SHORT, deployment_scale=0.3),
            },
            TIMEOUT,
            "the Deployment had 1 pod(s)",
        ),
    ],
    ids=["exporter", "custom API", "metric", "not wanted", "not scaled"],
)
def test_what_does_not_work_fails_and_leaves_nothing(
    settings: Document, code: str, words: str
) -> None:
    """A verdict; an autoscaler that is only active is not enough."""
    found = bench(**settings)
    error = found.judge()
    assert error is not None
    assert (error.code, could_not_tell(error)) == (code, "")
    assert words in error.message
    assert found.left == []


def test_the_external_api_that_nobody_serves_is_a_verdict() -> None:
    """The server's own words for a path that it does not have."""
    found = bench(values=(), served=METRICS[1:], timeouts=NO_WARMUP)
    found.objects = [each for each in found.objects if each[0] is not hpa.EXTERNAL_METRIC]
    error = found.judge()
    assert error is not None
    assert (error.code, could_not_tell(error)) == (NOT_FOUND, "")


@pytest.mark.parametrize(
    "first",
    [refuse(404, "NotFound", "not yet"), refuse(503, "ServiceUnavailable", "not yet")],
    ids=["absent", "unavailable"],
)
def test_a_metric_that_comes_late_is_waited_for(first: web.Response) -> None:
    """The pipeline has just started."""
    assert bench().fault("GET /apis/external", first, times=2).judge() is None


def test_gpu_metrics_of_pods_are_reported_and_decide_nothing() -> None:
    """Those that are there, by namespace; a refusal is a warning."""
    found = bench()
    items = {"kind": "MetricValueList", "items": [{"value": "5"}]}
    found.fault(
        r"GET .*/namespaces/dynamo-system/pods/\*/gpu_utilization", web.json_response(items)
    )
    found.fault(r"GET .*/gpu_memory_used", refuse(403, "Forbidden", "no"))
    assert found.judge() is None
    assert "GPU metrics of pods: gpu_utilization in dynamo-system" in found.seen.lines
    assert "WARNING" in found.seen.log


def test_without_an_exporter_and_without_a_declaration_it_skips() -> None:
    """Nothing is created."""
    found = bench(exporter=False, validation=None)
    error = found.judge()
    assert error is not None
    assert skip_in(error) is not None
    assert not any(line.startswith("POST") for line in found.api.seen)


@pytest.mark.parametrize(("answer", "code"), COULD_NOT_LOOK)
@pytest.mark.parametrize(
    "what",
    ["GET /api/v1/pods", "GET /apis/external", "POST /api/v1/namespaces\\?", "GET .*/hpa-test-"],
    ids=["pods", "external", "create", "autoscaler"],
)
def test_what_cannot_be_looked_at_is_never_a_verdict_nor_a_skip(
    what: str, answer: web.Response, code: str
) -> None:
    """Declared or not, and nothing is left (field case G2)."""
    for validation in (RECIPE, None):
        found = bench(validation=validation, timeouts=NO_WARMUP).fault(what, answer)
        error = found.judge()
        assert error is not None
        assert skip_in(error) is None
        assert could_not_tell(error) == code


def test_an_api_server_behind_the_metrics_that_is_down_could_not_be_told() -> None:
    """Discovery says that it cannot reach it."""
    found = bench(stale={"custom.metrics.k8s.io/v1beta1"})
    error = found.judge()
    assert error is not None
    assert error.code == INTERNAL
    assert could_not_tell(error) != ""


def test_time_that_the_budget_cut_short_could_not_tell() -> None:
    """It might still have come."""
    assert could_not_tell(hpa.ran_out("nothing came", 1.0, "")) == TIMEOUT
    assert could_not_tell(hpa.ran_out("nothing came", 0.0, "")) == ""


def test_the_autoscalers_own_words_say_why() -> None:
    """The conditions that are not True, else what it read."""
    bad = {
        "conditions": [
            {"type": "AbleToScale", "status": "True"},
            {
                "type": "ScalingActive",
                "status": "False",
                "reason": "Failed",
                "message": "no metric",
            },
        ]
    }
    assert hpa.why({"status": bad}) == "ScalingActive=False Failed: no metric"
    assert hpa.why({}) == "it has not looked at the Deployment yet"
    good = {"conditions": [{"type": "ScalingActive", "status": "True"}], "desiredReplicas": 1}
    assert hpa.why({"status": good}) == "it wants 1 and reads nothing"


def test_the_custom_metrics_of_all_pods_are_asked_for_by_a_star() -> None:
    """The form that the metrics API has."""
    assert CUSTOM_PODS.plural == "pods"
    found = bench()
    assert found.judge() is None
    asked = "/apis/custom.metrics.k8s.io/v1beta1/namespaces/gpu-operator/pods/*/gpu_power_usage"
    assert any(asked in line for line in found.api.seen)
