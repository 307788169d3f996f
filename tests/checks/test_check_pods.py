"""One test pod: template, waiting, what cannot get better, logs, removal (validators spec 5.4)."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.checks.contexts import TIMES, Seen, pod, put
from tests.kube.fakeapi import FakeApi
from tests.kube.loopback import cluster, refused, run

from aicr.checks.sdk import pods
from aicr.checks.sdk.outcome import could_not_tell
from aicr.errors import INTERNAL, INVALID_REQUEST, TIMEOUT, AicrError
from aicr.kube import kinds

NAMESPACE = "test"


def waiting(reason: str, message: str = "why", key: str = "containerStatuses") -> dict[str, Any]:
    """A pending pod's status with a container that waits."""
    state = {"waiting": {"reason": reason, "message": message}}
    return {key: [{"name": "main", "image": "registry.test/x:1", "state": state}]}


def unschedulable() -> dict[str, Any]:
    """A pending pod's status that no node fits."""
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/2 nodes are available",
    }
    return {"conditions": [condition]}


def during(
    document: dict[str, Any] | None,
    act: Callable[[pods.PodLifecycle], Awaitable[Any]],
    later: Callable[[FakeApi], Awaitable[None]] | None = None,
    grace: float = TIMES.unschedulable_grace,
) -> Any:
    """What *act* gives while *document* is there and *later* happens."""

    async def scenario() -> Any:
        async with cluster() as (api, client):
            if document is not None:
                await put(api, kinds.POD, document)
            context = Seen().context(client, timeouts=replace(TIMES, unschedulable_grace=grace))
            task = asyncio.ensure_future(act(pods.PodLifecycle(context, NAMESPACE)))
            if later is not None:
                await asyncio.sleep(0.05)
                await later(api)
            return await task

    return run(scenario())


def error_of(document: dict[str, Any] | None, seconds: float = 5.0, **more: Any) -> AicrError:
    """The error of waiting for pod `p` to run."""

    async def act(lifecycle: pods.PodLifecycle) -> AicrError:
        return await refused(lifecycle.wait_running("p", seconds))

    error: AicrError = during(document, act, **more)
    return error


@pytest.mark.covers("V-136")
def test_placeholders_of_a_template_are_replaced_before_it_is_read() -> None:
    """`${KEY}`, also inside a longer value; another dollar stays."""
    text = "kind: Pod\nmetadata: {name: probe-${NODE}}\nspec: {nodeName: '${NODE}', x: '$HOME'}\n"
    found = pods.from_template(text, {"NODE": "gpu-1"}, "t.yaml")
    assert found["metadata"]["name"] == "probe-gpu-1"
    assert found["spec"] == {"nodeName": "gpu-1", "x": "$HOME"}


@pytest.mark.parametrize(
    ("text", "said"),
    [("a: ${X} ${Y}", "no value for X, Y"), ("- a", "no document"), ("a: [", "invalid YAML")],
    ids=["no value", "a list", "no YAML"],
)
def test_a_template_that_gives_no_document_is_refused(text: str, said: str) -> None:
    """A pod with a placeholder in it would be created somewhere else than meant."""
    with pytest.raises(AicrError, match=said) as caught:
        pods.from_template(text, {}, "t.yaml")
    assert caught.value.code == INVALID_REQUEST


USER = {"operator": "Exists", "key": "mine"}
DEFAULT = {"operator": "Exists"}


