"""A cluster in memory for tests of runs: objects, watches, and a node that plays Jobs by script.

It is the port of `aicr.kube.port` as far as runs use it. What a Job does is a `Play`; faults are
scripted with `fail`. Nothing takes time: what waits is woken by changes.
"""

from __future__ import annotations

import asyncio
import copy
import itertools
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from aicr.errors import AicrError, not_found
from aicr.kube.kinds import Resource
from aicr.kube.port import Cluster
from aicr.kube.watching import ADDED, DELETED, MODIFIED, SYNCED, Event

Document = dict[str, Any]
#: `list` is a method of the class below.
Names = list[str]


@dataclass
class Play:
    """What a Job's pod does: the states of its container one after another, its log, its end."""

    exit_code: int = 0
    message: str = ""
    log: tuple[str, ...] = ()
    #: Waits for this before it ends.
    until: asyncio.Event | None = None
    #: A waiting state that never ends, instead of running.
    stuck: Document | None = None
    #: No pod is made at all; the Job gets these events.
    refused: str = ""
    #: What is warned about the pod.
    warned: str = ""
    reason: str = "Completed"


@dataclass
class FakeCluster:
    """See the module."""

    plays: dict[str, Play] = field(default_factory=dict)
    objects: dict[tuple[str, str, str], Document] = field(default_factory=dict)
    logs_of: dict[str, list[str]] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    faults: list[tuple[str, AicrError, list[int]]] = field(default_factory=list)
    running: int = 0
    most_running: int = 0
    _watchers: list[tuple[str, str, asyncio.Queue[Event[Document]]]] = field(default_factory=list)
    _uids: Any = field(default_factory=lambda: itertools.count(1))
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)

    # -- faults

    def fail(self, call: str, error: AicrError, times: int = 10**6) -> None:
        """Answer calls that start with *call*, such as ``apply Job``, with an error."""
        self.faults.append((call, error, [times]))

    def _called(self, call: str) -> None:
        self.calls.append(call)
        for start, error, left in self.faults:
            if call.startswith(start) and left[0] > 0:
                left[0] -= 1
                raise error

    # -- the port

    async def get(
        self, kind: Resource, name: str, *, namespace: str = "", subresource: str = ""
    ) -> Document:
        """One object."""
        del subresource
        self._called(f"get {kind.kind} {name}")
        if kind.kind == "Node":
            return {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
        found = self.objects.get((kind.kind, namespace, name))
        if found is None:
            raise not_found(f'{kind.kind} "{name}" not found')
        return copy.deepcopy(found)

    async def list(
        self, kind: Resource, *, namespace: str = "", labels: Any = None, fields: Any = None
    ) -> list[Document]:
        """All that match."""
        self._called(f"list {kind.kind}")
        return [
            copy.deepcopy(one)
            for (kind_, place, _), one in sorted(self.objects.items())
            if kind_ == kind.kind
            and (not namespace or place == namespace)
            and _matches(one, labels)
            and _has(one, fields)
        ]

    async def watch(
        self, kind: Resource, *, namespace: str = "", labels: Any = None, fields: Any = None
    ) -> AsyncIterator[Event[Document]]:
        """What is there, then changes."""
        del fields
        self._called(f"watch {kind.kind}")
        queue: asyncio.Queue[Event[Document]] = asyncio.Queue()
        selector = labels if isinstance(labels, str) else ""
        self._watchers.append((kind.kind, selector, queue))
        for one in await self.list(kind, namespace=namespace, labels=labels):
            yield _event(ADDED, one)
        yield Event(SYNCED, ("", ""), "", None)
        while True:
            yield await queue.get()

    async def apply(
        self,
        document: Mapping[str, Any],
        *,
        field_manager: str = "",
        namespace: str = "",
        subresource: str = "",
        force: bool = False,
        dry_run: bool = False,
    ) -> Document:
        """Store it; a Job begins to play."""
        del namespace, subresource, force, dry_run
        made = copy.deepcopy(dict(document))
        metadata = made["metadata"]
        self._called(f"apply {made['kind']} {metadata['name']}")
        metadata.setdefault("uid", f"uid-{next(self._uids)}")
        metadata["managedBy"] = field_manager
        self.put(made)
        if made["kind"] == "Job":
            self._tasks.append(asyncio.create_task(self._play(made)))
        return copy.deepcopy(made)

    async def delete(
        self,
        kind: Resource,
        name: str,
        *,
        namespace: str = "",
        uid: str = "",
        resource_version: str = "",
        propagation: str = "",
        grace_seconds: int | None = None,
        dry_run: bool = False,
    ) -> None:
        """Remove it, and the pods of a Job."""
        del resource_version, dry_run
        self._called(f"delete {kind.kind} {name} {propagation} {grace_seconds}".strip())
        found = self.objects.get((kind.kind, namespace, name))
        if found is None:
            raise not_found(f'{kind.kind} "{name}" not found')
        if uid and found["metadata"]["uid"] != uid:
            raise AicrError("CONFLICT", "another object")
        self.remove(found)
        if kind.kind == "Job":
            for pod in await self.list(_POD, namespace=namespace):
                if pod["metadata"]["ownerReferences"][0]["uid"] == found["metadata"]["uid"]:
                    self.remove(pod)

    async def logs(self, name: str, *, namespace: str, container: str = "", **_: Any) -> bytes:
        """What a pod has written."""
        self._called(f"logs {name}")
        return "".join(f"{line}\n" for line in self.logs_of.get(name, [])).encode()

    async def follow_logs(
        self, name: str, *, namespace: str, container: str = ""
    ) -> AsyncIterator[bytes]:
        """The same, line by line."""
        self._called(f"follow {name}")
        for line in self.logs_of.get(name, []):
            yield line.encode()

    # -- state

    @property
    def port(self) -> Cluster:
        """The cluster as runs take it: the methods that they never call are not there."""
        return cast(Cluster, self)

    def put(self, document: Document) -> None:
        """Store a document and tell watches."""
        key = _key(document)
        known = key in self.objects
        self.objects[key] = document
        self._tell(MODIFIED if known else ADDED, document)

    def remove(self, document: Document) -> None:
        """Remove a document and tell watches."""
        self.objects.pop(_key(document), None)
        self._tell(DELETED, document)

    def names(self, kind: str) -> Names:
        """Names of the objects of a kind."""
        return sorted(name for found, _, name in self.objects if found == kind)

    def _tell(self, type_: str, document: Document) -> None:
        for kind, selector, queue in self._watchers:
            if kind == document["kind"] and _matches(document, selector):
                queue.put_nowait(_event(type_, copy.deepcopy(document)))

    # -- the node

    async def _play(self, job: Document) -> None:
        name = job["metadata"]["labels"]["aicr.run/validator"]
        play = self.plays.get(name, Play())
        if play.refused:
            self._event_of(job, "FailedCreate", play.refused)
            return
        pod = self._pod(job)
        self.logs_of[pod["metadata"]["name"]] = list(play.log)
        if play.warned:
            self._event_of(pod, "FailedMount", play.warned)
        if play.stuck is not None:
            self._state(pod, {"waiting": play.stuck}, "Pending")
            return
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        self._state(pod, {"running": {"startedAt": "2026-01-02T03:04:05Z"}}, "Running")
        await asyncio.sleep(0)
        if play.until is not None:
            await play.until.wait()
        self.running -= 1
        end = {
            "exitCode": play.exit_code,
            "reason": play.reason,
            "message": play.message,
            "startedAt": "2026-01-02T03:04:05Z",
            "finishedAt": "2026-01-02T03:04:07Z",
        }
        self._state(pod, {"terminated": end}, "Succeeded" if not play.exit_code else "Failed")
        done = copy.deepcopy(job)
        type_ = "Failed" if play.exit_code else "Complete"
        done["status"] = {"conditions": [{"type": type_, "status": "True"}]}
        if _key(done) in self.objects:
            self.put(done)

    def _event_of(self, document: Document, reason: str, message: str) -> None:
        metadata = document["metadata"]
        event = {
            "kind": "Event",
            "metadata": {"name": f"{metadata['name']}-e", "namespace": metadata["namespace"]},
            "involvedObject": {"uid": metadata["uid"]},
            "type": "Warning",
            "reason": reason,
            "message": message,
        }
        self.put(event)

    def _pod(self, job: Document) -> Document:
        metadata = job["metadata"]
        template = job["spec"]["template"]
        return {
            "kind": "Pod",
            "metadata": {
                "name": f"{metadata['name']}-x",
                "namespace": metadata["namespace"],
                "uid": f"uid-{next(self._uids)}",
                "labels": dict(template["metadata"]["labels"]),
                "ownerReferences": [{"kind": "Job", "uid": metadata["uid"]}],
            },
            "spec": {**template["spec"], "nodeName": "node-1"},
        }

    def _state(self, pod: Document, state: Document, phase: str) -> None:
        found = copy.deepcopy(pod)
        found["status"] = {
            "phase": phase,
            "containerStatuses": [{"name": "validator", "state": state}],
        }
        self.put(found)


_POD = Resource("", "v1", "pods", "Pod", True)


def _key(document: Document) -> tuple[str, str, str]:
    metadata = document["metadata"]
    return document["kind"], metadata.get("namespace", ""), metadata["name"]


def _event(type_: str, document: Document) -> Event[Document]:
    _, namespace, name = _key(document)
    return Event(type_, (namespace, name), document["metadata"].get("uid", ""), document)


def _matches(document: Document, labels: Any) -> bool:
    stated = document["metadata"].get("labels") or {}
    if isinstance(labels, str):
        labels = dict(part.split("=", 1) for part in labels.split(",") if part)
    return all(stated.get(key) == value for key, value in (labels or {}).items())


def _has(document: Document, fields: Any) -> bool:
    for path, value in (fields or {}).items():
        found: Any = document
        for key in path.split("."):
            found = (found or {}).get(key)
        if found != value:
            return False
    return True
