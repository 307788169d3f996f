"""Logs of containers, once and followed over cut connections."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web
from tests.kube.fakeapi import FakeApi, refuse
from tests.kube.loopback import cluster, run

from aicr.errors import NOT_FOUND, UNAUTHORIZED, AicrError
from aicr.kube import kinds, logs


def line(second: int, text: str, fraction: str = ".5") -> bytes:
    """A line with its time stamp."""
    return f"2026-11-30T10:00:{second:02}{fraction}Z {text}".encode()


def pod(*, phase: str = "Running", **state: Any) -> dict[str, Any]:
    """A pod with one container in a state."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "n"},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main"}]},
        "status": {"phase": phase, "containerStatuses": [{"name": "main", "state": state}]},
    }


DONE = pod(phase="Succeeded", terminated={"exitCode": 0})
RUNNING = pod(running={})


async def put(api: FakeApi, document: dict[str, Any]) -> None:
    """Store a pod."""
    await api.store("ADDED", kinds.POD, {**document, "owners": {}})


def test_a_log_is_read_whole_or_its_end() -> None:
    """Bytes as the container wrote them."""

    async def body() -> None:
        async with cluster() as (api, client):
            api.logs["p"] = [line(1, "one"), line(2, "two"), line(3, "three")]
            assert await client.logs("p", namespace="n") == b"one\ntwo\nthree\n"
            assert await client.logs("p", namespace="n", tail=1) == b"three\n"
            with pytest.raises(AicrError) as caught:
                await client.logs("q", namespace="n")
            assert caught.value.code == NOT_FOUND

    run(body())


def test_a_log_that_looks_like_a_page_is_still_a_log() -> None:
    """Content decides nothing where any text may come; the server's type does."""

    async def body() -> None:
        async with cluster() as (api, client):
            api.logs["p"] = [line(1, '{"kind": "Status"}'), line(2, "x")]
            assert await client.logs("p", namespace="n") == b'{"kind": "Status"}\nx\n'

    run(body())


def broken_after(count: int, then: Callable[[], None]) -> Callable[[FakeApi], Any]:
    """A log answer that breaks after *count* lines."""

    def of(api: FakeApi) -> Any:
        async def answer(request: web.Request) -> web.StreamResponse:
            response = web.StreamResponse(headers={"Content-Type": "text/plain"})
            await response.prepare(request)
            for text in api.logs["p"][:count]:
                await response.write(text + b"\n")
            await response.write(b"2026-11-30T10:00:09")
            assert request.transport is not None
            # Let what was written arrive before the connection goes.
            import asyncio

            await asyncio.sleep(0.05)
            request.transport.abort()
            then()
            return response

        return answer

    return of


def test_a_followed_log_survives_cut_connections_without_loss_or_repetition() -> None:
    """Lines of the same second and of the same instant too; half a line is not given."""

    async def body() -> None:
        async with cluster() as (api, client):
            api.logs["p"] = [
                line(1, "a"),
                line(2, "b", ".1"),
                line(2, "c", ".10"),
                line(2, "c", ".100000001"),
                line(2, "d", ".2"),
                line(9, "e"),
            ]
            await put(api, RUNNING)
            api.next("/log", broken_after(3, lambda: None)(api))
            api.next("/log", web.Response(status=502, text="bad gateway"))
            await_done = broken_after(5, lambda: None)(api)
            api.next("/log", await_done)
            got = []
            async for text in client.follow_logs("p", namespace="n"):
                got.append(text)
                if len(got) == 5:
                    await put(api, DONE)
            assert got == [b"a", b"b", b"c", b"c", b"d", b"e"]
            asked = [seen for seen in api.seen if "/log" in seen]
            assert "sinceTime" not in asked[0]
            assert "sinceTime=2026-11-30T10%3A00%3A02Z" in asked[1]

    run(body())