@pytest.mark.covers("V-131", "V-134", "V-135")
@pytest.mark.parametrize(
    ("asked", "spec", "expected"),
    [
        ({}, {}, {"nodeSelector": {"d": "1"}, "tolerations": [DEFAULT]}),
        (
            {"node_selector": {"u": "1"}, "tolerations": [USER]},
            {},
            {"nodeSelector": {"u": "1"}, "tolerations": [USER]},
        ),
        ({"node_selector": {}, "tolerations": []}, {}, {"nodeSelector": {}, "tolerations": []}),
        (
            {"node_selector": {"u": "1"}},
            {"nodeName": "n", "nodeSelector": {"t": "1"}},
            {"nodeName": "n", "tolerations": [DEFAULT]},
        ),
    ],
    ids=["defaults", "the user's", "empty is not unset", "pinned by name"],
)
def test_the_users_placement_comes_before_the_checks_defaults(
    asked: dict[str, Any], spec: dict[str, Any], expected: dict[str, Any]
) -> None:
    """A pinned pod gets no node selector; the document given is not changed."""
    document = {"kind": "Pod", "spec": spec}
    before = copy.deepcopy(document)
    found = pods.placed(
        document, Seen().context(**asked), node_selector={"d": "1"}, tolerations=[DEFAULT]
    )
    assert found == {"kind": "Pod", "spec": expected}
    assert document == before


def test_a_document_keeps_its_placement_when_nobody_says_otherwise() -> None:
    """Neither defaults nor a user."""
    document = {"spec": {"nodeSelector": {"a": "b"}}}
    assert pods.placed(document, Seen().context()) == document


@pytest.mark.parametrize("reason", sorted(pods.FATAL))
@pytest.mark.parametrize("key", ["containerStatuses", "initContainerStatuses"])
def test_a_container_that_no_waiting_mends_ends_the_wait_and_is_named(
    reason: str, key: str
) -> None:
    """Decision 14: at once, with the kubelet's words, the container and the image."""
    error = error_of(pod("p", NAMESPACE, phase="Pending", status=waiting(reason, key=key)))
    assert error.code == INTERNAL
    assert error.message == (
        f"pod p cannot run: {reason} (container main, image registry.test/x:1): why"
    )
    assert error.context["stuck"] == reason
    assert error.hint
    assert could_not_tell(error) == ("" if reason == "CrashLoopBackOff" else INTERNAL)


def test_an_unschedulable_pod_has_a_grace_and_then_the_schedulers_words() -> None:
    """The grace is long enough for an autoscaler; the error comes long before the time is up."""
    error = error_of(pod("p", NAMESPACE, phase="Pending", status=unschedulable()), seconds=60.0)
    assert error.message == "pod p cannot run: Unschedulable: 0/2 nodes are available"
    assert error.context["stuck"] == "Unschedulable"


def test_a_pod_that_is_scheduled_within_the_grace_is_waited_for() -> None:
    """What was unschedulable may pass."""

    async def later(api: FakeApi) -> None:
        await put(api, kinds.POD, pod("p", NAMESPACE))

    async def act(lifecycle: pods.PodLifecycle) -> str:
        return str((await lifecycle.wait_running("p", 5.0))["status"]["phase"])

    document = pod("p", NAMESPACE, phase="Pending", status=unschedulable())
    assert during(document, act, later, grace=30.0) == "Running"


@pytest.mark.covers("V-137")
def test_waiting_is_one_list_and_one_watch() -> None:
    """No polling: changes come in through the watch, over a cut connection too."""

    async def scenario() -> list[str]:
        async with cluster() as (api, client):
            await put(api, kinds.POD, pod("p", NAMESPACE, phase="Pending"))
            lifecycle = pods.PodLifecycle(Seen().context(client), NAMESPACE)
            task = asyncio.ensure_future(lifecycle.wait_succeeded("p", 5.0))
            for phase in ("Running", "Succeeded"):
                await asyncio.sleep(0.05)
                if phase == "Succeeded":
                    await api.cut()
                await api.store("MODIFIED", kinds.POD, pod("p", NAMESPACE, phase=phase))
            assert (await task)["status"]["phase"] == "Succeeded"
            return [line for line in api.seen if "watch=true" not in line]

    assert len(run(scenario())) <= 2


