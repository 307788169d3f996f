"""A raw pod, looked at: the few fields that the decision reads, with their types checked.

`view` keeps references into the document and copies nothing. A field of a wrong type means that the
object is no pod; the error says where. Everything that is not listed here is not looked at and passes
through. Source: preflight spec 2.3, 2.4.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from aicr.errors import AicrError, invalid

Document = Mapping[str, Any]
#: Key in an error's context: the object cannot be a pod, in contrast to a pod that is refused.
NOT_A_POD: Final = "notAPod"

_EMPTY_MAP: Final[dict[str, Any]] = {}
_EMPTY_LIST: Final[list[Any]] = []


@dataclass(slots=True)
class Pod:
    """What the decision reads of one pod; `document` is the whole of it."""

    document: Document
    name: str
    """``metadata.name``, else ``metadata.generateName``; may be empty."""
    namespace: str
    annotations: dict[str, str]
    spec: dict[str, Any]
    containers: list[dict[str, Any]]
    init_containers: list[dict[str, Any]]
    volumes: list[dict[str, Any]]
    claims: list[dict[str, Any]]


def view(document: object, namespace: str = "") -> Pod:
    """The pod *document*, created in *namespace* unless it names its own.

    Raises:
        AicrError: INVALID_REQUEST with `NOT_A_POD` in its context.
    """
    if type(document) is not dict:
        raise not_a_pod("", "a map", document)
    metadata = _map(document, "metadata", "metadata")
    spec = _map(document, "spec", "spec")
    annotations = _map(metadata, "annotations", "metadata.annotations")
    name = metadata.get("name") or metadata.get("generateName") or ""
    own = metadata.get("namespace") or namespace
    for value, path in ((name, "metadata.name"), (own, "metadata.namespace")):
        if type(value) is not str:
            raise not_a_pod(path, "text", value)
    return Pod(
        document=document,
        name=name,
        namespace=own,
        annotations=annotations,
        spec=spec,
        containers=_named(spec, "containers"),
        init_containers=_named(spec, "initContainers"),
        volumes=_named(spec, "volumes"),
        claims=_named(spec, "resourceClaims"),
    )


def not_a_pod(path: str, expected: str, found: object) -> AicrError:
    """The error for a field of the wrong type."""
    kind = {
        dict: "a map",
        list: "a list",
        str: "text",
        bool: "true or false",
        int: "a number",
        float: "a number",
        type(None): "nothing",
    }[type(found)]
    place = f"{path}: " if path else ""
    return invalid(f"{place}expected {expected}, found {kind}", context={NOT_A_POD: True})


def entries(container: Mapping[str, Any], key: str, path: str) -> list[dict[str, Any]]:
    """The list of named maps under *key* of a container at *path*: env, volumeMounts, claims."""
    found = container.get(key)
    if found is None:
        return _EMPTY_LIST
    if type(found) is not list:
        raise not_a_pod(f"{path}.{key}", "a list", found)
    for entry in found:
        if type(entry) is not dict or type(entry.get("name")) is not str:
            raise _unnamed(found, f"{path}.{key}")
    return found


def _unnamed(found: list[Any], path: str) -> AicrError:
    """The error for the first entry of *found* that is no map with a name."""
    for index, entry in enumerate(found):
        if type(entry) is not dict:
            return not_a_pod(f"{path}[{index}]", "a map", entry)
        if type(entry.get("name")) is not str:
            return not_a_pod(f"{path}[{index}].name", "text", entry.get("name"))
    return not_a_pod(path, "a list of named maps", found)


def mapping(container: Mapping[str, Any], key: str, path: str) -> dict[str, Any]:
    """The map under *key* of an object at *path*; empty if there is none."""
    return _map(container, key, f"{path}.{key}")


def is_sidecar(container: Mapping[str, Any]) -> bool:
    """Whether an init container goes on running beside the pod's containers."""
    return container.get("restartPolicy") == "Always"


def _map(document: Mapping[str, Any], key: str, path: str) -> dict[str, Any]:
    found = document.get(key)
    if found is None:
        return _EMPTY_MAP
    if type(found) is not dict:
        raise not_a_pod(path, "a map", found)
    return found


def _named(spec: dict[str, Any], key: str) -> list[dict[str, Any]]:
    return entries(spec, key, "spec")
