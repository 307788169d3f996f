"""A fake API server in a thread of its own, for commands that run an event loop themselves."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.controlplane import kubeconfig
from tests.kube.fakeapi import FakeApi, serving

from aicr.kube.kinds import Resource


class Served:
    """The server: its kubeconfig, and a way to change what it holds."""

    def __init__(self, api: FakeApi, loop: asyncio.AbstractEventLoop, config: Path) -> None:
        self.api = api
        self.config = config
        self._loop = loop

    def store(self, type_: str, resource: Resource, document: dict[str, Any]) -> None:
        """Record a change, from any thread."""
        done = asyncio.run_coroutine_threadsafe(
            self.api.store(type_, resource, document), self._loop
        )
        done.result(60)


@contextmanager
def served(folder: Path) -> Iterator[Served]:
    """Serve an empty API until the block ends; its kubeconfig is in *folder*."""
    ready: threading.Event = threading.Event()
    found: dict[str, Any] = {}

    async def serve() -> None:
        found["api"], found["loop"] = FakeApi(), asyncio.get_running_loop()
        found["stop"] = asyncio.Event()
        async with serving(found["api"].handle) as address:
            found["address"] = address
            ready.set()
            await found["stop"].wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        assert ready.wait(60)
        path = folder / "kubeconfig"
        path.write_text(
            json.dumps(kubeconfig.document(found["address"], None, token="t")), encoding="utf-8"
        )
        path.chmod(0o600)
        yield Served(found["api"], found["loop"], path)
    finally:
        found["loop"].call_soon_threadsafe(found["stop"].set)
        thread.join(10)
