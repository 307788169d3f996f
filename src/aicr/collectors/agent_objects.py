"""The objects of one agent run, rendered from its options. Pure.

Everything carries the run's id in its name and as a label, so that two runs never meet, and is deleted with
the run (decision 13). The pod looks at its node through mounts of the node's ``/proc``, ``/sys``,
``/etc/os-release`` and ``/run/systemd`` below one folder; it needs no namespaces of the host. It may read
what snapshots are about and write ConfigMaps in its own namespace, and nothing else.

It must not know how objects are sent. Source: validators spec 1.1, 3.1; recipe spec 8.4.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from aicr.collectors.agent_options import (
    GPU_RESOURCE,
    LONGEST_PREFIX,
    SERVICE_ACCOUNT,
    AgentOptions,
)
from aicr.collectors.readings import Document
from aicr.contract import container, images, labels

COMPONENT: Final = "snapshot-agent"
CONTAINER: Final = "agent"
#: Where the node's files are in the pod.
HOST_ROOT: Final = "/host"
#: Seconds that the Job outlives the caller's patience, so that the caller speaks first.
#: Label of nodes with a GPU, which the agent goes to if it may go anywhere.
GPU_NODES: Final = "nvidia.com/gpu.present"

HOST_ROOT_VARIABLE: Final = "AICR_HOST_ROOT"
NODE_VARIABLE: Final = "NODE_NAME"
REQUIRE_GPU_VARIABLE: Final = "AICR_REQUIRE_GPU"
OS_VARIABLE: Final = "AICR_OS"
MOST_NAMES_VARIABLE: Final = "AICR_MAX_NODES_PER_ENTRY"
PARTIAL_VARIABLE: Final = "AICR_PARTIAL"
STAGING_VARIABLE: Final = "AICR_STAGING"

#: What the agent reads in the whole cluster: API group → resources, all with get and list.
READS: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("", ("nodes", "pods")),
    ("apps", ("daemonsets",)),
    ("storage.k8s.io", ("storageclasses",)),
    ("slinky.slurm.net", ("accountings", "controllers", "loginsets", "nodesets", "restapis")),
    ("k8s.mariadb.com", ("mariadbs",)),
    ("psmdb.percona.com", ("perconaservermongodbs",)),
    # A ClusterPolicy is looked for in every group; the rule names the resource and not the group.
    ("*", ("clusterpolicies",)),
)
_ROLES: Final = "rbac.authorization.k8s.io"
_DEFAULTS: Final = {"cpu": "100m", "memory": "256Mi"}
_MOST: Final = {"cpu": "1", "memory": "1Gi"}


@dataclass(frozen=True, slots=True)
class Names:
    """What the objects of a run are called."""

    job: str
    account: str
    cluster_role: str
    staging: str

    @classmethod
    def of(cls, options: AgentOptions, run: str, *, existing_account: str = "") -> Names:
        """The names of run *run*."""
        prefix = (options.service_account or SERVICE_ACCOUNT)[:LONGEST_PREFIX].rstrip("-")
        return cls(
            f"{options.job_name}-{run}",
            existing_account or f"{prefix}-{run}",
            f"aicr-node-reader-{run}",
            f"aicr-agent-snapshot-{run}",
        )


def marks(run: str) -> dict[str, str]:
    """Labels of everything that belongs to a run."""
    return {
        labels.NAME: labels.PRODUCT,
        labels.COMPONENT: COMPONENT,
        labels.MANAGED_BY: labels.PRODUCT,
        labels.RUN_ID: run,
    }


def namespace(name: str) -> Document:
    """The namespace, if the cluster has it not yet; it is never removed."""
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": {labels.MANAGED_BY: labels.PRODUCT}},
    }


def access(options: AgentOptions, names: Names, run: str) -> list[Document]:
    """Service account, roles and bindings of a run, in the order of creation."""
    place = options.namespace
    subject = {"kind": "ServiceAccount", "name": names.account, "namespace": place}
    cluster_rules = [
        {"apiGroups": [group], "resources": list(resources), "verbs": ["get", "list"]}
        for group, resources in READS
    ]
    own_rules = [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "get", "update"]}
    ]
    return [
        _object("v1", "ServiceAccount", names.account, place, run),
        {**_object(f"{_ROLES}/v1", "Role", names.account, place, run), "rules": own_rules},
        _binding("RoleBinding", "Role", names.account, place, run, subject),
        {
            **_object(f"{_ROLES}/v1", "ClusterRole", names.cluster_role, "", run),
            "rules": cluster_rules,
        },
        _binding("ClusterRoleBinding", "ClusterRole", names.cluster_role, "", run, subject),
    ]


def _object(api_version: str, kind: str, name: str, place: str, run: str) -> Document:
    metadata: Document = {"name": name, "labels": marks(run)}
    if place:
        metadata["namespace"] = place
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


def _binding(
    kind: str, role: str, name: str, place: str, run: str, subject: Mapping[str, Any]
) -> Document:
    return {
        **_object(f"{_ROLES}/v1", kind, name, place, run),
        "roleRef": {"apiGroup": _ROLES, "kind": role, "name": name},
        "subjects": [dict(subject)],
    }


def job(options: AgentOptions, names: Names, run: str) -> Document:
    """The Job."""
    spec: Document = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 10,
        "serviceAccountName": names.account,
        "tolerations": (
            [{"operator": "Exists"}]
            if options.tolerations is None
            else [dict(one) for one in options.tolerations]
        ),
        "containers": [_container(options, names, run)],
    }
    if options.image_pull_secrets:
        spec["imagePullSecrets"] = [{"name": name} for name in options.image_pull_secrets]
    if options.runtime_class:
        spec["runtimeClassName"] = options.runtime_class
    if options.node_selector:
        spec["nodeSelector"] = dict(options.node_selector)
    spec["affinity"] = {"nodeAffinity": _where(rather_gpus=not options.node_selector)}
    volumes = _volumes(options)
    if volumes:
        spec["volumes"] = volumes
    return {
        **_object("batch/v1", "Job", names.job, options.namespace, run),
        "spec": {
            "activeDeadlineSeconds": int(options.times.agent) + int(options.times.job_margin),
            "backoffLimit": 0,
            "ttlSecondsAfterFinished": int(options.times.job_ttl),
            "template": {"metadata": {"labels": marks(run)}, "spec": spec},
        },
    }


def _where(*, rather_gpus: bool) -> Document:
    """A node that really runs pods; one with GPUs is preferred, since not every cluster has one."""
    found: Document = {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [dict(one) for one in labels.RUNS_PODS]}]
        }
    }
    if rather_gpus:
        term = {"key": GPU_NODES, "operator": "In", "values": ["true"]}
        found["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": 100, "preference": {"matchExpressions": [term]}}
        ]
    return found


def _container(options: AgentOptions, names: Names, run: str) -> Document:
    variables: list[Document] = [
        _from_field(NODE_VARIABLE, "spec.nodeName"),
        _from_field(container.NAMESPACE, "metadata.namespace"),
        {"name": container.RUN_ID, "value": run},
        {"name": STAGING_VARIABLE, "value": names.staging},
        {"name": container.LOG_FORMAT, "value": "json"},
    ]
    for name, value in (
        (HOST_ROOT_VARIABLE, HOST_ROOT if options.privileged else ""),
        (OS_VARIABLE, options.os),
        (REQUIRE_GPU_VARIABLE, "true" if options.require_gpu else ""),
        (PARTIAL_VARIABLE, "true" if options.partial else ""),
        (MOST_NAMES_VARIABLE, str(options.most_names) if options.most_names else ""),
    ):
        if value:
            variables.append({"name": name, "value": value})
    limits = {**_MOST, **options.limits}
    if options.require_gpu:
        limits.setdefault(GPU_RESOURCE, "1")
    mounts = [
        {
            "name": one["name"],
            "mountPath": f"{HOST_ROOT}{one['hostPath']['path']}",
            "readOnly": True,
        }
        for one in _volumes(options)
    ]
    found: Document = {
        "name": CONTAINER,
        "image": options.image,
        "imagePullPolicy": images.pull_policy(options.image),
        "env": variables,
        "resources": {"requests": {**_DEFAULTS, **options.requests}, "limits": limits},
        "securityContext": _security(options),
        "terminationMessagePath": container.TERMINATION_LOG,
        "terminationMessagePolicy": "File",
    }
    if mounts:
        found["volumeMounts"] = mounts
    return found


def _security(options: AgentOptions) -> Document:
    if options.privileged:
        return {"privileged": True, "runAsUser": 0}
    # What the restricted pod security standard asks for.
    return {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": True,
        "runAsUser": 65532,
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def _volumes(options: AgentOptions) -> list[Document]:
    """The node's files that the collectors read."""
    if not options.privileged:
        return []
    wanted = [("proc", "/proc", "Directory"), ("sys", "/sys", "Directory")]
    if options.os != "talos":
        wanted += [
            ("os-release", "/etc/os-release", "File"),
            # A machine without systemd must not keep the pod from starting.
            ("systemd", "/run/systemd", "DirectoryOrCreate"),
        ]
    return [
        {"name": name, "hostPath": {"path": path, "type": type_}} for name, path, type_ in wanted
    ]


def _from_field(name: str, path: str) -> Document:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}
