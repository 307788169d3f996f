"""A pod's network: a namespace of its own with an address on the bridge, or the node's.

The namespace has a name, so it lives without a process in it, and whoever cleans up after a killed
agent finds the pod's processes through it (`network.drop_namespace`).
"""

from __future__ import annotations

import hashlib
import ipaddress
import threading

from tests.controlplane import network
from tests.controlplane.agent.settings import Network


class Addresses:
    """Addresses of one node's pods: each is given out once until it comes back."""

    def __init__(self, pods: str) -> None:
        self._free = [str(address) for address in ipaddress.ip_network(pods)]
        self._lock = threading.Lock()

    def take(self) -> str:
        """An address that no pod has; the one that has been free longest."""
        with self._lock:
            if not self._free:
                raise network.NetworkError("no pod address is left on this node")
            return self._free.pop(0)

    def give_back(self, address: str) -> None:
        """Make *address* free again."""
        with self._lock:
            self._free.append(address)


class Sandbox:
    """One pod's network namespace."""

    def __init__(self, settings: Network, addresses: Addresses, node: str, uid: str) -> None:
        """Make the namespace, its address and its way out.

        Raises:
            NetworkError: the kernel refuses, or no address is left.
        """
        self._addresses = addresses
        digest = _digest(uid)
        self.namespace = namespace_name(settings.bridge, node, uid)
        self.address = addresses.take()
        # Interface names have at most 15 characters, and must differ over all planes.
        outer = f"av{digest}"
        try:
            network.ip(
                f"netns add {self.namespace}",
                f"link add {outer} type veth peer name eth0 netns {self.namespace}",
                f"link set dev {outer} master {settings.bridge} up",
                # Who had this address before has gone, and what this machine has learnt of it leads
                # nowhere for some ten seconds.
                f"neigh flush to {self.address} dev {settings.bridge}",
            )
            network.ip(
                "link set dev lo up",
                f"addr add {self.address}/{settings.prefix} dev eth0",
                "link set dev eth0 up",
                f"route add default via {settings.gateway}",
                namespace=self.namespace,
            )
        except network.NetworkError:
            self.remove()
            raise

    def remove(self) -> None:
        """End what runs in the namespace, and remove it; the interface pair goes with it."""
        network.drop_namespace(self.namespace)
        self._addresses.give_back(self.address)


def namespace_prefix(bridge: str, node: str) -> str:
    """How the names of a node's network namespaces begin."""
    return f"{bridge}-{_digest(node)[:6]}-"


def namespace_name(bridge: str, node: str, uid: str) -> str:
    """Name of the network namespace of a pod."""
    return namespace_prefix(bridge, node) + _digest(uid)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
