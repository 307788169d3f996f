"""Objects of clusters for tests of collectors."""

from __future__ import annotations

from typing import Any

from tests.kube.fakeapi import SERVED, FakeApi

from aicr.kube.kinds import Resource

VERBS = ("get", "list", "watch", "create", "update", "patch", "delete")
STORAGE_CLASS = Resource(
    *("storage.k8s.io", "v1", "storageclasses", "StorageClass", False, "storageclass"), verbs=VERBS
)
CLUSTER_POLICY = Resource(
    *("nvidia.com", "v1", "clusterpolicies", "ClusterPolicy", False, "clusterpolicy"), verbs=VERBS
)
KYVERNO_POLICY = Resource(
    *("kyverno.io", "v1", "clusterpolicies", "ClusterPolicy", False, "clusterpolicy"), verbs=VERBS
)
MARIADB = Resource(
    *("k8s.mariadb.com", "v1alpha1", "mariadbs", "MariaDB", True, "mariadb"), verbs=VERBS
)
SLINKY = {
    plural: Resource(
        *("slinky.slurm.net", "v1beta1", plural, kind, True, kind.lower()), verbs=VERBS
    )
    for plural, kind in (
        ("controllers", "Controller"),
        ("nodesets", "NodeSet"),
        ("loginsets", "LoginSet"),
        ("restapis", "RestApi"),
        ("accountings", "Accounting"),
    )
}


def server(*more: Resource) -> FakeApi:
    """A server with the ordinary kinds and *more*."""
    return FakeApi(resources=[*SERVED, STORAGE_CLASS, *more])


def node(name: str = "gpu-1", provider_id: str = "aws:///us-west-2a/i-1", **more: Any) -> Any:
    """A node."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": f"uid-{name}",
            "labels": {"kubernetes.io/hostname": name, "nvidia.com/gpu.product": "NVIDIA-H100"},
        },
        "spec": {"providerID": provider_id} if provider_id else {},
        "status": {
            "nodeInfo": {
                "kubeletVersion": "v1.34.1-eks-113cf36",
                "kernelVersion": "6.8.0-1028-aws",
                "operatingSystem": "linux",
                "osImage": "Ubuntu 24.04.1 LTS",
                "containerRuntimeVersion": "containerd://1.7.27",
            }
        },
        **more,
    }


def pod(name: str, *images: str, namespace: str = "default", **spec: Any) -> Any:
    """A pod."""
    containers = [{"name": f"c{at}", "image": image} for at, image in enumerate(images)]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{name}"},
        "spec": {"containers": containers, **spec},
    }


def custom(resource: Resource, name: str, spec: Any, *, namespace: str = "") -> Any:
    """An object of a custom kind."""
    metadata = {"name": name, "uid": f"uid-{name}"}
    if namespace:
        metadata["namespace"] = namespace
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": metadata,
        "spec": spec,
    }


async def fill(api: FakeApi, *objects: Any) -> None:
    """Store objects of any kind."""
    by_kind = {(one.api_version, one.kind): one for one in api.resources}
    for one in objects:
        await api.store("ADDED", by_kind[one["apiVersion"], one["kind"]], one)


def data(collected: Any, name: str) -> Any:
    """Readings of a subtype."""
    return next(one["data"] for one in collected.subtypes if one["subtype"] == name)
