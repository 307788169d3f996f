"""Entries of a kubeconfig with values of a wrong type, and addresses and headers that cannot be sent."""

from __future__ import annotations

import asyncio
import contextlib
import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web
from tests.kube import certificates
from tests.kube.fakeapi import refuse
from tests.kube.loopback import cluster, run, version_error
from tests.kube.plugins import plugin

from aicr.errors import INVALID_REQUEST, UNAUTHORIZED, AicrError
from aicr.kube import config, exec_plugin
from aicr.kube.config import ClusterConfig
from aicr.kube.credentials import Beside, Fixed, Login

EXEC = {
    "apiVersion": "client.authentication.k8s.io/v1",
    "command": "true",
    "args": ["a"],
    "env": [{"name": "A", "value": "b"}],
    "interactiveMode": "Never",
    "provideClusterInfo": True,
}
EXTENSIONS = [{"name": "client.authentication.k8s.io/exec", "extension": {"a": 1}}]
CLUSTER = {
    "server": "https://c.test:6443",
    "tls-server-name": "x",
    "insecure-skip-tls-verify": False,
    "proxy-url": "http://p.test:1",
    "disable-compression": True,
    "extensions": EXTENSIONS,
}
IMPERSONATION = {"as": "e", "as-uid": "1", "as-groups": ["a"], "as-user-extra": {"s": ["x"]}}
USERS: list[dict[str, Any]] = [
    {"exec": EXEC, **IMPERSONATION},
    {"token": "t", "username": "u", "password": "p"},
    {"tokenFile": "f", "client-certificate": "x", "client-key": "y"},
    {"auth-provider": {"name": "oidc", "config": {"id-token": "x"}}},
]
WRONG: list[Any] = [None, 5, True, "a\nb", [1], {"a": 1}, [{}]]


def document(**user: Any) -> dict[str, Any]:
    """A kubeconfig with one context."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "prod",
        "clusters": [{"name": "c", "cluster": copy.deepcopy(CLUSTER)}],
        "users": [{"name": "u", "user": copy.deepcopy(user)}],
        "contexts": [{"name": "prod", "context": {"cluster": "c", "user": "u", "namespace": "n"}}],
    }


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value in a document."""
    yield path
    inner: Any = ()
    if isinstance(value, dict):
        inner = value.items()
    elif isinstance(value, list):
        inner = enumerate(value)
    for key, found in inner:
        yield from places(found, (*path, key))


def replaced(whole: Any, path: tuple[Any, ...], value: Any) -> Any:
    """*whole* with *value* at *path*."""
    if not path:
        return value
    made = copy.deepcopy(whole)
    found = made
    for key in path[:-1]:
        found = found[key]
    found[path[-1]] = value
    return made


def read(folder: Path, content: Any, environ: dict[str, str] | None = None) -> ClusterConfig:
    """The settings in a kubeconfig with that content."""
    path = folder / "config"
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    return config.from_kubeconfig(str(path), environ=environ or {})


def refused(folder: Path, content: Any, environ: dict[str, str] | None = None) -> AicrError:
    """The error that it gives."""
    with pytest.raises(AicrError) as caught:
        read(folder, content, environ)
    assert caught.value.code == INVALID_REQUEST
    return caught.value


@pytest.mark.parametrize("user", USERS, ids=["exec", "token", "files", "auth-provider"])
def test_no_value_of_a_wrong_type_is_a_traceback(tmp_path: Path, user: dict[str, Any]) -> None:
    """Each value of a kubeconfig in turn, replaced by values of every type; the rest of it once."""
    whole = document(**user)
    for path in places(whole):
        if path[:1] != ("users",) and "token" not in user:
            continue
        for value in WRONG:
            with contextlib.suppress(AicrError):
                read(tmp_path, replaced(whole, path, value))


@pytest.mark.parametrize(
    ("part", "key", "value", "said"),
    [
        ("clusters", "insecure-skip-tls-verify", "false", "must be true or false, without quotes"),
        ("clusters", "disable-compression", "no", "must be true or false, without quotes"),
        ("clusters", "extensions", "text", "must be a list"),
        ("users", "as-groups", "admins", "must be a list"),
        ("users", "as-user-extra", {"scope": "x"}, "scope must be a list"),
        ("users", "token", ["s3cret"], "token must be text"),
        ("users", "exec", "aws", "exec must be a mapping"),
        ("users", "exec", {**EXEC, "args": "get-token"}, "args must be a list"),
        ("users", "exec", {**EXEC, "env": [{"value": "x"}]}, "no name that a variable can have"),
    ],
)
def test_what_kubectl_cannot_decode_is_refused(
    tmp_path: Path, part: str, key: str, value: Any, said: str
) -> None:
    """A quoted "false" above all: text is true in Python. Values are not quoted."""
    whole = document(**{"as": "e", "exec": EXEC})
    whole[part][0][part.removesuffix("s")][key] = value
    error = refused(tmp_path, whole)
    assert said in error.message
    assert error.where == str(tmp_path / "config")
    assert "s3cret" not in str(error)


