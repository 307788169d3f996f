"""The transport against servers on loopback: what is sent, and every way to fail."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest
from aiohttp import web
from tests.kube.fakeapi import FakeApi, refuse, serving
from tests.kube.loopback import TIMES, closed_port, cluster, refused, run, version_error

from aicr.errors import (
    NOT_FOUND,
    RATE_LIMIT_EXCEEDED,
    SERVICE_UNAVAILABLE,
    TIMEOUT,
)
from aicr.kube import connect_to, kinds
from aicr.kube.config import ClusterConfig
from aicr.kube.timeouts import Timeouts


@pytest.mark.covers("G2")
def test_a_server_that_is_not_there_is_unavailable() -> None:
    """Refused, and a name that does not resolve."""

    async def body() -> None:
        port = closed_port()
        error = await version_error(ClusterConfig(f"http://127.0.0.1:{port}"))
        assert error.code == SERVICE_UNAVAILABLE
        assert f"no connection to http://127.0.0.1:{port}" in error.message
        unknown = await version_error(ClusterConfig("http://no-such-host.invalid"))
        assert unknown.code == SERVICE_UNAVAILABLE
        assert "no-such-host.invalid cannot be resolved" in unknown.message

    run(body())


def test_an_answer_that_takes_too_long_is_a_timeout() -> None:
    """Nothing is retried behind the caller's back."""

    async def body() -> None:
        async with cluster() as (api, client):

            async def slow(_: web.Request) -> web.Response:
                await asyncio.sleep(60)
                return web.Response()

            api.next("/version", slow)
            asked = client.transport.send(request_of("/version"), timeout=1.0)
            error = await refused(asked)
            assert error.code == TIMEOUT
            assert api.seen == ["GET /version"]

    run(body())


def request_of(path: str) -> Any:
    """A plain request."""
    from aicr.kube import request

    return request.raw(path)


def test_an_answer_that_is_cut_short_is_not_taken_for_whole() -> None:
    """A connection that breaks, and JSON that ends too soon."""

    async def body() -> None:
        async with cluster() as (api, client):

            async def breaking(request: web.Request) -> web.StreamResponse:
                headers = {"Content-Type": "application/json", "Content-Length": "1000"}
                response = web.StreamResponse(headers=headers)
                await response.prepare(request)
                await response.write(b'{"items": [')
                assert request.transport is not None
                request.transport.abort()
                return response

            api.next("/api/v1/nodes", breaking)
            cut = await refused(client.list(kinds.NODE))
            assert cut.code == SERVICE_UNAVAILABLE
            assert "was cut" in cut.message
            half = web.Response(body=b'{"items": [', content_type="application/json")
            api.next("/api/v1/nodes", half)
            short = await refused(client.list(kinds.NODE))
            assert short.code == SERVICE_UNAVAILABLE
            assert "cannot be read" in short.message

    run(body())


@pytest.mark.covers("G2")
def test_a_login_page_is_neither_success_nor_absence() -> None:
    """HTML with 200, a redirect, HTML with 404; for requests and for watches."""

    async def body() -> None:
        page: dict[str, Any] = {
            "text": "<html><title>Log in</title></html>",
            "content_type": "text/html",
        }
        for answer in (
            web.Response(**page),
            web.Response(status=404, **page),
            web.Response(status=302, headers={"Location": "https://login.test/"}),
        ):
            async with cluster() as (api, client):
                api.next("/api/v1/nodes", answer, times=3)
                error = await refused(client.list(kinds.NODE))
                assert error.code == SERVICE_UNAVAILABLE
                assert error.context["foreign"]
                watching = client.transport.stream(watch_of_nodes())
                error = await refused(watching.__aenter__())
                assert error.code == SERVICE_UNAVAILABLE

    run(body())


def watch_of_nodes() -> Any:
    """A request that streams."""
    from aicr.kube import request

    return request.watch(kinds.NODE, resource_version="1", timeout_seconds=5)


