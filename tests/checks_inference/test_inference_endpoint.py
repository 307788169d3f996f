"""Which Service inference-perf asks, and which answers count."""

from __future__ import annotations

import json
from typing import Any

import pytest

from aicr.checks.performance.inference_endpoint import (
    content_of,
    frontend_service,
    gateway_service,
    port_of,
    question,
    url_of,
)

Document = dict[str, Any]


def service(name: str, *ports: Document, gateway: str = "") -> Document:
    """A Service."""
    labels = {"gateway.networking.k8s.io/gateway-name": gateway} if gateway else {}
    return {
        "metadata": {"name": name, "namespace": "ns", "labels": labels},
        "spec": {"ports": list(ports)},
    }


def test_the_frontend_is_found_by_the_name_that_the_operator_gives_it() -> None:
    """And nothing else will do."""
    wanted = service("aicr-inference-perf-frontend")
    assert frontend_service([service("aicr-inference-perf"), wanted]) == wanted
    assert frontend_service([service("other-frontend")]) is None


@pytest.mark.covers("V-334")
@pytest.mark.parametrize(
    ("services", "chosen"),
    [
        ([service("inference-gateway")], "inference-gateway"),
        ([service("inference-gateway-metrics"), service("inference-gateway")], "inference-gateway"),
        ([service("x", gateway="inference-gateway"), service("inference-gateway")], "x"),
        ([service("inference-gateway-webhook")], None),
        ([service("inference-gateway-controller-manager")], None),
        ([service("y", gateway="another"), service("agentgateway")], None),
    ],
    ids=["name", "not metrics", "label first", "webhook", "controller", "of others"],
)
def test_the_gateway_s_service_serves_traffic(services: list[Document], chosen: str | None) -> None:
    """By label, else by name; Services beside it are left out."""
    for order in (services, services[::-1]):
        found = gateway_service(order)
        assert (found["metadata"]["name"] if found else None) == chosen


@pytest.mark.parametrize(
    ("ports", "chosen"),
    [
        ([{"name": "grpc", "port": 9000}, {"name": "a", "port": 8000}], 8000),
        ([{"name": "grpc", "port": 9000}, {"name": "http", "port": 80}], 80),
        ([{"name": "a", "port": 9000}, {"name": "b", "port": 9001}], 9000),
        ([], 8000),
    ],
    ids=["8000", "http", "first", "none"],
)
def test_the_port_is_8000_else_http_else_the_first(ports: list[Document], chosen: int) -> None:
    """And 8000 where a Service states none."""
    found = service("s", *ports)
    assert port_of(found) == chosen
    assert url_of(found) == f"http://s.ns.svc:{chosen}"


def test_the_question_is_a_real_chat_completion() -> None:
    """Of the served model, short and repeatable."""
    asked = question("a/b")
    assert (asked["model"], asked["temperature"], asked["stream"]) == ("a/b", 0, False)
    assert asked["messages"][0]["role"] == "user"


def answer(**message: Any) -> str:
    """The body of a completion."""
    return json.dumps({"choices": [{"message": message}]})


@pytest.mark.covers("V-310")
def test_content_is_what_counts() -> None:
    """What a reasoning model says before its answer counts too."""
    assert content_of(200, answer(content=" hi ")) == " hi "
    assert content_of(200, answer(content=None, reasoning_content="well")) == "well"


@pytest.mark.covers("V-310")
@pytest.mark.parametrize(
    ("status", "body", "reason"),
    [
        (503, "no worker", "HTTP 503: no worker"),
        (200, "<html>", "no chat completion: <html>"),
        (200, "{}", "no chat completion"),
        (200, "[]", "no chat completion"),
        (200, '{"choices": []}', "no chat completion"),
        (200, '{"choices": [{"message": null}]}', "no chat completion"),
        (200, answer(content=""), "the completion has no content"),
        (200, answer(content="  "), "the completion has no content"),
        (200, answer(content=7), "the completion has no content"),
    ],
)
def test_an_answer_without_content_is_no_service(status: int, body: str, reason: str) -> None:
    """Whatever the status says."""
    with pytest.raises(ValueError, match=reason):
        content_of(status, body)
