"""Who we are is taken from docker's configuration and told only to whom it belongs."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.integrity.signed_bundles import bundle_files
from tests.oci.registry_server import HTPASSWD, serving, tls_files

from aicr.artifacts import locations, oci
from aicr.artifacts.registry import Registry
from aicr.artifacts.registry_auth import (
    Challenge,
    Credentials,
    docker_credentials,
    parse_challenge,
    token_in,
    token_url,
)
from aicr.artifacts.wire import Transport
from aicr.errors import UNAUTHORIZED, AicrError

PLAIN = Transport(plain_http=True, pause=0.01)


def login(folder: Path, config: dict[str, object]) -> None:
    """Make *config* docker's configuration."""
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of docker's configuration, empty."""
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "docker"))
    return tmp_path / "docker"


def auth(user: str, password: str) -> dict[str, str]:
    """An entry as docker login writes it."""
    return {"auth": base64.b64encode(f"{user}:{password}".encode()).decode()}


def test_a_password_of_docker_login_opens_a_real_registry(docker: Path, tmp_path: Path) -> None:
    """Basic authentication; without a login, or a wrong one, the error is about access."""
    (tmp_path / "passwords").write_text(HTPASSWD + "\n")
    extra = f"auth: {{htpasswd: {{realm: r, path: {tmp_path / 'passwords'}}}}}\n"
    package = oci.bundle_package(bundle_files(), version="1")
    with serving(tmp_path / "registry", extra=extra) as host:
        address = oci.Address(host, "team/private", "v1")

        def push() -> str:
            with Registry(host, PLAIN, docker_credentials(pytest.fail)) as client:
                return client.push(address, package)

        with pytest.raises(AicrError, match="answered 401") as caught:
            push()
        assert (caught.value.code, caught.value.hint) == (
            UNAUTHORIZED,
            f"log in: docker login {host}",
        )
        login(docker, {"auths": {host: auth("user", "wrong")}})
        with pytest.raises(AicrError, match="answered 401"):
            push()
        login(docker, {"auths": {host: auth("user", "secret")}})
        assert push() == package.manifest.digest


class TokenRegistry(BaseHTTPRequestHandler):
    """A registry that wants a bearer token, and the service that gives one."""

    seen: list[tuple[str, str, str]]
    manifest = oci.bundle_package({"a": (b"", 0o644)}, version="1").manifest.data

    def do_GET(self) -> None:
        """A token for who logs in, the manifest for who has one."""
        parts = urlsplit(self.path)
        given = self.headers.get("Authorization", "")
        self.seen.append((self.command, parts.path, given))
        host = self.headers["Host"]
        if parts.path == "/token":
            query = parse_qs(parts.query)
            ok = given.startswith("Basic ") and query["service"] == ["registry"]
            self._answer(200 if ok else 401, json.dumps({"token": query["scope"][0]}).encode())
        elif given == "Bearer repository:team/x:pull":
            self._answer(200, self.manifest)
        else:
            ask = f'Bearer realm="http://{host}/token",service="registry",scope="x"'
            self._answer(401, b"", ("WWW-Authenticate", ask))

    def do_POST(self) -> None:
        """A token for a refresh token."""
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        self.seen.append(("POST", self.path, form["refresh_token"][0]))
        self._answer(200, json.dumps({"access_token": form["scope"][0]}).encode())

    def _answer(self, status: int, body: bytes, *headers: tuple[str, str]) -> None:
        self.send_response(status)
        for name, value in (*headers, ("Content-Length", str(len(body)))):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextlib.contextmanager
