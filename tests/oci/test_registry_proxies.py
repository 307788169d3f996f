"""Registries are reached through the proxy that HTTPS_PROXY, HTTP_PROXY and NO_PROXY name."""

from __future__ import annotations

import base64
import socket
import threading
from pathlib import Path

import pytest
import trustme
from tests.integrity.signed_bundles import bundle_files
from tests.kube.loopback import closed_port
from tests.oci.http_proxy import proxying
from tests.oci.registry_server import serving
from tests.oci.test_registry_logins import TokenRegistry, answering

from aicr.artifacts import oci
from aicr.artifacts.proxied import Forwarded, Tunnelled
from aicr.artifacts.registry import Registry
from aicr.artifacts.registry_auth import Credentials
from aicr.artifacts.wire import Transport, connect
from aicr.errors import INVALID_REQUEST, SERVICE_UNAVAILABLE, TIMEOUT, AicrError

#: A name that resolves nowhere, so that only the proxy can lead there.
FAR = "registry.invalid"
PLAIN = Transport(plain_http=True, pause=0.01)
LOGIN = "Basic " + base64.b64encode(b"me@home:hunter2").decode()


@pytest.fixture(autouse=True)
def no_proxy_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests name their own."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.fixture(scope="module")
def certified(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """(certificate, key, authority) of the far registry."""
    folder = tmp_path_factory.mktemp("tls")
    authority = trustme.CA()
    leaf = authority.issue_cert(FAR)
    paths = folder / "cert.pem", folder / "key.pem", folder / "ca.pem"
    paths[0].write_bytes(b"".join(blob.bytes() for blob in leaf.cert_chain_pems))
    paths[1].write_bytes(leaf.private_key_pem.bytes())
    paths[2].write_bytes(authority.cert_pem.bytes())
    return paths


@pytest.mark.parametrize("name", ["HTTPS_PROXY", "https_proxy"])
def test_a_bundle_travels_through_a_tunnel_and_back(
    tmp_path: Path,
    certified: tuple[Path, Path, Path],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    """TLS is spoken with the registry; the proxy sees CONNECT with its log-in and nothing else."""
    certificate, key, authority = certified
    package = oci.bundle_package(bundle_files(), version="1")
    with (
        serving(tmp_path / "registry", tls=(certificate, key)) as host,
        proxying({f"{FAR}:5000": host}, login=LOGIN) as (proxy, seen),
    ):
        monkeypatch.setenv(name, f"http://me%40home:hunter2@{proxy}")
        address = oci.Address(f"{FAR}:5000", "team/x", "v1")
        transport = Transport(ca_file=str(authority), pause=0.01)
        with Registry(address.registry, transport) as client:
            digest = client.push(address, package)
            assert client.pull_manifest(address)[1] == digest
    assert set(seen.lines) == {f"CONNECT {FAR}:5000"}
    assert set(seen.logins) == {LOGIN}


def test_plain_http_goes_to_the_proxy_with_the_whole_address(
    registry: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Go and curl ask: not every proxy opens tunnels to port 80."""
    package = oci.bundle_package(bundle_files(), version="1")
    with proxying({FAR: registry}, login=LOGIN) as (proxy, seen):
        monkeypatch.setenv("HTTP_PROXY", f"me%40home:hunter2@{proxy}")
        address = oci.Address(FAR, "team/proxied", "v1")
        with Registry(FAR, PLAIN) as client:
            digest = client.push(address, package)
            assert client.pull_manifest(address)[1] == digest
    assert f"GET http://{FAR}/v2/team/proxied/manifests/v1" in seen.lines
    assert set(seen.logins) == {LOGIN}


def test_the_proxys_log_in_never_reaches_a_registry_or_its_token_service(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nor does the registry's go to the proxy."""
    heads: list[str] = []

    def watched(handler: TokenRegistry) -> None:
        heads.append(str(handler.headers))
        TokenRegistry.do_GET(handler)

    watching = type("Watching", (TokenRegistry,), {"seen": [], "do_GET": watched})
    with answering(watching) as host, proxying({FAR: host}) as (proxy, seen):
        monkeypatch.setenv("HTTP_PROXY", f"http://me%40home:hunter2@{proxy}")
        with Registry(FAR, PLAIN, lambda _: Credentials("user", "secret")) as client:
            client.pull_manifest(oci.Address(FAR, "team/x", "v1"))
    assert "GET http://registry.invalid/token?" in "\n".join(seen.lines)
    assert len(heads) == 3
    assert not any("Proxy-Authorization" in head or LOGIN in head for head in heads)
    assert set(seen.logins) == {LOGIN}


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1"])
def test_this_machine_is_never_reached_through_a_proxy(
    registry: str, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """What Go does: a proxy elsewhere cannot reach it."""
    port = registry.rpartition(":")[2]
    with proxying({}, refusal=500) as (proxy, seen):
        monkeypatch.setenv("HTTP_PROXY", f"http://{proxy}")
        with Registry(f"{name}:{port}", PLAIN) as client:
            client.push_blob("team/near", b"x")
    assert seen.lines == []


@pytest.mark.parametrize(
    ("entry", "netloc", "direct"),
    [
        ("*", f"{FAR}:5000", True),
        (FAR, f"{FAR}:5000", True),
        (".invalid", f"{FAR}:5000", True),
        (f"{FAR}:5000", f"{FAR}:5000", True),
        (f"{FAR}:5000", FAR, False),
        ("10.1.0.0/16", "10.1.2.3:5000", True),
        ("10.1.0.0/16", "10.2.2.3:5000", False),
    ],
)
@pytest.mark.parametrize("plain", [True, False], ids=["http", "https"])
def test_no_proxy_names_registries_that_are_reached_directly(
    entry: str, netloc: str, direct: bool, plain: bool
) -> None:
    """Names, domains, ports and ranges, as kubectl reads them."""
    environ = {"HTTP_PROXY": "p.invalid", "HTTPS_PROXY": "p.invalid", "no_proxy": entry}
    context = Transport(plain_http=plain).context()
    made = connect(netloc, context, 1.0, environ)
    assert isinstance(made, Forwarded | Tunnelled) is not direct


@pytest.mark.parametrize(
    ("plain", "status", "hint"),
    [
        (False, 403, "NO_PROXY"),
        (False, 407, "http://USER:PASSWORD@HOST:PORT"),
        # Any other refusal of a request for a whole address looks like one of the registry.
        (True, 407, "http://USER:PASSWORD@HOST:PORT"),
    ],
)
def test_a_proxy_that_refuses_is_named_and_not_asked_again(
    monkeypatch: pytest.MonkeyPatch, plain: bool, status: int, hint: str
) -> None:
    """Without the log-in that it was given."""
    with proxying({}, refusal=status) as (proxy, seen):
        monkeypatch.setenv("HTTP_PROXY", f"http://me:hunter2@{proxy}")
        monkeypatch.setenv("HTTPS_PROXY", f"http://me:hunter2@{proxy}")
        transport = Transport(plain_http=plain, pause=0.01)
        with Registry(FAR, transport) as client, pytest.raises(AicrError) as caught:
            client.pull_manifest(oci.Address(FAR, "team/x", "v1"))
    error = caught.value
    assert error.code == SERVICE_UNAVAILABLE
    assert f"the proxy http://{proxy} refused to connect us to {FAR}" in error.message
    assert f"(HTTP {status})" in error.message
    assert hint in error.hint
    assert "hunter2" not in f"{error} {error.hint} {error.context}"
    assert len(seen.lines) == 1


def test_a_proxy_that_cannot_reach_the_registry_is_asked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """502 to 504 pass; when they do not, the proxy is named."""
    with proxying({}, refusal=503) as (proxy, seen):
        monkeypatch.setenv("HTTPS_PROXY", f"http://me:hunter2@{proxy}")
        with Registry(FAR, Transport(pause=0.01)) as client, pytest.raises(AicrError) as caught:
            client.pull_manifest(oci.Address(FAR, "team/x", "v1"))
    assert f"the proxy http://{proxy} cannot reach {FAR}:443 (HTTP 503)" in caught.value.message
    assert len(seen.lines) > 1


def test_a_proxy_that_is_not_there_or_no_proxy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the registry, which is not at fault."""
    gone = f"127.0.0.1:{closed_port()}"
    with Registry(FAR, Transport(pause=0.01)) as client:
        monkeypatch.setenv("HTTPS_PROXY", f"http://me:hunter2@{gone}")
        with pytest.raises(AicrError, match="cannot be reached") as caught:
            client.pull_manifest(oci.Address(FAR, "team/x", "v1"))
        assert caught.value.code == SERVICE_UNAVAILABLE
        assert caught.value.message.startswith(f"the proxy http://{gone} cannot be reached")
        monkeypatch.setenv("HTTPS_PROXY", "socks5://me:hunter2@p.invalid:1080")
        with pytest.raises(AicrError, match="not an http:// or https:// address") as caught:
            client.pull_manifest(oci.Address(FAR, "team/x", "v1"))
        assert (caught.value.code, caught.value.where) == (INVALID_REQUEST, "HTTPS_PROXY")
        assert "hunter2" not in str(caught.value)
        monkeypatch.setenv("HTTPS_PROXY", "https://me:hunter2@p.invalid:1080")
        with pytest.raises(AicrError, match="itself reached with TLS") as caught:
            client.pull_manifest(oci.Address(FAR, "team/x", "v1"))
        assert (caught.value.code, caught.value.where) == (INVALID_REQUEST, "HTTPS_PROXY")
        assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("answer", "said", "code"),
    [
        (b"SSH-2.0-OpenSSH_9.2\r\n", "does not speak HTTP", SERVICE_UNAVAILABLE),
        (b"", "closed the connection", SERVICE_UNAVAILABLE),
        (None, "did not answer in 0.2 s", TIMEOUT),
    ],
    ids=["another protocol", "closed", "silent"],
)
def test_what_is_no_proxy_or_says_nothing_is_named(
    monkeypatch: pytest.MonkeyPatch, answer: bytes | None, said: str, code: str
) -> None:
    """A wrong port is an error with the proxy's address, not one about the registry."""
    ended = threading.Event()

    def serve(listener: socket.socket) -> None:
        while not ended.is_set():
            try:
                near, _ = listener.accept()
            except OSError:
                return
            with near:
                if answer is None:
                    ended.wait(20)
                else:
                    near.recv(65536)
                    near.sendall(answer)

    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    thread = threading.Thread(target=serve, args=(listener,), daemon=True)
    thread.start()
    try:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{port}")
        transport = Transport(pause=0.01, timeout=0.2 if answer is None else 20)
        with Registry(FAR, transport) as client, pytest.raises(AicrError) as caught:
            client.pull_manifest(oci.Address(FAR, "team/x", "v1"))
    finally:
        ended.set()
        # shutdown wakes the thread that waits in accept.
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(20)
    assert f"the proxy http://127.0.0.1:{port} {said}" in caught.value.message
    assert caught.value.code == code


@pytest.mark.parametrize(
    "host", ["a" * 70 + ".invalid", "a..invalid"], ids=["long label", "empty label"]
)
@pytest.mark.parametrize("proxied", [False, True], ids=["direct", "proxied"])
def test_a_name_that_is_no_host_name_is_an_error_and_no_crash(
    monkeypatch: pytest.MonkeyPatch, host: str, proxied: bool
) -> None:
    """Names that cannot be written as one are refused before anything is sent."""
    with proxying({}, refusal=500) as (proxy, seen):
        if proxied:
            monkeypatch.setenv("HTTPS_PROXY", f"http://{proxy}")
        with (
            Registry(host, Transport(pause=0.01)) as client,
            pytest.raises(AicrError, match="cannot be asked") as caught,
        ):
            client.pull_manifest(oci.Address(host, "team/x", "v1"))
    assert caught.value.code == INVALID_REQUEST
    assert seen.lines == []
