"""Gangs as they are on a cluster, once or for ever: for commands that show them.

It writes nothing, needs no discoverer and no leader. It must not know how rows are printed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any, Final

from aicr.kube.client import Client
from aicr.kube.informer import Informer
from aicr.kube.kinds import CONFIG_MAP, POD
from aicr.kube.port import Document
from aicr.preflight import names
from aicr.preflight.gang.pods import GangPod
from aicr.preflight.gang.report import gangs

_LABELS: Final = {names.MANAGED_BY_LABEL: names.MANAGED_BY}
#: Many pods change at once, and a person wants to read what came of it: a part of the client's pause.
_SETTLE: Final = 0.25


async def read(client: Client, namespace: str = "") -> list[dict[str, Any]]:
    """Every gang of *namespace*, or of all; see `gang.report`.

    Raises:
        AicrError: ConfigMaps or pods cannot be listed.
    """
    documents = await client.list(CONFIG_MAP, namespace=namespace, labels=_LABELS)
    if not documents:
        return []
    return gangs(documents, await client.list(POD, namespace=namespace, into=GangPod))


async def follow(client: Client, namespace: str = "") -> AsyncGenerator[dict[str, Any], None]:
    """Every gang, and then each whose row changes, for ever and over lost connections.

    Raises:
        AicrError: ConfigMaps or pods cannot be listed at the beginning.
    """
    # Access that is missing is said at once; an informer would wait for it to be granted.
    await read(client, namespace)
    maps: Informer[Document] = Informer(
        client, CONFIG_MAP, dict, namespace=namespace, labels=_LABELS
    )
    pods = Informer(client, POD, GangPod, namespace=namespace)
    changed = asyncio.Event()
    maps.add_handler(lambda change: changed.set())
    pods.add_handler(lambda change: changed.set())
    running = [asyncio.ensure_future(informer.run()) for informer in (maps, pods)]
    try:
        await maps.wait_synced(client.timeouts.page)
        await pods.wait_synced(client.timeouts.page)
        before: dict[tuple[str, str], dict[str, Any]] = {}
        while True:
            changed.clear()
            rows = gangs(maps.store.list(), pods.store.list())
            now = {(row["namespace"], row["configMap"]): row for row in rows}
            for key, row in now.items():
                if before.get(key) != row:
                    yield row
            before = now
            await changed.wait()
            await asyncio.sleep(client.timeouts.backoff * _SETTLE)
    finally:
        for task in running:
            task.cancel()
        await asyncio.wait(running)
