"""The transport against servers on loopback: credentials, TLS, proxies, and every way to fail."""

from __future__ import annotations

import asyncio
import socket
import sys
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from aicr.errors import (
    NOT_FOUND,
    RATE_LIMIT_EXCEEDED,
    SERVICE_UNAVAILABLE,
    TIMEOUT,
    UNAUTHORIZED,
    AicrError,
)
from aicr.kube import connect_to, kinds
from aicr.kube.config import ClusterConfig
from aicr.kube.credentials import Files, Fixed, Login
from aicr.kube.exec_plugin import ExecPlugin, ExecSpec
from aicr.kube.timeouts import Timeouts
from aicr.kube.tls import Tls
from tests.kube import certificates
from tests.kube.fakeapi import FakeApi, refuse, serving
from tests.kube.loopback import TIMES, cluster, run


async def refused(awaitable: Any) -> AicrError:
    """The error that *awaitable* must raise."""
    with pytest.raises(AicrError) as caught:
        await awaitable
    return caught.value


def closed_port() -> int:
    """A port on which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def version_error(config: ClusterConfig, timeouts: Timeouts = TIMES) -> AicrError:
    """The error of the simplest request."""
    async with connect_to(config, timeouts=timeouts) as client:
        return await refused(client.version())


# Failures


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
                await asyncio.sleep(5)
                return web.Response()

            api.next("/version", slow)
            asked = client.transport.send(request_of("/version"), timeout=0.05)
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
        page = {"text": "<html><title>Log in</title></html>", "content_type": "text/html"}
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


# Credentials


def test_a_rotated_token_is_read_after_a_refusal_and_after_a_while(tmp_path: Path) -> None:
    """Projected tokens change in the file; the request that met the change succeeds."""
    token = tmp_path / "token"
    token.write_text("one")
    now = 0.0
    valid = {"Bearer one"}

    async def body() -> None:
        nonlocal now
        files = Files(token_file=str(token), clock=lambda: now, max_age=60)
        async with cluster(credentials=files) as (api, client):
            original = api.handle

            async def checking(request: web.Request) -> web.StreamResponse:
                if request.headers.get("Authorization") not in valid:
                    api.seen.append("refused")
                    return refuse(401, "Unauthorized", "Unauthorized")
                return await original(request)

            async with serving(checking) as server:
                config = ClusterConfig(server, credentials=files)
                async with connect_to(config, timeouts=TIMES) as client:
                    await client.version()
                    token.write_text("two")
                    valid.clear()
                    valid.add("Bearer two")
                    await client.version()
                    assert api.seen == ["GET /version", "refused", "GET /version"]
                    token.write_text("three")
                    valid.add("Bearer three")
                    now += 61
                    await client.version()
                    assert api.headers[-1]["Authorization"] == "Bearer three"
                    token.unlink()
                    now += 61
                    await client.version()
                    valid.clear()
                    error = await refused(client.version())
                    assert error.code == UNAUTHORIZED
                    assert error.context["by"] == "authentication"
                    assert "three" not in str(error)

    run(body())


def test_a_token_file_that_was_never_there_is_an_error(tmp_path: Path) -> None:
    """As is one that is empty, or whose content is no token."""

    async def body() -> None:
        path = tmp_path / "token"
        for content, said in ((None, "cannot be read"), ("\n", "empty"), ("a\nb", "no token has")):
            if content is not None:
                path.write_text(content)
            files = Files(token_file=str(path), clock=lambda: 0.0, max_age=60)
            error = await refused(files.current())
            assert error.code == UNAUTHORIZED
            assert said in error.message

    run(body())


PLUGIN = """
import json, os, sys
info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
with open(sys.argv[1], "a") as seen:
    seen.write(json.dumps(info) + "\\n")
