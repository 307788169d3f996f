"""Stands in for the Cluster Readiness Engine: answers a Certification with a measurement and an end.

One call of `turn` is one reconciliation. The Certification's first category decides which kind of
measurement is made; its jobs are pods that carry its name.
"""

from __future__ import annotations

import contextlib
from typing import Any

from tests.controlplane.client import MERGE, ApiError, Client

Document = dict[str, Any]
ROOT = "/apis/nvcre.nvidia.com/v1alpha1"
KINDS = {
    "communication": ("BandwidthMeasurement", "bandwidthmeasurements"),
    "training": ("GoodputMeasurement", "goodputmeasurements"),
}


def turn(api: Client, status: Document, phase: str = "Succeeded") -> None:
    """Answer every Certification that has no phase yet."""
    for found in api.call("GET", f"{ROOT}/certifications")["items"]:
        if (found.get("status") or {}).get("phase"):
            continue
        name, namespace = found["metadata"]["name"], found["metadata"]["namespace"]
        kind, plural = KINDS[found["spec"]["categories"][0]["domain"]]
        measured = {
            "apiVersion": "nvcre.nvidia.com/v1alpha1",
            "kind": kind,
            "metadata": {"name": name},
            "status": status,
        }
        with contextlib.suppress(ApiError):
            api.call("POST", f"{ROOT}/namespaces/{namespace}/{plural}", measured)
        api.create(_job(found), namespace)
        ended = {"status": {"phase": phase, "message": "a job was lost"}}
        path = f"{ROOT}/namespaces/{namespace}/certifications/{name}"
        api.call("PATCH", path, ended, content_type=MERGE)


def _job(found: Document) -> Document:
    """A pod that goes on, as a job that nobody stopped would."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{found['metadata']['name']}-job",
            "labels": {"nvcre.nvidia.com/certification": found["metadata"]["name"]},
            "ownerReferences": [
                {
                    "apiVersion": found["apiVersion"],
                    "kind": found["kind"],
                    "name": found["metadata"]["name"],
                    "uid": found["metadata"]["uid"],
                }
            ],
        },
        "spec": {
            "nodeName": found["spec"]["target"]["nodeNames"][0],
            "terminationGracePeriodSeconds": 0,
            "containers": [
                {"name": "job", "image": "test.local/pause", "imagePullPolicy": "Never"}
            ],
        },
    }