def answering(
    handler: type[BaseHTTPRequestHandler], tls: tuple[Path, Path] | None = None
) -> Iterator[str]:
    """``host:port`` of a server with this handler, behind TLS with a certificate and its key."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    if tls is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*tls)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def handler_class() -> type[TokenRegistry]:
    """A handler with a list of its own."""
    return type("Handler", (TokenRegistry,), {"seen": []})


def test_a_bearer_token_is_fetched_with_the_login_and_used_again() -> None:
    """The password goes to the token service alone; one token serves all requests of its scope."""
    handler = handler_class()
    with (
        answering(handler) as host,
        Registry(host, PLAIN, lambda _: Credentials("user", "secret")) as client,
    ):
        for _ in range(2):
            client.pull_manifest(oci.Address(host, "team/x", "v1"))
    paths = [path for _, path, _ in handler.seen]
    assert paths.count("/token") == 1
    assert not any("Basic" in given for _, path, given in handler.seen if path != "/token")


def test_a_refresh_token_is_exchanged() -> None:
    """What docker login stores as identitytoken goes in a form."""
    handler = handler_class()
    with (
        answering(handler) as host,
        Registry(host, PLAIN, lambda _: Credentials(identity_token="refresh")) as client,
    ):
        client.pull_manifest(oci.Address(host, "team/x", "v1"))
    assert ("POST", "/token", "refresh") in handler.seen


def test_a_refused_token_is_about_access() -> None:
    """Nobody logged in: the error says how to."""
    with (
        answering(handler_class()) as host,
        Registry(host, PLAIN) as client,
        pytest.raises(AicrError, match="refuses a token") as caught,
    ):
        client.pull_manifest(oci.Address(host, "team/x", "v1"))
    assert caught.value.exit_status == 4


def test_a_login_does_not_follow_a_redirect_to_another_host() -> None:
    """Storage behind a registry gets the request, not the password."""
    data = b"layer"
    seen: list[str] = []

    class Storage(TokenRegistry):
        def do_GET(self) -> None:
            seen.append(self.headers.get("Authorization", ""))
            self._answer(200, data)

    with answering(Storage) as storage:

        class Front(TokenRegistry):
            def do_GET(self) -> None:
                if not self.headers.get("Authorization"):
                    self._answer(401, b"", ("WWW-Authenticate", 'Basic realm="r"'))
                else:
                    self._answer(307, b"", ("Location", f"http://{storage}/blob"))

        with (
            answering(Front) as host,
            Registry(host, PLAIN, lambda _: Credentials("user", "secret")) as client,
        ):
            assert client.pull_blob("team/x", oci.digest_of(data), len(data)) == data
    assert seen == [""]


def test_another_host_cannot_ask_for_the_login() -> None:
    """Its challenge names whom the password would go to, so it is not followed."""
    seen: list[tuple[str, str]] = []

    class Thief(TokenRegistry):
        def do_GET(self) -> None:
            seen.append((self.path, self.headers.get("Authorization", "")))
            realm = f'Bearer realm="http://{self.headers["Host"]}/token",service="registry"'
            self._answer(401, b"", ("WWW-Authenticate", realm))

    with answering(Thief) as thief:

        class Front(TokenRegistry):
            def do_GET(self) -> None:
                self._answer(307, b"", ("Location", f"http://{thief}/blob"))

        with (
            answering(Front) as host,
            Registry(host, PLAIN, lambda _: Credentials("user", "secret")) as client,
            pytest.raises(AicrError, match="answered 401") as caught,
        ):
            client.pull_blob("team/x", oci.digest_of(b"x"), 1)
    assert seen == [("/blob", "")]
    assert caught.value.code == UNAUTHORIZED


def test_a_token_service_without_tls_gets_no_login(tmp_path: Path) -> None:
    """A registry behind TLS that asks for the password in the clear is refused."""
    seen: list[str] = []

    class Clear(TokenRegistry):
        def do_GET(self) -> None:
            seen.append(self.headers.get("Authorization", ""))
            self._answer(200, b'{"token": "t"}')

    with answering(Clear) as clear:

        class Front(TokenRegistry):
            def do_GET(self) -> None:
                realm = f'Bearer realm="http://{clear}/token",service="registry"'
                self._answer(401, b"", ("WWW-Authenticate", realm))

        certificate, key, authority = tls_files(tmp_path)
        transport = Transport(ca_file=str(authority), pause=0.01)
        with (
            answering(Front, (certificate, key)) as host,
            Registry(host, transport, lambda _: Credentials("user", "secret")) as client,
            pytest.raises(AicrError, match="which is without TLS") as caught,
        ):
            client.pull_manifest(oci.Address(host, "team/x", "v1"))
    assert seen == []
    assert "no log-in was sent" in caught.value.hint


@pytest.mark.parametrize("location", ["http://[x", "http://h.example:port/x", "//h.example:99999/"])
def test_an_address_that_is_none_is_an_error_of_the_registry(location: str) -> None:
    """Redirects, and what an upload is sent to; no crash."""

    class Odd(TokenRegistry):
        def do_GET(self) -> None:
            self._answer(307, b"", ("Location", location))

    with (
        answering(Odd) as host,
        Registry(host, PLAIN) as client,
        pytest.raises(AicrError, match="which cannot be used"),
    ):
        client.pull_manifest(oci.Address(host, "team/x", "v1"))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("https://h.example", "https://H.example:443/v2/", True),
        ("http://h.example:80", "http://h.example/x?y", True),
        ("https://[::1]:443", "https://[::1]", True),
        ("https://h.example", "http://h.example", False),
        ("https://h.example", "https://h.example:5000", False),
        ("https://h.example", "https://h.example.evil", False),
        ("https://h.example:80", "https://h.example", False),
    ],
)
def test_addresses_of_one_host_are_one_however_they_are_written(
    one: str, other: str, same: bool
) -> None:
    """Who gets a log-in is decided by it: a port that goes unsaid must not lose it on the way."""
    assert (
        locations.place(locations.parts(one)) == locations.place(locations.parts(other))
    ) is same


@pytest.mark.parametrize(
    ("body", "hint"),
    [
        (b'{"errors": [{"message": "tag v1 is immutable"}]}', "push to another tag"),
        (b'{"errors": [{"message": "no such thing"}]}', "look at the registry's log"),
    ],
)
def test_a_tag_that_may_not_move_is_said_to_be_one(body: bytes, hint: str) -> None:
    """Pushing again would not help; another tag does."""

    class Keeping(TokenRegistry):
        def do_HEAD(self) -> None:
            self._answer(200, b"")

        def do_PUT(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self._answer(400, body)

    with (
        answering(Keeping) as host,
        Registry(host, PLAIN) as client,
        pytest.raises(AicrError, match="was not accepted") as caught,
    ):
        client.push(oci.Address(host, "team/x", "v1"), oci.bundle_package({}, version="1"))
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("status", "code", "exit_status"),
    [
        (403, "UNAUTHORIZED", 4),
        (404, "NOT_FOUND", 3),
        (429, "RATE_LIMIT_EXCEEDED", 7),
        (500, "SERVICE_UNAVAILABLE", 6),
        (503, "SERVICE_UNAVAILABLE", 6),
    ],
)
def test_each_refusal_of_a_registry_has_its_code(status: int, code: str, exit_status: int) -> None:
    """The exit status tells a script what to do about it."""

    class Refusing(TokenRegistry):
        def do_GET(self) -> None:
            self._answer(status, b'{"errors": [{"code": "X"}]}')

    with (
        answering(Refusing) as host,
        Registry(host, PLAIN) as client,
        pytest.raises(AicrError) as caught,
    ):
        client.pull_manifest(oci.Address(host, "team/x", "v1"))
    assert (caught.value.code, caught.value.exit_status) == (code, exit_status)


def test_other_bytes_than_the_digest_says_are_refused() -> None:
    """By digest, by the registry's own statement, and for layers."""

    class Lying(TokenRegistry):
        def do_GET(self) -> None:
            self._answer(200, b"evil")

    digest = oci.digest_of(b"good")
    with answering(Lying) as host, Registry(host, PLAIN) as client:
        with pytest.raises(AicrError, match="sent other bytes than it was asked for"):
            client.pull_manifest(oci.Address(host, "team/x", "", digest))
        with pytest.raises(AicrError, match="sent other bytes than it was asked for"):
            client.pull_blob("team/x", digest, 4)


