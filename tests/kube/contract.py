"""What `aicr.kube` promises of any API server: one class, run against the fake and the real one.

A subclass gives the fixture `session`: an async context manager of (client, namespace), the namespace
empty and of this test alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, aclosing
from typing import Any

import pytest
from tests.kube.loopback import run

from aicr.errors import CONFLICT, INVALID_REQUEST, NOT_FOUND, AicrError
from aicr.kube import kinds
from aicr.kube.client import Client
from aicr.kube.informer import Change, Informer
from aicr.kube.lease import Elector, Terms
from aicr.kube.projection import Meta
from aicr.kube.watching import ADDED, DELETED, MODIFIED, SYNCED

Session = Callable[[], AbstractAsyncContextManager[tuple[Client, str]]]


def config_map(name: str, namespace: str, **data: str) -> dict[str, Any]:
    """A ConfigMap."""
    metadata = {"name": name, "namespace": namespace, "labels": {"test": "yes"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


async def refused(awaitable: Any) -> AicrError:
    """The error that *awaitable* must raise."""
    with pytest.raises(AicrError) as caught:
        await awaitable
    return caught.value


class KubeContract:
    """See the module."""

    def test_an_object_lives_from_create_to_delete(self, session: Session) -> None:
        """Create, get, update, delete; what is not there is NOT_FOUND."""

        async def body() -> None:
            async with session() as (client, namespace):
                made = await client.create(config_map("a", namespace, k="1"))
                assert made["metadata"]["uid"]
                read = await client.get("configmaps", "a", namespace=namespace)
                assert read == made
                written = await client.update({**read, "data": {"k": "2"}})
                assert written["data"] == {"k": "2"}
                await client.delete("v1/ConfigMap", "a", namespace=namespace)
                error = await refused(client.get("cm", "a", namespace=namespace))
                assert error.code == NOT_FOUND
                assert '"a"' in error.message
                gone = await refused(client.delete("cm", "a", namespace=namespace))
                assert gone.code == NOT_FOUND

        run(body())

    def test_creating_twice_and_writing_old_state_are_conflicts(self, session: Session) -> None:
        """CONFLICT with the next step for each."""

        async def body() -> None:
            async with session() as (client, namespace):
                made = await client.create(config_map("a", namespace, k="1"))
                twice = await refused(client.create(config_map("a", namespace)))
                assert (twice.code, twice.context["reason"]) == (CONFLICT, "AlreadyExists")
                await client.update({**made, "data": {"k": "2"}})
                old = await refused(client.update({**made, "data": {"k": "3"}}))
                assert old.code == CONFLICT
                assert "read the object again" in old.hint

        run(body())

    def test_a_list_in_pages_has_every_object_once(self, session: Session) -> None:
        """Selectors choose; documents of a list carry apiVersion and kind."""

        async def body() -> None:
            async with session() as (client, namespace):
                for number in range(7):
                    await client.create(config_map(f"m{number}", namespace, n=str(number)))
                await client.create(
                    {**config_map("other", namespace), "metadata": {"name": "other"}},
                    namespace=namespace,
                )
                found = await client.list("cm", namespace=namespace, labels={"test": "yes"})
                assert [item["metadata"]["name"] for item in found] == [f"m{n}" for n in range(7)]
                assert {(item["apiVersion"], item["kind"]) for item in found} == {
                    ("v1", "ConfigMap")
                }
                one = await client.list("cm", namespace=namespace, fields={"metadata.name": "m3"})
                assert [item["data"] for item in one] == [{"n": "3"}]
                slim = await client.list("cm", namespace=namespace, labels="test=yes", into=Meta)
                assert [item.metadata.name for item in slim] == [f"m{n}" for n in range(7)]
                assert await client.list("cm", namespace=namespace, labels="test=no") == []

        run(body())

    def test_applying_owns_fields_and_asks_before_taking_them(self, session: Session) -> None:
        """Server-side apply: again is no change, another manager is a CONFLICT, force takes over."""

        async def body() -> None:
            async with session() as (client, namespace):
                document = config_map("a", namespace, ours="1", dropped="x")
                first = await client.apply(document, field_manager="one")
                again = await client.apply(document, field_manager="one")
                version = first["metadata"]["resourceVersion"]
                assert again["metadata"]["resourceVersion"] == version
                theirs = config_map("a", namespace, ours="2")
                error = await refused(client.apply(theirs, field_manager="two"))
                assert error.code == CONFLICT
                assert "data.ours" in error.hint
                assert "force" in error.hint
                taken = await client.apply(theirs, field_manager="two", force=True)
                assert taken["data"] == {"ours": "2", "dropped": "x"}
                left = await client.apply({**document, "data": {}}, field_manager="one")
                assert left["data"] == {"ours": "2"}

        run(body())

    def test_patches_of_two_forms(self, session: Session) -> None:
        """A merge patch deletes by null; a JSON patch is a list of operations."""

        async def body() -> None:
            async with session() as (client, namespace):
                await client.create(config_map("a", namespace, k="1", gone="x"))
                change = {"data": {"gone": None, "new": "y"}}
                merged = await client.patch("cm", "a", change, namespace=namespace)
                assert merged["data"] == {"k": "1", "new": "y"}
                operations = [{"op": "replace", "path": "/data/k", "value": "2"}]
                patched = await client.patch(
                    "cm", "a", operations, form="json", namespace=namespace
                )
                assert patched["data"] == {"k": "2", "new": "y"}

        run(body())

    def test_a_dry_run_changes_nothing(self, session: Session) -> None:
        """The server answers as if, and stores nothing."""

        async def body() -> None:
            async with session() as (client, namespace):
                made = await client.create(config_map("a", namespace, k="1"), dry_run=True)
                assert made["data"] == {"k": "1"}
                assert await client.list("cm", namespace=namespace, labels="test=yes") == []
                await client.create(config_map("a", namespace, k="1"))
                changed = {"data": {"k": "2"}}
                await client.patch("cm", "a", changed, namespace=namespace, dry_run=True)
                await client.delete("cm", "a", namespace=namespace, dry_run=True)
                kept = await client.get("cm", "a", namespace=namespace)
                assert kept["data"] == {"k": "1"}

        run(body())

    def test_deleting_by_uid_spares_another_object_of_that_name(self, session: Session) -> None:
        """A UID that is not the object's is a CONFLICT, and the object stays."""

        async def body() -> None:
            async with session() as (client, namespace):
                first = await client.create(config_map("a", namespace))
                await client.delete("cm", "a", namespace=namespace)
                second = await client.create(config_map("a", namespace))
                uid = first["metadata"]["uid"]
                error = await refused(client.delete("cm", "a", namespace=namespace, uid=uid))
                assert error.code == CONFLICT
                kept = await client.get("cm", "a", namespace=namespace)
                assert kept["metadata"]["uid"] == second["metadata"]["uid"]
                own = second["metadata"]["uid"]
                await client.delete("cm", "a", namespace=namespace, uid=own)
                assert await client.list("cm", namespace=namespace, labels="test=yes") == []

        run(body())

    def test_what_the_server_does_not_have_is_told_apart(self, session: Session) -> None:
        """No such kind, version, group, resource: NOT_FOUND that says which, with the nearest name."""

        async def body() -> None:
            async with session() as (client, namespace):
                cases = [
                    ({"apiVersion": "apps/v1", "kind": "Deploymint"}, "kind", '"Deployment"'),
                    ({"apiVersion": "apps/v9", "kind": "Deployment"}, "version", "apps/v1"),
                    ({"apiVersion": "nope.test/v1", "kind": "Thing"}, "group", ""),
                ]
                for document, absent, hint in cases:
                    error = await refused(
                        client.create({**document, "metadata": {"name": "x"}}, namespace=namespace)
                    )
                    assert (error.code, error.context["absent"]) == (NOT_FOUND, absent)
                    assert hint in error.hint
                unknown = await refused(client.list("deploymints"))
                assert (unknown.code, unknown.context["absent"]) == (NOT_FOUND, "kind")
                assert '"deployments"' in unknown.hint
                deployment = await client.resource("deploy")
                assert deployment.api_version == "apps/v1"
                assert deployment.namespaced

        run(body())

    def test_an_object_that_the_server_refuses_is_an_invalid_request(
        self, session: Session
    ) -> None:
        """INVALID_REQUEST with the server's reason."""

        async def body() -> None:
            async with session() as (client, namespace):
                document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}}
                error = await refused(client.create(document, namespace=namespace))
                assert error.code == INVALID_REQUEST
                assert "name" in error.message

        run(body())

    def test_a_watch_gives_what_exists_and_then_every_change(self, session: Session) -> None:
        """ADDED for what is there, SYNCED, then changes in their order."""

        async def body() -> None:
            async with session() as (client, namespace):
                await client.create(config_map("a", namespace, k="1"))
                events: list[tuple[str, str]] = []
                watch = client.watch("cm", namespace=namespace, labels="test=yes")
                async with aclosing(watch) as changes:  # type: ignore[type-var]
                    async for event in changes:
                        events.append((event.type, event.key[1]))
                        if event.type == SYNCED:
                            await client.create(config_map("b", namespace))
                            await client.patch("cm", "a", {"data": {"k": "2"}}, namespace=namespace)
                            await client.delete("cm", "b", namespace=namespace)
                        if event.type == DELETED:
                            break
                assert events == [
                    (ADDED, "a"),
                    (SYNCED, ""),
                    (ADDED, "b"),
                    (MODIFIED, "a"),
                    (DELETED, "b"),
                ]

        run(body())

    @pytest.mark.parametrize("initial_events", [False, True])
    def test_an_informer_follows_a_collection(self, session: Session, initial_events: bool) -> None:
        """Store and handlers agree with the server, listed in pages or streamed."""

        async def body() -> None:
            async with session() as (client, namespace):
                for name in ("a", "b"):
                    await client.create(config_map(name, namespace))
                informer = Informer(
                    *(client, "cm", Meta),
                    namespace=namespace,
                    labels="test=yes",
                    initial_events=initial_events,
                )
                told: list[Change[Meta]] = []
                arrived = asyncio.Event()

                def handler(change: Change[Meta]) -> None:
                    told.append(change)
                    if change.type == DELETED:
                        arrived.set()

                informer.add_handler(handler)
                task = asyncio.create_task(informer.run())
                try:
                    await informer.wait_synced(60)
                    assert [item.metadata.name for item in informer.store.list()] == ["a", "b"]
                    informer.require_fresh(5)
                    await client.delete("cm", "a", namespace=namespace)
                    await asyncio.wait_for(arrived.wait(), 60)
                finally:
                    task.cancel()
                assert [item.metadata.name for item in informer.store.list()] == ["b"]
                assert sorted((c.type, c.key[1]) for c in told) == [
                    (ADDED, "a"),
                    (ADDED, "b"),
                    (DELETED, "a"),
                ]

        run(body())

    def test_one_of_two_leads_and_the_other_follows_at_once(self, session: Session) -> None:
        """A lease that is given back is taken without waiting for its end."""

        async def body() -> None:
            async with session() as (client, namespace):
                terms = Terms(duration=60.0, deadline=40.0, retry=0.05)
                first = Elector(client, "lock", namespace, "one", terms=terms)
                second = Elector(client, "lock", namespace, "two", terms=terms)
                leading, leave = asyncio.Event(), asyncio.Event()
                order: list[str] = []

                async def work_first() -> None:
                    order.append("one")
                    leading.set()
                    await leave.wait()

                async def work_second() -> None:
                    order.append("two")

                one = asyncio.create_task(first.lead(work_first))
                await leading.wait()
                two = asyncio.create_task(second.lead(work_second))
                while second.holder != "one":
                    await asyncio.sleep(0.01)
                assert order == ["one"]
                leave.set()
                await one
                await two
                assert order == ["one", "two"]
                lease = await client.get(kinds.LEASE, "lock", namespace=namespace)
                assert lease["spec"]["leaseTransitions"] >= 1

        run(body())
