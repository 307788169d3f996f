"""What happens to a gang while one of its pods is admitted: `GangLookup` of the admission port.

```
identify: anchor ─► group (minimum, owner) and ConfigMap (name, checks agreed on) ─► Membership
register: create the ConfigMap, or agree with what it says; never on a dry run
```

The ConfigMap is there before the pod is, because KAI holds back pods whose ConfigMap is missing. A
thousand admissions of one gang are one ConfigMap and a handful of requests. Two gangs whose ids differ
only in characters that names cannot hold get two ConfigMaps (field case J5). All members must name the
same checks; who comes second with others is refused, and told who was first (decision 70, field case
J9). It must not know how pods are changed. Source: preflight spec 2.6, 4.3, decision 21.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypeVar

from aicr.errors import CONFLICT, NOT_FOUND, TIMEOUT, AicrError
from aicr.kube.kinds import CONFIG_MAP
from aicr.kube.port import Cluster, Document
from aicr.preflight.admission.gang_port import Membership, refusal
from aicr.preflight.config import GangCoordination
from aicr.preflight.gang import configmap as cm
from aicr.preflight.gang import naming
from aicr.preflight.gang.groups import Anchor, Discoverer, Group
from aicr.preflight.gang.pods import GangPod, gang_pod
from aicr.preflight.gang.reading import Shared
from aicr.preflight.gang.resolver import Resolver, said
from aicr.preflight.times import Times

T = TypeVar("T")
LOG = logging.getLogger(__name__)

#: Times that a write is tried on fresh data.
TRIES: Final = 4
#: Seconds for which an agreement counts although none of its pods has been seen: the longest that
#: the API server waits for a webhook, after which the pod is there or never will be.
ARRIVAL: Final = 30.0
TOPOLOGY_FILE: Final = "topo.xml"
TOPOLOGY_LABELS: Final = {
    "app.kubernetes.io/component": "nccl-topo",
    "app.kubernetes.io/name": "nvsentinel",
}


@dataclass(frozen=True, slots=True)
class _Found:
    """A gang's ConfigMap as read: its name, and the object or None."""

    name: str
    document: Document | None
    clash: str = ""
    """The gang that has the last name that this one could have; "" for none."""


@dataclass(frozen=True, slots=True)
class Located(Membership):
    """A membership with what `Registration.register` needs and the admission side does not."""

    namespace: str = ""
    anchor: Anchor | None = None


