"""The caches that gang decisions are made on, and the questions asked of them.

One Pod watch for the whole cluster, because a namespace may get its PreflightConfig at any time (P-163),
of the reduced form only; and one of the gang ConfigMaps. It must not decide anything.
Source: preflight spec 4.6.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final

from aicr.kube.informer import Change, Informer
from aicr.kube.kinds import CONFIG_MAP, POD
from aicr.kube.port import Document
from aicr.kube.reader import Reader
from aicr.preflight import names
from aicr.preflight.gang import configmap as cm
from aicr.preflight.gang import naming
from aicr.preflight.gang.pods import GangPod
from aicr.preflight.gang.resolver import Resolver

#: (namespace, ConfigMap): what gangs are keyed by.
Key = tuple[str, str]
_GANG: Final = "gang"
_LOOSE: Final = "loose"
_HOST: Final = "host"
#: Stands for the ConfigMap of a gang volume that names none; no object can be called so.
_UNNAMED: Final = "?"


class Caches:
    """See the module.

    Args:
        reader: the cluster.
        resolver: gives each pod its gang where the mounted ConfigMap does not.
    """

    def __init__(self, reader: Reader, resolver: Resolver) -> None:
        self._resolver = resolver
        self.pods: Informer[GangPod] = Informer(
            reader,
            POD,
            GangPod,
            indexes={_GANG: _by_gang, _LOOSE: _by_namespace_if_loose, _HOST: _by_node},
        )
        self.maps: Informer[Document] = Informer(
            reader,
            CONFIG_MAP,
            dict,
            labels={names.MANAGED_BY_LABEL: names.MANAGED_BY},
        )

    def require_fresh(self, max_age: float) -> None:
        """SERVICE_UNAVAILABLE if either cache has not followed the server for *max_age* seconds."""
        self.pods.require_fresh(max_age)
        self.maps.require_fresh(max_age)

    def on_key(self, add: Callable[[Key], None]) -> None:
        """Call *add* with the gang of everything that changes."""

        def pod_changed(change: Change[GangPod]) -> None:
            if change.old is not None and change.new is not None and _same(change.old, change.new):
                return
            for pod in (change.old, change.new):
                for key in self.keys_of(pod) if pod is not None else ():
                    add(key)

        def map_changed(change: Change[Document]) -> None:
            add(change.key)

        self.pods.add_handler(pod_changed)
        self.maps.add_handler(map_changed)

    def known(self) -> list[Key]:
        """Every gang that a pod or a ConfigMap tells of."""
        found: dict[Key, None] = {}
        for document in self.maps.store.list():
            found[document["metadata"]["namespace"], document["metadata"]["name"]] = None
        for pod in self.pods.store.list():
            if pod.injected:
                found.update(dict.fromkeys(self.keys_of(pod)))
        return list(found)

    def keys_of(self, pod: GangPod) -> list[Key]:
        """The gangs that *pod* matters to: the one it mounts, or those its group may have."""
        if pod.config_map:
            return [(pod.namespace, pod.config_map)]
        anchor = self._resolver.anchor(pod)
        if anchor is None:
            return []
        if pod.injected:
            return [(pod.namespace, naming.config_map_name(anchor.gang_id))]
        return [
            (pod.namespace, name)
            for name in naming.names_of(anchor.gang_id)
            if self.maps.store.get(name, pod.namespace) is not None
        ]

    def mounting(self, key: Key) -> list[GangPod]:
        """Pods of the gang *key*, dead ones included."""
        namespace, name = key
        found = self.pods.store.by_index(_GANG, f"{namespace}/{name}")
        unnamed = self.pods.store.by_index(_GANG, f"{namespace}/{_UNNAMED}")
        return found + [pod for pod in unnamed if key in self.keys_of(pod)]

    def live_members(self, namespace: str, name: str) -> list[GangPod]:
        """Live pods that mount a ConfigMap."""
        return [pod for pod in self.mounting((namespace, name)) if pod.live]

    def loose(self, namespace: str) -> list[GangPod]:
        """Live pods of *namespace* that mount no gang volume."""
        return self.pods.store.by_index(_LOOSE, namespace)

    def config_map(self, key: Key) -> Document | None:
        """The gang's ConfigMap as the cache has it."""
        return self.maps.store.get(key[1], key[0])

    def master_ports(self, node: str, *, besides: Key) -> frozenset[int]:
        """Ports of other gangs' masters in the network of *node* (field case J15)."""
        taken: set[int] = set()
        for pod in self.pods.store.by_index(_HOST, node):
            key = (pod.namespace, pod.config_map)
            state = cm.read(self.config_map(key))
            if key != besides and state.members and state.members[0].uid == pod.uid:
                taken.add(state.master_port)
        return frozenset(taken)


def _by_gang(pod: GangPod) -> list[str]:
    return [f"{pod.namespace}/{pod.config_map or _UNNAMED}"] if pod.injected else []


def _by_namespace_if_loose(pod: GangPod) -> list[str]:
    return [] if pod.injected or not pod.live else [pod.namespace]


def _by_node(pod: GangPod) -> list[str]:
    return [pod.spec.node_name] if pod.injected and pod.spec.host_network and pod.live else []


def _same(old: GangPod, new: GangPod) -> bool:
    """Whether nothing changed that a gang could depend on; most updates are of this kind."""
    return _relevant(old) == _relevant(new)


def _relevant(pod: GangPod) -> tuple[Hashable | object, ...]:
    metadata = pod.metadata
    return (
        *(metadata.uid, metadata.deletion_timestamp, metadata.labels, metadata.annotations),
        *(pod.spec, pod.status),
    )
