"""A small API server on loopback, over HTTP: storage, versions, watches, discovery, and faults on
demand.

It keeps to what the real one does where our client can tell the difference; the same contract class
runs against both. Faults are scripted: an answer for the next requests that match, history forgotten
(410), all connections cut.
"""

from __future__ import annotations

import asyncio
import base64
import copy
import functools
import json
import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

from aiohttp import web
from tests.kube import fakewrites

from aicr.kube import kinds
from aicr.kube.kinds import Resource

Document = dict[str, Any]
Respond = Callable[[web.Request], Awaitable[web.StreamResponse]]

WIDGET = Resource(
    *("example.test", "v1", "widgets", "Widget", True, "widget", ("wd",)),
    verbs=("get", "list", "watch", "create", "update", "patch", "delete"),
    subresources=("status",),
)
SERVED = [*kinds.WELL_KNOWN.values(), WIDGET]


def status_document(code: int, reason: str, message: str, **more: Any) -> Document:
    """A Status as the API server writes it."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
        **more,
    }


def refuse(code: int, reason: str, message: str, **more: Any) -> web.Response:
    """An answer that is a Status."""
    return web.json_response(status_document(code, reason, message, **more), status=code)


@dataclass
class FakeApi:
    """The server's state. `handle` answers; tests look at `seen` and use the fault methods."""

    aggregated: bool = True
    stale: set[str] = field(default_factory=set)
    resources: list[Resource] = field(default_factory=lambda: list(SERVED))
    version: int = 1
    oldest: int = 0
    objects: dict[str, dict[tuple[str, str], Document]] = field(default_factory=dict)
    history: list[tuple[int, str, str, Document]] = field(default_factory=list)
    snapshots: dict[str, list[Document]] = field(default_factory=dict)
    seen: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    scripted: list[tuple[re.Pattern[str], Respond]] = field(default_factory=list)
    logs: dict[str, list[bytes]] = field(default_factory=dict)
    streaming_lists: bool = False
    bookmarks: bool = True
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    generation: int = 0

    # Faults

    def next(self, pattern: str, answer: web.Response | Respond, times: int = 1) -> None:
        """Give *answer* to the next *times* requests whose ``METHOD /path?query`` matches."""

        async def respond(request: web.Request) -> web.StreamResponse:
            assert isinstance(answer, web.Response)
            # A response object serves one request.
            return web.Response(status=answer.status, headers=answer.headers, body=answer.body)

        chosen = respond if isinstance(answer, web.Response) else answer
        self.scripted += [(re.compile(pattern), chosen)] * times

    async def forget_history(self) -> None:
        """Compact: watches and continued lists from before now get 410."""
        self.oldest = self.version
        self.history.clear()
        self.snapshots.clear()

    async def cut(self) -> None:
        """Break every watch in the middle."""
        async with self.changed:
            self.generation += 1
            self.changed.notify_all()

    # Storage

    async def store(self, type_: str, resource: Resource, document: Document) -> Document:
        """Record a change under a new version."""
        self.version += 1
        document = copy.deepcopy(document)
        document["metadata"]["resourceVersion"] = str(self.version)
        key = (document["metadata"].get("namespace", ""), document["metadata"]["name"])
        table = self.objects.setdefault(resource.qualified, {})
        if type_ == "DELETED":
            table.pop(key, None)
        else:
            table[key] = document
        self.history.append((self.version, type_, resource.qualified, document))
        async with self.changed:
            self.changed.notify_all()
        return document

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer one request."""
        line = f"{request.method} {request.path_qs}"
        self.seen.append(line)
        self.headers.append(dict(request.headers))
        for position, (pattern, respond) in enumerate(self.scripted):
            if pattern.search(line):
                del self.scripted[position]
                return await respond(request)
        if request.path == "/version":
            return web.json_response({"major": "1", "minor": "36", "gitVersion": "v1.36.2"})
        if request.path in {"/api", "/apis"} or self._legacy_group(request.path):
            return self._discovery(request)
        return await self._resource(request)

    def _legacy_group(self, path: str) -> bool:
        return re.fullmatch(r"/api/v1|/apis/[^/]+/[^/]+", path) is not None

    def _discovery(self, request: web.Request) -> web.Response:
        core = request.path.startswith("/api") and not request.path.startswith("/apis")
        mine = [found for found in self.resources if (found.group == "") == core]
        if request.path in {"/api", "/apis"}:
            if self.aggregated and "as=APIGroupDiscoveryList" in request.headers["Accept"]:
                return web.json_response(aggregated(mine, self.stale))
            return web.json_response(legacy_root(mine, core, self.stale))
        group_version = request.path.removeprefix("/apis/").removeprefix("/api/")
        if group_version in self.stale:
            return web.Response(status=503, text="error trying to reach service")
        return web.json_response(legacy_group(mine, group_version))

    async def _resource(self, request: web.Request) -> web.StreamResponse:
        match = re.fullmatch(
            r"/(?:api|apis/(?P<group>[^/]+))/(?P<version>[^/]+)(?:/namespaces/(?P<ns>[^/]+)(?=/))?"
            r"/(?P<plural>[^/]+)(?:/(?P<name>[^/]+))?(?:/(?P<sub>.+))?",
            request.path,
        )
        resource = match and self._find(match["group"] or "", match["version"], match["plural"])
        if not match or not resource:
            return web.Response(status=404, text="404 page not found\n")
        namespace, name, sub = match["ns"] or "", match["name"] or "", match["sub"] or ""
        if sub == "log":
            return await self._log(request, name)
        if request.method == "GET" and request.query.get("watch") == "true":
            return await self._watch(request, resource, namespace)
        if request.method == "GET" and not name:
            return self._list(request, resource, namespace)
        return await fakewrites.answer(self, request, resource, namespace, name, sub)

    def _find(self, group: str, version: str, plural: str) -> Resource | None:
        for found in self.resources:
            if (found.group, found.version, found.plural) == (group, version, plural):
                return found
        return None

    def matching(self, resource: Resource, namespace: str, query: Any) -> list[Document]:
        """Objects in the order of keys that selectors of equality leave."""
        table = self.objects.get(resource.qualified, {})
        return [
            table[key]
            for key in sorted(table)
            if (not namespace or key[0] == namespace) and selected(table[key], query)
        ]

    def _list(self, request: web.Request, resource: Resource, namespace: str) -> web.Response:
        token, limit = request.query.get("continue", ""), int(request.query.get("limit", "0"))
        start, version = 0, str(self.version)
        if token:
            snapshot, start = json.loads(base64.b64decode(token))
            if snapshot not in self.snapshots:
                return refuse(410, "Expired", "The provided continue parameter is too old")
            items, version = self.snapshots[snapshot], snapshot.split("/")[0]
        else:
            items = self.matching(resource, namespace, request.query)
            snapshot = f"{version}/{resource.qualified}/{namespace}/{request.query_string}"
            self.snapshots[snapshot] = items
        metadata: Document = {"resourceVersion": version}
        page = items[start : start + limit] if limit else items[start:]
        if limit and start + limit < len(items):
            mark = json.dumps([snapshot, start + limit]).encode()
            metadata["continue"] = base64.b64encode(mark).decode()
        bare = [{k: v for k, v in item.items() if k not in {"apiVersion", "kind"}} for item in page]
        kind = f"{resource.kind}List"
        return web.json_response(
            {"kind": kind, "apiVersion": resource.api_version, "metadata": metadata, "items": bare}
        )

    async def _watch(
        self, request: web.Request, resource: Resource, namespace: str
    ) -> web.StreamResponse:
        initial = request.query.get("sendInitialEvents") == "true"
        if initial and not self.streaming_lists:
            return refuse(422, "Invalid", "sendInitialEvents: Forbidden: not enabled")
        position = int(request.query.get("resourceVersion", "0") or 0)
        if position and position < self.oldest:
            return refuse(410, "Expired", f"too old resource version: {position} ({self.oldest})")
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        generation = self.generation
        if initial:
            position = self.version
            for document in self.matching(resource, namespace, request.query):
                await _line(response, "ADDED", document)
            await _line(response, "BOOKMARK", _bookmark(resource, position, end=True))
        until = asyncio.get_running_loop().time() + float(request.query["timeoutSeconds"])
        while asyncio.get_running_loop().time() < until:
            # What changes while lines are written is for the next round.
            upto = self.version
            for version, type_, qualified, document in list(self.history):
                if version <= position or qualified != resource.qualified:
                    continue
                place = document["metadata"].get("namespace", "")
                if (not namespace or place == namespace) and selected(document, request.query):
                    await _line(response, type_, document)
            if upto > position and self.bookmarks:
                await _line(response, "BOOKMARK", _bookmark(resource, upto))
            position = max(position, upto)
            async with self.changed:
                try:
                    async with asyncio.timeout_at(until):
                        await self.changed.wait_for(
                            functools.partial(self._moved, position, generation)
                        )
                except TimeoutError:
                    break
            if self.generation != generation:
                assert request.transport is not None
                request.transport.abort()
                break
            if position < self.oldest and position != self.oldest:
                expired = status_document(410, "Expired", "too old resource version")
                await _line(response, "ERROR", expired)
                break
        return response

    def _moved(self, position: int, generation: int) -> bool:
        return self.version > position or self.generation != generation

    async def _log(self, request: web.Request, name: str) -> web.StreamResponse:
        lines = self.logs.get(name)
        if lines is None:
            return refuse(404, "NotFound", f'pods "{name}" not found', details={"name": name})
        since = request.query.get("sinceTime", "").encode().rstrip(b"Z")
        if "tailLines" in request.query:
            lines = lines[len(lines) - int(request.query["tailLines"]) :]
        shown = [line for line in lines if line[:19] >= since[:19]]
        if request.query.get("timestamps") != "true":
            shown = [line.split(b" ", 1)[1] for line in shown]
        return web.Response(
            body=b"".join(line + b"\n" for line in shown), content_type="text/plain"
        )


async def _line(response: web.StreamResponse, type_: str, document: Document) -> None:
    # The layout of the API server: no spaces, the type first.
    event = {"type": type_, "object": document}
    await response.write(json.dumps(event, separators=(",", ":")).encode() + b"\n")


def _bookmark(resource: Resource, version: int, *, end: bool = False) -> Document:
    annotations = {"annotations": {"k8s.io/initial-events-end": "true"}} if end else {}
    metadata = {"resourceVersion": str(version), "creationTimestamp": None, **annotations}
    return {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata}


def selected(document: Document, query: Any) -> bool:
    """Whether equality selectors let *document* through."""
    labels = document["metadata"].get("labels") or {}
    for term in filter(None, query.get("labelSelector", "").split(",")):
        key, _, value = term.partition("=")
        if labels.get(key) != value:
            return False
    for term in filter(None, query.get("fieldSelector", "").split(",")):
        key, _, value = term.partition("=")
        found: Any = document
        for part in key.split("."):
            found = (found or {}).get(part)
        if found != value:
            return False
    return True


def aggregated(resources: list[Resource], stale: set[str]) -> Document:
    """An APIGroupDiscoveryList."""
    groups: dict[str, dict[str, list[Resource]]] = {}
    for found in resources:
        groups.setdefault(found.group, {}).setdefault(found.version, []).append(found)
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": [
            {
                "metadata": {"name": group, "creationTimestamp": None},
                "versions": [
                    {
                        "version": version,
                        "freshness": "Stale" if f"{group}/{version}" in stale else "Current",
                        "resources": [_aggregated(found) for found in members],
                    }
                    for version, members in versions.items()
                ],
            }
            for group, versions in groups.items()
        ],
    }


def _aggregated(found: Resource) -> Document:
    return {
        "resource": found.plural,
        "responseKind": {"group": "", "version": "", "kind": found.kind},
        "scope": "Namespaced" if found.namespaced else "Cluster",
        "singularResource": found.singular,
        "shortNames": list(found.short_names),
        "verbs": list(found.verbs),
        "subresources": [{"subresource": name, "verbs": ["get"]} for name in found.subresources],
    }


def legacy_root(resources: list[Resource], core: bool, stale: set[str]) -> Document:
    """An APIVersions or APIGroupList."""
    if core:
        return {"kind": "APIVersions", "versions": ["v1"]}
    groups: dict[str, list[str]] = {}
    for found in resources:
        versions = groups.setdefault(found.group, [])
        if found.api_version not in versions:
            versions.append(found.api_version)
    return {
        "kind": "APIGroupList",
        "groups": [
            {
                "name": name,
                "versions": [{"groupVersion": version} for version in versions],
                "preferredVersion": {"groupVersion": versions[0]},
            }
            for name, versions in groups.items()
        ],
    }


def legacy_group(resources: list[Resource], group_version: str) -> Document:
    """An APIResourceList."""
    entries = []
    for found in resources:
        if found.api_version == group_version:
            entry = {
                "name": found.plural,
                "singularName": found.singular,
                "namespaced": found.namespaced,
                "kind": found.kind,
                "verbs": list(found.verbs),
                "shortNames": list(found.short_names),
            }
            entries.append(entry)
            entries += [{**entry, "name": f"{found.plural}/{s}"} for s in found.subresources]
    return {"kind": "APIResourceList", "groupVersion": group_version, "resources": entries}


@asynccontextmanager
async def serving(handle: Respond, *, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """Serve on a free port of loopback; the address."""
    server = web.Server(cast("Any", handle))
    runner = web.ServerRunner(server, shutdown_timeout=0.2)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    try:
        port = runner.addresses[0][1]
        yield f"{'https' if tls else 'http'}://127.0.0.1:{port}"
    finally:
        await runner.cleanup()
