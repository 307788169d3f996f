"""A task that is cancelled leaves nothing open, wherever it was and whatever the server does.

Each use of a client is cancelled at every place where it waits, one place a run; then the event loop
ends at once. Found by this: a connection whose TLS handshake ended in the moment of the cancellation, and
one with unsent data.
"""

from __future__ import annotations

import asyncio
import gc
import io
import json
import os
import signal
import sys
import types
import warnings
from collections.abc import Awaitable, Callable, Generator
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import pytest
from aiohttp import WSMsgType, web
from tests.kube import certificates
from tests.kube.elsewhere import Elsewhere
from tests.kube.fakeapi import FakeApi, Respond
from tests.kube.loopback import TIMES, cluster, run
from tests.kube.plugins import tls
from tests.kube.test_kube_exec import SUCCESS
from tests.kube.test_kube_logs import DONE, line

from aicr.errors import SERVICE_UNAVAILABLE, TIMEOUT, AicrError
from aicr.kube import connect_to, exec, kinds
from aicr.kube.client import Client
from aicr.kube.config import ClusterConfig
from aicr.kube.exec_plugin import ExecPlugin, ExecSpec
from aicr.kube.sockets import Sockets
from aicr.kube.tls import Tls
from aicr.kube.watching import SYNCED

Use = Callable[[Client], Awaitable[object]]
BIG = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "big", "namespace": "n"},
    "data": {"text": "x" * 5_000_000},
}


async def twice(client: Client) -> None:
    """A new connection, and the same again."""
    await client.version()
    await client.version()


async def watch(client: Client) -> None:
    """What exists, and then nothing for a moment."""
    with suppress(TimeoutError):
        async with asyncio.timeout(None) as limit:
            async for event in client.watch("cm"):
                if event.type == SYNCED:
                    limit.reschedule(asyncio.get_running_loop().time() + 0.05)


async def left(client: Client) -> None:
    """A watch whose loop is left without closing it."""
    async for _ in client.watch("cm"):
        break


async def follow(client: Client) -> None:
    """A log to its end."""
    async for _ in client.follow_logs("p", namespace="n"):
        pass


async def command(client: Client) -> None:
    """A command with input."""
    await client.exec("p", ["x"], namespace="n", stdin=b"x" * 200_000)


async def send(client: Client) -> None:
    """More than the server takes."""
    await client.create(BIG)


USES: list[Use] = [twice, watch, left, follow, send]


async def server() -> Respond:
    """Some ConfigMaps, a log, a container; what is created is never read."""
    api = FakeApi()
    for name in ("a", "b"):
        metadata = {"name": name, "namespace": "n", "uid": name}
        document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
        await api.store("ADDED", kinds.CONFIG_MAP, document)
    await api.store("ADDED", kinds.POD, DONE)
    api.logs["p"] = [line(1, "one"), line(2, "two")]

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.path.endswith("/exec"):
            socket = web.WebSocketResponse(protocols=exec.PROTOCOLS)
            await socket.prepare(request)
            async for message in socket:
                if message.type is WSMsgType.BINARY and message.data[0] == exec.CLOSE:
                    await socket.send_bytes(b"\x03" + SUCCESS)
            return socket
        if request.method == "POST":
            await asyncio.sleep(0.05)
            return web.Response(status=500)
        return await api.handle(request)

    return cast("Respond", answer)


class Interruption:
    """Cancels the running task where it waits for the time number *at*.

    *late*: not while it waits, but when what it waits for has come and it does not know yet.
    """

    def __init__(self, at: int, *, late: bool, then: Callable[[], object]) -> None:
        self._at, self._late, self._then = at, late, then
        self.came = False

    @types.coroutine
    def around(self, coroutine: Any) -> Generator[Any, Any, Any]:
        """*coroutine*, interrupted."""
        place, go, given = 0, coroutine.send, None
        while True:
            try:
                waits = go(given)
            except StopIteration as end:
                return end.value
            if place == self._at:
                self.came = True
                self._interrupt(waits)
            place += 1
            try:
                given = yield waits
                go = coroutine.send
            except BaseException as error:
                go, given = coroutine.throw, error

    def _interrupt(self, waits: Any) -> None:
        task = asyncio.current_task()
        assert task is not None

        def cancel(_: object = None) -> None:
            self._then()
            task.cancel()

        if self._late and waits is not None:
            waits.add_done_callback(cancel)
        else:
            asyncio.get_running_loop().call_soon(cancel)


