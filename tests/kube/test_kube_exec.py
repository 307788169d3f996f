"""Commands in containers over both websocket protocols."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiohttp import WSMsgType, web
from tests.kube.fakeapi import FakeApi, refuse, status_document
from tests.kube.loopback import cluster, run

from aicr.errors import (
    INVALID_REQUEST,
    NOT_FOUND,
    SERVICE_UNAVAILABLE,
    TIMEOUT,
    UNAUTHORIZED,
    AicrError,
)
from aicr.kube import exec
from aicr.kube.client import Client

Talk = Callable[[web.WebSocketResponse], Awaitable[None]]
SUCCESS = json.dumps({"kind": "Status", "status": "Success"}).encode()


def failed(code: str) -> bytes:
    """The final Status of a command that ended with *code*."""
    causes = [{"reason": "ExitCode", "message": code}]
    document = status_document(500, "NonZeroExitCode", "exit", details={"causes": causes})
    return json.dumps(document).encode()


def container(api: FakeApi, talk: Talk, protocols: tuple[str, ...] = exec.PROTOCOLS) -> None:
    """Answer the next exec with *talk*."""

    async def answer(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse(protocols=protocols)
        await socket.prepare(request)
        await talk(socket)
        await socket.close()
        return socket

    api.next("/exec", answer)


async def command(client: Client, **options: Any) -> Any:
    """Run the usual command."""
    return await client.exec("p", ["run", "it"], namespace="n", **options)


@pytest.mark.parametrize("protocol", exec.PROTOCOLS)
@pytest.mark.parametrize(("end", "code"), [(SUCCESS, 0), (failed("3"), 3), (failed("137"), 137)])
def test_output_and_exit_code_come_back(protocol: str, end: bytes, code: int) -> None:
    """A status other than zero is a result; channels are kept apart; a Status may come in pieces."""

    async def talk(socket: web.WebSocketResponse) -> None:
        await socket.send_bytes(b"")
        await socket.send_bytes(b"\x01")
        await socket.send_bytes(b"\x01out")
        await socket.send_bytes(b"\x02err")
        await socket.send_bytes(b"\x01put")
        await socket.send_bytes(b"\x03" + end[:7])
        await socket.send_bytes(b"\x03" + end[7:])

    async def body() -> None:
        async with cluster() as (api, client):
            container(api, talk, (protocol,))
            result = await command(client)
            assert (result.exit_code, result.stdout, result.stderr) == (code, b"output", b"err")
            assert "command=run&command=it" in api.seen[-1]
            assert "stdin" not in api.seen[-1]

    run(body())


def test_input_is_sent_and_ended() -> None:
    """In pieces; version 5 can say where it ends."""
    data = bytes(range(256)) * 1000

    async def talk(socket: web.WebSocketResponse) -> None:
        got = b""
        async for message in socket:
            assert message.type is WSMsgType.BINARY
            if message.data == b"\xff\x00":
                break
            assert message.data[0] == 0
            got += message.data[1:]
        await socket.send_bytes(b"\x01" + str(len(got)).encode())
        await socket.send_bytes(b"\x03" + (SUCCESS if got == data else failed("1")))

    async def body() -> None:
        async with cluster() as (api, client):
            container(api, talk)
            result = await command(client, stdin=data)
            assert (result.exit_code, result.stdout) == (0, b"256000")

    run(body())


def test_input_for_a_server_that_cannot_end_it_is_refused() -> None:
    """A command that reads to the end of its input would hang for ever."""

    async def talk(socket: web.WebSocketResponse) -> None:
        await socket.receive()

    async def body() -> None:
        async with cluster() as (api, client):
            container(api, talk, (exec.V4,))
            with pytest.raises(AicrError) as caught:
                await command(client, stdin=b"x")
            assert caught.value.code == INVALID_REQUEST

    run(body())


def test_a_command_that_does_not_read_its_input_still_has_its_result() -> None:
    """As ``head`` does."""

    async def talk(socket: web.WebSocketResponse) -> None:
        await socket.send_bytes(b"\x03" + SUCCESS)

    async def body() -> None:
        async with cluster() as (api, client):
            container(api, talk)
            result = await command(client, stdin=b"x" * 5_000_000)
            assert result.exit_code == 0

    run(body())


def test_a_connection_that_ends_before_the_command_is_no_success() -> None:
    """Closed in good order, or cut."""

    async def closing(socket: web.WebSocketResponse) -> None:
        await socket.send_bytes(b"\x01half")

    async def cutting(socket: web.WebSocketResponse) -> None:
        await socket.send_bytes(b"\x01half")
        await asyncio.sleep(0.05)
        assert socket._req is not None
        assert socket._req.transport is not None
        socket._req.transport.abort()

    async def body() -> None:
        for talk in (closing, cutting):
            async with cluster() as (api, client):
                container(api, talk)
                with pytest.raises(AicrError) as caught:
                    await command(client)
                assert caught.value.code == SERVICE_UNAVAILABLE

    run(body())


def test_a_command_that_takes_too_long_is_a_timeout() -> None:
    """And may still be running, says the hint."""

    async def talk(socket: web.WebSocketResponse) -> None:
        await socket.receive()

    async def body() -> None:
        async with cluster() as (api, client):
            container(api, talk)
            with pytest.raises(AicrError) as caught:
                await command(client, timeout=0.1)
            assert caught.value.code == TIMEOUT
            assert "still be running" in caught.value.hint

    run(body())


@pytest.mark.parametrize(
    ("answer", "code", "said"),
    [
        (refuse(403, "Forbidden", 'cannot create resource "pods/exec"'), UNAUTHORIZED, "pods/exec"),
        (refuse(404, "NotFound", 'pods "p" not found', details={"name": "p"}), NOT_FOUND, '"p"'),
    ],
)
def test_a_refused_upgrade_has_the_servers_reason(
    answer: web.Response, code: str, said: str
) -> None:
    """Websocket handshakes lose the body, so it is asked for."""

    async def body() -> None:
        async with cluster() as (api, client):
            api.next("/exec", answer, times=2)
            with pytest.raises(AicrError) as caught:
                await command(client)
            assert caught.value.code == code
            assert said in caught.value.message
            assert caught.value.context["status"] == answer.status
            assert caught.value.context["reason"]

    run(body())


def test_a_command_that_cannot_be_run_is_an_error() -> None:
    """No such program in the container: the Status is not about an exit code."""

    async def talk(socket: web.WebSocketResponse) -> None:
        document = status_document(500, "InternalError", "executable file not found")
        await socket.send_bytes(b"\x03" + json.dumps(document).encode())

    async def body() -> None:
        async with cluster() as (api, client):
            container(api, talk)
            with pytest.raises(AicrError) as caught:
                await command(client)
            assert caught.value.code == SERVICE_UNAVAILABLE
            assert "executable file not found" in caught.value.message

    run(body())
