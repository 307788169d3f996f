"""What a Kubernetes API server would say against an object, as far as that can be known without one.

Kinds of Kubernetes itself are checked against its published schemas, unknown fields included. For kinds
of custom resources, whose schemas are in charts that are not at hand, the envelope is checked. The
grammar of names and labels is checked for all, since the schemas do not have it.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]

#: API groups that Kubernetes serves itself.
BUILT_IN = frozenset(
    {
        *("", "apps", "autoscaling", "batch", "policy"),
        *("admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io"),
        *("coordination.k8s.io", "discovery.k8s.io", "networking.k8s.io", "node.k8s.io"),
        *("rbac.authorization.k8s.io", "resource.k8s.io", "scheduling.k8s.io", "storage.k8s.io"),
    }
)
#: Kinds in our manifests that belong to no namespace.
CLUSTER_WIDE = frozenset(
    {
        *("ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "DeviceClass"),
        *("Namespace", "PriorityClass", "RuntimeClass", "StorageClass"),
        *("ClusterTrainingRuntime", "GatewayClass"),
    }
)

#: Versions of built-in groups that are younger than the oldest Kubernetes the catalogue admits.
SINCE = {"resource.k8s.io/v1": "1.34"}

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_WORD = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?")
_VERSION = re.compile(r"v[0-9]+((alpha|beta)[0-9]+)?")
_KIND = re.compile(r"[A-Z][A-Za-z0-9]*")


def group_of(item: dict[str, Any]) -> str:
    """API group of an object, "" for the core one."""
    return str(item["apiVersion"]).rpartition("/")[0]


def minor(version: str) -> tuple[int, ...]:
    """Major and minor number of a version of Kubernetes."""
    return tuple(int(part) for part in version.split(".")[:2])


def problems(item: dict[str, Any], namespace: str, versions: tuple[str, ...]) -> list[str]:
    """What is wrong with one object.

    Args:
        item: the object.
        namespace: namespace of the release that it is part of.
        versions: Kubernetes versions whose schemas it has to satisfy.
    """
    envelope = _envelope(item, namespace)
    if envelope:
        return envelope
    found = [text for metadata in _metadata(item) for text in _labels(metadata)]
    if group_of(item) in BUILT_IN:
        for version in versions:
            if minor(version) < minor(SINCE.get(item["apiVersion"], version)):
                continue
            try:
                kubernetes_validate.validate(item, version, strict=True)
            except kubernetes_validate.ValidationError as error:
                path = ".".join(str(step) for step in error.path)
                found.append(f"Kubernetes {version}: {path}: {error.message}")
            except kubernetes_validate.SchemaNotFoundError as error:
                found.append(f"Kubernetes {version}: {error.message}")
    return found


def duplicates(items: list[dict[str, Any]]) -> list[str]:
    """Objects that are there more than once, so that the last one would win."""
    names = Counter(f"{group_of(item)}/{item['kind']} {item['metadata']['name']}" for item in items)
    return [name for name, count in names.items() if count > 1]


def _envelope(item: dict[str, Any], namespace: str) -> list[str]:
    found = []
    group, _, version = str(item.get("apiVersion", "")).rpartition("/")
    if not _VERSION.fullmatch(version) or (group and not _NAME.fullmatch(group)):
        found.append(f"apiVersion {item.get('apiVersion')!r}")
    kind = item.get("kind")
    if not isinstance(kind, str) or not _KIND.fullmatch(kind):
        found.append(f"kind {kind!r}")
    metadata = item.get("metadata")
    if not isinstance(metadata, dict):
        return [*found, "no metadata"]
    name = metadata.get("name")
    if not isinstance(name, str) or len(name) > 253 or not _NAME.fullmatch(name):
        found.append(f"metadata.name {name!r}")
    place = metadata.get("namespace")
    if kind in CLUSTER_WIDE and "namespace" in metadata:
        found.append(f"metadata.namespace {place!r} on a kind without namespaces")
    if "namespace" in metadata and place != namespace:
        found.append(f"metadata.namespace {place!r} in a release in {namespace!r}")
    return found


def _metadata(value: Any) -> list[dict[str, Any]]:
    """Every map called metadata in an object, that of pod templates included."""
    if isinstance(value, list):
        return [found for item in value for found in _metadata(item)]
    if not isinstance(value, dict):
        return []
    own = [value["metadata"]] if isinstance(value.get("metadata"), dict) else []
    return own + [found for item in value.values() for found in _metadata(item)]


def _labels(metadata: dict[str, Any]) -> list[str]:
    found = []
    for field in ("labels", "annotations"):
        for key, value in (metadata.get(field) or {}).items():
            prefix, _, word = str(key).rpartition("/")
            if not word or len(word) > 63 or not _WORD.fullmatch(word):
                found.append(f"{field}: key {key!r}")
            if "/" in str(key) and not _NAME.fullmatch(prefix):
                found.append(f"{field}: key {key!r}")
            if not isinstance(value, str):
                found.append(f"{field}: {key}: {value!r} is no text")
            elif field == "labels" and (len(value) > 63 or not _WORD.fullmatch(value)):
                found.append(f"labels: {key}: {value!r}")
    return found
