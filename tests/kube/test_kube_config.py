"""Which cluster, as whom: kubeconfig files and in-cluster settings, right and wrong."""

from __future__ import annotations

import asyncio
import base64
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.kube import certificates

from aicr.errors import INVALID_REQUEST, UNAUTHORIZED, AicrError
from aicr.kube import config
from aicr.kube.config import ClusterConfig
from aicr.kube.credentials import Login
from aicr.kube.exec_plugin import ExecPlugin

CA = base64.b64encode(certificates.ca_pem()).decode()


def kubeconfig(
    path: Path, *, cluster: Any = None, user: Any = None, context: Any = None, **top: Any
) -> str:
    """A kubeconfig with one context ``prod``; the path as text."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "prod",
        "clusters": [
            {"name": "c", "cluster": {"server": "https://c.test:6443/", **(cluster or {})}}
        ],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": "prod", "context": {"cluster": "c", "user": "u", **(context or {})}}],
        **top,
    }
    path.write_text(yaml.safe_dump(document))
    return str(path)


def read(path: str, **options: Any) -> ClusterConfig:
    """The settings of *path* in an empty environment."""
    options.setdefault("environ", {})
    return config.from_kubeconfig(path, **options)


def login(found: ClusterConfig) -> Login:
    """What would be presented."""
    return asyncio.run(found.credentials.current())


def refused(path: str, **options: Any) -> AicrError:
    """The error that reading *path* gives."""
    with pytest.raises(AicrError) as caught:
        read(path, **options)
    assert caught.value.code == INVALID_REQUEST
    return caught.value


def test_a_kubeconfig_gives_server_ca_namespace_and_token(tmp_path: Path) -> None:
    """The current context, described in one line without secrets."""
    path = kubeconfig(
        tmp_path / "config",
        cluster={"certificate-authority-data": CA, "tls-server-name": "other.test"},
        user={"token": "s3cret"},
        context={"namespace": "gpu"},
    )
    found = read(path)
    assert found.server == "https://c.test:6443"
    assert found.tls.ca == certificates.ca_pem()
    assert found.tls.server_name == "other.test"
    assert found.compression
    assert login(found).authorization == "Bearer s3cret"
    assert found.describe() == "context prod, server https://c.test:6443, namespace gpu"
    assert "s3cret" not in repr(found)
    assert "s3cret" not in repr(login(found))


def test_files_are_relative_to_the_kubeconfig(tmp_path: Path) -> None:
    """As kubectl has it, whatever the working directory."""
    (tmp_path / "ca.pem").write_bytes(certificates.ca_pem())
    pair = certificates.issue("me")
    (tmp_path / "me.pem").write_bytes(pair.certificate)
    (tmp_path / "me.key").write_bytes(pair.key)
    path = kubeconfig(
        tmp_path / "config",
        cluster={"certificate-authority": "ca.pem", "disable-compression": True},
        user={"client-certificate": "me.pem", "client-key": "me.key"},
    )
    found = read(path)
    assert found.tls.ca == certificates.ca_pem()
    assert not found.compression
    assert (login(found).certificate, login(found).key) == (pair.certificate, pair.key)


def test_several_files_are_merged_and_the_first_wins(tmp_path: Path) -> None:
    """KUBECONFIG with two files, each with its own folder, and one that does not exist."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "ca.pem").write_bytes(certificates.ca_pem())
    first = kubeconfig(tmp_path / "one", user={"token": "first"})
    second = kubeconfig(
        tmp_path / "sub" / "two",
        user={"token": "second"},
        clusters=[
            {"name": "c", "cluster": {"server": "https://late.test"}},
            {
                "name": "d",
                "cluster": {"server": "https://d.test", "certificate-authority": "ca.pem"},
            },
        ],
        contexts=[{"name": "dev", "context": {"cluster": "d", "user": "u"}}],
        **{"current-context": "dev"},
    )
    paths = f"{tmp_path / 'missing'}:{first}:{second}"
    found = read(paths)
    assert (found.context, found.server) == ("prod", "https://c.test:6443")
    assert login(found).authorization == "Bearer first"
    dev = read(paths, context="dev")
    assert dev.tls.ca == certificates.ca_pem()
    assert login(dev).authorization == "Bearer first"


