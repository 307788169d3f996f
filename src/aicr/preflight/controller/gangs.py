"""Keeps gang ConfigMaps in step with their pods: one key a ConfigMap, on the leader only.

A reconcile plans on the caches first, which costs no request; only when something has to be written
are group and ConfigMap read from the server and the decision made again on what they say. Writes carry
the resourceVersion: what another wrote meanwhile is never overwritten, and is decided on anew.

It must not know what a membership is (`gang.coordination` does) nor who leads (`service` does).
Source: preflight spec 4.4, 4.5; known bugs #1142, S14, S15, S17; field case J12.
"""

from __future__ import annotations

import asyncio
import logging
import random as random_module
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from aicr.errors import CONFLICT, NOT_FOUND, AicrError
from aicr.kube.kinds import CONFIG_MAP
from aicr.kube.port import Cluster, Document
from aicr.kube.queue import DONE, Queue, Result, work
from aicr.preflight import names
from aicr.preflight.controller.caches import Caches, Key
from aicr.preflight.controller.gang_views import GangView, Viewer
from aicr.preflight.controller.metrics import NO_METRICS, GangMetrics
from aicr.preflight.controller.pace import Pace
from aicr.preflight.gang import configmap as cm
from aicr.preflight.gang import naming
from aicr.preflight.gang.coordination import Gang, Plan, Rules, plan
from aicr.preflight.gang.groups import Group
from aicr.preflight.gang.pods import GangPod
from aicr.preflight.gang.reading import Shared
from aicr.preflight.gang.resolver import Resolver, said
from aicr.preflight.times import Times

LOG = logging.getLogger(__name__)

#: Times that a write is tried on fresh data, and how its pauses grow (preflight spec 4.4).
TRIES: Final = 4
PAUSE_FACTOR: Final = 5.0
WORKERS: Final = 8


@dataclass(slots=True)
class _Memory:
    """What is remembered of a gang between reconciles; losing it costs nothing but words."""

    first_seen: float
    generation: int = 0
    complete: bool = False
    reasons: tuple[str, ...] = ()
    unused_since: float | None = None
    absences: int = 0
    """Times in a row that its group was not there."""
    master: tuple[str, int] | None = None
    """Node and port of a master on the host network, as last written."""