def test_a_variable_of_a_plugin_may_be_empty(tmp_path: Path) -> None:
    """kubectl sets one without a value to nothing."""
    spec = exec_plugin.read_spec(
        {**EXEC, "env": [{"name": "A"}]}, folder=str(tmp_path), cluster={}, where="x"
    )
    assert spec.env == {"A": ""}


@pytest.mark.parametrize(
    ("server", "said"),
    [
        ("https://a:b", "is not an address"),
        ("https://h:99999", "is not an address"),
        ("https://[::1", "is not an address"),
        ("https://a..b", "is not an address"),
        (f"https://{'a' * 64}.test", "is not an address"),
        ("https://", "is not an http(s) address"),
        ("http://a b", "is not an http(s) address"),
        ("https://u:hunter2@h", "with a user name or password"),
        ("https://h/?x", "must not have a query"),
    ],
)
def test_an_address_that_nothing_can_be_sent_to_is_refused(
    tmp_path: Path, server: str, said: str
) -> None:
    """Before a proxy is looked for, and without a password that is in it."""
    for environ in ({}, {"HTTPS_PROXY": "http://p.test:3128"}):
        error = refused(
            tmp_path, replaced(document(), ("clusters", 0, "cluster", "server"), server), environ
        )
        assert said in error.message
        assert "hunter2" not in str(error)


def test_the_scheme_of_an_address_may_be_in_capitals(tmp_path: Path) -> None:
    """As in any URL."""
    whole = replaced(document(), ("clusters", 0, "cluster", "server"), "HTTPS://C.test/k8s/")
    assert read(tmp_path, whole).server == "https://C.test/k8s"


@pytest.mark.parametrize("url", ["http://127.0.0.1:port", "http://[::1", "http://u:hunter2@:1"])
def test_a_proxy_that_is_no_address_is_refused(tmp_path: Path, url: str) -> None:
    """Of the environment as of the kubeconfig, and without a password that is in it."""
    whole = document()
    del whole["clusters"][0]["cluster"]["proxy-url"]
    for content, environ in (
        (whole, {"HTTPS_PROXY": url}),
        (replaced(document(), ("clusters", 0, "cluster", "proxy-url"), url), {}),
    ):
        error = refused(tmp_path, content, environ)
        assert "is not an http:// or https:// address" in error.message
        assert "hunter2" not in str(error)


def test_a_request_that_cannot_be_written_is_an_error_and_no_traceback() -> None:
    """An address made by a program, and a header with a line break."""

    async def body() -> None:
        for server in ("http://127.0.0.1:99999", "http://a..b"):
            error = await version_error(ClusterConfig(server))
            assert error.code == INVALID_REQUEST
        async with cluster(headers=(("Impersonate-User", "s3cret\nX: y"),)) as (_, client):
            with pytest.raises(AicrError) as caught:
                await client.version()
            assert caught.value.code == INVALID_REQUEST
            assert "s3cret" not in str(caught.value)

    run(body())


def test_impersonated_extra_keys_are_escaped(tmp_path: Path) -> None:
    """Keys have slashes, names of headers none: the server undoes %2F. Case is lost, as in client-go."""
    user = {"as": "eve", "as-user-extra": {"Example.test/scopes": ["a", "b"], "50%": ["c"]}}
    headers = read(tmp_path, document(**user)).headers
    assert headers == (
        ("Impersonate-User", "eve"),
        ("Impersonate-Extra-example.test%2Fscopes", "a"),
        ("Impersonate-Extra-example.test%2Fscopes", "b"),
        ("Impersonate-Extra-50%25", "c"),
    )

    async def body() -> None:
        async with cluster(headers=headers) as (api, client):
            await client.version()
            assert api.headers[-1]["Impersonate-Extra-50%25"] == "c"

    run(body())