def interrupted(config: ClusterConfig, use: Use, interruption: Interruption) -> list[str]:
    """Run *use* in an event loop that ends at once; what was left behind."""
    found: list[str] = []

    async def used() -> None:
        async with connect_to(config, timeouts=TIMES) as client:
            await use(client)

    async def body() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, what: found.append(str(what)))

        async def around() -> None:
            await cast("Awaitable[None]", interruption.around(used()))

        with suppress(asyncio.CancelledError, AicrError):
            await asyncio.create_task(around())

    before = sys.unraisablehook
    sys.unraisablehook = lambda what: found.append(f"{what.exc_value!r} in {what.object!r}")
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            run(body())
            gc.collect()
    finally:
        sys.unraisablehook = before
    return found + [str(one.message) for one in caught]


@pytest.mark.parametrize("late", [False, True], ids=["while-waiting", "when-it-came"])
@pytest.mark.parametrize("secure", [False, True], ids=["http", "https"])
@pytest.mark.parametrize("use", [*USES, command], ids=lambda use: use.__name__)
def test_a_task_that_is_cancelled_leaves_nothing_open(use: Use, secure: bool, late: bool) -> None:
    """At every place where it waits, closing included; the server is stopped from then on."""
    settings = tls() if secure else Tls()
    with Elsewhere(server, certificates.server_context() if secure else None) as there:
        config = ClusterConfig(there.address, settings, source="test")
        place, came = 0, True
        while came:
            thaw: list[Callable[[], None]] = []

            def stop(thaw: list[Callable[[], None]] = thaw) -> None:
                # The end of a command's connection is spoken about with the server, for a while.
                if use is not command:
                    thaw.append(there.frozen().set)

            interruption = Interruption(place, late=late, then=stop)
            found = interrupted(config, use, interruption)
            for go_on in thaw:
                go_on()
            assert found == [], f"cancelled at place {place}"
            assert there.left_open() == [], f"cancelled at place {place}"
            place, came = place + 1, interruption.came
        assert place > 2


def test_whoever_asks_after_the_client_was_closed_opens_nothing() -> None:
    """A watch that goes on in a task of its own, for example; it is refused, and tries again."""

    async def body() -> None:
        async with cluster() as (api, client):
            await client.version()
            await client.close()
            for asked in (client.version(), client.exec("p", ["x"], namespace="n")):
                with pytest.raises(AicrError, match="was closed before") as caught:
                    await asked
                assert caught.value.code == SERVICE_UNAVAILABLE
            await client.close()
            assert api.seen == ["GET /version"]

    run(body())
    gc.collect()


def test_a_body_of_megabytes_is_sent_whole() -> None:
    """A CustomResourceDefinition may be that large; sending it must not be warned of."""

    async def body() -> None:
        async with cluster() as (api, client):
            got = io.BytesIO()

            async def take(request: web.Request) -> web.Response:
                async for part in request.content.iter_any():
                    got.write(part)
                return web.json_response(BIG)

            api.next("POST", take)
            await client.create(BIG)
            assert json.loads(got.getvalue()) == BIG
            assert api.headers[-1]["Content-Length"] == str(len(got.getvalue()))

    run(body())


@pytest.mark.parametrize("cancelled", [False, True])
def test_a_plugin_that_leaves_a_child_behind_ends_all_the_same(
    cancelled: bool, tmp_path: Path
) -> None:
    """The child holds the pipes of the program that was killed; nobody waits for the child."""
    noted = tmp_path / "child"
    script = f"sleep 60 & echo $! > {noted}.tmp; mv {noted}.tmp {noted}; wait"
    spec = ExecSpec("/bin/sh", "client.authentication.k8s.io/v1", ("-c", script))
    made = ExecPlugin(
        spec,
        environ=os.environ,
        now=lambda: 0.0,
        timeout=20 if cancelled else 2,
        terminal=False,
    )

    async def body() -> None:
        asking = asyncio.create_task(made.current())
        if cancelled:
            while not noted.exists():
                await asyncio.sleep(0.01)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
        else:
            with pytest.raises(AicrError) as caught:
                await asking
            assert caught.value.code == TIMEOUT

    try:
        run(body())
        gc.collect()
    finally:
        if noted.exists():
            os.kill(int(noted.read_text()), signal.SIGKILL)


def test_sockets_that_are_closed_are_forgotten_and_others_are_cut() -> None:
    """Their transports close them, a few rounds of the event loop later."""

    async def body() -> None:
        sockets = Sockets()
        listener = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
        async with listener:
            address = listener.sockets[0].getsockname()
            loop = asyncio.get_running_loop()
            one, two = (sockets.make((2, 1, 6, "", address)) for _ in range(2))
            one.setblocking(False)
            await loop.sock_connect(one, address)
            await loop.create_connection(asyncio.Protocol, sock=one)
            two.close()
            assert sockets.cut() == 1
            await sockets.closed()
            assert one.fileno() == -1
            assert sockets.cut() == 0

    run(body())
