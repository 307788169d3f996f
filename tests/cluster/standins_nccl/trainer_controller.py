"""Stands in for Kubeflow Trainer and JobSet: makes launcher and worker pods of a TrainJob.

One call of `turn` is one reconciliation of every TrainJob. As with the real ones the pods carry JobSet's
labels, belong to the TrainJob, and find the host file of MPI under /etc/mpi.
"""

from __future__ import annotations

import contextlib
import copy
from typing import Any

from tests.controlplane.client import ApiError, Client

Document = dict[str, Any]
ROOT = "/apis/trainer.kubeflow.org/v1alpha1"


def turn(api: Client) -> None:
    """Reconcile every TrainJob once."""
    for job in api.call("GET", f"{ROOT}/trainjobs")["items"]:
        namespace = job["metadata"]["namespace"]
        name = job["spec"]["runtimeRef"]["name"]
        runtime = api.call("GET", f"{ROOT}/namespaces/{namespace}/trainingruntimes/{name}")
        policy = runtime["spec"]["mlPolicy"]
        workers = [f"{job['metadata']['name']}-node-0-{n}" for n in range(policy["numNodes"])]
        slots = policy["mpi"]["numProcPerNode"]
        hosts = "".join(f"{worker}.{job['metadata']['name']} slots={slots}\n" for worker in workers)
        meta = _owned(job, f"{job['metadata']['name']}-mpi-hostfile")
        data = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": meta,
            "data": {"hostfile": hosts},
        }
        _make(api, data, namespace)
        for each in runtime["spec"]["template"]["spec"]["replicatedJobs"]:
            names = (
                workers if each["name"] == "node" else [f"{job['metadata']['name']}-launcher-0-0"]
            )
            for pod in names:
                _make(api, _pod(job, each, pod), namespace)


def _pod(job: Document, replicated: Document, name: str) -> Document:
    template = copy.deepcopy(replicated["template"]["spec"]["template"])
    spec = template["spec"]
    spec["restartPolicy"] = "Never"
    spec["terminationGracePeriodSeconds"] = 1
    spec.setdefault("volumes", []).append(
        {"name": "mpi", "configMap": {"name": f"{job['metadata']['name']}-mpi-hostfile"}}
    )
    for container in spec["containers"]:
        container["imagePullPolicy"] = "Never"
        container.setdefault("volumeMounts", []).append({"name": "mpi", "mountPath": "/etc/mpi"})
    labels = {
        "jobset.sigs.k8s.io/jobset-name": job["metadata"]["name"],
        "jobset.sigs.k8s.io/replicatedjob-name": replicated["name"],
    }
    given = template.get("metadata") or {}
    meta = {
        **_owned(job, name),
        "labels": {**(given.get("labels") or {}), **labels},
        "annotations": given.get("annotations") or {},
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def _owned(job: Document, name: str) -> Document:
    owner = {
        "apiVersion": job["apiVersion"],
        "kind": job["kind"],
        "name": job["metadata"]["name"],
        "uid": job["metadata"]["uid"],
    }
    return {"name": name, "ownerReferences": [owner]}


def _make(api: Client, document: Document, namespace: str) -> None:
    with contextlib.suppress(ApiError):
        api.get(document["kind"], document["metadata"]["name"], namespace)
        return
    api.create(document, namespace)
