"""What the port adds to requests: whole lists, namespaces, discovery that is corrected, projections."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from aiohttp import web
from tests.kube.fakeapi import WIDGET, FakeApi, refuse
from tests.kube.loopback import cluster, refused, run

from aicr.errors import CONFLICT, INVALID_REQUEST, NOT_FOUND, SERVICE_UNAVAILABLE
from aicr.kube import decoding, kinds, projection, reader, request
from aicr.kube.projection import Node, Pod
from aicr.kube.watching import SYNCED

EXPIRED = refuse(410, "Expired", "The provided continue parameter is too old")


def node(name: str) -> dict[str, Any]:
    """A node."""
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "uid": f"uid-{name}"}}


async def filled(api: FakeApi, count: int) -> None:
    """Store *count* nodes."""
    for number in range(count):
        await api.store("ADDED", kinds.NODE, node(f"n{number:04}"))


def test_a_list_longer_than_a_page_is_whole() -> None:
    """Two pages and a bit, as documents with their kind, or as projections."""

    async def body() -> None:
        async with cluster() as (api, client):
            count = reader.PAGE * 2 + 3
            await filled(api, count)
            found = await client.list("nodes")
            assert [item["metadata"]["name"] for item in found] == [
                f"n{n:04}" for n in range(count)
            ]
            assert all(item["kind"] == "Node" for item in found)
            assert len(await client.list(kinds.NODE, into=Node)) == count
            assert len([seen for seen in api.seen if "/nodes?" in seen]) == 6

    run(body())


def test_a_list_whose_pages_expire_is_begun_again_and_never_cut_short() -> None:
    """The third time in one piece (decision 9)."""

    async def body() -> None:
        async with cluster() as (api, client):
            count = reader.PAGE + 5
            await filled(api, count)
            api.next("continue=", EXPIRED, times=2)
            assert len(await client.list(kinds.NODE)) == count
            asked = [seen for seen in api.seen if "/nodes" in seen]
            assert ["limit" in seen for seen in asked] == [True, True, True, True, False]

    run(body())


def test_a_list_that_fails_in_the_middle_is_an_error() -> None:
    """Half a list is not a list."""

    async def body() -> None:
        async with cluster() as (api, client):
            await filled(api, reader.PAGE + 5)
            api.next("continue=", web.Response(status=500, text="etcd is away"))
            error = await refused(client.list(kinds.NODE))
            assert error.code == SERVICE_UNAVAILABLE
            assert "etcd is away" in error.message
            api.next("/nodes", EXPIRED, times=3)
            assert (await refused(client.list(kinds.NODE))).code == CONFLICT

    run(body())


def test_documents_go_to_their_own_namespace_or_the_default_one() -> None:
    """A document for another namespace than asked for is refused before it is sent."""

    async def body() -> None:
        async with cluster(namespace="home") as (api, client):
            plain = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
            made = await client.create(plain)
            assert made["metadata"]["namespace"] == "home"
            there = {**plain, "metadata": {"name": "a", "namespace": "there"}}
            assert (await client.create(there))["metadata"]["namespace"] == "there"
            before = len(api.seen)
            error = await refused(client.apply(there, namespace="elsewhere"))
            assert error.code == INVALID_REQUEST
            assert 'is for namespace "there", not "elsewhere"' in error.message
            assert len(api.seen) == before
            await client.create(node("n1"), namespace="ignored")

    run(body())


def test_a_kind_that_went_makes_discovery_ask_again() -> None:
    """A CRD was deleted: the first answer is NOT_FOUND for the path, the next for the kind."""

    async def body() -> None:
        async with cluster() as (api, client):
            widget = {"apiVersion": "example.test/v1", "kind": "Widget", "metadata": {"name": "w"}}
            await client.create(widget, namespace="n")
            api.resources.remove(WIDGET)
            path = await refused(client.list("widgets.example.test"))
            assert (path.code, path.context["absent"]) == (NOT_FOUND, "resource")
            kind = await refused(client.list("widgets.example.test"))
            assert (kind.code, kind.context["absent"]) == (NOT_FOUND, "kind")

    run(body())


def test_a_watch_of_documents_gives_each_its_kind() -> None:
    """Listed and watched ones alike."""

    async def body() -> None:
        async with cluster() as (api, client):
            await filled(api, 1)
            kinds_seen = []
            async for event in client.watch("nodes"):
                if event.type == SYNCED:
                    await api.store("ADDED", kinds.NODE, node("late"))
                    continue
                assert event.object is not None
                kinds_seen.append(event.object["kind"])
                if event.key[1] == "late":
                    break
            assert kinds_seen == ["Node", "Node"]

    run(body())


def test_known_kinds_need_no_discovery() -> None:
    """By constant, or by apiVersion and kind."""

    async def body() -> None:
        async with cluster() as (api, client):
            await client.list(kinds.POD)
            await client.list("v1/Pod")
            await client.list("apps/v1/Deployment")
            assert [seen for seen in api.seen if seen.endswith(("/api", "/apis"))] == []

    run(body())


ASKED = request.watch(kinds.POD, resource_version="1")


@pytest.mark.parametrize(
    "text",
    [
        b'{"type":"ADDED","object":{"metadata":{"name":7}}}',
        b'{"type":"ADDED","object":',
        b'{"object":{}}',
        b'{"type":"ADDED"}',
        b"[]",
        b"not json",
        b'{"object":{"spec":5},"type":"ADDED"}',
    ],
)
def test_a_line_that_cannot_be_read_is_an_error(text: bytes) -> None:
    """It is never skipped: it may have been a change."""

    async def body() -> None:
        decoding.line(ASKED, text, Pod)

    error = run(refused(body()))
    assert error.code == SERVICE_UNAVAILABLE
    assert "cannot be read" in error.message


def test_lines_laid_out_otherwise_are_read_all_the_same() -> None:
    """Spaces and another order of keys, as proxies and other servers write them."""
    usual = b'{"type":"MODIFIED","object":{"metadata":{"name":"a"}}}'
    other = b'{ "object": {"metadata": {"name": "a"}}, "type": "MODIFIED" }'
    assert decoding.line(ASKED, usual, Pod) == decoding.line(ASKED, other, Pod)
    mark = b'{"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":"9"}}}'
    assert decoding.line(ASKED, mark, Pod) == decoding.Bookmark("9", initial_end=False)


def test_projections_keep_what_is_equal_once_and_what_differs_apart() -> None:
    """Labels, conditions and owners of thousands of objects; nothing else changes by it."""
    first, second = (
        msgspec.json.decode(
            b'{"metadata": {"name": "%s", "labels": {"a-rather-long-label.example.test/of-some-kind": '
            b'"a value of some length", "own": "%s"}}, "status": {"conditions": '
            b'[{"type": "Ready", "status": "True"}]}}' % (name, name),
            type=Node,
        )
        for name in (b"one", b"two")
    )
    assert first.metadata.labels is not None
    assert second.metadata.labels is not None
    assert first.metadata.labels["own"] == "one"
    assert second.metadata.labels["own"] == "two"
    (long, _), (again, _) = first.metadata.labels, second.metadata.labels
    assert long is again
    assert first.status.conditions is second.status.conditions
    with pytest.raises(AttributeError):
        first.status.conditions = None  # type: ignore[misc]


def test_the_pool_of_shared_values_is_limited() -> None:
    """A cluster that churns for months does not fill the memory."""
    for number in range(25_000):
        projection.shared(f"value {number}")
    assert len(projection._POOL) <= 10_000


@pytest.mark.parametrize(
    ("struct", "text"),
    [
        (Node, b'{"metadata": {"labels": null}, "spec": {}, "status": {"conditions": []}}'),
        (Node, b"{}"),
        (Pod, b'{"metadata": {}, "spec": {"containers": null}, "status": {}}'),
        (Pod, b'{"kind": "Pod", "unknown": {"deep": [1]}}'),
    ],
)
def test_projections_take_what_servers_leave_out(struct: Any, text: bytes) -> None:
    """Absent, null and empty; unknown fields are ignored."""
    msgspec.json.decode(text, type=struct)
