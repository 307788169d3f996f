"""Nodes in the API: registration, the Ready condition, Leases; and the pods that are bound to them.

A Node that is applied with its status keeps it. A node that was once taken for dead needs its Ready
condition patched, a renewed Lease alone does not bring it back.
"""

from __future__ import annotations

import http.client
import sys
import threading
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Final

from tests.controlplane.client import (
    MERGE,
    STRATEGIC,
    ApiError,
    Client,
    Document,
    path_of,
)

LEASES: Final = "kube-node-lease"
#: Conditions besides Ready that a healthy node has, all "False".
PRESSURES: Final = ("MemoryPressure", "DiskPressure", "PIDPressure")
RETRY_SECONDS: Final = 0.5


def now() -> str:
    """The present time as Kubernetes writes it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def say(text: str) -> None:
    """A line in the agent's log."""
    print(
        f"{datetime.now(UTC).isoformat(timespec='milliseconds')} {text}",
        file=sys.stderr,
        flush=True,
    )


def register(client: Client, document: Document) -> None:
    """Make or renew a Node, with its status and a Ready condition."""
    full = {**document, "status": {**document["status"], "conditions": _healthy()}}
    try:
        # A Node keeps the status that it is made with, so one request is enough.
        client.create(full)
    except ApiError as error:
        if error.status != 409:
            raise
        client.apply(document)
        client.apply(full, part="status")


def _healthy() -> list[Document]:
    stamp = now()
    conditions = [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]
    conditions += [{"type": name, "status": "False", "reason": "Fine"} for name in PRESSURES]
    times = {"lastHeartbeatTime": stamp, "lastTransitionTime": stamp}
    return [{**one, **times, "message": "the test node agent runs"} for one in conditions]


def revive(client: Client, node: Document) -> None:
    """Patch the Ready condition of a node that was taken for dead."""
    for condition in node["status"].get("conditions", []):
        if condition["type"] == "Ready" and condition["status"] == "True":
            return
    path = f"{path_of('Node', None, node['metadata']['name'])}/status"
    client.call("PATCH", path, {"status": {"conditions": _healthy()}}, content_type=STRATEGIC)


def renew(client: Client, name: str, seconds: float) -> None:
    """Renew a node's Lease, or make it."""
    stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    lease: Document = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "namespace": LEASES},
        "spec": {
            "holderIdentity": name,
            "leaseDurationSeconds": max(1, round(seconds * 4)),
            "renewTime": stamp,
        },
    }
    try:
        client.call(
            "PATCH", path_of("Lease", LEASES, name), {"spec": lease["spec"]}, content_type=MERGE
        )
    except ApiError as error:
        if error.status != 404:
            raise
        client.create(lease, LEASES)


def heartbeat(
    client: Client, names: Iterable[str], seconds: float, stopped: threading.Event
) -> None:
    """Renew the Leases of *names* until *stopped*."""
    wanted = list(names)
    while not stopped.wait(seconds):
        try:
            for name in wanted:
                renew(client, name, seconds)
                revive(client, client.get("Node", name))
        except (ApiError, OSError, http.client.HTTPException) as error:
            say(f"heartbeat: {error}")


def follow_pods(
    client: Client,
    selector: str,
    on_pod: Callable[[str, Document], None],
    on_list: Callable[[set[str]], None],
    stopped: threading.Event,
) -> None:
    """Hand on every pod that matches a field selector, as a watch does, until *stopped*.

    *on_list* gets the uids of all pods there are, each time the watch begins anew.
    """
    path = "/api/v1/pods"
    query = {"fieldSelector": selector} if selector else {}
    while not stopped.is_set():
        try:
            listed = client.call("GET", path, query=query)
            for pod in listed["items"]:
                on_pod("MODIFIED", pod)
            on_list({pod["metadata"]["uid"] for pod in listed["items"]})
            version = listed["metadata"]["resourceVersion"]
            while not stopped.is_set():
                bookmarks = {"resourceVersion": version, "allowWatchBookmarks": "true"}
                for event in client.watch(path, {**query, **bookmarks}):
                    version = event["object"]["metadata"]["resourceVersion"]
                    if event["type"] != "BOOKMARK":
                        on_pod(event["type"], event["object"])
        except (ApiError, OSError, http.client.HTTPException, ValueError) as error:
            if stopped.is_set():
                return
            say(f"watch of pods: {error}; listing again")
            time.sleep(RETRY_SECONDS)
