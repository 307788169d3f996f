"""A namespace of the run: labels, token, removal, leftovers of others (decision 66)."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web
from tests.checks.contexts import Seen, put
from tests.kube import fakewrites
from tests.kube.fakeapi import refuse
from tests.kube.loopback import cluster, refused, run

from aicr.checks.sdk import namespaces
from aicr.contract import labels
from aicr.errors import SERVICE_UNAVAILABLE, UNAUTHORIZED
from aicr.kube import kinds


@pytest.mark.covers("V-242")
def test_the_namespace_carries_run_check_and_token_and_is_gone_afterwards() -> None:
    """Labels say whose it is, the token that it is ours; deletion is bound to the UID."""

    async def scenario() -> None:
        async with cluster() as (api, client):
            seen = Seen()
            context = seen.context(client, name="dra-support")
            async with namespaces.run_namespace(context, "aicr-gpu-test", {"team": "x"}) as mine:
                (stored,) = api.objects["namespaces"].values()
                assert stored["metadata"]["labels"] == {
                    "team": "x",
                    "app.kubernetes.io/name": "aicr",
                    "app.kubernetes.io/component": "validation",
                    "app.kubernetes.io/managed-by": "aicr",
                    "aicr.run/run-id": context.run_id,
                    "aicr.run/check": "dra-support",
                }
                assert stored["metadata"]["annotations"] == {"aicr.run/owner-token": mine.token}
                assert mine.name.startswith("aicr-gpu-test-")
                assert mine.uid == stored["metadata"]["uid"]
            assert mine.removed
            assert api.objects["namespaces"] == {}
            assert seen.log == ""

    run(scenario())


@pytest.mark.covers("V-138", "V-242")
def test_the_namespace_is_removed_after_a_failure_and_after_cancellation() -> None:
    """Whatever ended the block."""

    async def scenario() -> None:
        async with cluster() as (api, client):
            context = Seen().context(client, deadline=0.0)
            with pytest.raises(ZeroDivisionError):
                async with namespaces.run_namespace(context, "t"):
                    raise ZeroDivisionError
            made = asyncio.Event()

            async def work() -> None:
                async with namespaces.run_namespace(context, "t"):
                    made.set()
                    await asyncio.sleep(60)

            task = asyncio.create_task(work())
            await made.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert api.objects["namespaces"] == {}

    run(scenario())


@pytest.mark.covers("V-242")
@pytest.mark.parametrize("same_token", [True, False], ids=["made again", "of somebody else"])
def test_a_namespace_that_is_not_ours_any_more_is_left_alone(same_token: bool) -> None:
    """Another UID or another token under our name."""

    async def scenario() -> None:
        async with cluster() as (api, client):
            seen = Seen()
            context = seen.context(client)
            async with namespaces.run_namespace(context, "t") as mine:
                (stored,) = api.objects["namespaces"].values()
                stored["metadata"]["uid"] = "another"
                if not same_token:
                    mine.uid = "another"
                    stored["metadata"]["annotations"] = {}
            assert len(api.objects["namespaces"]) == 1
            assert f"namespace {mine.name} is not ours any more; left alone" in seen.log

    run(scenario())


def test_a_creation_whose_answer_got_lost_is_taken_back() -> None:
    """The server may have made it: it is looked for by name and token."""

    async def scenario() -> None:
        async with cluster() as (api, client):

            async def lose(request: web.Request) -> web.StreamResponse:
                await fakewrites.answer(api, request, kinds.NAMESPACE, "", "", "")
                return web.Response(status=502, text="<html>bad gateway</html>")

            api.next("POST /api/v1/namespaces", lose)

            async def block() -> None:
                async with namespaces.run_namespace(Seen().context(client), "t"):
                    raise AssertionError("not reached")

            assert (await refused(block())).code == SERVICE_UNAVAILABLE
            assert api.objects["namespaces"] == {}

    run(scenario())


def test_a_namespace_that_cannot_be_removed_is_named_with_the_command() -> None:
    """The check is told; the verdict is its own business."""

    async def scenario() -> None:
        async with cluster() as (api, client):
            seen = Seen()
            async with namespaces.run_namespace(seen.context(client), "t") as mine:
                api.next("DELETE", refuse(403, "Forbidden", 'cannot delete resource "namespaces"'))
            assert not mine.removed
            assert f"remove it with: kubectl delete namespaces {mine.name}" in seen.log

            api.next("POST", refuse(403, "Forbidden", 'cannot create resource "namespaces"'))

            async def block() -> None:
                async with namespaces.run_namespace(seen.context(client), "t"):
                    raise AssertionError("not reached")

            assert (await refused(block())).code == UNAUTHORIZED

    run(scenario())


def test_what_other_runs_left_is_listed_and_never_removed() -> None:
    """They may still be at work."""

    async def scenario() -> None:
        async with cluster() as (api, client):
            seen = Seen()
            context = seen.context(client)
            for name, run_id, check in (
                ("t-old", "run-0", context.name),
                ("t-mine", context.run_id, context.name),
                ("t-else", "run-0", "another-check"),
            ):
                metadata = {"name": name, "labels": labels.check_labels(run_id, check)}
                await put(api, kinds.NAMESPACE, {"metadata": metadata})
            async with namespaces.run_namespace(context, "t"):
                pass
            assert sorted(name for _, name in api.objects["namespaces"]) == [
                *("t-else", "t-mine", "t-old")
            ]
            assert seen.log.splitlines() == [
                "WARNING namespace t-old is left from run run-0; if that run has ended, remove it with: "
                "kubectl delete namespaces t-old"
            ]

    run(scenario())


def test_waiting_until_a_namespace_is_gone() -> None:
    """Gone, replaced by another, or still there when the time is up."""

    async def scenario() -> None:
        async with cluster() as (api, client):
            context = Seen().context(client)
            assert await namespaces.wait_gone(context, "x", "u", 0.1)
            await put(api, kinds.NAMESPACE, {"metadata": {"name": "x", "uid": "u"}})
            assert not await namespaces.wait_gone(context, "x", "u", 0.05)
            assert await namespaces.wait_gone(context, "x", "older", 0.1)

    run(scenario())
