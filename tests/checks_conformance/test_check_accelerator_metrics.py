"""accelerator-metrics: what the DCGM exporter publishes (validators spec 6.2)."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web
from tests.checks.contexts import put, validation
from tests.checks_conformance.scene import Scene, endpoints, service
from tests.checks_deployment.answers import COULD_NOT_LOOK
from tests.kube.fakeapi import FakeApi, serving
from tests.kube.loopback import closed_port

from aicr.checks.conformance.accelerator_metrics import CHECK, REQUIRED, SERVICE, samples
from aicr.checks.conformance.endpoints import ENDPOINT_SLICE, addresses
from aicr.checks.sdk.outcome import could_not_tell, skip_in
from aicr.errors import INTERNAL, NOT_FOUND, SERVICE_UNAVAILABLE, AicrError
from aicr.kube import kinds

Document = dict[str, Any]
NS = "gpu-operator"


def page(*absent: str) -> str:
    """What an exporter of two GPUs answers, without samples of *absent*."""
    lines = []
    for name in REQUIRED:
        lines += [f"# HELP {name} Text.", f"# TYPE {name} gauge"]
        if name not in absent:
            lines += [f'{name}{{gpu="{n}",UUID="GPU-{n}",pod="a b"}} 3{n}.5' for n in range(2)]
    return "\n".join(lines) + "\n"


def scene(
    text: str | bytes = b"", *, status: int = 200, path: str = "/metrics", **settings: Any
) -> Scene:
    """An exporter that answers *text*."""

    async def answer(request: web.Request) -> web.Response:
        body = text if isinstance(text, bytes) else text.encode()
        return web.Response(status=status if request.path == path else 404, body=body)

    @contextlib.asynccontextmanager
    async def beside(api: FakeApi) -> AsyncIterator[None]:
        async with serving(answer) as url:
            await put(api, ENDPOINT_SLICE, endpoints(SERVICE, NS, url.removeprefix("http://")))
            yield

    found = Scene(CHECK, **{"beside": beside, **settings})
    return found.put(kinds.SERVICE, service(SERVICE, NS, 9400))


def test_samples_of_all_four_metrics_pass_with_a_short_excerpt() -> None:
    """Eight lines at most."""
    found = scene(page())
    assert found.judge() is None
    assert found.seen.lines[:4] == [f"  {name}: 2 sample(s)" for name in REQUIRED]
    assert "Equivalent: curl -s http://nvidia-dcgm-exporter.gpu-operator.svc:9400/metrics" in (
        found.seen.lines
    )
    assert sum(line.startswith("DCGM") for line in found.seen.lines) == 8


@pytest.mark.parametrize(
    "absent", [("DCGM_FI_DEV_GPU_TEMP",), ("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_POWER_USAGE")]
)
def test_metrics_without_a_sample_are_not_found(absent: tuple[str, ...]) -> None:
    """Comments alone say nothing about a GPU."""
    found = scene(page(*absent))
    error = found.judge()
    assert error is not None
    assert (error.code, could_not_tell(error)) == (NOT_FOUND, "")
    assert error.message.endswith(", ".join(absent))
    assert all(f"  {name}: absent" in found.seen.lines for name in absent)


@pytest.mark.parametrize(
    ("text", "status", "code"),
    [
        ("", 200, INTERNAL),
        ("<html>sign in</html>", 200, INTERNAL),
        (b"\xff\xfe\x00", 200, INTERNAL),
        (b"x" * (1024 * 1024 + 1), 200, INTERNAL),
        ("gone", 404, INTERNAL),
        ("busy", 503, SERVICE_UNAVAILABLE),
    ],
    ids=["empty", "a page", "binary", "too long", "404", "503"],
)
def test_an_answer_that_is_no_metrics_could_not_be_told(
    text: str | bytes, status: int, code: str
) -> None:
    """Whatever listens there."""
    error = scene(text, status=status).judge()
    assert error is not None
    assert could_not_tell(error) == code


def test_an_exporter_that_refuses_connections_is_unavailable() -> None:
    """Its pod is ready and does not answer: the network may be at fault."""
    found = scene(beside=None)
    found.put(ENDPOINT_SLICE, endpoints(SERVICE, NS, f"127.0.0.1:{closed_port()}"))
    error = found.judge()
    assert error is not None
    assert (error.code, could_not_tell(error)) == (SERVICE_UNAVAILABLE, SERVICE_UNAVAILABLE)


@pytest.mark.parametrize("ready", [None, False], ids=["no endpoints", "not ready"])
def test_a_service_without_a_ready_endpoint_is_a_verdict(ready: bool | None) -> None:
    """Nobody serves it, and that was seen."""
    found = scene(beside=None)
    if ready is not None:
        found.put(ENDPOINT_SLICE, endpoints(SERVICE, NS, "127.0.0.1:1", ready=ready))
    error = found.judge()
    assert error is not None
    assert (error.code, could_not_tell(error)) == (SERVICE_UNAVAILABLE, "")


def test_an_absent_exporter_fails_where_it_was_promised_and_skips_elsewhere() -> None:
    """The capability contract, by component gpu-operator."""
    declared = Scene(CHECK, validation=validation("gpu-operator")).judge()
    assert declared is not None
    assert (declared.code, skip_in(declared), could_not_tell(declared)) == (NOT_FOUND, None, "")
    undeclared = Scene(CHECK).judge()
    assert undeclared is not None
    assert skip_in(undeclared) is not None


@pytest.mark.parametrize("path", ["/services/", "/endpointslices"])
@pytest.mark.parametrize(("answer", "code"), COULD_NOT_LOOK)
def test_a_look_that_fails_could_not_be_told(path: str, answer: web.Response, code: str) -> None:
    """Declared or not, never a skip."""
    error = scene(page()).fault(f"GET .*{path}", answer).judge()
    assert error is not None
    assert could_not_tell(error) == code
    assert skip_in(error) is None


def test_only_lines_with_a_value_are_samples() -> None:
    """Labels may hold spaces and braces."""
    text = 'a{x="1 } 2"} 5\nb 1e3\n# c 1\nd\ne{x="y"}\nf NaN 123\n  g 1\n'
    assert sorted(samples(text)) == ["a", "b", "f"]


def test_a_named_port_leads_to_the_endpoints_of_that_name() -> None:
    """IPv6 gets brackets; a Service without the port is NOT_FOUND."""
    found: Document = {
        "ports": [{"name": "http", "port": 1}, {"name": "other", "port": 2}],
        "endpoints": [{"addresses": ["10.0.0.1", "fd00::1"]}],
    }
    assert addresses(service("s", NS, 9400), [found], 9400) == ["10.0.0.1:1", "[fd00::1]:1"]
    with pytest.raises(AicrError, match="no port 80") as caught:
        addresses(service("s", NS, 9400), [found], 80)
    assert caught.value.code == NOT_FOUND