def test_a_busy_server_is_obeyed_for_a_while() -> None:
    """429 and 503 with Retry-After are tried again; without it they are errors at once."""

    async def body() -> None:
        times = Timeouts(busy=5.0)
        waited: list[float] = []

        async def sleep(seconds: float) -> None:
            waited.append(seconds)

        async with cluster(timeouts=times) as (api, client):
            client.transport._sleep = sleep  # type: ignore[attr-defined]
            busy = refuse(429, "TooManyRequests", "slow down")
            busy.headers["Retry-After"] = "1"
            starting = web.Response(status=503, headers={"Retry-After": "2"}, text="starting")
            api.next("/version", busy, times=2)
            api.next("/version", starting)
            assert (await client.version())["minor"] == "36"
            assert [int(seconds) for seconds in waited] == [1, 1, 2]
            later = refuse(429, "TooManyRequests", "slow down")
            later.headers["Retry-After"] = "60"
            api.next("/version", later)
            error = await refused(client.version())
            assert error.code == RATE_LIMIT_EXCEEDED
            assert "60 s" in error.hint
            api.next("/version", web.Response(status=503, text="down"))
            assert (await refused(client.version())).code == SERVICE_UNAVAILABLE
            assert len(waited) == 3

    run(body())


def test_requests_carry_what_the_settings_say() -> None:
    """Impersonation, compression, a path before the API's, and who we are."""

    async def body() -> None:
        api = FakeApi()
        settings: dict[str, Any] = {
            "headers": (("Impersonate-User", "eve"), ("Impersonate-Group", "a")),
            "compression": True,
        }
        async with cluster(api, **settings) as (_, client):
            await client.version()
            sent = api.headers[-1]
            assert sent["Impersonate-User"] == "eve"
            assert sent["Accept-Encoding"] == "gzip"
            assert sent["User-Agent"].startswith("aicr/")
        async with serving(api.handle) as server:
            config = ClusterConfig(f"{server}/k8s/clusters/c-1")
            async with connect_to(config, timeouts=TIMES) as client:
                error = await refused(client.version())
                assert error.code == NOT_FOUND
                assert api.seen[-1] == "GET /k8s/clusters/c-1/version"

    run(body())


def test_an_error_that_arrives_in_pieces_is_read_whole() -> None:
    """Of a watch or a followed log too: what is absent, and why, stands at the end of a Status."""

    async def body() -> None:
        async with cluster() as (api, client):

            async def in_pieces(request: web.Request) -> web.StreamResponse:
                whole = refuse(404, "NotFound", "x" * 3000, details={"name": "p"}).body
                assert isinstance(whole, bytes)
                headers = {"Content-Type": "application/json"}
                response = web.StreamResponse(status=404, headers=headers)
                await response.prepare(request)
                for start in range(0, len(whole), 1000):
                    await response.write(whole[start : start + 1000])
                    await asyncio.sleep(0.02)
                return response

            api.next("/api/v1/nodes", in_pieces)
            error = await refused(client.transport.stream(watch_of_nodes()).__aenter__())
            assert error.code == NOT_FOUND
            assert error.context["details"] == {"name": "p"}

    run(body())


def test_an_error_that_never_ends_is_read_in_part() -> None:
    """Some kilobytes are enough to say what it was."""

    async def body() -> None:
        async with cluster() as (api, client):

            async def endless(request: web.Request) -> web.StreamResponse:
                response = web.StreamResponse(status=500, headers={"Content-Type": "text/plain"})
                await response.prepare(request)
                with contextlib.suppress(ConnectionError):
                    while True:
                        await response.write(b"broken " * 1000)
                return response

            api.next("/api/v1/nodes", endless)
            error = await refused(client.transport.stream(watch_of_nodes()).__aenter__())
            assert error.code == SERVICE_UNAVAILABLE
            assert "broken broken" in error.message
            assert len(error.message) < 1000

    run(body())
