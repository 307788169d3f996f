"""A node that runs pods: registration, a worker for each pod that is bound here, logs and exec."""

from __future__ import annotations

import threading
from collections.abc import Callable

from tests.controlplane import network
from tests.controlplane.agent import registration
from tests.controlplane.agent.container import Container
from tests.controlplane.agent.handlers import Place
from tests.controlplane.agent.logs import Log
from tests.controlplane.agent.pod import PodWorker
from tests.controlplane.agent.sandbox import namespace_prefix
from tests.controlplane.agent.server import NotThereError, Server
from tests.controlplane.agent.services import Services
from tests.controlplane.agent.settings import Cluster, NodeSettings
from tests.controlplane.client import Document


class RunningNode:
    """The agent of one node."""

    def __init__(self, cluster: Cluster, settings: NodeSettings) -> None:
        self._cluster, self._settings = cluster, settings
        self._services = Services(cluster, settings, self._forget)
        self._workers: dict[str, PodWorker] = {}
        self._lock = threading.Lock()

    def run(self, stopped: threading.Event) -> None:
        """Serve the node until *stopped*, then end its pods."""
        network.require_namespaces()
        # What an agent that was killed has left behind; nobody can watch it any more.
        prefix = namespace_prefix(self._settings.network.bridge, self._settings.name)
        for name in network.namespaces(prefix):
            network.drop_namespace(name)
        settings, client = self._settings, self._services.client
        server = Server(
            (settings.network.address, settings.port),
            settings.certificate,
            settings.key,
            settings.authority,
            self,
        )
        registration.register(client, settings.document)
        registration.renew(client, settings.name, self._cluster.lease_seconds)
        if settings.devices:
            self._services.driver.publish(settings.devices, client.get("Node", settings.name))
        selector = f"spec.nodeName={settings.name}"
        pulse = (self._cluster.client(), [settings.name], self._cluster.lease_seconds, stopped)
        pods = (self._cluster.client(), selector, self._on_pod, self._on_list, stopped)
        for target, arguments in (
            (server.serve_forever, ()),
            (registration.heartbeat, pulse),
            (registration.follow_pods, pods),
        ):
            threading.Thread(target=target, args=arguments, daemon=True).start()
        stopped.wait()
        server.shutdown()
        self._end()

    def _end(self) -> None:
        with self._lock:
            workers = list(self._workers.values())
        threads = [threading.Thread(target=one.end_now, daemon=True) for one in workers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
        prefix = namespace_prefix(self._settings.network.bridge, self._settings.name)
        for name in network.namespaces(prefix):
            network.drop_namespace(name)

    def _on_pod(self, kind: str, pod: Document) -> None:
        uid = pod["metadata"]["uid"]
        with self._lock:
            worker = self._workers.get(uid)
            if worker is None:
                over = pod["status"].get("phase") in ("Succeeded", "Failed")
                if kind == "DELETED" or (over and not pod["metadata"].get("deletionTimestamp")):
                    return
                worker = self._workers[uid] = PodWorker(self._services, pod)
                worker.start()
                return
        if kind == "DELETED":
            worker.gone()
        else:
            worker.update(pod)

    def _on_list(self, uids: set[str]) -> None:
        with self._lock:
            lost = [worker for uid, worker in self._workers.items() if uid not in uids]
        for worker in lost:
            worker.gone()

    def _forget(self, worker: PodWorker) -> None:
        with self._lock:
            self._workers.pop(worker.uid, None)

    # -- what the server asks (server.Pods) ------------------------------------------------------

    def _container(self, namespace: str, pod: str, name: str) -> Container:
        with self._lock:
            # The newest, when one of that name is still on its way out.
            found = [one for one in self._workers.values() if one.key == (namespace, pod)][-1:]
        for worker in found:
            for one in [*worker.mains, *worker.inits]:
                if one.name == name:
                    return one
        raise NotThereError(f'container "{name}" of pod "{namespace}/{pod}" is not on this node')

    def log(
        self, namespace: str, pod: str, container: str, previous: bool
    ) -> tuple[Log, Callable[[], bool]]:
        """See `server.Pods`."""
        try:
            return self._container(namespace, pod, container).log(previous)
        except LookupError as error:
            raise NotThereError(f'{error.args[0]} in pod "{pod}"') from error

    def place(self, namespace: str, pod: str, container: str) -> Place:
        """See `server.Pods`."""
        one = self._container(namespace, pod, container)
        run = one.run
        if run is None or not one.running:
            raise NotThereError(f'container "{container}" of pod "{namespace}/{pod}" does not run')
        return run.place

    def documents(self) -> list[Document]:
        """See `server.Pods`."""
        with self._lock:
            return [worker.pod for worker in self._workers.values()]