def test_more_bytes_than_the_manifest_says_are_not_taken() -> None:
    """A layer without end cannot fill the memory."""

    class Endless(TokenRegistry):
        def do_GET(self) -> None:
            self._answer(200, b"x" * 1_000_000)

    with (
        answering(Endless) as host,
        Registry(host, PLAIN) as client,
        pytest.raises(AicrError, match="other bytes"),
    ):
        client.pull_blob("team/x", oci.digest_of(b"good"), 4)


def test_a_credential_helper_is_asked(
    docker: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Helpers of one registry win over the store of all; a token comes back as such."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, answer in {
        "one": '{"Username": "helper", "Secret": "s"}',
        "all": '{"Username": "<token>", "Secret": "t"}',
        "odd": "no json",
    }.items():
        program = programs / f"docker-credential-{name}"
        program.write_text(f"#!/bin/sh\ncat >/dev/null\necho '{answer}'\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=os.pathsep)
    login(docker, {"credHelpers": {"a.example": "one", "c.example": "odd"}, "credsStore": "all"})
    warned: list[str] = []
    look_up = docker_credentials(warned.append)
    assert look_up("a.example") == Credentials("helper", "s")
    assert look_up("b.example") == Credentials(identity_token="t")
    assert look_up("c.example") == Credentials()
    assert ["unusable answer" in line for line in warned] == [True]


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ("{", "cannot be read"),
        ('{"auths": {"a.example": {"auth": "%%"}}}', "unusable login"),
        ('{"credsStore": "missing-program"}', "cannot be asked"),
    ],
)
def test_a_configuration_that_cannot_be_used_is_a_warning(
    config: str, said: str, docker: Path
) -> None:
    """Many registries can be read by anybody, so this alone does not end the run (7.5)."""
    docker.mkdir()
    (docker / "config.json").write_text(config)
    warned: list[str] = []
    assert docker_credentials(warned.append)("a.example") == Credentials()
    assert len(warned) == 1
    assert said in warned[0]


def test_the_hub_has_an_entry_of_its_own(docker: Path) -> None:
    """Docker's own registry is stored under an old address."""
    login(docker, {"auths": {"https://index.docker.io/v1/": auth("me", "p:w")}})
    assert docker_credentials(pytest.fail)("docker.io") == Credentials("me", "p:w")


def test_a_password_does_not_show_in_a_dump() -> None:
    """An error report of somebody's program does not hold it."""
    assert "secret" not in repr(Credentials("user", "secret", "secret"))


def test_challenges_and_tokens_are_parsed_strictly() -> None:
    """Odd answers of a token service end in an error about access."""
    assert parse_challenge('Bearer realm="https://a/t",service="s"') == Challenge(
        "bearer", "https://a/t", "s"
    )
    assert parse_challenge("") == Challenge()
    method, url, _, _ = token_url(Challenge("bearer", "https://a/t?x=1", "s"), "sc", Credentials())
    assert (method, url) == ("GET", "https://a/t?x=1&scope=sc&service=s")
    assert token_in(b'{"access_token": "t"}', "h") == "t"
    for body in (b"", b"[]", b"{}", b'{"token": "a\\nb"}', b'{"token": 1}'):
        with pytest.raises(AicrError, match="no usable token"):
            token_in(body, "h")