@pytest.mark.parametrize(
    ("user", "header"),
    [
        ({}, ""),
        ({"token": "t", "username": "u", "password": "p"}, "Bearer t"),
        ({"username": "u", "password": "pä"}, "Basic dTpww6Q="),
        ({"tokenFile": "token", "token": "old"}, "Bearer fresh"),
        ({"tokenFile": "nowhere", "token": "old"}, "Bearer old"),
    ],
)
def test_credentials_have_an_order(tmp_path: Path, user: Any, header: str) -> None:
    """A token file that can be read, a token, a password."""
    (tmp_path / "token").write_text("fresh\n")
    found = read(kubeconfig(tmp_path / "config", user=user))
    assert login(found).authorization == header


def test_impersonation_becomes_headers(tmp_path: Path) -> None:
    """User, UID, groups and extra."""
    user = {
        "token": "t",
        "as": "eve",
        "as-uid": "7",
        "as-groups": ["a", "b"],
        "as-user-extra": {"scope": ["x"]},
    }
    assert read(kubeconfig(tmp_path / "config", user=user)).headers == (
        ("Impersonate-User", "eve"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Group", "a"),
        ("Impersonate-Group", "b"),
        ("Impersonate-Extra-scope", "x"),
    )


def test_the_proxy_of_the_kubeconfig_wins_over_the_environment(tmp_path: Path) -> None:
    """proxy-url, then HTTPS_PROXY."""
    environ = {"HTTPS_PROXY": "http://env.test:3128"}
    path = kubeconfig(tmp_path / "config", cluster={"proxy-url": "http://own.test:3128"})
    assert read(path, environ=environ).proxy == "http://own.test:3128"
    plain = kubeconfig(tmp_path / "plain")
    assert read(plain, environ=environ).proxy == "http://env.test:3128"
    assert read(plain, environ={**environ, "NO_PROXY": ".test"}).proxy == ""


def test_an_unknown_context_comes_with_the_nearest(tmp_path: Path) -> None:
    """And with the ones there are."""
    error = refused(kubeconfig(tmp_path / "config"), context="prdo")
    assert 'context "prdo"' in error.message
    assert 'did you mean "prod"' in error.hint
    assert "known: prod" in error.hint


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"current-context": ""}, "no current-context"),
        ({"cluster": {"server": ""}}, "the cluster has no server"),
        ({"cluster": {"server": "ftp://x"}}, "is not an http(s) address"),
        ({"context": {"cluster": "x"}}, 'cluster "x" is not in the kubeconfig'),
        ({"context": {"user": "x"}}, 'user "x" is not in the kubeconfig'),
        ({"cluster": {"certificate-authority-data": "%%%"}}, "is not base64"),
        ({"cluster": {"certificate-authority": "none.pem"}}, "cannot be read: No such file"),
        (
            {"cluster": {"certificate-authority-data": CA, "insecure-skip-tls-verify": True}},
            "both set",
        ),
        ({"cluster": {"proxy-url": "socks5://u:hunter2@x"}}, "not an http:// or https://"),
        ({"user": {"exec": {"apiVersion": "client.authentication.k8s.io/v1"}}}, "no command"),
        (
            {
                "user": {
                    "exec": {"command": "x", "apiVersion": "client.authentication.k8s.io/v1alpha1"}
                }
            },
            "which is not supported",
        ),
        (
            {"user": {"exec": {"command": "x", "apiVersion": "client.authentication.k8s.io/v1"}}},
            "interactiveMode must be specified",
        ),
        (
            {
                "user": {
                    "exec": {
                        "command": "x",
                        "apiVersion": "client.authentication.k8s.io/v1beta1",
                        "interactiveMode": "Sometimes",
                    }
                }
            },
            'unknown interactiveMode "Sometimes"',
        ),
        ({"user": {"auth-provider": {"name": "azure"}}}, 'auth-provider "azure"'),
        (
            {"user": {"exec": {"command": "x"}, "auth-provider": {"name": "oidc"}}},
            "exec and auth-provider are both set",
        ),
        ({"users": [{"user": {}}]}, "cannot be read as a kubeconfig"),
    ],
)
def test_a_kubeconfig_that_contradicts_itself_is_refused(
    tmp_path: Path, change: Any, said: str
) -> None:
    """What is wrong, and in which file; never a secret."""
    error = refused(kubeconfig(tmp_path / "config", **change))
    assert said in error.message
    assert str(tmp_path) in error.where
    assert "hunter2" not in str(error)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", ""),
        ("- a\n", ""),
        ("just text\n", ""),
        ("users:\n- user: {token: s3cret\nx: [\n", ":"),
        ("clusters: 5\n", ""),
    ],
)
def test_a_file_that_is_no_kubeconfig_is_named_and_not_quoted(
    tmp_path: Path, text: str, place: str
) -> None:
    """YAML errors have their line; the line itself may hold a token."""
    path = tmp_path / "config"
    path.write_text(text)
    error = refused(str(path))
    assert error.where.startswith(str(path) + place)
    assert "s3cret" not in str(error)


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    """A file asked for is not replaced by another source of settings."""
    error = refused(str(tmp_path / "nothing"))
    assert "does not exist" in error.message


