"""inference-gateway: programmed, with endpoints, and who can reach it (validators spec 6.2)."""

from __future__ import annotations

from typing import Any

import pytest
from aiohttp import web
from tests.checks_conformance.scene import endpoints
from tests.checks_conformance_b.bench import Bench, declared
from tests.checks_deployment.answers import COULD_NOT_LOOK

from aicr.checks.conformance.endpoints import ENDPOINT_SLICE
from aicr.checks.conformance.exposure import is_open, ready_endpoints
from aicr.checks.conformance.inference_gateway import (
    CHECK,
    CRDS,
    POOLS,
    SCOPED,
    condition,
    truthy,
)
from aicr.checks.sdk.outcome import could_not_tell, skip_in
from aicr.errors import INTERNAL, INVALID_REQUEST, NOT_FOUND, AicrError
from aicr.kube import kinds
from aicr.kube.kinds import Resource

Document = dict[str, Any]
NS = "agentgateway-system"
GATEWAY = Resource("gateway.networking.k8s.io", "v1", "gateways", "Gateway", True)
CLASS = Resource("gateway.networking.k8s.io", "v1", "gatewayclasses", "GatewayClass", False)
RECIPE = declared("agentgateway", agentgateway={"namespace": NS})


def with_condition(name: str, kind: str, status: str = "True", **more: Any) -> Document:
    """An object with one condition."""
    stated = {"type": kind, "status": status, "observedGeneration": 2, "reason": "R", **more}
    return {"metadata": {"name": name, "generation": 2}, "status": {"conditions": [stated]}}


def crd(name: str) -> Document:
    """A CustomResourceDefinition that is served."""
    conditions = [{"type": "Established", "status": "True"}]
    return {"metadata": {"name": name}, "status": {"conditions": conditions}}


def balancer(*ranges: str) -> Document:
    """The gateway's Service."""
    return {
        "metadata": {"name": "inference-gateway", "namespace": NS},
        "spec": {"type": "LoadBalancer", "loadBalancerSourceRanges": list(ranges)},
    }


def bench(
    *,
    without: str = "",
    programmed: str = "True",
    accepted: str = "True",
    ready: bool = True,
    ranges: tuple[str, ...] | None = ("10.0.0.0/8",),
    validation: Document | None = RECIPE,
    namespace: str = NS,
    **more: Any,
) -> Bench:
    """A gateway as it should be, but for what is named."""
    found = Bench(CHECK, validation=validation, served=(GATEWAY, CLASS), **more)
    gateway = with_condition("inference-gateway", "Programmed", programmed)
    gateway["metadata"]["namespace"] = namespace
    gateway["spec"] = {"gatewayClassName": "agentgateway"}
    if without != "gateway":
        found.put(GATEWAY, gateway)
    if without != "class":
        found.put(CLASS, with_condition("agentgateway", "Accepted", accepted))
    for name in (*CRDS, POOLS[0]):
        if without != name:
            found.put(kinds.CUSTOM_RESOURCE_DEFINITION, crd(name))
    slices = endpoints("inference-gateway", namespace, "10.1.2.3:80", ready=ready)
    found.put(ENDPOINT_SLICE, slices)
    if ranges is not None:
        found.put(kinds.SERVICE, balancer(*ranges))
    return found


def test_a_gateway_that_is_programmed_and_has_endpoints_passes() -> None:
    """With the state of every part as evidence."""
    found = bench()
    assert found.judge() is None
    assert found.seen.lines == [
        "GatewayClass agentgateway: Accepted=True (R)",
        "Gateway inference-gateway: Programmed=True (R)",
        *(f"CRD {name}: established" for name in (*CRDS, POOLS[0])),
        "Ready endpoints of inference-gateway: 1",
        "Exposure: Service inference-gateway: 10.0.0.0/8",
    ]
    assert not any(line.startswith(("POST", "PATCH", "DELETE")) for line in found.api.seen)


@pytest.mark.parametrize(
    ("settings", "code", "words"),
    [
        ({"without": "gateway"}, NOT_FOUND, "agentgateway: Gateway inference-gateway in"),
        ({"without": "class"}, NOT_FOUND, "GatewayClass agentgateway not found"),
        ({"without": CRDS[1]}, NOT_FOUND, f"{CRDS[1]} not found"),
        ({"without": POOLS[0]}, NOT_FOUND, f"{POOLS[0]} not found"),
        ({"accepted": "False"}, INTERNAL, "agentgateway is not Accepted: Accepted=False"),
        ({"programmed": "Unknown"}, INTERNAL, "is not Programmed: Programmed=Unknown"),
        ({"ready": False}, NOT_FOUND, "no ready endpoint behind inference-gateway"),
    ],
    ids=["gateway", "class", "crd", "pools", "accepted", "programmed", "endpoints"],
)
def test_a_part_that_is_absent_or_not_ready_fails(
    settings: Document, code: str, words: str
) -> None:
    """A verdict, with the code of what is wrong."""
    error = bench(**settings).judge()
    assert error is not None
    assert (error.code, could_not_tell(error)) == (code, "")
    assert words in error.message


