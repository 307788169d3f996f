"""A small driver of devices (DRA): publishes what a node has, and prepares what the scheduler gave out.

The scheduler writes allocations, as in production; this driver trusts nothing but them. A pod whose
claim is not allocated, not reserved for it, of another driver, or of a device that another claim
holds does not start. A container that uses a claim finds its devices in the variable TEST_DEVICES.
"""

from __future__ import annotations

import threading
from typing import Final

from tests.controlplane.client import ApiError, Client, Document

DRIVER: Final = "gpu.test.aicr.run"
VARIABLE: Final = "TEST_DEVICES"


class ClaimError(Exception):
    """Why a pod's claims cannot be prepared (yet)."""


class Driver:
    """The driver on one node."""

    def __init__(self, client: Client, node: str) -> None:
        self._client, self._node = client, node
        self._lock = threading.Lock()
        #: Device → (uid of the claim that holds it, uids of the pods that use it).
        self._held: dict[str, tuple[str, set[str]]] = {}

    def publish(self, count: int, owner: Document) -> None:
        """Offer *count* devices, named device-0 and so on, and the class that selects them."""
        device_class: Document = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": DRIVER},
            "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]},
        }
        devices = [
            {
                "name": f"device-{number}",
                "attributes": {"index": {"int": number}, "model": {"string": "test-gpu"}},
                "capacity": {"memory": {"value": "80Gi"}},
            }
            for number in range(count)
        ]
        offer: Document = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {
                "name": f"{self._node}-{DRIVER}",
                "ownerReferences": [
                    {
                        "apiVersion": "v1",
                        "kind": "Node",
                        "name": self._node,
                        "uid": owner["metadata"]["uid"],
                    }
                ],
            },
            "spec": {
                "driver": DRIVER,
                "nodeName": self._node,
                "pool": {"name": self._node, "generation": 1, "resourceSliceCount": 1},
                "devices": devices,
            },
        }
        self._client.apply(device_class)
        self._client.apply(offer)

    def prepare(self, pod: Document) -> dict[tuple[str, str], list[str]]:
        """(Claim name in the pod, request) → devices, for every claim of the pod.

        Raises:
            ClaimError: a claim is not there, not allocated, not for this pod, or not ours.
        """
        result: dict[tuple[str, str], list[str]] = {}
        generated = {
            one["name"]: one.get("resourceClaimName")
            for one in pod["status"].get("resourceClaimStatuses", [])
        }
        for reference in pod["spec"].get("resourceClaims", []):
            name = reference.get("resourceClaimName") or generated.get(reference["name"])
            if not name:
                raise ClaimError(f"claim {reference['name']} has not been made from its template")
            for request, device in self._prepared(pod, str(name)):
                result.setdefault((reference["name"], request), []).append(device)
        return result

    def _prepared(self, pod: Document, name: str) -> list[tuple[str, str]]:
        meta = pod["metadata"]
        try:
            claim = self._client.get("ResourceClaim", name, meta["namespace"])
        except ApiError as error:
            raise ClaimError(f"resource claim {name}: {error.message}") from error
        status = claim.get("status", {})
        if "allocation" not in status:
            raise ClaimError(f"resource claim {name} is not allocated")
        if meta["uid"] not in {one["uid"] for one in status.get("reservedFor", [])}:
            raise ClaimError(f"resource claim {name} is not reserved for this pod")
        result = []
        for given in status["allocation"].get("devices", {}).get("results", []):
            if given["driver"] != DRIVER or given["pool"] != self._node:
                raise ClaimError(
                    f"resource claim {name}: no driver {given['driver']} for pool "
                    f"{given['pool']} on node {self._node}"
                )
            self._hold(given["device"], claim["metadata"]["uid"], meta["uid"], name)
            # "first-available/sub" names a request and the alternative that was taken.
            result.append((given["request"].partition("/")[0], given["device"]))
        return result

    def _hold(self, device: str, claim: str, pod: str, name: str) -> None:
        with self._lock:
            holder, pods = self._held.setdefault(device, (claim, set()))
            if holder != claim:
                raise ClaimError(f"resource claim {name}: {device} is still held by claim {holder}")
            pods.add(pod)

    def release(self, pod: str) -> None:
        """Forget that a pod uses devices; a device that nobody uses is free for another claim."""
        with self._lock:
            for device, (_, pods) in list(self._held.items()):
                pods.discard(pod)
                if not pods:
                    del self._held[device]


def devices_for(container: Document, prepared: dict[tuple[str, str], list[str]]) -> dict[str, str]:
    """The variables of a container that uses claims."""
    devices: list[str] = []
    for one in container.get("resources", {}).get("claims", []):
        for (claim, request), names in prepared.items():
            if claim == one["name"] and one.get("request", request) == request:
                devices += names
    return {VARIABLE: ",".join(devices)} if devices else {}
