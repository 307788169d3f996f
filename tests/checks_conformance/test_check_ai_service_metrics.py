"""ai-service-metrics: series in Prometheus, and the custom metrics API (validators spec 6.2)."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web
from tests.checks.contexts import put, validation
from tests.checks_conformance.scene import SHORT, Scene, endpoints, service
from tests.checks_deployment.answers import COULD_NOT_LOOK
from tests.kube.fakeapi import FakeApi, serving
from tests.kube.loopback import closed_port

from aicr.checks.conformance.ai_service_metrics import CHECK, prometheus, series_in
from aicr.checks.conformance.endpoints import ENDPOINT_SLICE
from aicr.checks.sdk.outcome import could_not_tell, skip_in
from aicr.errors import INTERNAL, NOT_FOUND, SERVICE_UNAVAILABLE, AicrError
from aicr.kube import kinds
from aicr.kube.kinds import Resource

Document = dict[str, Any]
NS = "monitoring"
CUSTOM = Resource("custom.metrics.k8s.io", "v1beta1", "namespaces", "MetricValueList", True)
BY_NAME = {"app.kubernetes.io/name": "prometheus"}
SERIES = {"metric": {"gpu": "0"}, "value": [1, "35"]}


def vector(*series: Document) -> str:
    """Prometheus' answer to an instant query."""
    data = {"resultType": "vector", "result": list(series)}
    return json.dumps({"status": "success", "data": data})


def scene(
    *answers: str, status: int = 200, custom: bool = True, stale: bool = False, **settings: Any
) -> Scene:
    """Prometheus that gives *answers* in turn, the last one again and again."""
    left = list(answers)
    asked: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(request.path_qs)
        return web.Response(status=status, text=left.pop(0) if len(left) > 1 else left[0])

    @contextlib.asynccontextmanager
    async def beside(api: FakeApi) -> AsyncIterator[None]:
        if stale:
            api.stale.add("custom.metrics.k8s.io/v1beta1")
        async with serving(answer) as url:
            await put(api, ENDPOINT_SLICE, endpoints("prom", NS, url.removeprefix("http://")))
            yield

    served = (CUSTOM,) if custom else ()
    found = Scene(CHECK, **{"beside": beside, "served": served, **settings})
    found.settings["environ"] = {"asked": asked}
    return found.put(kinds.SERVICE, service("prom", NS, 9090, **BY_NAME))


def test_a_series_and_a_served_api_pass() -> None:
    """The query is for utilisation."""
    found = scene(vector(SERIES, SERIES))
    assert found.judge() is None
    assert found.seen.lines == [
        "Prometheus monitoring/prom: 2 series of DCGM_FI_DEV_GPU_UTIL",
        "custom.metrics.k8s.io/v1beta1: answers",
    ]
    assert found.settings["environ"]["asked"] == ["/api/v1/query?query=DCGM_FI_DEV_GPU_UTIL"]


def test_the_query_is_repeated_until_the_first_scrape_is_there() -> None:
    """Empty twice, and once an error."""
    times = replace(SHORT, ai_service_metrics=10.0, ai_service_metrics_poll=0.01)
    found = scene(vector(), "restarting", vector(), vector(SERIES), timeouts=times)
    assert found.judge() is None
    assert len(found.settings["environ"]["asked"]) == 4


def test_prometheus_without_series_all_the_time_is_not_found() -> None:
    """It answered: a verdict."""
    error = scene(vector()).judge()
    assert error is not None
    assert (error.code, could_not_tell(error)) == (NOT_FOUND, "")


@pytest.mark.parametrize(
    ("text", "status", "code"),
    [
        ("not json", 200, INTERNAL),
        ("{}", 200, INTERNAL),
        ("[]", 200, INTERNAL),
        ('{"status": "error", "error": "bad query"}', 200, INTERNAL),
        ("x", 503, SERVICE_UNAVAILABLE),
    ],
    ids=["text", "empty", "a list", "error", "503"],
)
def test_prometheus_that_does_not_answer_could_not_be_told(
    text: str, status: int, code: str
) -> None:
    """Also after all the time."""
    error = scene(text, status=status).judge()
    assert error is not None
    assert could_not_tell(error) == code


def test_prometheus_that_refuses_connections_is_unavailable() -> None:
    """Its endpoint is ready and nobody listens."""
    found = scene(vector(SERIES), beside=None)
    found.put(ENDPOINT_SLICE, endpoints("prom", NS, f"127.0.0.1:{closed_port()}"))
    error = found.judge()
    assert error is not None
    assert could_not_tell(error) == SERVICE_UNAVAILABLE


def test_an_api_that_nobody_serves_is_not_found_and_one_that_is_down_could_not_be_told() -> None:
    """Two answers that look alike stay apart."""
    absent = scene(vector(SERIES), custom=False).judge()
    assert absent is not None
    assert (absent.code, could_not_tell(absent)) == (NOT_FOUND, "")
    down = scene(vector(SERIES), stale=True).judge()
    assert down is not None
    assert could_not_tell(down) == SERVICE_UNAVAILABLE


def test_without_prometheus_it_fails_where_it_was_promised_and_skips_elsewhere() -> None:
    """The capability contract; a Service with another port does not count."""
    for recipe in (None, validation("kube-prometheus-stack")):
        found = Scene(CHECK, validation=recipe)
        place = NS if recipe is None else "kube-prometheus-stack"
        found.put(kinds.SERVICE, service("prom", place, 80, **BY_NAME))
        error = found.judge()
        assert error is not None
        assert (skip_in(error) is not None) == (recipe is None)
        assert error.code == (INTERNAL if recipe is None else NOT_FOUND)


@pytest.mark.parametrize("path", ["/services\\?", "/endpointslices"])
@pytest.mark.parametrize(("answer", "code"), COULD_NOT_LOOK)
def test_a_look_that_fails_could_not_be_told(path: str, answer: web.Response, code: str) -> None:
    """Never a skip."""
    error = scene(vector(SERIES)).fault(f"GET .*{path}", answer).judge()
    assert error is not None
    assert could_not_tell(error) == code
    assert skip_in(error) is None


def test_the_service_is_found_by_the_second_label_too() -> None:
    """The first by name that has the port."""
    found = scene(vector(SERIES))
    found.objects = [(kinds.SERVICE, service("prom", NS, 9090, **{"self-monitor": "true"}))]
    assert found.judge() is None
    listed = [service("b", NS, 9090), service("c", NS, 9090), service("a", NS, 80)]
    chosen = prometheus(listed)
    assert chosen is not None
    assert chosen["metadata"]["name"] == "b"
    assert prometheus([]) is None


def test_series_are_counted() -> None:
    """And what is no answer of Prometheus is INTERNAL."""
    assert series_in(vector()) == 0
    assert series_in(vector(SERIES, SERIES, SERIES)) == 3
    with pytest.raises(AicrError, match="cannot be read"):
        series_in('{"status": "success", "data": {}}')
