"""What is true of a gang now: its pods as the caches have them, its group as its discoverer reads it.

Pods of one ConfigMap may be recognised as members of several groups; the gang is the one that the
ConfigMap was written for, else the one that most of them are in. A pod of another is left out and named.
Groups are shared between the views of a moment; `Viewer.read_anew` lets go of one before a write rests
on it.

It must not know what follows from a view (`gang.coordination`) nor write anything (`gangs`).
Source: preflight spec 4.2 to 4.4; known bugs #1142, S14.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from aicr.preflight.controller.caches import Caches, Key
from aicr.preflight.gang import configmap as cm
from aicr.preflight.gang import naming
from aicr.preflight.gang.coordination import Gang
from aicr.preflight.gang.groups import Anchor, Group
from aicr.preflight.gang.pods import GangPod
from aicr.preflight.gang.reading import Shared
from aicr.preflight.gang.resolver import Resolver

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class GangView:
    """A gang as its pods and group show it."""

    gang: Gang
    pods: Sequence[GangPod]
    anchor: Anchor | None = None
    strays: Sequence[Anchor] = field(default_factory=tuple)
    """Anchors of members whose id gives another ConfigMap than they mount (known bug #1142)."""


class Viewer:
    """Looks at gangs.

    Args:
        resolver: the discoverers.
        caches: pods and ConfigMaps; somebody else runs them.
        groups: what was just read of them.
        master_port: the configured port.
    """

    def __init__(
        self, resolver: Resolver, caches: Caches, groups: Shared[Group], *, master_port: int
    ) -> None:
        self._resolver = resolver
        self._caches = caches
        self._groups = groups
        self._master_port = master_port

    async def view(
        self, key: Key, *, taken_ports: Callable[[str], frozenset[int]], last_generation: int
    ) -> GangView | None:
        """The gang of *key* with its group just read; None if no discoverer recognises it.

        Raises:
            AicrError: its group cannot be read.
        """
        namespace, name = key
        stored = cm.read(self._caches.config_map(key)).gang_id
        pods: list[GangPod] = []
        anchors: Counter[Anchor] = Counter()
        strays: dict[Anchor, None] = {}
        for pod in self._caches.mounting(key):
            anchor = self._resolver.anchor(pod)
            if anchor is not None:
                own = name in naming.names_of(anchor.gang_id)
                if own and stored not in ("", anchor.gang_id):
                    LOG.error(
                        "pod %s/%s of gang %s mounts ConfigMap %s of gang %s, which it is not put "
                        "into; create it again",
                        *(namespace, pod.name, anchor.gang_id, name, stored),
                    )
                    continue
                if pod.live:
                    anchors[anchor] += 1
                if not own:
                    strays[anchor] = None
            pods.append(pod)
        if not anchors:
            LOG.info("no gang discoverer of namespace %s recognises the pods of %s", *key)
            return None
        chosen = max(anchors, key=lambda one: (one.gang_id == stored, anchors[one], one.gang_id))
        group = await self._groups.get(chosen, lambda: self._read(chosen))
        gang_id = stored or await self._id_of(chosen, pods)
        others = sum(self._resolver.anchor(pod) == chosen for pod in self._caches.loose(namespace))
        gang = Gang(
            namespace,
            name,
            gang_id,
            self._master_port,
            group,
            others,
            taken_ports=taken_ports,
            last_generation=last_generation,
        )
        return GangView(gang, pods, chosen, tuple(strays))

    def read_anew(self, view: GangView) -> None:
        """Have the group of *view* read from the server the next time it is looked at."""
        if view.anchor is not None:
            self._groups.forget(view.anchor)

    async def _id_of(self, anchor: Anchor, pods: Sequence[GangPod]) -> str:
        """The gang id for a ConfigMap that has to be made, with ancestors where those are configured."""
        one = next(pod for pod in pods if pod.live and self._resolver.anchor(pod) == anchor)
        located = await self._resolver.of(one.namespace).locate(one)
        return located.gang_id if located is not None else anchor.gang_id

    async def _read(self, anchor: Anchor) -> Group:
        return await self._resolver.of(anchor.namespace).read(anchor)
