"""Clients of servers on loopback, and the event loop that tests of them run in."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, TypeVar

import pytest
from tests.kube.fakeapi import FakeApi, serving
from tests.ports import reserved_port

from aicr.errors import AicrError
from aicr.kube import connect_to
from aicr.kube.client import Client
from aicr.kube.config import ClusterConfig
from aicr.kube.timeouts import Timeouts

T = TypeVar("T")

#: Short, so that back-off and reconnection do not make tests slow; nothing asserts on time.
TIMES = replace(Timeouts().scaled(0.02), request=30.0, page=30.0, connect=30.0, idle=5.0, watch=5.0)


def run(coroutine: Coroutine[Any, Any, T], timeout: float = 120.0) -> T:
    """Run *coroutine* to its end; a test that hangs fails instead."""
    return asyncio.run(asyncio.wait_for(coroutine, timeout))


@asynccontextmanager
async def cluster(
    api: FakeApi | None = None, *, timeouts: Timeouts = TIMES, **settings: Any
) -> AsyncIterator[tuple[FakeApi, Client]]:
    """A fake API server, and a client of it with *settings* of its `ClusterConfig`."""
    api = api or FakeApi()
    async with serving(api.handle) as server:
        config = ClusterConfig(server, source="test", **settings)
        async with connect_to(config, timeouts=timeouts) as client:
            yield api, client


async def refused(awaitable: Any) -> AicrError:
    """The error that *awaitable* must raise."""
    with pytest.raises(AicrError) as caught:
        await awaitable
    return caught.value


async def version_error(config: ClusterConfig, timeouts: Timeouts = TIMES) -> AicrError:
    """The error of the simplest request."""
    async with connect_to(config, timeouts=timeouts) as client:
        return await refused(client.version())


def closed_port() -> int:
    """A port on which nobody listens."""
    return reserved_port()
