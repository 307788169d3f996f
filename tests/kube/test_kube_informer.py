"""The cache over a server that fails: complete, told once, and honest about its age."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from tests.kube.fakeapi import FakeApi, refuse
from tests.kube.loopback import cluster, run

from aicr.errors import SERVICE_UNAVAILABLE, TIMEOUT, UNAUTHORIZED, AicrError
from aicr.kube import kinds
from aicr.kube.client import Client
from aicr.kube.informer import Change, Informer, Store
from aicr.kube.projection import Pod
from aicr.kube.watching import ADDED, DELETED, MODIFIED


def pod(name: str, node: str = "n1", uid: str = "", **status: Any) -> dict[str, Any]:
    """A pod on a node."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "ns", "uid": uid or f"uid-{name}"},
        "spec": {"nodeName": node},
        "status": status,
    }


def on_node(item: Pod) -> list[str]:
    """Index by node."""
    return [item.spec.node_name]


class Watched:
    """An informer of pods and what its handler was told."""

    def __init__(self, client: Client, **options: Any) -> None:
        self.informer = Informer(client, kinds.POD, Pod, indexes={"node": on_node}, **options)
        self.told: list[tuple[str, str]] = []
        self.changes: list[Change[Pod]] = []
        self.informer.add_handler(self._handle)

    def _handle(self, change: Change[Pod]) -> None:
        self.told.append((change.type, change.key[1]))
        self.changes.append(change)

    def names(self) -> list[str]:
        """Names in the store."""
        return [item.metadata.name for item in self.informer.store.list()]

    async def until(self, condition: Any) -> None:
        """Wait for *condition*."""
        async with asyncio.timeout(60):
            while not condition():
                await asyncio.sleep(0.005)


@asynccontextmanager
async def watched(
    api: FakeApi | None = None, **options: Any
) -> AsyncIterator[tuple[FakeApi, Watched]]:
    """A running informer of a server with pods a and b."""
    api = api or FakeApi()
    for name in ("a", "b"):
        await api.store(ADDED, kinds.POD, pod(name))
    async with cluster(api) as (_, client):
        made = Watched(client, **options)
        task = asyncio.create_task(made.informer.run())
        try:
            yield api, made
        finally:
            task.cancel()
            await asyncio.wait({task})


@pytest.mark.parametrize("streaming", [False, True])
def test_no_change_is_lost_or_doubled_over_cut_connections(streaming: bool) -> None:
    """Watches break in the middle; changes happen meanwhile."""

    async def body() -> None:
        api = FakeApi(streaming_lists=streaming)
        async with watched(api, initial_events=streaming) as (api, made):
            await made.informer.wait_synced(60)
            for number in range(5):
                await api.cut()
                await api.store(ADDED, kinds.POD, pod(f"c{number}"))
                await api.store(MODIFIED, kinds.POD, pod("a", f"n{number + 2}"))
            await api.store(DELETED, kinds.POD, pod("b"))
            await made.until(lambda: (DELETED, "b") in made.told)
            assert made.names() == ["a", "c0", "c1", "c2", "c3", "c4"]
            assert [told for told in made.told if told[1] == "a"] == [(ADDED, "a")] + [
                (MODIFIED, "a")
            ] * 5
            assert len([told for told in made.told if told[0] == ADDED]) == 7
            assert made.informer.store.by_index("node", "n1") == [
                made.informer.store.get(f"c{n}", "ns") for n in range(5)
            ]
            assert [p.metadata.name for p in made.informer.store.by_index("node", "n6")] == ["a"]

    run(body())


@pytest.mark.covers("J12")
def test_what_went_while_history_was_forgotten_is_noticed() -> None:
    """410 on the watch: listed again; the deleted are told, with the last state known."""

    async def body() -> None:
        async with watched() as (api, made):
            await made.informer.wait_synced(60)
            async with api.changed:  # holds the watch back, so that it finds its version gone
                api.version += 1
                table = api.objects["pods"]
                del table["ns", "b"]
                table["ns", "a"] = {
                    **pod("a", uid="other"),
                    "metadata": {**pod("a", uid="other")["metadata"], "resourceVersion": "99"},
                }
            await api.forget_history()
            await api.cut()
            await made.until(lambda: len(made.told) >= 5)
            assert made.told == [
                (ADDED, "a"),
                (ADDED, "b"),
                (DELETED, "a"),
                (ADDED, "a"),
                (DELETED, "b"),
            ]
            last = made.changes[-1]
            assert last.new is None
            assert last.old is not None
            assert last.old.metadata.uid == "uid-b"
            assert made.names() == ["a"]

    run(body())


def test_an_error_event_in_the_watch_is_followed_by_a_new_list() -> None:
    """The server sends it when the watch falls behind."""

    async def body() -> None:
        async with watched() as (api, made):
            await made.informer.wait_synced(60)
            lists = len([seen for seen in api.seen if "limit=" in seen])

            async def expired(request: web.Request) -> web.StreamResponse:
                response = web.StreamResponse(headers={"Content-Type": "application/json"})
                await response.prepare(request)
                await response.write(
                    b'{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},'
                    b'"status":"Failure","message":"too old resource version","reason":"Expired",'
                    b'"code":410}}\n'
                )
                return response

            api.next("watch=true", expired)
            await api.cut()
            await made.until(
                lambda: len([seen for seen in api.seen if "limit=" in seen]) == lists + 1
            )
            await api.store(ADDED, kinds.POD, pod("c"))
            await made.until(lambda: (ADDED, "c") in made.told)
            assert made.told == [(ADDED, "a"), (ADDED, "b"), (ADDED, "c")]

    run(body())