@pytest.mark.parametrize(
    ("user", "said"),
    [
        ({"as-groups": ["a"]}, "need as"),
        ({"as-uid": "7"}, "need as"),
        ({"as-user-extra": {"a": ["b"]}}, "need as"),
        ({"as": "a\nb"}, "Impersonate-User has a line break"),
    ],
)
def test_impersonation_that_the_server_would_refuse_is_refused_here(
    tmp_path: Path, user: dict[str, Any], said: str
) -> None:
    """Once, with the place, instead of with every request."""
    assert said in refused(tmp_path, document(**user)).message


def test_a_client_certificate_stays_beside_a_plugins_token(tmp_path: Path) -> None:
    """As in client-go: a gateway may ask for the one and the API server for the other."""
    pair = certificates.issue("me")
    (tmp_path / "me.pem").write_bytes(pair.certificate)
    (tmp_path / "me.key").write_bytes(pair.key)
    script = tmp_path / "plugin"
    answer = '{"kind": "ExecCredential", "apiVersion": "%s", "status": {"token": "t"}}'
    script.write_text(f"#!/bin/sh\necho '{answer % EXEC['apiVersion']}'\n")
    script.chmod(0o755)
    user = {
        "exec": {**EXEC, "command": "./plugin"},
        "client-certificate": "me.pem",
        "client-key": "me.key",
    }
    found = asyncio.run(read(tmp_path, document(**user)).credentials.current())
    assert found.authorization == "Bearer t"
    assert (found.certificate, found.key) == (pair.certificate, pair.key)


def test_both_halves_of_such_a_login_are_renewed() -> None:
    """A refusal renews the token, and says no when nothing changed."""

    class Counting:
        def __init__(self, *tokens: str) -> None:
            self.tokens = list(tokens)

        async def current(self) -> Login:
            return Login(self.tokens[0])

        async def renew(self, refused: Login) -> bool:
            assert refused == Login(self.tokens[0])
            if len(self.tokens) > 1:
                del self.tokens[0]
                return True
            return False

    async def body() -> None:
        both = Beside(Counting("one", "two"), Fixed(Login(certificate=b"c", key=b"k")))
        first = await both.current()
        assert first == Login("one", b"c", b"k")
        assert await both.renew(first)
        assert await both.current() == Login("two", b"c", b"k")
        # Somebody else renewed meanwhile: nothing more is asked for.
        assert await both.renew(first)
        assert not await both.renew(Login("two", b"c", b"k"))

    asyncio.run(body())


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ('{"token": 5}', "that is not text"),
        ('{"clientCertificateData": {}, "clientKeyData": {}}', "neither a token"),
        ('{"clientCertificateData": [1], "clientKeyData": "k"}', "that is not text"),
        ('{"token": "t", "expirationTimestamp": "2026-11-30T10:00:00"}', "is no time"),
        ('{"token": "t", "expirationTimestamp": 5}', "is no time"),
    ],
)
def test_a_plugin_that_answers_with_wrong_types_is_named(
    tmp_path: Path, status: str, said: str
) -> None:
    """A time without a zone too: as local time it could make a token last for hours too long."""
    with pytest.raises(AicrError) as caught:
        asyncio.run(plugin(tmp_path, "v1", status, lambda: 0.0).current())
    assert caught.value.code == UNAUTHORIZED
    if "{}" not in status:
        assert said in caught.value.message


@pytest.mark.parametrize("port", ["", "6443"])
def test_a_pods_port_may_be_left_out(tmp_path: Path, port: str) -> None:
    """An empty variable is as good as none."""
    (tmp_path / "token").write_text("t")
    (tmp_path / "ca.crt").write_bytes(certificates.ca_pem())
    environ = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": port}
    found = config.in_cluster(environ=environ, service_account=str(tmp_path))
    assert found.server == f"https://10.0.0.1:{port or 443}"


def test_a_busy_answer_of_any_server_error_is_obeyed() -> None:
    """client-go waits for 429 and for every 5xx that says when; an internal error without that is final."""

    async def body() -> None:
        async with cluster() as (api, client):
            waited: list[float] = []

            async def sleep(seconds: float) -> None:
                waited.append(seconds)

            client.transport._sleep = sleep  # type: ignore[attr-defined]
            client.transport._timeouts = client.timeouts.scaled(100)  # type: ignore[attr-defined]
            later = refuse(500, "ServerTimeout", "try later", details={"retryAfterSeconds": 1})
            later.headers["Retry-After"] = "1"
            api.next("/version", later)
            await client.version()
            assert len(waited) == 1
            api.next("/version", web.Response(status=500, text="broken"))
            with pytest.raises(AicrError):
                await client.version()
            assert len(waited) == 1

    run(body())
