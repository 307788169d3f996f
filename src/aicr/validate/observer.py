"""Follows the Jobs and pods of one run: two watches, however many checks there are.

The watches survive cut connections and restarted servers (`aicr.kube`). What is seen is kept as
documents, the last state of pods that are gone included, and whoever waits is woken by every
change. A watch that cannot go on, because access was taken away for one, is a `failure` that
every waiting check gets to know.

It must not know what the documents mean. Source: validators spec 3.6.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from aicr.contract import labels
from aicr.errors import AicrError
from aicr.kube import kinds
from aicr.kube.port import Cluster
from aicr.kube.watching import DELETED, SYNCED
from aicr.validate.pods import of_job

Document = Mapping[str, Any]


class Observer:
    """See the module. Use it as a context; it follows from the beginning of it to its end.

    Attributes:
        jobs: Jobs that exist, by name.
        deleted_jobs: UIDs of Jobs that somebody has deleted.
        pods: pods that exist, by name.
        last: last state of pods that are gone, by name.
        failure: why it cannot follow any more.
    """

    def __init__(self, cluster: Cluster, namespace: str, run_id: str) -> None:
        self.jobs: dict[str, Document] = {}
        self.deleted_jobs: set[str] = set()
        self.pods: dict[str, Document] = {}
        self.last: dict[str, Document] = {}
        self.failure: AicrError | None = None
        self._cluster = cluster
        self._selection = {"namespace": namespace, "labels": f"{labels.RUN_ID}={run_id}"}
        self._tasks: list[asyncio.Task[None]] = []
        self._change = asyncio.Event()

    async def __aenter__(self) -> Observer:
        self._tasks = [
            asyncio.create_task(self._follow(kinds.JOB, self.jobs), name="jobs"),
            asyncio.create_task(self._follow(kinds.POD, self.pods), name="pods"),
        ]
        return self

    async def __aexit__(self, *exc: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def job_pods(self, uid: str) -> list[Document]:
        """Pods of a Job that exist."""
        return of_job(self.pods.values(), uid)

    def last_pods(self, uid: str) -> list[Document]:
        """Pods of a Job that existed, in their last state."""
        return of_job(self.last.values(), uid)

    async def changed(self, seconds: float) -> None:
        """Wait for the next change, at most for so long."""
        event = self._change
        try:
            async with asyncio.timeout(max(0.0, seconds)):
                await event.wait()
        except TimeoutError:
            # The caller looks at the clock anyway.
            return

    async def _follow(self, kind: kinds.Resource, store: dict[str, Document]) -> None:
        try:
            async for event in self._cluster.watch(kind, **self._selection):
                if event.type == SYNCED:
                    continue
                self._take(kind, store, event.type, event.key[1], event.uid, event.object)
        except AicrError as error:
            self.failure = error
            self._wake()

    def _take(
        self,
        kind: kinds.Resource,
        store: dict[str, Document],
        type_: str,
        name: str,
        uid: str,
        document: Document | None,
    ) -> None:
        if type_ == DELETED:
            known = store.pop(name, None)
            if kind is kinds.POD and (document or known):
                self.last[name] = document or known or {}
            elif kind is kinds.JOB:
                self.deleted_jobs.add(uid)
        elif document is not None:
            store[name] = document
        self._wake()

    def _wake(self) -> None:
        self._change.set()
        self._change = asyncio.Event()