@pytest.mark.covers("V-143")
def test_a_gateway_that_the_recipe_does_not_declare_is_checked_all_the_same() -> None:
    """Decision 64; also on a standalone run, also the older component's."""
    assert bench(validation=None).judge() is None
    error = bench(validation=declared("gpu-operator"), ready=False).judge()
    assert error is not None
    assert skip_in(error) is None
    assert bench(validation=None, namespace="kgateway-system", ranges=None).judge() is None


@pytest.mark.parametrize("served", [True, False], ids=["no object", "no API group"])
def test_no_gateway_and_no_declaration_skips(served: bool) -> None:
    """Absent, cleanly: neither the object nor its API."""
    found = bench(without="gateway", validation=None)
    found.served = (GATEWAY, CLASS) if served else ()
    found.objects = [each for each in found.objects if served or each[0] is not CLASS]
    error = found.judge()
    assert error is not None
    assert skip_in(error) is not None


@pytest.mark.parametrize(("answer", "code"), COULD_NOT_LOOK)
@pytest.mark.parametrize("what", ["gateways/", "gatewayclasses/", "endpointslices", "/services"])
def test_what_cannot_be_read_is_never_a_verdict_nor_a_skip(
    what: str, answer: web.Response, code: str
) -> None:
    """Declared or not (field case G2)."""
    for validation in (RECIPE, None):
        error = bench(validation=validation).fault(f"GET .*{what}", answer).judge()
        assert error is not None
        assert skip_in(error) is None
        assert could_not_tell(error) == code


@pytest.mark.covers("V-104", "V-105")
@pytest.mark.parametrize(
    "ranges",
    [(), ("0.0.0.0/0",), ("10.0.0.0/8", "::/0"), ("0.0.0.0/1", "128.0.0.0/1")],
    ids=["none", "v4", "v6", "halves"],
)
def test_an_open_load_balancer_is_recorded_and_warned_about_and_passes(
    ranges: tuple[str, ...],
) -> None:
    """Without the variable."""
    found = bench(ranges=ranges)
    assert found.judge() is None
    assert "open to any source" in found.seen.lines[-1]
    assert "open to any source" in found.seen.log


@pytest.mark.covers("V-103")
@pytest.mark.parametrize("value", ["1", "true", "TRUE", " yes "])
def test_with_a_scoped_gateway_required_an_open_one_fails(value: str) -> None:
    """And one with ranges passes."""
    settings = {"environ": {SCOPED: value}}
    error = bench(ranges=(), settings=settings).judge()
    assert error is not None
    assert could_not_tell(error) == ""
    assert "open to any source" in error.message
    assert bench(settings=settings).judge() is None
    assert bench(ranges=None, settings=settings).judge() is None


def test_a_switch_that_is_neither_yes_nor_no_is_refused() -> None:
    """Guessing would switch a safeguard off."""
    assert not truthy("false")
    assert not truthy("")
    found = bench(settings={"environ": {SCOPED: "maybe"}})
    error = found.judge()
    assert error is not None
    assert error.code == INVALID_REQUEST
    assert found.api.seen == []


def test_a_source_range_that_is_no_cidr_is_refused() -> None:
    """It says nothing about who can come in."""
    with pytest.raises(AicrError, match="no CIDR"):
        is_open(["10.0.0.0/40"])


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (with_condition("x", "Programmed"), (True, "Programmed=True (R)")),
        (
            with_condition("x", "Programmed", observedGeneration=1),
            (False, "Programmed is about an older generation"),
        ),
        (with_condition("x", "Accepted"), (False, "Programmed is not reported")),
    ],
    ids=["true", "stale", "absent"],
)
def test_a_condition_counts_for_the_newest_generation_only(
    document: Document, expected: tuple[bool, str]
) -> None:
    """What a controller has not looked at yet is not ready."""
    assert condition(document, "Programmed") == expected


def test_endpoints_of_other_services_do_not_count() -> None:
    """And one that states no condition is ready."""
    other = endpoints("metrics", NS, "10.0.0.1:80")
    mine = endpoints("an-inference-gateway-x", NS, "10.0.0.2:80")
    del mine["endpoints"][0]["conditions"]
    assert ready_endpoints([other, mine], "inference-gateway") == 1
