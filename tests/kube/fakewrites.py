"""How the fake API server creates, changes and deletes single objects."""

from __future__ import annotations

import copy
import json
import uuid
from typing import TYPE_CHECKING, Any

from aiohttp import web

from aicr.kube.kinds import Resource

if TYPE_CHECKING:
    from tests.kube.fakeapi import FakeApi

Document = dict[str, Any]


def _refuse(code: int, reason: str, message: str, **more: Any) -> web.Response:
    from tests.kube.fakeapi import refuse

    return refuse(code, reason, message, **more)


async def answer(
    api: FakeApi, request: web.Request, resource: Resource, namespace: str, name: str, sub: str
) -> web.Response:
    """Answer a request about one object."""
    table = api.objects.setdefault(resource.qualified, {})
    found = table.get((namespace, name))
    body = await request.read()
    change = json.loads(body) if body else {}
    dry = request.query.get("dryRun") == "All"
    if request.method == "POST":
        return await _create(api, resource, namespace, change, dry)
    applied = request.method == "PATCH" and "apply-patch" in request.content_type
    if found is None and applied:
        manager = request.query["fieldManager"]
        owned = dict.fromkeys(leaves(_bare(change)), manager)
        return await _create(api, resource, namespace, change, dry, owned)
    if found is None:
        message = f'{resource.qualified} "{name}" not found'
        details = {"name": name, "kind": resource.plural}
        return _refuse(404, "NotFound", message, details=details)
    if request.method == "GET":
        return web.json_response(_public(found))
    if request.method == "DELETE":
        return await _delete(api, resource, found, change)
    if applied:
        new, clash = _apply(found, change, request.query["fieldManager"], "force" in request.query)
        if clash:
            causes = [{"reason": "FieldManagerConflict", "field": f".{path}"} for path in clash]
            message = f"Apply failed with {len(clash)} conflict(s)"
            return _refuse(409, "Conflict", message, details={"name": name, "causes": causes})
    elif request.method == "PATCH":
        new = _patched(found, change, request.content_type)
    else:
        new = {**change, "owners": found.get("owners", {})}
        new["metadata"] = {**found["metadata"], **change["metadata"]}
    asked = (
        (change.get("metadata") or {}).get("resourceVersion") if isinstance(change, dict) else ""
    )
    if asked and asked != found["metadata"]["resourceVersion"]:
        message = "the object has been modified; please apply your changes to the latest version"
        return _refuse(409, "Conflict", message, details={"name": name})
    if sub == "status":
        new = {**found, "status": new.get("status", {})}
    if dry or new == found:
        return web.json_response(_public(new))
    return web.json_response(_public(await api.store("MODIFIED", resource, new)))


async def _create(
    api: FakeApi,
    resource: Resource,
    namespace: str,
    document: Document,
    dry: bool,
    owners: dict[str, str] | None = None,
) -> web.Response:
    document = copy.deepcopy(document)
    metadata = document.setdefault("metadata", {})
    if "generateName" in metadata and not metadata.get("name"):
        metadata["name"] = f"{metadata['generateName']}{uuid.uuid4().hex[:5]}"
    name = metadata.get("name")
    if not name:
        return _refuse(422, "Invalid", f"{resource.kind} is invalid: metadata.name: Required value")
    if (namespace, name) in api.objects.setdefault(resource.qualified, {}):
        message = f'{resource.qualified} "{name}" already exists'
        return _refuse(409, "AlreadyExists", message, details={"name": name})
    if resource.namespaced:
        metadata["namespace"] = namespace
    metadata |= {"uid": str(uuid.uuid4()), "creationTimestamp": "2026-11-30T00:00:00Z"}
    document["owners"] = owners or {}
    if dry:
        return web.json_response(_public(document), status=201)
    stored = await api.store("ADDED", resource, document)
    return web.json_response(_public(stored), status=201)


async def _delete(
    api: FakeApi, resource: Resource, found: Document, options: Document
) -> web.Response:
    metadata = found["metadata"]
    for field, expected in (options.get("preconditions") or {}).items():
        if metadata[field] != expected:
            message = (
                f"Precondition failed: {field} in precondition: {expected}, "
                f"{field} in object meta: {metadata[field]}"
            )
            return _refuse(409, "Conflict", message, details={"name": metadata["name"]})
    if "dryRun" in options:
        return web.json_response(_public(found))
    if metadata.get("finalizers"):
        marked = {**found, "metadata": {**metadata, "deletionTimestamp": "2026-11-30T00:00:01Z"}}
        return web.json_response(_public(await api.store("MODIFIED", resource, marked)))
    await api.store("DELETED", resource, found)
    return web.json_response({"kind": "Status", "apiVersion": "v1", "status": "Success"})


def _public(document: Document) -> Document:
    return {key: value for key, value in document.items() if key != "owners"}


def _bare(change: Document) -> Document:
    metadata = {
        k: v for k, v in change.get("metadata", {}).items() if k not in {"name", "namespace"}
    }
    rest = {k: v for k, v in change.items() if k not in {"apiVersion", "kind", "metadata"}}
    return {**rest, "metadata": metadata}


def leaves(value: Document, prefix: str = "") -> dict[str, Any]:
    """Dotted path → value of everything that is not a mapping."""
    found: dict[str, Any] = {}
    for key, inner in value.items():
        path = f"{prefix}.{key}" if prefix else key
        found |= leaves(inner, path) if isinstance(inner, dict) else {path: inner}
    return found


def _merged(old: Any, new: Any) -> Any:
    if not isinstance(new, dict):
        return copy.deepcopy(new)
    result = dict(old) if isinstance(old, dict) else {}
    for key, value in new.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = _merged(result.get(key), value)
    return result


def _apply(
    found: Document, change: Document, manager: str, force: bool
) -> tuple[Document, list[str]]:
    owners, wanted, present = dict(found["owners"]), leaves(_bare(change)), leaves(found)
    clash = [
        path
        for path, value in wanted.items()
        if owners.get(path, manager) != manager and present.get(path) != value
    ]
    if clash and not force:
        return found, clash
    new = _merged(found, _bare(change))
    gone = [path for path, owner in owners.items() if owner == manager and path not in wanted]
    for path in gone:
        del owners[path]
        parent = new
        *parts, last = path.split(".")
        for part in parts:
            parent = parent[part]
        parent.pop(last, None)
    new["owners"] = owners | dict.fromkeys(wanted, manager)
    return new, []


def _patched(found: Document, change: Any, content_type: str) -> Document:
    if content_type != "application/json-patch+json":
        merged: Document = _merged(found, change)
        return merged
    new = copy.deepcopy(found)
    for operation in change:
        parent: Any = new
        *parts, last = operation["path"].strip("/").split("/")
        for part in parts:
            parent = parent.setdefault(part, {})
        if operation["op"] == "remove":
            del parent[last]
        else:
            parent[last] = operation["value"]
    return new