def test_a_container_that_has_not_started_is_waited_for() -> None:
    """The server answers 400 until then."""

    async def body() -> None:
        async with cluster() as (api, client):
            await put(api, pod(phase="Pending", waiting={"reason": "ContainerCreating"}))
            waiting = refuse(400, "BadRequest", 'container "main" is waiting to start')
            api.next("/log", waiting, times=2)
            api.logs["p"] = [line(1, "hello")]
            got = []
            async for text in client.follow_logs("p", namespace="n"):
                got.append(text)
                await put(api, DONE)
            assert got == [b"hello"]

    run(body())


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (refuse(403, "Forbidden", "cannot get resource pods/log"), UNAUTHORIZED),
        (refuse(404, "NotFound", "pod gone", details={"name": "p"}), NOT_FOUND),
    ],
)
def test_a_log_that_cannot_be_had_is_an_error_at_once(answer: web.Response, code: str) -> None:
    """Denied, or the pod is gone."""

    async def body() -> None:
        async with cluster() as (api, client):
            await put(api, RUNNING)
            api.next("/log", answer)
            with pytest.raises(AicrError) as caught:
                async for _ in client.follow_logs("p", namespace="n"):
                    pass
            assert caught.value.code == code

    run(body())


@pytest.mark.parametrize(
    ("change", "state"),
    [
        ({}, logs.RUNNING),
        ({"state": {"terminated": {"exitCode": 1}}}, logs.ENDED),
        ({"state": {"terminated": {"exitCode": 1}}, "restart": "OnFailure"}, logs.WAITING),
        ({"state": {"terminated": {"exitCode": 0}}, "restart": "OnFailure"}, logs.ENDED),
        ({"state": {"terminated": {"exitCode": 0}}, "restart": "Always"}, logs.WAITING),
        ({"state": {"waiting": {"reason": "CrashLoopBackOff"}}}, logs.WAITING),
        ({"phase": "Failed", "restart": "Always"}, logs.ENDED),
    ],
)
def test_a_container_has_ended_if_it_will_not_be_restarted(
    change: dict[str, Any], state: str
) -> None:
    """Restart policy, exit code and phase decide."""
    found = pod(phase=change.get("phase", "Running"), **change.get("state", {"running": {}}))
    found["spec"]["restartPolicy"] = change.get("restart", "Never")
    assert logs.state_of(found, "") == state
    assert logs.state_of(found, "main") == state


def test_init_containers_end_and_sidecars_do_not() -> None:
    """A sidecar has a restart policy of its own; what has no state yet waits."""
    found = pod(running={})
    found["spec"]["initContainers"] = [
        {"name": "check"},
        {"name": "sidecar", "restartPolicy": "Always"},
        {"name": "later"},
    ]
    found["spec"]["restartPolicy"] = "Always"
    done = {"terminated": {"exitCode": 0}}
    found["status"]["initContainerStatuses"] = [
        {"name": "check", "state": done},
        {"name": "sidecar", "state": done},
    ]
    assert logs.state_of(found, "check") == logs.ENDED
    assert logs.state_of(found, "sidecar") == logs.WAITING
    assert logs.state_of(found, "later") == logs.WAITING
    with pytest.raises(AicrError) as caught:
        logs.state_of(found, "other")
    assert caught.value.code == NOT_FOUND


def test_a_log_that_the_server_cannot_give_in_this_form_is_an_error() -> None:
    """Bad request for a container that runs is not "not started yet"."""

    async def body() -> None:
        async with cluster() as (api, client):
            await put(api, RUNNING)
            api.next("/log", refuse(400, "BadRequest", "no such option"))
            with pytest.raises(AicrError) as caught:
                async for _ in client.follow_logs("p", namespace="n"):
                    pass
            assert "no such option" in caught.value.message

    run(body())


def test_lines_of_the_node_agent_itself_have_no_stamp_and_are_given() -> None:
    """For example that the log could not be read on."""
    resumption = logs.Resumption()
    assert resumption.new(b"failed to watch file") == b"failed to watch file"
    assert resumption.new(line(1, "x")) == b"x"
    assert resumption.new(line(1, "")) == b""
    assert resumption.since_time == "2026-11-30T10:00:01Z"


