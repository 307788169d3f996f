"""What all pods of a node share: the API, events, look-ups, tokens, addresses, devices."""

from __future__ import annotations

import http.client
import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING

from tests.controlplane.agent.claims import Driver
from tests.controlplane.agent.logs import LogClock
from tests.controlplane.agent.registration import now, say
from tests.controlplane.agent.sandbox import Addresses
from tests.controlplane.agent.settings import Cluster, NodeSettings
from tests.controlplane.client import ApiError, Document, path_of

if TYPE_CHECKING:
    from tests.controlplane.agent.pod import PodWorker


class Services:
    """See the module."""

    def __init__(
        self, cluster: Cluster, settings: NodeSettings, forget: Callable[[PodWorker], None]
    ) -> None:
        self.cluster, self.settings, self.forget = cluster, settings, forget
        self.client = cluster.client()
        self.addresses = Addresses(settings.network.pods)
        self.clock = LogClock()
        self.driver = Driver(self.client, settings.name)

    def lookup(self, kind: str, namespace: str, name: str) -> Document | None:
        """A ConfigMap or Secret, or None when there is none."""
        try:
            return self.client.get(kind, name, namespace)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def token(self, pod: Document, audience: str, seconds: int) -> str:
        """A token of the pod's service account that dies with the pod."""
        meta = pod["metadata"]
        reference = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"]}
        request: Document = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {
                "expirationSeconds": seconds,
                "boundObjectRef": reference,
                "audiences": [audience] if audience else [],
            },
        }
        account = path_of("ServiceAccount", meta["namespace"], pod["spec"]["serviceAccountName"])
        answer = self.client.call("POST", f"{account}/token", request)
        return str(answer["status"]["token"])

    def event(self, pod: Document, kind: str, reason: str, message: str) -> None:
        """Record an event about a pod; one that is refused (a closing namespace) is only logged."""
        meta, stamp = pod["metadata"], now()
        event: Document = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{meta['name'][:200]}.{secrets.token_hex(8)}"},
            "involvedObject": {
                "apiVersion": "v1",
                "kind": "Pod",
                "namespace": meta["namespace"],
                "name": meta["name"],
                "uid": meta["uid"],
            },
            "type": kind,
            "reason": reason,
            "message": message[:1000],
            "source": {"component": "kubelet", "host": self.settings.name},
            "firstTimestamp": stamp,
            "lastTimestamp": stamp,
            "count": 1,
        }
        try:
            self.client.create(event, meta["namespace"])
        except (ApiError, OSError, http.client.HTTPException) as error:
            say(f"event {reason} of {meta['namespace']}/{meta['name']}: {error}")
