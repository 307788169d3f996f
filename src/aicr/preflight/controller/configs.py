"""Follows PreflightConfig objects: each replica's resolver, and on the leader their statuses.

One key a namespace, because objects of a namespace count together. A block that is wrong, or whose CRD
is missing, leaves the namespace with the default and is looked at again each minute; one that cannot be
judged at the moment changes nothing until it can. It must not know who wins (`judging` does).
Source: preflight spec 3.6, known bug S18, decision 75.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, Final

from aicr.errors import CONFLICT, INVALID_REQUEST, NOT_FOUND, AicrError
from aicr.kube.informer import Change, Informer
from aicr.kube.port import Cluster, Document
from aicr.kube.queue import DONE, Queue, Result, work
from aicr.kube.reader import Reader
from aicr.preflight.controller.judging import (
    PREFLIGHT_CONFIG,
    Outcome,
    block,
    in_order,
    statuses,
)
from aicr.preflight.controller.metrics import NO_METRICS, GangMetrics
from aicr.preflight.gang.groups import Discoverer
from aicr.preflight.gang.resolver import Resolver, said
from aicr.preflight.gang_discovery import GangDiscovery, read_discovery

LOG = logging.getLogger(__name__)

#: Codes that say that a block is wrong, and not that nobody could tell.
_WRONG: Final = frozenset({INVALID_REQUEST, NOT_FOUND})


class ConfigController:
    """See the module.

    Args:
        reader: to follow the objects with.
        cluster: the port; ``update`` on their status is needed.
        resolver: what is set and removed.
        build: a discoverer for a block, as `resolver.build` makes one.
        leads: whether this replica writes statuses.
        changed: is told a namespace whose discoverer has changed.
        now: wall clock.
        stale: seconds for which the cache may have lost its server.
        again: seconds after which an invalid object is looked at again: its CRD may be there by then.
    """

    def __init__(
        self,
        reader: Reader,
        cluster: Cluster,
        resolver: Resolver,
        build: Callable[[GangDiscovery], Awaitable[Discoverer]],
        *,
        leads: Callable[[], bool],
        changed: Callable[[str], None],
        now: Callable[[], datetime],
        stale: float,
        again: float,
        metrics: GangMetrics = NO_METRICS,
    ) -> None:
        self.informer: Informer[Document] = Informer(
            reader, PREFLIGHT_CONFIG, dict, indexes={"namespace": _namespace}
        )
        self._cluster = cluster
        self._resolver = resolver
        self._build = build
        self._leads = leads
        self._changed = changed
        self._now = now
        self._metrics = metrics
        self._stale = stale
        self._again = again
        self._queue: Queue[str] = Queue(longest=again)
        #: Namespace → the block that its discoverer was built from.
        self._in_force: dict[str, GangDiscovery] = {}
        self._refused: set[str] = set()
        #: Namespaces that have objects and have not been judged yet.
        self._open: set[str] = set()
        self.informer.add_handler(self._noticed)

    def unjudged(self) -> bool:
        """Whether some namespace's objects have not been looked at yet."""
        return bool(self._open)

    async def run(self) -> None:
        """Reconcile until cancelled; the informer is run by somebody else."""
        await work(self._queue, self.reconcile)

    def look_again(self) -> None:
        """Look at every namespace: this replica writes statuses from now on."""
        for document in self.informer.store.list():
            self._queue.add(document["metadata"]["namespace"])

    async def reconcile(self, namespace: str) -> Result:
        """Set or remove the override of *namespace*, and tell its objects.

        Raises:
            AicrError: it cannot be told what counts, or a status cannot be written.
        """
        self.informer.require_fresh(self._stale)
        ordered = in_order(self.informer.store.by_index("namespace", namespace))
        if not ordered:
            self._put(namespace, None, None)
            self._count(namespace, refused=False)
            self._open.discard(namespace)
            return DONE
        outcome = await self._apply(namespace, block(ordered[0]))
        if outcome.error:
            LOG.warning("PreflightConfig of namespace %s: %s", namespace, outcome.error)
        self._count(namespace, refused=bool(outcome.error) or len(ordered) > 1)
        self._open.discard(namespace)
        if self._leads():
            for document in statuses(ordered, outcome, self._now()):
                await self._write(document)
        return Result(self._again) if outcome.error else DONE

    async def _apply(self, namespace: str, found: Any) -> Outcome:
        if found is None:
            self._put(namespace, None, None)
            return Outcome(self._resolver.default.name)
        try:
            settings = read_discovery(found, where="spec.gangDiscovery")
            if self._in_force.get(namespace) != settings:
                self._put(namespace, await self._build(settings), settings)
        except AicrError as error:
            if error.code not in _WRONG:
                raise
            self._put(namespace, None, None)
            return Outcome(error=said(error))
        return Outcome(self._resolver.of(namespace).name)

    def _put(
        self, namespace: str, discoverer: Discoverer | None, settings: GangDiscovery | None
    ) -> None:
        if discoverer is None or settings is None:
            self._resolver.remove(namespace)
            if self._in_force.pop(namespace, None) is not None:
                LOG.info("namespace %s uses the default gang discovery", namespace)
                self._changed(namespace)
            return
        self._resolver.set(namespace, discoverer)
        self._in_force[namespace] = settings
        LOG.info("namespace %s uses gang discovery %s", namespace, discoverer.name)
        self._changed(namespace)

    async def _write(self, document: Document) -> None:
        namespace = document["metadata"]["namespace"]
        try:
            await self._cluster.update(document, namespace=namespace, subresource="status")
        except AicrError as error:
            if error.code == NOT_FOUND:
                return  # deleted since; that change has its own turn
            if error.code == CONFLICT:
                # The newer object is on its way into the cache.
                self._queue.add_after(namespace, 1.0)
                return
            raise

    def _count(self, namespace: str, *, refused: bool) -> None:
        if refused:
            self._refused.add(namespace)
        else:
            self._refused.discard(namespace)
        self._metrics.conflicting(len(self._refused))

    def _noticed(self, change: Change[Document]) -> None:
        namespace = change.key[0]
        self._open.add(namespace)
        self._queue.add(namespace)


def _namespace(document: Document) -> list[str]:
    return [document["metadata"]["namespace"]]