def test_lines_that_are_out_of_order_are_given_and_given_once() -> None:
    """stdout and stderr are stamped apart: a line may be older than the one before it."""

    async def body() -> None:
        async with cluster() as (api, client):
            api.logs["p"] = [
                line(1, "a", ".9"),
                line(2, "b", ".000000002"),
                line(2, "err", ".000000001"),
                line(1, "old", ".999"),
                line(2, "c", ".3"),
                line(2, "late", ".2"),
                line(2, "c", ".3"),
            ]
            await put(api, RUNNING)
            api.next("/log", broken_after(5, lambda: None)(api))
            api.next("/log", broken_after(6, lambda: None)(api))
            got = []
            async for text in client.follow_logs("p", namespace="n"):
                got.append(text)
                if len(got) == 5:
                    # As a server does: from the second on, in the order of the file.
                    del api.logs["p"][3]
                if len(got) == 7:
                    await put(api, DONE)
            assert got == [b"a", b"b", b"err", b"old", b"c", b"late", b"c"]

    run(body())


def test_what_a_container_wrote_before_it_was_started_again_is_not_lost() -> None:
    """The connection is cut, the container ends and starts anew: its old log is another request."""

    def after(restarts: int) -> dict[str, Any]:
        found = pod(running={})
        found["spec"]["restartPolicy"] = "OnFailure"
        found["status"]["containerStatuses"][0]["restartCount"] = restarts
        return found

    async def body() -> None:
        async with cluster() as (api, client):
            api.logs["p"] = [line(1, "a"), line(2, "b")]
            await put(api, after(0))
            api.next("GET .*/log", broken_after(2, lambda: None)(api))
            previous = b"\n".join([line(2, "b"), line(3, "50%\r100%"), line(4, "died")])
            answer = web.Response(body=previous + b"\n", content_type="text/plain")
            api.next("previous=true", answer)
            got = []
            async for text in client.follow_logs("p", namespace="n"):
                got.append(text)
                if len(got) == 2:
                    await put(api, after(1))
                    api.logs["p"] = [line(6, "again")]
                if len(got) == 5:
                    await put(api, DONE)
            assert got == [b"a", b"b", b"50%\r100%", b"died", b"again"]
            asked = [seen for seen in api.seen if "previous=true" in seen]
            assert len(asked) == 1
            assert "sinceTime=2026-11-30T10%3A00%3A02Z" in asked[0]

    run(body())


def test_an_old_log_that_is_gone_does_not_end_the_new_one() -> None:
    """The node keeps the log of one container, and not for ever."""

    async def body() -> None:
        async with cluster() as (api, client):
            again = pod(running={})
            again["status"]["containerStatuses"][0]["restartCount"] = 1
            api.logs["p"] = [line(1, "a")]
            await put(api, RUNNING)
            gone = 'previous terminated container "main" in pod "p" not found'
            api.next("previous=true", refuse(400, "BadRequest", gone))
            got = []
            async for text in client.follow_logs("p", namespace="n"):
                got.append(text)
                if text == b"a":
                    api.logs["p"] = [line(9, "b")]
                    await put(api, again)
                else:
                    await put(api, DONE)
            assert got == [b"a", b"b"]

    run(body())


def test_a_server_that_was_away_does_not_make_a_waiting_container_an_error() -> None:
    """Nobody could say that it waits; "bad request" then may mean just that."""

    async def body() -> None:
        async with cluster() as (api, client):
            await put(api, pod(phase="Pending", waiting={"reason": "ContainerCreating"}))
            api.next("GET /api/v1/namespaces/n/pods/p$", web.Response(status=503, text="starting"))
            api.next("/log", refuse(400, "BadRequest", 'container "main" is waiting to start'))
            api.logs["p"] = [line(1, "hello")]
            got = []
            async for text in client.follow_logs("p", namespace="n"):
                got.append(text)
                await put(api, DONE)
            assert got == [b"hello"]

    run(body())
