"""TLS and proxies: whom we trust, who we are, and the way there."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.kube import certificates
from tests.kube.fakeapi import FakeApi, serving
from tests.kube.loopback import TIMES, closed_port, refused, run, version_error
from tests.kube.plugins import plugin, tls

from aicr.errors import (
    SERVICE_UNAVAILABLE,
)
from aicr.kube import connect_to
from aicr.kube.config import ClusterConfig
from aicr.kube.credentials import Files, Fixed, Login
from aicr.kube.tls import Tls


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
        (Tls(ca=certificates.ca_pem("x"), where="the file"), "not trusted", "the file is of"),
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