class GangController:
    """See the module.

    Args:
        cluster: the port; ``get``, ``create``, ``update`` and ``delete`` on ConfigMaps are needed.
        resolver: the discoverers.
        caches: pods and ConfigMaps; somebody else runs them.
        master_port: the configured port.
        checks_of: the checks that a pod was admitted with, comma separated.
        clock, now, sleep, random: time and chance.
    """

    def __init__(
        self,
        cluster: Cluster,
        resolver: Resolver,
        caches: Caches,
        *,
        master_port: int,
        checks_of: Callable[[GangPod], str],
        clock: Callable[[], float],
        now: Callable[[], datetime],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        random: Callable[[], float] = random_module.random,
        metrics: GangMetrics = NO_METRICS,
        times: Times | None = None,
        rules: Rules | None = None,
    ) -> None:
        self._cluster = cluster
        self._caches = caches
        self._master_port = master_port
        self._checks_of = checks_of
        self._clock = clock
        self._now = now
        self._sleep = sleep
        self._random = random
        self._metrics = metrics
        self._times = times or Times()
        self._rules = rules or Rules()
        groups: Shared[Group] = Shared(clock, age=self._times.shared)
        self._viewer = Viewer(resolver, caches, groups, master_port=master_port)
        self._pace = Pace(clock, self._times)
        self._memory: dict[Key, _Memory] = {}
        self._queue: Queue[Key] | None = None
        caches.on_key(self.enqueue)

    def enqueue(self, key: Key) -> None:
        """Look at *key* soon, if this replica leads."""
        if self._queue is not None:
            self._queue.add_after(key, self._times.coalesce)

    def enqueue_namespace(self, namespace: str) -> None:
        """Look at every gang of *namespace*: its discoverer has changed."""
        for key in self._caches.known():
            if key[0] == namespace:
                self.enqueue(key)

    async def run(self) -> None:
        """Reconcile for as long as this replica leads: until cancelled."""
        queue: Queue[Key] = Queue(longest=self._times.longest, random=self._random)
        self._queue = queue
        self._memory.clear()
        try:
            for key in self._caches.known():
                queue.add(key)
            await work(queue, self.reconcile, workers=WORKERS)
        finally:
            self._queue = None
            queue.shut()

    async def reconcile(self, key: Key) -> Result:
        """Bring one ConfigMap up to date.

        Raises:
            AicrError: it cannot be told what is true, or be written; to be tried again.
        """
        try:
            self._caches.require_fresh(self._times.stale)
        except AicrError as error:
            LOG.info("gang ConfigMap %s/%s waits: %s", *key, said(error))
            return Result(self._times.stale_again)
        memory = self._memory.setdefault(key, _Memory(self._clock()))
        pods = self._caches.mounting(key)
        if not any(pod.live for pod in pods):
            return await self._unused(key, memory, mounted=bool(pods))
        memory.unused_since = None
        view = await self._view(key)
        if view is None:
            return DONE
        decided = self._plan(view, self._caches.config_map(key))
        if decided.document is not None:
            if not decided.urgent:
                pause = self._pace.pause(key, len(view.pods))
                if pause > 0:
                    return Result(self._sooner(pause, decided.wait))
            # What is planned may rest on a group read a moment ago; what is written must not.
            self._viewer.read_anew(view)
            view = await self._view(key)
            if view is None:
                return DONE
            if not self._may_create(view, key):
                return Result(self._absent(memory))
            decided = await self._write(key, view)
        await self._clear_orphans(key, view)
        return self._settled(key, memory, view, decided)

    # What is true

    async def _view(self, key: Key) -> GangView | None:
        return await self._viewer.view(
            key,
            taken_ports=lambda node: self._taken(node, key),
            last_generation=self._memory[key].generation,
        )

    def _taken(self, node: str, key: Key) -> frozenset[int]:
        written = {
            memory.master[1]
            for other, memory in self._memory.items()
            if other != key and memory.master is not None and memory.master[0] == node
        }
        return self._caches.master_ports(node, besides=key) | written

    def _plan(self, view: GangView, current: Document | None) -> Plan:
        return plan(
            view.gang,
            view.pods,
            current,
            now=self._now(),
            checks_of=self._checks_of,
            rules=self._rules,
        )

    def _may_create(self, view: GangView, key: Key) -> bool:
        """Whether a missing ConfigMap is made: not when it went away together with its group."""
        return self._caches.config_map(key) is not None or view.gang.group.found

    # Writing

    async def _write(self, key: Key, view: GangView) -> Plan:
        """Decide on the ConfigMap as the server has it, and write that; others may be faster."""
        namespace, name = key
        for attempt in range(TRIES):
            if attempt:
                pause = self._times.retry * PAUSE_FACTOR ** (attempt - 1)
                await self._sleep(pause * (1.0 + 0.1 * self._random()))
            current = await self._get(key)
            decided = self._plan(view, current)
            if decided.document is None:
                return decided
            # Before the first await, so that two gangs written at once do not take one port.
            self._memory[key].master = _master(view, decided.state)
            try:
                if current is None:
                    await self._cluster.create(decided.document, namespace=namespace)
                else:
                    await self._cluster.update(decided.document, namespace=namespace)
            except AicrError as error:
                if error.code not in (CONFLICT, NOT_FOUND):
                    raise
                self._metrics.written("conflict")
                continue
            self._metrics.written("updated" if current else "created")
            self._pace.wrote(key, anew=decided.urgent)
            self._log(key, decided)
            return decided
        raise AicrError(
            CONFLICT, f"ConfigMap {namespace}/{name} changed {TRIES} times while it was written"
        )

    async def _get(self, key: Key) -> Document | None:
        try:
            return await self._cluster.get(CONFIG_MAP, key[1], namespace=key[0])
        except AicrError as error:
            if error.code == NOT_FOUND:
                return None
            raise

    def _log(self, key: Key, decided: Plan) -> None:
        place = f"{key[0]}/{key[1]}"
        for name in decided.pruned:
            LOG.info("Pruning stale gang peer %s from %s", name, place)
        for name in decided.joined:
            LOG.info("Registered gang peer %s in %s", name, place)

    # Afterwards

    def _settled(self, key: Key, memory: _Memory, view: GangView, decided: Plan) -> Result:
        """Remember and tell what was decided; when to look again."""
        state = decided.state
        if decided.reasons != memory.reasons:
            for reason in decided.reasons:
                LOG.warning("gang %s: %s", view.gang.gang_id, reason)
            memory.reasons = decided.reasons
        if state.complete and not (memory.complete and memory.generation == state.generation):
            seconds = self._clock() - memory.first_seen
            self._metrics.completed(len(state.members), seconds)
            LOG.info(
                "gang %s is complete: generation %d, %d members, master %s",
                *(view.gang.gang_id, state.generation, len(state.members)),
                cm.endpoint(state.members[0].ip, state.master_port),
            )
        memory.complete, memory.generation = state.complete, state.generation
        memory.master = _master(view, state)
        if state.complete:
            return Result(decided.wait)
        if view.gang.group.found:
            memory.absences = 0
            return Result(self._sooner(self._times.forming, decided.wait))
        return Result(self._sooner(self._absent(memory), decided.wait))

    def _absent(self, memory: _Memory) -> float:
        """Seconds until a group that is not there is looked for again."""
        memory.absences += 1
        longer: float = self._times.absent * 2.0 ** min(memory.absences - 1, 16)
        return min(longer, max(self._times.absent, self._times.forming))

    def _sooner(self, seconds: float, other: float) -> float:
        return min(seconds, other) if other > 0 else seconds

    async def _unused(self, key: Key, memory: _Memory, *, mounted: bool) -> Result:
        """Nobody alive mounts it: empty it, and in the end delete it if nothing else will."""
        cached = self._caches.config_map(key)
        if cached is None:
            self._memory.pop(key, None)
            self._pace.forget(key)
            return DONE
        state = cm.read(cached)
        gang = Gang(*key, state.gang_id, self._master_port, Group(found=False, name=""))
        view = GangView(gang, ())
        memory.master = None
        memory.generation, memory.complete = state.generation, False
        if self._plan(view, cached).document is not None:
            memory.generation = (await self._write(key, view)).state.generation
        metadata = cached["metadata"]
        if mounted or metadata.get("ownerReferences"):
            return DONE
        if memory.unused_since is None:
            memory.unused_since = self._clock()
        left = memory.unused_since + self._times.unused - self._clock()
        if left > 0:
            return Result(left)
        LOG.info("deleting ConfigMap %s/%s: it has no owner, and no pod mounts it", *key)
        await self._delete(cached)
        return DONE

    async def _clear_orphans(self, key: Key, view: GangView) -> None:
        """Delete ConfigMaps under names that members' ids give, when no pod mounts them (#1142)."""
        for anchor in view.strays:
            for name in naming.names_of(anchor.gang_id):
                orphan = self._caches.config_map((key[0], name))
                if orphan is None or name == key[1] or self._caches.mounting((key[0], name)):
                    continue
                labels = orphan["metadata"].get("labels") or {}
                ours = labels.get(names.MANAGED_BY_LABEL) == names.MANAGED_BY
                if ours and cm.read(orphan).gang_id == anchor.gang_id:
                    await self._delete(orphan)
                    LOG.info("Deleted orphaned gang ConfigMap %s/%s", key[0], name)

    async def _delete(self, document: Document) -> None:
        """Delete exactly the object that was seen: one written since is wanted by somebody."""
        metadata = document["metadata"]
        try:
            await self._cluster.delete(
                CONFIG_MAP,
                metadata["name"],
                namespace=metadata["namespace"],
                uid=metadata["uid"],
                resource_version=metadata["resourceVersion"],
            )
        except AicrError as error:
            if error.code not in (CONFLICT, NOT_FOUND):
                raise
            LOG.info("not deleted: %s", said(error))
            return
        self._metrics.written("deleted")


def _master(view: GangView, state: cm.State) -> tuple[str, int] | None:
    """Node and port of the master, if it is on the host network."""
    if not state.members:
        return None
    for pod in view.pods:
        if pod.uid == state.members[0].uid and pod.spec.host_network:
            return pod.spec.node_name, state.master_port
    return None
