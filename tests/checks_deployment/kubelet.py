"""Stands in for scheduler and kubelets beside the fake API server: pods end at once, as a test says.

async with cluster() as (api, client), running(api, lambda pod: Ends("Succeeded", {"main": "text"})):
    await CHECK.run(...)
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from tests.kube.fakeapi import FakeApi

from aicr.kube import kinds

Document = dict[str, Any]


@dataclass(frozen=True)
class Ends:
    """How a pod ends: its phase, what its containers wrote, and more of its status and spec."""

    phase: str = "Succeeded"
    logs: dict[str, str] = field(default_factory=dict)
    status: Document = field(default_factory=dict)
    node: str = ""


@contextlib.asynccontextmanager
async def running(api: FakeApi, behave: Callable[[Document], Ends | None]) -> AsyncIterator[None]:
    """Give every pod that is created the end that *behave* says; None leaves it Pending."""
    seen: set[str] = set()

    async def run() -> None:
        while True:
            version = api.version
            for pod in list(api.objects.get("pods", {}).values()):
                uid = pod["metadata"]["uid"]
                if uid in seen or (pod.get("status") or {}).get("phase") in (
                    "Running",
                    "Succeeded",
                ):
                    continue
                seen.add(uid)
                ends = behave(pod)
                if ends is not None:
                    await _end(api, pod, ends)
            await change(api, version)

    task = asyncio.create_task(run())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def change(api: FakeApi, version: int) -> None:
    """Wait until something has been stored since *version*, which is to be read before looking."""
    async with api.changed:
        await api.changed.wait_for(lambda: api.version != version)


async def _end(api: FakeApi, pod: Document, ends: Ends) -> None:
    name = pod["metadata"]["name"]
    for container, text in ends.logs.items():
        pattern = f"GET .*/pods/{name}/log\\?(.*&)?container={container}(&|$)"
        api.next(pattern, web.Response(text=text), times=3)
    first = next(iter(ends.logs.values()), "")
    api.logs[name] = [f"2026-11-30T00:00:00Z {line}".encode() for line in first.splitlines()]
    spec = {**pod["spec"], **({"nodeName": ends.node} if ends.node else {})}
    await api.store(
        "MODIFIED", kinds.POD, {**pod, "spec": spec, "status": {"phase": ends.phase, **ends.status}}
    )