class Registration:
    """See the module.

    Args:
        cluster: the port; ``get``, ``create`` and ``update`` on ConfigMaps are needed.
        resolver: the discoverers.
        settings: the coordination block.
        members: namespace and ConfigMap → live pods known to mount it, from the pod cache.
        checks_of: the checks that a pod was admitted with, comma separated.
        clock, now: time.
        times: `admission` is for each of the three things that an admission may wait for: the group, the
            ConfigMap, and the registration. All three fit into the 10 s that a webhook is given.
    """

    def __init__(
        self,
        cluster: Cluster,
        resolver: Resolver,
        settings: GangCoordination,
        *,
        members: Callable[[str, str], Iterable[GangPod]],
        checks_of: Callable[[GangPod], str],
        clock: Callable[[], float],
        now: Callable[[], datetime],
        times: Times | None = None,
    ) -> None:
        times = times or Times()
        self._budget = times.admission
        self._cluster = cluster
        self._resolver = resolver
        self._settings = settings
        self._members = members
        self._checks_of = checks_of
        self._now = now
        self._groups: Shared[Group] = Shared(clock, age=times.shared)
        self._maps: Shared[_Found] = Shared(clock, age=times.shared)
        self._registered: Shared[None] = Shared(clock, age=times.shared)
        self._topologies: Shared[None] = Shared(clock, age=times.topology)

    async def identify(self, pod: Mapping[str, Any], namespace: str) -> Membership | None:
        """As `GangLookup.identify`; what cannot be read is logged and left open."""
        seen = gang_pod(pod, namespace)
        discoverer = self._resolver.of(seen.namespace)
        anchor = await discoverer.locate(seen)
        if anchor is None:
            return None
        expected: int | None = None
        checks: tuple[str, ...] | None = None
        found, agreed_by = _Found(naming.config_map_name(anchor.gang_id), None), ""
        try:
            group = await self._within(self._group(discoverer, anchor), "reading the group")
            expected = group.minimum
        except AicrError as error:
            LOG.warning("Failed to resolve gang owner reference: %s", said(error))
        try:
            found = await self._within(self._find(anchor), "reading the gang's ConfigMap")
            checks, agreed_by = self._agreement(found, seen)
        except AicrError as error:
            LOG.warning("Failed to read gang ConfigMap %s: %s", found.name, said(error))
        return Located(
            gang_id=anchor.gang_id,
            config_map=found.name,
            discoverer=discoverer.name,
            expected=expected,
            checks=checks,
            agreed_by=agreed_by,
            mismatch=_clash(found, anchor.gang_id),
            namespace=seen.namespace,
            anchor=anchor,
        )

    async def register(
        self,
        membership: Membership,
        pod: Mapping[str, Any],
        checks: Sequence[str],
        dry_run: bool,
    ) -> None:
        """As `GangLookup.register`."""
        located = membership if isinstance(membership, Located) else None
        seen = gang_pod(pod, located.namespace if located else "")
        namespace = seen.namespace
        if not membership.gang_id:
            LOG.info("pod %s/%s has no gang id", namespace, seen.name)
            return
        anchor = located.anchor if located else self._resolver.anchor(seen)
        discoverer = self._resolver.of(namespace)
        names = tuple(checks)

        async def once() -> None:
            await self._ensure(membership, seen, names, discoverer, anchor, dry_run=dry_run)

        async def all_of_it() -> None:
            await self._ensure_topology(namespace)
            key = (namespace, membership.config_map, membership.gang_id, names)
            # What is under way goes on when time is up: the ConfigMap comes a little later then.
            await self._registered.get(key, once)

        await self._within(once() if dry_run else all_of_it(), "registering with the gang")

    async def _within(self, work: Awaitable[T], what: str) -> T:
        try:
            async with asyncio.timeout(self._budget):
                return await work
        except TimeoutError as error:
            raise AicrError(
                TIMEOUT,
                f"{what} took longer than the {self._budget:g} s that an admission has for it",
                hint="is the API server overloaded?",
            ) from error

    # Reading

    async def _group(self, discoverer: Discoverer, anchor: Anchor) -> Group:
        return await self._groups.get(anchor, lambda: discoverer.read(anchor))

    async def _find(self, anchor: Anchor) -> _Found:
        """The gang's ConfigMap, under the first of its names that is not another gang's."""

        async def look() -> _Found:
            other = ""
            for name in naming.names_of(anchor.gang_id):
                document = await self._get(name, anchor.namespace)
                other = "" if document is None else cm.read(document).gang_id
                if other in ("", anchor.gang_id):
                    return _Found(name, document)
                LOG.error(
                    "gang %s would use ConfigMap %s/%s, which belongs to gang %s",
                    anchor.gang_id,
                    anchor.namespace,
                    name,
                    other,
                )
            return _Found(name, None, clash=other)

        return await self._maps.get((anchor.namespace, anchor.gang_id), look)

    async def _get(self, name: str, namespace: str) -> Document | None:
        try:
            return await self._cluster.get(CONFIG_MAP, name, namespace=namespace)
        except AicrError as error:
            if error.code == NOT_FOUND:
                return None
            raise

    def _agreement(self, found: _Found, pod: GangPod) -> tuple[tuple[str, ...] | None, str]:
        """The checks that live members agreed on, and one of them; (None, "") if there is none."""
        for member in self._members(pod.namespace, found.name):
            return _listed(self._checks_of(member)), member.name
        state = cm.read(found.document)
        metadata = (found.document or {}).get("metadata") or {}
        annotations = metadata.get("annotations") or {}
        if not state.checks or self._old(annotations.get(cm.AGREED_AT, "")):
            return None, ""
        return _listed(state.checks), annotations.get(cm.AGREED_BY, "")

    def _old(self, text: str) -> bool:
        try:
            return (self._now() - datetime.fromisoformat(text)).total_seconds() > ARRIVAL
        except ValueError:
            return True

    # Writing

    async def _ensure(
        self,
        membership: Membership,
        pod: GangPod,
        checks: tuple[str, ...],
        discoverer: Discoverer,
        anchor: Anchor | None,
        *,
        dry_run: bool,
    ) -> None:
        """Create the ConfigMap or agree with it, on fresh data as often as others are faster."""
        namespace, name = pod.namespace, membership.config_map
        for _ in range(TRIES):
            document = await self._get(name, namespace)
            wanted = await self._wanted(membership, pod, checks, document, discoverer, anchor)
            if wanted is None or dry_run:
                return
            try:
                if document is None:
                    await self._cluster.create(wanted, namespace=namespace)
                else:
                    await self._cluster.update(wanted, namespace=namespace)
            except AicrError as error:
                # NOT_FOUND: deleted between reading and writing.
                if error.code not in (CONFLICT, NOT_FOUND):
                    raise
                continue
            self._maps.forget((namespace, membership.gang_id))
            return
        raise AicrError(
            CONFLICT, f"ConfigMap {namespace}/{name} changed {TRIES} times while it was written"
        )

    async def _wanted(
        self,
        membership: Membership,
        pod: GangPod,
        checks: tuple[str, ...],
        document: Document | None,
        discoverer: Discoverer,
        anchor: Anchor | None,
    ) -> Document | None:
        """The ConfigMap as it should be; None if it is."""
        group: Group | None = None
        if anchor is not None:
            try:
                group = await self._group(discoverer, anchor)
            except AicrError as error:
                LOG.warning("Failed to resolve gang owner reference: %s", said(error))
        state = cm.read(document)
        if document is None:
            base = cm.skeleton(
                membership.config_map,
                pod.namespace,
                membership.gang_id,
                self._settings.master_port,
            )
            if group is not None and group.minimum is not None and group.minimum > 0:
                base = cm.with_data(base, {cm.EXPECTED: str(group.minimum)})
        elif state.gang_id not in ("", membership.gang_id):
            raise refusal(
                f"ConfigMap {membership.config_map} of gang {membership.gang_id} was taken by gang "
                f"{state.gang_id} at the same moment; create the pod again"
            )
        else:
            base = document
        agreed, by = self._agreement(_Found(membership.config_map, document), pod)
        if agreed is not None and agreed != checks:
            raise refusal(disagreement(pod.name, checks, by, agreed, membership.gang_id))
        wanted = cm.with_owner(base, group.owner() if group is not None else None)
        joined = ",".join(checks)
        if agreed is None or state.checks != joined:
            wanted = cm.with_data(wanted, {cm.CHECKS: joined})
            who = {cm.AGREED_BY: pod.name, cm.AGREED_AT: cm.stamp(self._now())}
            wanted = cm.with_annotations(wanted, who)
        return None if wanted == document else wanted

    async def _ensure_topology(self, namespace: str) -> None:
        """The NCCL topology's ConfigMap, made once and never changed (preflight spec 4.3)."""
        name, data = self._settings.topology_config_map, self._settings.topology_data
        if not (name and data):
            return

        async def once() -> None:
            if await self._get(name, namespace) is not None:
                return
            made: Document = {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": name, "namespace": namespace, "labels": {**TOPOLOGY_LABELS}},
                "data": {TOPOLOGY_FILE: data},
            }
            try:
                await self._cluster.create(made, namespace=namespace)
            except AicrError as error:
                if error.code != CONFLICT:
                    raise
                return
            LOG.info("Created NCCL topo ConfigMap %s/%s", namespace, name)

        try:
            await self._topologies.get(namespace, once)
        except AicrError as error:
            # Its volume is optional, as the gang's is: the pod starts without a topology.
            LOG.error(
                "Failed to ensure NCCL topo ConfigMap %s/%s: %s", namespace, name, said(error)
            )


def disagreement(
    pod: str, checks: Sequence[str], other: str, agreed: Sequence[str], gang_id: str
) -> str:
    """Why *pod* is refused: both pods, both lists, and whether only the order differs."""
    text = (
        f'pod "{pod}" selects checks [{", ".join(checks)}], but pod "{other}" of the same gang '
        f"{gang_id} selects [{', '.join(agreed)}]"
    )
    if sorted(checks) == sorted(agreed):
        return f"{text}: the order must be the same in all members"
    return f"{text}: all members must name the same checks"


def _clash(found: _Found, gang_id: str) -> str:
    if not found.clash:
        return ""
    return (
        f"every ConfigMap name of gang {gang_id} is taken by gang {found.clash}; rename the group"
    )


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part for part in text.split(",") if part)
