"""Subtypes of ``K8s`` about operators that a recipe could collide with: Slinky, MariaDB, MongoDB, and the
default storage class that their databases would use.

They are evidence of declared things, not of health. Each says how sure it is in ``collection-state``;
`unknown` is what every failure gives, with its reason in the snapshot, and no count is ever 0 because a
list could not be read. Only names, references and booleans are taken: no status, no secrets, no free
configuration.

Source: recipe spec 8.3 (keys).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from aicr.collectors.readings import Collected, Document, Scalar, item
from aicr.errors import NOT_FOUND, AicrError
from aicr.kube.discovery import group_of
from aicr.kube.kinds import Resource
from aicr.kube.reader import Reader

SLINKY: Final = "slinky.slurm.net"
#: Kinds that belong to a Controller: plural → kind.
SLINKY_CHILDREN: Final = {"nodesets": "NodeSet", "loginsets": "LoginSet", "restapis": "RestApi"}
ACCOUNTINGS: Final = "accountings"
#: Subtype → group and plural of an operator's main kind.
DATABASES: Final = {
    "mariadb-operator": ("k8s.mariadb.com", "mariadbs"),
    "percona-server-mongodb": ("psmdb.percona.com", "perconaservermongodbs"),
}
STORAGE_CLASSES: Final = "storageclasses.storage.k8s.io"
DEFAULT_CLASS: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)

STATE: Final = "collection-state"
ABSENT: Final = "absent"
DETECTED: Final = "detected"
API_DETECTED: Final = "api-detected"
CRS_DETECTED: Final = "crs-detected"
UNSUPPORTED: Final = "unsupported-multicluster"
UNKNOWN: Final = "unknown"


async def add(found: Collected, cluster: Reader) -> None:
    """Add all subtypes of this module to a ``K8s`` measurement."""
    await asyncio.gather(
        _add_slinky(found, cluster),
        _add_storage_class(found, cluster),
        *(_add_database(found, cluster, name) for name in DATABASES),
    )


async def _resource(cluster: Reader, group: str, plural: str) -> Resource | None:
    """The kind of a plural, None if the server says that it has none."""
    try:
        return await cluster.resource(f"{plural}.{group}")
    except AicrError as error:
        if error.code != NOT_FOUND:
            raise
        return None


async def _add_database(found: Collected, cluster: Reader, name: str) -> None:
    group, plural = DATABASES[name]
    data: dict[str, Scalar] = {}
    try:
        resource = await _resource(cluster, group, plural)
        if resource is None:
            catalogue = await cluster.discovery.catalogue()
            groups = {group_of(served) for served in catalogue.served}
            data |= {STATE: API_DETECTED if group in groups else ABSENT, "api-available": False}
        else:
            data |= {"api-available": True, "api-version": resource.version}
            present = await cluster.list(resource)
            data[STATE] = CRS_DETECTED if present else API_DETECTED
    except AicrError as error:
        data[STATE] = UNKNOWN
        found.lacks(name, error)
    found.add(name, data)


async def _add_storage_class(found: Collected, cluster: Reader) -> None:
    try:
        classes = await cluster.list(STORAGE_CLASSES)
    except AicrError as error:
        found.add("default-storage-class", {STATE: UNKNOWN})
        found.lacks("default-storage-class", error)
        return
    names = sorted(_name(one) for one in classes if is_default_class(one))
    data: dict[str, Scalar] = {STATE: DETECTED if names else ABSENT, "default-count": len(names)}
    if names:
        data["default-classes"] = ",".join(names)
    found.add("default-storage-class", data)


def is_default_class(storage_class: Mapping[str, Any]) -> bool:
    """Whether a StorageClass is marked as the default one."""
    annotations = (storage_class.get("metadata") or {}).get("annotations") or {}
    return any(annotations.get(key) == "true" for key in DEFAULT_CLASS)


async def _add_slinky(found: Collected, cluster: Reader) -> None:
    data: dict[str, Scalar] = {}
    listed: list[Document] = []
    try:
        resource = await _resource(cluster, SLINKY, "controllers")
        if resource is None:
            found.add("slinky-slurm", {"api-available": False, "detected": False, STATE: ABSENT})
            return
        data |= {"api-available": True, "api-version": resource.version}
        controllers = await cluster.list(resource)
        state = {0: ABSENT, 1: DETECTED}.get(len(controllers), UNSUPPORTED)
        data |= {
            "controller-count": len(controllers),
            "detected": bool(controllers),
            STATE: state,
        }
        if state == DETECTED:
            listed = [controller_item(controllers[0], resource.version)]
    except AicrError as error:
        data[STATE] = UNKNOWN
        found.lacks("slinky-slurm", error)
        found.add("slinky-slurm", data)
        return
    if listed:
        try:
            children = await _children(cluster, controllers[0])
        except AicrError as error:
            found.lacks("slinky-slurm.nodeset-count", error)
        else:
            listed += children
            kinds = [child["context"]["kind"] for child in children]
            for kind in (*SLINKY_CHILDREN.values(), "Accounting"):
                data[f"{kind.lower()}-count"] = kinds.count(kind)
    found.add("slinky-slurm", data, items=listed)


async def _children(cluster: Reader, controller: Mapping[str, Any]) -> list[Document]:
    """Items of what refers to *controller*; raises if any of it cannot be told."""
    found: list[Document] = []
    owner = identifier("Controller", controller)
    namespace, name = _namespace(controller), _name(controller)
    for plural, kind in SLINKY_CHILDREN.items():
        resource = await cluster.resource(f"{plural}.{SLINKY}")
        for child in await cluster.list(resource, namespace=namespace):
            if _reference(child, "controllerRef") == name:
                found.append(child_item(kind, child, resource.version, owner))
    wanted = _reference(controller, "accountingRef")
    if wanted:
        resource = await cluster.resource(f"{ACCOUNTINGS}.{SLINKY}")
        accounting = await cluster.get(resource, wanted, namespace=namespace)
        found.append(child_item("Accounting", accounting, resource.version, owner))
    return found


def identifier(kind: str, document: Mapping[str, Any]) -> str:
    """``<kind>/<namespace>/<name>``, by which an item is addressed."""
    return f"{kind.lower()}/{_namespace(document)}/{_name(document)}"


def controller_item(controller: Mapping[str, Any], version: str) -> Document:
    """The item of a Controller."""
    spec = controller.get("spec") or {}
    data: dict[str, Scalar] = {
        "external": spec.get("external") is True,
        "accounting-ref-present": bool(_reference(controller, "accountingRef")),
    }
    if spec.get("clusterName"):
        data["cluster-name"] = str(spec["clusterName"])
    return item(_identity("Controller", controller, version), data)


def child_item(kind: str, document: Mapping[str, Any], version: str, owner: str) -> Document:
    """The item of something that belongs to a Controller."""
    spec = document.get("spec") or {}
    data: dict[str, Scalar] = {}
    if kind == "NodeSet":
        enabled = (spec.get("partition") or {}).get("enabled")
        if isinstance(enabled, bool):
            data["partition-enabled"] = enabled
    elif kind == "Accounting":
        data["external"] = spec.get("external") is True
    return item({**_identity(kind, document, version), "controller-id": owner}, data)


def _identity(kind: str, document: Mapping[str, Any], version: str) -> dict[str, str]:
    return {
        "id": identifier(kind, document),
        "kind": kind,
        "namespace": _namespace(document),
        "name": _name(document),
        "api-version": version,
    }


def _reference(document: Mapping[str, Any], field: str) -> str:
    reference = (document.get("spec") or {}).get(field) or {}
    return str(reference.get("name") or "") if isinstance(reference, Mapping) else ""


def _name(document: Mapping[str, Any]) -> str:
    return str((document.get("metadata") or {}).get("name") or "")


def _namespace(document: Mapping[str, Any]) -> str:
    return str((document.get("metadata") or {}).get("namespace") or "")
