"""The ``K8s`` measurement: what the API server says of itself, of this node, and of what runs.

=====================  =====================================================
subtype                from
=====================  =====================================================
server                 ``/version``
node                   the Node object of this machine
image                  images of all pods, name → tag
policy                 ``spec`` of every ClusterPolicy, flattened
oke-legacy-plugin      DaemonSet of the device plugin that old OKE clusters have
slinky-slurm and       see `operators`
others
=====================  =====================================================

Each is asked for on its own, so that one that is forbidden costs only itself and is named with its
reason. Provider projections (`aks-gpu-pools` and the like) come from files, see `projections`.

Source: recipe spec 8.4 (K8s rows), 8.3.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final

from aicr.collectors import operators
from aicr.collectors.readings import K8S, Collected, Document, Scalar
from aicr.errors import NOT_FOUND, AicrError, not_found
from aicr.kube import kinds
from aicr.kube.discovery import Catalogue, group_of
from aicr.kube.kinds import Resource
from aicr.kube.projection import Part
from aicr.kube.reader import Reader
from aicr.values import references

#: Variables that may hold the node's name; the first that is not empty counts.
NODE_VARIABLES: Final = ("NODE_NAME", "KUBERNETES_NODE_NAME", "HOSTNAME")
#: Scheme of a node's providerID → service; other schemes are their own name.
PROVIDERS: Final = {"aws": "eks", "gce": "gke", "azure": "aks", "oci": "oke"}
#: An OKE node's providerID may be its instance's id without a scheme.
_OCID: Final = "ocid1."
OKE_PLUGIN: Final = "nvidia-gpu-device-plugin"
OKE_PLUGIN_NAMESPACE: Final = "kube-system"
INSTALLED: Final = "installed"
ABSENT: Final = "absent"


class ImageContainer(Part, frozen=True):
    """A container's image."""

    image: str = ""


class ImageSpec(Part, frozen=True):
    """Containers of a pod."""

    containers: tuple[ImageContainer, ...] | None = None
    init_containers: tuple[ImageContainer, ...] | None = None
    ephemeral_containers: tuple[ImageContainer, ...] | None = None


class ImagePod(Part, frozen=True):
    """As much of a pod as images are about."""

    spec: ImageSpec = ImageSpec()


def node_name(environ: Mapping[str, str]) -> str:
    """The name of the node that this runs on, "" if the environment does not say."""
    return next((text for name in NODE_VARIABLES if (text := environ.get(name, "").strip())), "")


async def collect(cluster: Reader, *, node: Document | None, provider: str) -> Collected:
    """The measurement; *node* is this machine's Node object, if it is one of the cluster's."""
    found = Collected(K8S)
    if node is not None:
        found.add("node", node_readings(node))

    async def server() -> None:
        found.add("server", server_readings(await cluster.version()))

    async def images() -> None:
        found.add("image", image_readings(await cluster.list(kinds.POD, into=ImagePod)))

    async def policies() -> None:
        await _add_policies(found, cluster)

    async def legacy_plugin() -> None:
        if provider == "oke":
            found.add("oke-legacy-plugin", await _oke_legacy_plugin(cluster))

    parts: list[tuple[str, Callable[[], Awaitable[None]]]] = [
        ("server", server),
        ("image", images),
        ("policy", policies),
        ("oke-legacy-plugin", legacy_plugin),
    ]

    async def safely(name: str, part: Callable[[], Awaitable[None]]) -> None:
        try:
            await part()
        except AicrError as error:
            found.lacks(name, error)

    await asyncio.gather(
        *(safely(name, part) for name, part in parts), operators.add(found, cluster)
    )
    return found


async def read_node(cluster: Reader, name: str) -> Document:
    """This machine's Node object.

    Raises:
        AicrError: NOT_FOUND if *name* is empty or no node of the cluster, and what reading raises.
    """
    if not name:
        raise not_found(
            f"the name of this node is not known: none of {', '.join(NODE_VARIABLES)} is set",
            where="K8s.node",
            hint=f"set {NODE_VARIABLES[0]}",
        )
    try:
        return await cluster.get(kinds.NODE, name)
    except AicrError as error:
        if error.code != NOT_FOUND:
            raise
        raise not_found(
            f'this machine ("{name}") is no node of the cluster',
            where="K8s.node",
            hint="aicr snapshot --agent measures a node of it; or set NODE_NAME to the node's name",
        ) from error


