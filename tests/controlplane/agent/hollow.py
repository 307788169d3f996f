"""Hollow nodes: pods that are bound to them are said to run, and do not.

For scale, and for controllers that only look at status. What has to run must not land here: the
nodes carry a taint, and a Job's pod that tolerates it all the same is failed with a reason, because
a Job that "runs" for ever would hide a mistake in the test.

One agent serves any number of nodes, and keeps of a pod no more than its uid.
"""

from __future__ import annotations

import concurrent.futures
import http.client
import threading
from typing import Final

from tests.controlplane.agent import registration
from tests.controlplane.agent.settings import Cluster
from tests.controlplane.client import STRATEGIC, ApiError, Client, Document, path_of

#: Requests that are under way at once; more only queue in the API server.
WORKERS: Final = 8


class HollowNodes:
    """The agent of a group of hollow nodes."""

    def __init__(self, cluster: Cluster, nodes: list[Document], *, renew: bool) -> None:
        self._cluster, self._nodes, self._renew = cluster, nodes, renew
        self._addresses = {
            node["metadata"]["name"]: node["status"]["addresses"][0]["address"] for node in nodes
        }
        self._client: Client = cluster.client()
        self._answered: set[str] = set()
        self._pods = 0

    def run(self, stopped: threading.Event) -> None:
        """Register the nodes and look after them until *stopped*."""
        with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
            list(pool.map(lambda node: registration.register(self._client, node), self._nodes))
            if self._renew:
                threading.Thread(
                    target=registration.heartbeat,
                    args=(
                        self._client,
                        list(self._addresses),
                        self._cluster.lease_seconds,
                        stopped,
                    ),
                    daemon=True,
                ).start()
            threading.Thread(
                target=registration.follow_pods,
                args=(
                    self._client,
                    "spec.nodeName!=",
                    lambda kind, pod: self._on_pod(pool, kind, pod),
                    self._answered.intersection_update,
                    stopped,
                ),
                daemon=True,
            ).start()
            stopped.wait()

    def _on_pod(
        self, pool: concurrent.futures.ThreadPoolExecutor, kind: str, pod: Document
    ) -> None:
        if pod["spec"].get("nodeName") not in self._addresses:
            return
        uid = pod["metadata"]["uid"]
        if kind == "DELETED":
            self._answered.discard(uid)
        elif pod["metadata"].get("deletionTimestamp"):
            pool.submit(self._quietly, self._finalise, pod)
        elif uid not in self._answered and pod["status"].get("phase", "Pending") == "Pending":
            self._answered.add(uid)
            self._pods += 1
            pool.submit(self._quietly, self._answer, pod, self._pods)

    def _quietly(self, act: object, *arguments: object) -> None:
        try:
            act(*arguments)  # type: ignore[operator]
        except (ApiError, OSError, http.client.HTTPException) as error:
            registration.say(f"hollow: {error}")

    def _finalise(self, pod: Document) -> None:
        meta = pod["metadata"]
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": meta["uid"]}}
        self._client.delete("Pod", meta["name"], meta["namespace"], options)

    def _answer(self, pod: Document, number: int) -> None:
        meta = pod["metadata"]
        owners = {owner["kind"] for owner in meta.get("ownerReferences", [])}
        status = _failed() if "Job" in owners else _running(pod, number)
        status["hostIP"] = self._addresses[pod["spec"]["nodeName"]]
        path = f"{path_of('Pod', meta['namespace'], meta['name'])}/status"
        patch = {"metadata": {"uid": meta["uid"]}, "status": status}
        try:
            self._client.request("PATCH", path, patch, content_type=STRATEGIC)
        except BaseException:
            # Answered when it is listed again, as after a restart of the API server.
            self._answered.discard(meta["uid"])
            raise


def _failed() -> Document:
    return {
        "phase": "Failed",
        "reason": "HollowNode",
        "message": "a Job's pod has landed on a hollow node, where nothing runs; "
        "it must not tolerate the taint aicr.run/hollow",
    }


def _running(pod: Document, number: int) -> Document:
    stamp = registration.now()
    address = f"10.{128 + (number >> 16) % 64}.{(number >> 8) % 256}.{number % 256}"
    names = ("PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready")
    spec = pod["spec"]
    status: Document = {
        "phase": "Running",
        "startTime": stamp,
        "podIP": address,
        "podIPs": [{"ip": address}],
        "conditions": [
            {"type": name, "status": "True", "lastTransitionTime": stamp} for name in names
        ],
        "containerStatuses": [
            _container(one, {"running": {"startedAt": stamp}}) for one in spec["containers"]
        ],
    }
    if spec.get("initContainers"):
        done = {"exitCode": 0, "reason": "Completed", "startedAt": stamp, "finishedAt": stamp}
        status["initContainerStatuses"] = [
            _container(
                one,
                {"running": {"startedAt": stamp}}
                if one.get("restartPolicy") == "Always"
                else {"terminated": done},
            )
            for one in spec["initContainers"]
        ]
    return status


def _container(container: Document, state: Document) -> Document:
    return {
        "name": container["name"],
        "image": container["image"],
        "imageID": f"hollow://{container['image']}",
        "ready": True,
        "started": "running" in state,
        "restartCount": 0,
        "state": state,
    }