count = len(open(sys.argv[1]).readlines())
status = json.loads(sys.argv[2].replace("COUNT", str(count)))
print(json.dumps({"kind": "ExecCredential", "apiVersion": info["apiVersion"], "status": status}))
"""


def plugin(folder: Path, version: str, status: str, now: Any, **options: Any) -> ExecPlugin:
    """A plugin that notes what it was given and answers with *status*."""
    script = folder / "plugin.py"
    script.write_text(PLUGIN)
    spec = ExecSpec(
        sys.executable,
        f"client.authentication.k8s.io/{version}",
        (str(script), str(folder / "seen"), status),
        {"EXTRA": "1"},
        **options,
    )
    return ExecPlugin(spec, environ={"PATH": "/bin"}, now=now, timeout=20, terminal=False)


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_an_exec_plugin_gives_tokens_until_they_expire(tmp_path: Path, version: str) -> None:
    """Run once, again near the end of the token, again after a refusal; told about the cluster."""
    status = '{"token": "t-COUNT", "expirationTimestamp": "2026-11-30T10:00:00Z"}'
    end = 1796032800.0
    now = end - 3600

    async def body() -> None:
        nonlocal now
        information = {"server": "https://c.test", "config": {"x": 1}}
        made = plugin(tmp_path, version, status, lambda: now, cluster=information)
        async with cluster(credentials=made) as (api, client):
            await client.version()
            await client.version()
            assert api.headers[-1]["Authorization"] == "Bearer t-1"
            now = end - 5
            await client.version()
            assert api.headers[-1]["Authorization"] == "Bearer t-2"
            now = end - 3600
            api.next("/version", refuse(401, "Unauthorized", "Unauthorized"))
            await client.version()
            assert api.headers[-1]["Authorization"] == "Bearer t-3"

    run(body())
    first = (tmp_path / "seen").read_text().splitlines()[0]
    assert '"interactive": false' in first
    assert '"server": "https://c.test"' in first
    assert '"config": {"x": 1}' in first


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ("{}", "neither a token nor a client certificate"),
        ('{"clientCertificateData": "x"}', "only one of"),
        ('{"token": "t", "expirationTimestamp": "soon"}', "is no time"),
    ],
)
def test_an_exec_plugin_that_answers_wrongly_is_named(
    tmp_path: Path, status: str, said: str
) -> None:
    """UNAUTHORIZED with what is wrong."""
    made = plugin(tmp_path, "v1", status, lambda: 0.0)
    error = run(refused(made.current()))
    assert error.code == UNAUTHORIZED
    assert said in error.message
    assert sys.executable in error.message


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("print('secret-token')", "printed something that is not JSON"),
        ("print('[]')", "printed no ExecCredential"),
        (
            'print(\'{"kind": "ExecCredential", "apiVersion": "x"}\')',
            'answered as "x"',
        ),
        ("import sys; sys.stderr.write('please log in'); sys.exit(3)", "exit status 3: please log in"),
    ],
)
def test_what_an_exec_plugin_prints_is_never_quoted_but_what_it_complains_is(
    code: str, said: str
) -> None:
    """stdout is a secret; stderr is for people."""
    spec = ExecSpec(
        sys.executable, "client.authentication.k8s.io/v1", ("-c", code), install_hint="get it"
    )
    made = ExecPlugin(spec, environ={}, now=lambda: 0.0, timeout=20, terminal=False)
    error = run(refused(made.current()))
    assert error.code == UNAUTHORIZED
    assert said in error.message
    assert "secret-token" not in str(error)
    assert error.hint == "get it"


def test_an_exec_plugin_that_hangs_or_wants_a_terminal_is_an_error() -> None:
    """It is ended after its time; one that must ask needs somebody to ask."""

    async def body() -> None:
        version = "client.authentication.k8s.io/v1"
        hanging = ExecSpec(sys.executable, version, ("-c", "import time; time.sleep(60)"))
        made = ExecPlugin(hanging, environ={}, now=lambda: 0.0, timeout=0.2, terminal=False)
        assert (await refused(made.current())).code == TIMEOUT
        asking = ExecSpec(sys.executable, version, interactive_mode="Always")
        made = ExecPlugin(asking, environ={}, now=lambda: 0.0, timeout=1, terminal=False)
        assert "needs a terminal" in (await refused(made.current())).message

    run(body())


# TLS


def tls(**options: Any) -> Tls:
    """Trust in the test CA."""
    return Tls(**{"ca": certificates.ca_pem(), "where": "kubeconfig", **options})


def test_tls_with_the_right_ca_and_with_none_at_all() -> None:
    """A CA of the cluster, or checks switched off."""

    async def body() -> None:
        api = FakeApi()
        async with serving(api.handle, tls=certificates.server_context()) as server:
            for settings in (tls(), Tls(insecure=True)):
                async with connect_to(ClusterConfig(server, settings), timeouts=TIMES) as client:
                    assert (await client.version())["minor"] == "36"

    run(body())


@pytest.mark.parametrize(
    ("settings", "said", "hint"),
    [
        (Tls(ca=certificates.ca_pem("other"), where="the file"), "not trusted", "the file is of another"),
        (Tls(where="x"), "not trusted", "of another cluster"),
        (tls(server_name="other.test"), "not trusted", "tls-server-name"),
    ],
)
@pytest.mark.covers("G2")
def test_a_certificate_that_is_not_the_clusters_is_refused_with_the_reason(
    settings: Tls, said: str, hint: str
) -> None:
    """A wrong CA, no CA, a wrong name: SERVICE_UNAVAILABLE, never absence."""

    async def body() -> None:
        async with serving(FakeApi().handle, tls=certificates.server_context()) as server:
            error = await version_error(ClusterConfig(server, settings))
            assert error.code == SERVICE_UNAVAILABLE
            assert said in error.message
            assert hint in error.hint

    run(body())


def test_the_name_in_the_certificate_can_be_said() -> None:
    """tls-server-name, for tunnels."""

    async def body() -> None:
        context = certificates.server_context(identity="api.test")
        async with serving(FakeApi().handle, tls=context) as server:
            config = ClusterConfig(server, tls(server_name="api.test"))
            async with connect_to(config, timeouts=TIMES) as client:
                assert (await client.version())["minor"] == "36"

    run(body())


def test_plain_http_where_tls_is_expected_and_the_other_way_round() -> None:
    """Each says that it is about the connection."""

    async def body() -> None:
        async with serving(FakeApi().handle) as server:
            secure = ClusterConfig(server.replace("http:", "https:"), tls())
            error = await version_error(secure)
            assert error.code == SERVICE_UNAVAILABLE
            assert "TLS" in error.message
        async with serving(FakeApi().handle, tls=certificates.server_context()) as server:
            error = await version_error(ClusterConfig(server.replace("https:", "http:")))
            assert error.code == SERVICE_UNAVAILABLE

    run(body())


def test_a_client_certificate_identifies_us_and_can_be_rotated(tmp_path: Path) -> None:
    """From data, from files that change, and from an exec plugin."""

    async def body() -> None:
        context = certificates.server_context(client_ca="clients")
        async with serving(FakeApi().handle, tls=context) as server:
            good = certificates.issue("me", ca="clients")
            fixed = Fixed(Login(certificate=good.certificate, key=good.key))
            config = ClusterConfig(server, tls(), fixed)
            async with connect_to(config, timeouts=TIMES) as client:
                await client.version()
            assert (await version_error(ClusterConfig(server, tls()))).code == SERVICE_UNAVAILABLE

            stranger = certificates.issue("me", ca="strangers")
            now = 0.0
            paths = [tmp_path / "me.pem", tmp_path / "me.key"]
            for path, content in zip(paths, (stranger.certificate, stranger.key), strict=True):
                path.write_bytes(content)
            files = Files(
                certificate_file=str(paths[0]),
                key_file=str(paths[1]),
                clock=lambda: now,
                max_age=60,
            )
            async with connect_to(ClusterConfig(server, tls(), files), timeouts=TIMES) as client:
                assert (await refused(client.version())).code == SERVICE_UNAVAILABLE
                for path, content in zip(paths, (good.certificate, good.key), strict=True):
                    path.write_bytes(content)
                now = 61.0
                await client.version()

            import json

            status = {
                "clientCertificateData": good.certificate.decode(),
                "clientKeyData": good.key.decode(),
            }
            made = plugin(tmp_path, "v1", json.dumps(status), lambda: 0.0)
            async with connect_to(ClusterConfig(server, tls(), made), timeouts=TIMES) as client:
                await client.version()

    run(body())


@pytest.mark.parametrize(
    ("settings", "login", "said"),
    [
        (Tls(ca=b"nonsense", where="f"), Login(), "not a PEM certificate"),
        (Tls(ca=b"\xff", where="f"), Login(), "not a PEM certificate"),
        (Tls(insecure=True), Login(certificate=b"x"), "client key is missing"),
        (Tls(insecure=True), Login(key=b"x"), "client certificate is missing"),
        (Tls(insecure=True), Login(certificate=b"x", key=b"y"), "cannot be used together"),
    ],
)
def test_certificates_that_are_none_are_refused_before_connecting(
    settings: Tls, login: Login, said: str
) -> None:
    """INVALID_REQUEST: the settings are at fault."""
    config = ClusterConfig("https://127.0.0.1:1", settings, Fixed(login))
    error = run(version_error(config))
    assert error.code == "INVALID_REQUEST"
    assert said in error.message


# Proxies


class Proxy:
    """A CONNECT proxy."""

    def __init__(self, refuse_with: bytes = b"") -> None:
        self.refuse_with = refuse_with
        self.heads: list[bytes] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One tunnel."""
        head = await reader.readuntil(b"\r\n\r\n")
        self.heads.append(head)
        if self.refuse_with:
            writer.write(b"HTTP/1.1 " + self.refuse_with + b"\r\nContent-Length: 0\r\n\r\n")
            await writer.drain()
            writer.close()
            return
        host, port = head.split()[1].decode().split(":")
        far_reader, far_writer = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        await asyncio.gather(pump(reader, far_writer), pump(far_reader, writer))


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy until the end."""
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        pass
    writer.close()


def test_a_proxy_leads_to_the_server_and_its_password_stays_secret() -> None:
    """A tunnel, through which TLS is spoken with the server itself."""

    async def body() -> None:
        proxy = Proxy()
        async with (
            serving(FakeApi().handle, tls=certificates.server_context()) as server,
            await asyncio.start_server(proxy.serve, "127.0.0.1", 0) as listener,
        ):
            port = listener.sockets[0].getsockname()[1]
            address = f"http://user:hunter2@127.0.0.1:{port}"
            config = ClusterConfig(server, tls(), proxy=address)
            assert "hunter2" not in repr(config)
            async with connect_to(config, timeouts=TIMES) as client:
                assert (await client.version())["minor"] == "36"
            assert proxy.heads[0].startswith(b"CONNECT 127.0.0.1:")
            assert b"Proxy-Authorization: Basic" in proxy.heads[0]

    run(body())


def test_a_proxy_that_refuses_or_is_not_there_is_named() -> None:
    """Without its password."""

    async def body() -> None:
        proxy = Proxy(b"403 Forbidden")
        async with await asyncio.start_server(proxy.serve, "127.0.0.1", 0) as listener:
            port = listener.sockets[0].getsockname()[1]
            address = f"http://user:hunter2@127.0.0.1:{port}"
            config = ClusterConfig("https://c.test", tls(), proxy=address)
            error = await version_error(config)
            assert error.code == SERVICE_UNAVAILABLE
            assert f"the proxy http://127.0.0.1:{port} refused" in error.message
            assert "403" in error.message
            assert "hunter2" not in str(error)
        gone = ClusterConfig(
            "https://c.test", tls(), proxy=f"http://u:hunter2@127.0.0.1:{closed_port()}"
        )
        error = await version_error(gone)
        assert error.code == SERVICE_UNAVAILABLE
        assert "the proxy" in error.message
        assert "hunter2" not in str(error)

    run(body())


# What is sent


def test_requests_carry_what_the_settings_say() -> None:
    """Impersonation, compression, a path before the API's, and who we are."""

    async def body() -> None:
        api = FakeApi()
        settings = {
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