@pytest.mark.parametrize("wanted", ["wait_running", "wait_succeeded"])
def test_a_pod_that_failed_says_how_its_containers_ended(wanted: str) -> None:
    """Exit code, reason and message; it is a verdict."""
    end = {"exitCode": 137, "reason": "OOMKilled", "message": "out of memory\n"}
    status = {"containerStatuses": [{"name": "main", "state": {"terminated": end}}]}

    async def act(lifecycle: pods.PodLifecycle) -> AicrError:
        return await refused(getattr(lifecycle, wanted)("p", 5.0))

    error = during(pod("p", NAMESPACE, phase="Failed", status=status), act)
    assert error.code == INTERNAL
    assert error.message == (
        "pod p failed: container main ended with 137 (OOMKilled): out of memory"
    )
    assert could_not_tell(error) == ""


def test_an_evicted_pod_says_why() -> None:
    """Without container states the pod's own reason is given."""
    status = {"reason": "Evicted", "message": "disk pressure"}
    error = error_of(pod("p", NAMESPACE, phase="Failed", status=status))
    assert error.message == "pod p failed: Evicted: disk pressure"


def test_a_pod_that_is_deleted_while_it_is_waited_for_is_an_error() -> None:
    """It will not come back under that UID."""

    async def later(api: FakeApi) -> None:
        await api.store("DELETED", kinds.POD, pod("p", NAMESPACE, phase="Pending"))

    error = error_of(pod("p", NAMESPACE, phase="Pending"), later=later)
    assert error.message == "pod p was deleted while it was waited for"


@pytest.mark.parametrize(
    ("document", "last"),
    [
        (None, "the pod was never seen"),
        (pod("p", NAMESPACE, phase="Pending"), "Pending"),
        (
            pod("p", NAMESPACE, phase="Pending", status=waiting("ContainerCreating", "")),
            "Pending, container main is waiting: ContainerCreating",
        ),
    ],
    ids=["absent", "pending", "creating"],
)
def test_a_time_that_ran_out_says_what_the_pod_was_doing(
    document: dict[str, Any] | None, last: str
) -> None:
    """TIMEOUT with the last state and the next command."""
    error = error_of(document, seconds=0.1)
    assert error.code == TIMEOUT
    assert error.message == f"waited 0.1 s for pod p to run; last seen: {last}"
    assert error.hint == "kubectl describe pod -n test p"


@pytest.mark.covers("V-136")
def test_a_pod_is_created_awaited_read_and_removed_by_its_uid() -> None:
    """The whole life; another pod of the same name is left alone."""

    async def scenario() -> None:
        async with cluster() as (api, client):
            seen = Seen()
            lifecycle = pods.PodLifecycle(seen.context(client), NAMESPACE)
            document = pod("p", NAMESPACE, phase="Succeeded")
            created = await lifecycle.create(document)
            assert (await lifecycle.wait_exists("p", 5.0))["metadata"]["uid"]
            await lifecycle.wait_running("p", 5.0)
            api.logs["p"] = [b"2026-01-01T00:00:00Z caf\xc3\xa9"]
            assert await lifecycle.logs("p") == "café\n"
            other = {"metadata": {**created["metadata"], "uid": "another"}}
            assert await lifecycle.remove(other)
            assert len(api.objects["pods"]) == 1
            assert "left alone" in seen.log
            assert await lifecycle.remove(created)
            assert api.objects["pods"] == {}
            assert await lifecycle.remove(created)

    run(scenario())


@pytest.mark.covers("V-138")
def test_removal_works_after_the_check_was_cancelled_and_names_what_it_cannot_remove() -> None:
    """Its time is its own; a failure is a warning with the command, and never an error."""

    async def scenario() -> None:
        from tests.kube.fakeapi import refuse

        async with cluster() as (api, client):
            seen = Seen()
            context = seen.context(client, deadline=0.0)
            assert context.remaining() == 0
            lifecycle = pods.PodLifecycle(context, NAMESPACE)
            created = await client.create(pod("p", NAMESPACE))

            async def check() -> None:
                try:
                    await asyncio.sleep(60)
                finally:
                    assert await lifecycle.remove(created)

            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await check()
            assert api.objects["pods"] == {}

            api.next("DELETE", refuse(403, "Forbidden", 'cannot delete resource "pods"'))
            assert not await lifecycle.remove(created)
            assert "remove it with: kubectl delete pods -n test p" in seen.log

    run(scenario())
