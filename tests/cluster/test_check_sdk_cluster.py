"""What checks are written with, on a real control plane: pods that run and pods that cannot, namespaces,
and the program itself.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
from tests.checks.contexts import Seen
from tests.cluster.check_runs import Stage
from tests.controlplane.client import Client
from tests.controlplane.fixtures import make_namespace
from tests.controlplane.plane import ControlPlane

from aicr.checks.sdk import namespaces, pods
from aicr.checks.sdk.context import Context
from aicr.checks.sdk.timeouts import Timeouts
from aicr.contract import labels
from aicr.errors import AicrError
from aicr.kube import connect, kinds

pytestmark = pytest.mark.cluster

T = TypeVar("T")


@pytest.fixture
def stage(api: Client) -> Iterator[Stage]:
    """Objects of one test."""
    with Stage(api) as found:
        yield found


def shell(
    name: str, script: str, *, image: str = "test.local/shell", **spec: Any
) -> dict[str, Any]:
    """A pod that runs a script once."""
    container = {"name": "main", "image": image, "command": ["/bin/sh", "-c", script]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"restartPolicy": "Never", "containers": [container], **spec},
    }


def with_context(
    plane: ControlPlane, act: Callable[[Context], Awaitable[T]], seen: Seen | None = None
) -> T:
    """What *act* gives with a context of the plane."""

    async def body() -> T:
        async with connect(kubeconfig=str(plane.kubeconfig), environ={}) as cluster:
            context = (seen or Seen()).context(
                cluster,
                run_id=f"run-{secrets.token_hex(4)}",
                timeouts=Timeouts(unschedulable_grace=1.0),
            )
            return await act(context)

    return asyncio.run(asyncio.wait_for(body(), 90))


@pytest.mark.covers("V-136", "V-137")
def test_a_pod_is_created_awaited_read_and_removed(plane: ControlPlane, namespace: str) -> None:
    """Its whole life; a failure says how the container ended."""

    async def act(context: Context) -> None:
        lifecycle = pods.PodLifecycle(context, namespace)
        made = await lifecycle.create(shell("works", "echo hello"))
        await lifecycle.wait_succeeded("works", 60)
        assert await lifecycle.logs("works") == "hello\n"
        assert await lifecycle.remove(made)
        broken = await lifecycle.create(shell("broken", "echo bad > /dev/termination-log; exit 3"))
        with pytest.raises(AicrError, match="container main ended with 3") as caught:
            await lifecycle.wait_succeeded("broken", 60)
        assert "bad" in caught.value.message
        assert await lifecycle.remove(broken)

    with_context(plane, act)


@pytest.mark.parametrize(
    ("document", "reasons"),
    [
        (
            shell("p", "true", image="test.local/is-not-there:1"),
            ("ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull"),
        ),
        (shell("p", "true", nodeSelector={"no": "node"}), ("Unschedulable",)),
    ],
    ids=["image", "scheduling"],
)
def test_a_pod_that_cannot_run_ends_the_wait_long_before_its_time(
    document: dict[str, Any], reasons: tuple[str, ...], plane: ControlPlane, namespace: str
) -> None:
    """The real kubelet's and scheduler's words (decision 14)."""

    async def act(context: Context) -> AicrError:
        lifecycle = pods.PodLifecycle(context, namespace)
        made = await lifecycle.create(document)
        with pytest.raises(AicrError) as caught:
            await lifecycle.wait_running("p", 600)
        assert await lifecycle.remove(made)
        return caught.value

    error = with_context(plane, act)
    assert error.context["stuck"] in reasons
    assert error.message.startswith(f"pod p cannot run: {error.context['stuck']}")


@pytest.mark.covers("V-138", "V-242")
def test_a_namespace_of_the_run_is_gone_after_cancellation_and_others_stay(
    plane: ControlPlane, api: Client
) -> None:
    """What another run left is named with the command, and is still there."""
    other = f"sdk-other-{secrets.token_hex(3)}"
    make_namespace(api, other, labels.check_labels("run-of-somebody", "operator-health"))
    seen = Seen()
    made: list[namespaces.RunNamespace] = []

    async def act(context: Context) -> bool:
        async def check() -> None:
            async with namespaces.run_namespace(context, "aicr-sdk-test") as mine:
                made.append(mine)
                await pods.PodLifecycle(context, mine.name).wait_exists("never", 60)

        task = asyncio.create_task(check())
        async with asyncio.timeout(60):
            while not made and not task.done():
                await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        (mine,) = made
        assert mine.removed
        assert f"kubectl delete namespaces {other}" in seen.log
        left = await context.cluster.list(kinds.NAMESPACE, labels={labels.RUN_ID: context.run_id})
        assert all("deletionTimestamp" in each["metadata"] for each in left)
        return await namespaces.wait_gone(context, mine.name, mine.uid, 60)

    assert with_context(plane, act, seen)
    assert api.get("Namespace", other)["status"]["phase"] == "Active"
    api.delete("Namespace", other)


@pytest.mark.covers("V-087", "V-133", "V-228", "V-229")
def test_the_program_keeps_the_container_contract(
    plane: ControlPlane, api: Client, stage: Stage, tmp_path: Path
) -> None:
    """Fails while no operator pod runs, passes once one does; evidence, message, exit status."""
    snapshot = tmp_path / "snapshot.yaml"
    snapshot.write_text("kind: Snapshot\napiVersion: aicr.run/v1\nmeasurements: []\n")
    message = tmp_path / "message"
    environ = {
        **os.environ,
        "KUBECONFIG": str(plane.kubeconfig),
        "AICR_SNAPSHOT_PATH": str(snapshot),
        "AICR_TERMINATION_LOG": str(message),
        "AICR_CHECK_TIMEOUT": "30s",
    }

    def check() -> subprocess.CompletedProcess[str]:
        message.unlink(missing_ok=True)
        argv = [sys.executable, "-m", "aicr.checks.main", "operator-health"]
        return subprocess.run(argv, env=environ, capture_output=True, text=True, check=False)

    namespace = stage.namespace("gpu-operator")
    absent = check()
    assert (absent.returncode, absent.stdout) == (1, "")
    assert message.read_text().startswith("[NOT_FOUND] ")
    pod = shell("gpu-operator-0", "sleep 60")
    pod["metadata"] |= {"labels": {"app": "gpu-operator"}}
    api.create(pod, namespace)

    async def running(context: Context) -> None:
        await pods.PodLifecycle(context, namespace).wait_running("gpu-operator-0", 60)

    with_context(plane, running)
    there = check()
    assert there.returncode == 0, there.stderr
    assert there.stdout.splitlines()[-1] == "Running: 1/1"
    assert not message.exists()