def server_readings(version: Mapping[str, Any]) -> dict[str, Scalar]:
    """``server`` from the answer of ``/version``."""
    wanted = {"version": "gitVersion", "platform": "platform", "goVersion": "goVersion"}
    return {key: str(version[name]) for key, name in wanted.items() if version.get(name)}


def provider_of(provider_id: str) -> str:
    """The service that a node's providerID shows, "" for one that shows none."""
    scheme, separator, _ = provider_id.strip().partition("://")
    scheme = scheme.lower()
    if scheme.startswith(_OCID):
        return PROVIDERS["oci"]
    return PROVIDERS.get(scheme, scheme) if separator else ""


def node_readings(node: Mapping[str, Any]) -> dict[str, Scalar]:
    """``node`` from a Node object; what it does not say is left out."""
    info = (node.get("status") or {}).get("nodeInfo") or {}
    provider_id = str((node.get("spec") or {}).get("providerID") or "")
    runtime = str(info.get("containerRuntimeVersion") or "")
    name, separator, version = runtime.partition("://")
    found = {
        "source-node": str((node.get("metadata") or {}).get("name") or ""),
        "provider": provider_of(provider_id),
        "provider-id": provider_id,
        "container-runtime-id": runtime,
        "container-runtime-name": name if separator else "",
        "container-runtime-version": version,
        "kubelet-version": str(info.get("kubeletVersion") or ""),
        "kernel-version": str(info.get("kernelVersion") or ""),
        "operating-system": str(info.get("operatingSystem") or ""),
        "os-image": str(info.get("osImage") or ""),
    }
    return {key: value for key, value in found.items() if value}


def image_of(reference: str) -> tuple[str, str]:
    """Name and tag of an image reference: the name after the last slash, without a digest."""
    name, tag = references.last_segment(reference)
    return name, "latest" if tag is None else tag


def image_readings(pods: Iterable[ImagePod]) -> dict[str, Scalar]:
    """Image name → tag over all containers of all pods; a later pod's tag wins."""
    found: dict[str, Scalar] = {}
    for pod in pods:
        spec = pod.spec
        for group in (spec.containers, spec.init_containers, spec.ephemeral_containers):
            for container in group or ():
                name, tag = image_of(container.image)
                if name:
                    found[name] = tag
    return found


def flatten(node: object, trail: str = "") -> dict[str, str]:
    """Dotted paths of a ClusterPolicy's spec; lists as JSON text, empty lists and maps dropped."""
    if isinstance(node, Mapping):
        found: dict[str, str] = {}
        for key, value in node.items():
            found |= flatten(value, f"{trail}.{key}" if trail else str(key))
        return found
    if isinstance(node, list):
        return {trail: json.dumps(node, separators=(",", ":"), sort_keys=True)} if node else {}
    if isinstance(node, bool):
        return {trail: "true" if node else "false"}
    return {} if node is None else {trail: str(node)}


def policy_kinds(catalogue: Catalogue) -> list[Resource]:
    """Every kind ClusterPolicy that a server has, one version a group: its preferred one."""
    found: dict[str, Resource] = {}
    for group_version, resources in catalogue.served.items():
        for resource in resources:
            if resource.kind == "ClusterPolicy":
                found.setdefault(group_of(group_version), resource)
    return list(found.values())


async def _add_policies(found: Collected, cluster: Reader) -> None:
    catalogue = await cluster.discovery.catalogue()
    data: dict[str, Scalar] = {}
    for resource in policy_kinds(catalogue):
        for policy in await cluster.list(resource):
            data |= flatten(policy.get("spec") or {})
    found.add("policy", data)
    if catalogue.unreachable:
        groups = ", ".join(sorted(catalogue.unreachable))
        found.remarks.append(f"API groups that cannot be reached were not searched: {groups}")


async def _oke_legacy_plugin(cluster: Reader) -> dict[str, Scalar]:
    try:
        await cluster.get(kinds.DAEMON_SET, OKE_PLUGIN, namespace=OKE_PLUGIN_NAMESPACE)
    except AicrError as error:
        if error.code != NOT_FOUND:
            raise
        return {OKE_PLUGIN: ABSENT}
    return {OKE_PLUGIN: INSTALLED, "daemonset": f"{OKE_PLUGIN_NAMESPACE}/{OKE_PLUGIN}"}
