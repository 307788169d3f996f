"""Stands in for Dynamo's operator: makes Deployments and the Service of a graph, and reports on it.

One call of `turn` is one reconciliation of every DynamoGraphDeployment. As with the real one, its
objects belong to the graph and go with it, frontends and workers get their readiness probes from the
operator (a worker is ready once it serves), and the graph is "successful" once every component has its
replicas.
"""

from __future__ import annotations

import contextlib
from typing import Any

from tests.controlplane.client import MERGE, ApiError, Client

Document = dict[str, Any]
GRAPHS = "/apis/nvidia.com/v1beta1"


def turn(api: Client) -> None:
    """Reconcile every graph once."""
    for graph in api.call("GET", f"{GRAPHS}/dynamographdeployments")["items"]:
        namespace = graph["metadata"]["namespace"]
        reported = {}
        for component in graph["spec"]["components"]:
            deployment = _deployment(graph, component)
            _make(api, f"/apis/apps/v1/namespaces/{namespace}/deployments", deployment)
            if component["type"] == "frontend":
                _make(api, f"/api/v1/namespaces/{namespace}/services", _service(graph))
            name = deployment["metadata"]["name"]
            status = api.get("Deployment", name, namespace).get("status", {})
            reported[component["name"]] = {
                "replicas": component["replicas"],
                "readyReplicas": status.get("readyReplicas", 0),
            }
        whole = all(each["readyReplicas"] >= each["replicas"] for each in reported.values())
        status = {"state": "successful" if whole else "pending", "components": reported}
        if graph.get("status") != status:
            path = f"{GRAPHS}/namespaces/{namespace}/dynamographdeployments"
            name = graph["metadata"]["name"]
            api.call("PATCH", f"{path}/{name}", {"status": status}, content_type=MERGE)


def _make(api: Client, collection: str, document: Document) -> None:
    with contextlib.suppress(ApiError):
        api.call("GET", f"{collection}/{document['metadata']['name']}")
        return
    api.call("POST", collection, document)


def _owned(graph: Document, name: str) -> Document:
    owner = {
        "apiVersion": "nvidia.com/v1beta1",
        "kind": "DynamoGraphDeployment",
        "name": graph["metadata"]["name"],
        "uid": graph["metadata"]["uid"],
    }
    return {"name": name, "ownerReferences": [owner]}


def _deployment(graph: Document, component: Document) -> Document:
    name = f"{graph['metadata']['name']}-{component['name'].lower()}"
    labels = {"test.aicr.run/component": name}
    spec = dict(component["podTemplate"]["spec"])
    spec["terminationGracePeriodSeconds"] = 1
    if component["type"] == "frontend":
        passes: Document = {"tcpSocket": {"port": 8000}}
    else:
        passes = {"exec": {"command": ["test", "-e", "/tmp/serves"]}}
    probe = {**passes, "periodSeconds": 1, "timeoutSeconds": 30}
    spec["containers"] = [{**spec["containers"][0], "readinessProbe": probe}]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _owned(graph, name),
        "spec": {
            "replicas": component["replicas"],
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


def _service(graph: Document) -> Document:
    name = f"{graph['metadata']['name']}-frontend"
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _owned(graph, name),
        "spec": {
            "selector": {"test.aicr.run/component": name},
            "ports": [{"name": "http", "port": 8000, "targetPort": 8000}],
        },
    }