def test_a_file_that_cannot_be_looked_for_is_refused_in_words(tmp_path: Path) -> None:
    """A name that no file can have; a folder that may not be entered ends the same way."""
    path = str(tmp_path / ("a" * 300))
    error = refused(path)
    assert (error.code, error.where) == (INVALID_REQUEST, path[:200])
    assert "cannot look for the file" in error.message
    for environ in ({"KUBECONFIG": path}, {"HOME": path}):
        with pytest.raises(AicrError, match="cannot look for the file"):
            config.load(environ=environ, service_account=str(tmp_path))


def test_a_server_without_scheme_is_read_as_kubectl_does(tmp_path: Path) -> None:
    """https if there is anything of TLS, else http."""
    plain = kubeconfig(tmp_path / "a", cluster={"server": "localhost:8080"})
    assert read(plain).server == "http://localhost:8080"
    tls = {"server": "c.test:6443", "certificate-authority-data": CA}
    assert read(kubeconfig(tmp_path / "b", cluster=tls)).server == "https://c.test:6443"


def test_an_exec_plugin_gets_its_settings(tmp_path: Path) -> None:
    """A command with a slash is relative to the file."""
    user = {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": "./bin/login",
            "interactiveMode": "Never",
        }
    }
    found = read(kubeconfig(tmp_path / "config", user=user))
    assert isinstance(found.credentials, ExecPlugin)
    with pytest.raises(AicrError) as caught:
        login(found)
    assert str(tmp_path / "bin" / "login") in caught.value.message


def jwt(expires: int) -> str:
    """An ID token as identity providers make it."""

    def part(document: dict[str, Any]) -> str:
        encoded = base64.urlsafe_b64encode(json.dumps(document).encode())
        return encoded.decode().rstrip("=")

    return f"{part({'alg': 'none'})}.{part({'exp': expires, 'sub': 'somebody'})}.c2lnbmF0dXJl"


def oidc(token: str) -> dict[str, Any]:
    """A user of an old kubeconfig."""
    return {"auth-provider": {"name": "oidc", "config": {"id-token": token}}}


def test_a_token_of_an_old_auth_provider_comes_from_the_official_loader(tmp_path: Path) -> None:
    """Read once, asked again after a refusal."""
    token = jwt(4_000_000_000)
    found = read(kubeconfig(tmp_path / "config", user=oidc(token)))

    async def body() -> None:
        first = await found.credentials.current()
        assert first.authorization == f"Bearer {token}"
        assert await found.credentials.current() is first
        assert not await found.credentials.renew(first)

    asyncio.run(body())
    gcp = {"auth-provider": {"name": "gcp", "config": {"access-token": "t"}}}
    old = read(kubeconfig(tmp_path / "gcp", user=gcp))
    assert login(old).authorization == "Bearer t"


