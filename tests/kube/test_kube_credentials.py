"""Who we are: token files that rotate, and programs that make credentials."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from aiohttp import web
from tests.kube.fakeapi import refuse, serving
from tests.kube.loopback import TIMES, cluster, refused, run
from tests.kube.plugins import plugin

from aicr.errors import (
    TIMEOUT,
    UNAUTHORIZED,
)
from aicr.kube import connect_to
from aicr.kube.config import ClusterConfig
from aicr.kube.credentials import Files
from aicr.kube.exec_plugin import ExecPlugin, ExecSpec


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
        (
            "import sys; sys.stderr.write('please log in'); sys.exit(3)",
            "exit status 3: please log in",
        ),
    ],
)
def test_what_an_exec_plugin_prints_is_never_quoted_but_what_it_complains_is(
    code: str, said: str
) -> None:
    """stdout is a secret; stderr is for people."""
    spec = ExecSpec(
        sys.executable, "client.authentication.k8s.io/v1", ("-c", code), install_hint="get it"
    )
    made = ExecPlugin(spec, environ={}, now=lambda: 0.0, timeout=300, terminal=False)
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