def test_a_cache_whose_server_is_away_answers_and_says_that_it_is_stale() -> None:
    """Since when and why; fresh again when the server is back, with what happened meanwhile."""

    async def body() -> None:
        async with watched() as (api, made):
            await made.informer.wait_synced(60)
            await made.until(lambda: not made.informer.freshness().stale)
            down = web.Response(status=503, text="shutting down")
            api.next("watch=true", down, times=5)
            await api.cut()
            await made.until(lambda: made.informer.freshness().stale)
            await made.until(lambda: "shutting down" in made.informer.freshness().reason)
            state = made.informer.freshness()
            assert state.synced
            assert state.seconds >= 0
            assert made.names() == ["a", "b"]
            with pytest.raises(AicrError) as caught:
                made.informer.require_fresh(max_age=-1)
            assert caught.value.code == SERVICE_UNAVAILABLE
            assert "the cache of pods has been stale" in caught.value.message
            await api.store(ADDED, kinds.POD, pod("c"))
            await made.until(lambda: (ADDED, "c") in made.told)
            await made.until(lambda: not made.informer.freshness().stale)
            made.informer.require_fresh()

    run(body())


def test_a_cache_that_was_never_filled_says_why() -> None:
    """Denied access is not an empty cluster (decision 9); granted later, it fills."""

    async def body() -> None:
        api = FakeApi()
        denied = refuse(403, "Forbidden", 'User "u" cannot list resource "pods"')
        api.next("GET /api/v1/pods", denied, times=100)
        async with watched(api) as (api, made):
            await made.until(lambda: "cannot list" in made.informer.freshness().reason)
            with pytest.raises(AicrError) as caught:
                await made.informer.wait_synced(0.01)
            assert caught.value.code == TIMEOUT
            assert "cannot list resource" in caught.value.message
            with pytest.raises(AicrError):
                made.informer.require_fresh(1000)
            api.scripted.clear()
            await made.informer.wait_synced(60)
            assert made.names() == ["a", "b"]

    run(body())


def test_a_plain_watch_raises_what_waiting_does_not_mend() -> None:
    """The caller of ``watch`` is told at once."""

    async def body() -> None:
        async with cluster() as (api, client):
            denied = refuse(403, "Forbidden", 'User "u" cannot watch resource "pods"')
            api.next("watch=true", denied)
            with pytest.raises(AicrError) as caught:
                async for _ in client.watch(kinds.POD):
                    pass
            assert caught.value.code == UNAUTHORIZED
            assert caught.value.context["denied"]["verb"] == "watch"

    run(body())


def test_a_handler_that_fails_ends_the_informer() -> None:
    """A change that was not handled would be lost."""

    async def body() -> None:
        async with cluster() as (api, client):
            await api.store(ADDED, kinds.POD, pod("a"))
            informer = Informer(client, kinds.POD, Pod)

            def handler(change: Change[Pod]) -> None:
                raise ValueError(change.key)

            informer.add_handler(handler)
            with pytest.raises(ValueError, match="'ns', 'a'"):
                await informer.run()

    run(body())


def test_a_handler_that_fails_while_watching_closes_the_connection() -> None:
    """At once, and not when the collector comes by."""

    async def body() -> None:
        async with cluster() as (api, client):
            informer = Informer(client, kinds.POD, Pod)

            def handler(change: Change[Pod]) -> None:
                raise ValueError(change.key)

            informer.add_handler(handler)
            running = asyncio.ensure_future(informer.run())
            await informer.wait_synced(60)
            await api.store(ADDED, kinds.POD, pod("a"))
            with pytest.raises(ValueError, match="'ns', 'a'"):
                await running
            session = client.transport._session  # type: ignore[attr-defined]
            assert not session.connector._acquired

    run(body())


def test_a_late_handler_is_told_what_is_there() -> None:
    """As ADDED."""

    async def body() -> None:
        async with watched() as (_, made):
            await made.informer.wait_synced(60)
            late: list[tuple[str, str]] = []
            made.informer.add_handler(lambda change: late.append((change.type, change.key[1])))
            assert late == [(ADDED, "a"), (ADDED, "b")]

    run(body())


def test_a_store_keeps_its_indexes_in_step() -> None:
    """Moved and removed objects leave no trace; lists are in the order of keys."""
    store: Store[list[str]] = Store({"word": lambda item: item})
    store.put(("n", "b"), ["x", "y"])
    store.put(("n", "a"), ["x"])
    store.put(("m", "c"), [])
    assert store.by_index("word", "x") == [["x"], ["x", "y"]]
    assert store.list() == [[], ["x"], ["x", "y"]]
    assert store.list("n") == [["x"], ["x", "y"]]
    assert store.put(("n", "b"), ["z"]) == ["x", "y"]
    assert store.by_index("word", "y") == []
    assert store.remove(("n", "a")) == ["x"]
    assert store.remove(("n", "a")) is None
    assert store.by_index("word", "x") == []
    assert store.get("b", "n") == ["z"]
    assert len(store) == 2