@pytest.mark.parametrize(
    ("token", "said"),
    [("no-token", "gave no token"), (jwt(1), "failed")],
)
def test_an_auth_provider_that_gives_nothing_is_an_error(
    tmp_path: Path, token: str, said: str
) -> None:
    """A token that is none; one that has expired, with no provider to refresh it."""
    found = read(kubeconfig(tmp_path / "config", user=oidc(token)))
    with pytest.raises(AicrError) as caught:
        login(found)
    assert caught.value.code == UNAUTHORIZED
    assert said in caught.value.message
    assert "log in again" in caught.value.hint


def service_account(folder: Path, token: str = "t1") -> Path:
    """The folder that Kubernetes mounts."""
    folder.mkdir()
    (folder / "token").write_text(token)
    (folder / "ca.crt").write_bytes(certificates.ca_pem())
    (folder / "namespace").write_text("pods-own\n")
    return folder


@pytest.mark.parametrize(
    ("host", "server"),
    [("10.0.0.1", "https://10.0.0.1:6443"), ("fd00::1", "https://[fd00::1]:6443")],
)
def test_a_pod_talks_to_its_own_cluster(tmp_path: Path, host: str, server: str) -> None:
    """Address, CA, namespace and token of the service account."""
    folder = service_account(tmp_path / "sa")
    environ = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": "6443", "HOME": "/none"}
    found = config.load(environ=environ, service_account=str(folder))
    assert (found.server, found.namespace) == (server, "pods-own")
    assert found.tls.ca == certificates.ca_pem()
    assert not found.compression
    assert login(found).authorization == "Bearer t1"
    assert found.describe() == f"in-cluster, server {server}, namespace pods-own"


def test_settings_are_looked_for_in_one_order(tmp_path: Path) -> None:
    """The file named, KUBECONFIG, in-cluster, the file in the home; a context means a kubeconfig."""
    folder = service_account(tmp_path / "sa")
    home = tmp_path / "home"
    (home / ".kube").mkdir(parents=True)
    kubeconfig(home / ".kube" / "config", user={"token": "home"})
    variable = kubeconfig(tmp_path / "variable", user={"token": "variable"})
    flag = kubeconfig(tmp_path / "flag", user={"token": "flag"})
    pod = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "HOME": str(home)}

    def token(environ: dict[str, str], **options: Any) -> str:
        found = config.load(environ=environ, service_account=str(folder), **options)
        return login(found).authorization.removeprefix("Bearer ")

    assert token({**pod, "KUBECONFIG": variable}, kubeconfig=flag) == "flag"
    assert token({**pod, "KUBECONFIG": variable}) == "variable"
    assert token(pod) == "t1"
    assert token(pod, context="prod") == "home"
    assert token({"HOME": str(home)}) == "home"


def test_no_settings_at_all_say_what_was_looked_for(tmp_path: Path) -> None:
    """And what to pass."""
    with pytest.raises(AicrError) as caught:
        config.load(environ={"HOME": str(tmp_path)}, service_account=str(tmp_path))
    assert "KUBECONFIG is not set" in caught.value.message
    assert "--kubeconfig" in caught.value.hint


def test_a_pod_without_a_token_is_told_why(tmp_path: Path) -> None:
    """automountServiceAccountToken: false."""
    with pytest.raises(AicrError) as caught:
        config.in_cluster(environ={"KUBERNETES_SERVICE_HOST": "h"}, service_account=str(tmp_path))
    assert "automountServiceAccountToken" in caught.value.hint
    with pytest.raises(AicrError) as caught:
        config.in_cluster(environ={})
    assert "not a pod" in caught.value.message
