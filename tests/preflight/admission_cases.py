"""Configurations, pods and reviews that the tests of the admission share (preflight spec 11)."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any

from aicr.preflight.admission import claims
from aicr.preflight.admission.gang_port import Membership
from aicr.preflight.admission.patch import apply
from aicr.preflight.admission.prepared import Prepared, prepare
from aicr.preflight.admission.review import review
from aicr.preflight.config import parse

DCGM, LOOPBACK, ALLREDUCE = (
    "preflight-dcgm-diag",
    "preflight-nccl-loopback",
    "preflight-nccl-allreduce",
)
ANNOTATION = "nvsentinel.nvidia.com/preflight-checks"
GPU = "nvidia.com/gpu"
EFA = "vpc.amazonaws.com/efa"
TOKEN = {
    "connectorTokenAudience": "connector.test",
    "connectorTokenMountPath": "/var/run/secrets/connector",
    "connectorTokenExpirationSeconds": 3600,
}
VOLCANO = {
    "name": "volcano",
    "annotationKeys": ["scheduling.k8s.io/group-name"],
    "podGroupGVR": {
        "group": "scheduling.volcano.sh",
        "version": "v1beta1",
        "resource": "podgroups",
    },
}
GANG = Membership("volcano-team-a-pg1", "preflight-volcano-team-a-pg1", "volcano")


#: The volumes that come with every injection of `document`.
SOCKET: dict[str, Any] = {
    "name": "nvsentinel-socket",
    "hostPath": {"path": "/var/run/nvsentinel", "type": "DirectoryOrCreate"},
}
TOKEN_VOLUME: dict[str, Any] = {
    "name": "nvsentinel-connector-token",
    "projected": {
        "sources": [
            {
                "serviceAccountToken": {
                    "audience": "connector.test",
                    "expirationSeconds": 3600,
                    "path": "token",
                }
            }
        ]
    },
}


def gangs(**more: Any) -> dict[str, Any]:
    """A coordination block."""
    return {"gangCoordination": {"enabled": True, **more}}


def entry(name: str, **more: Any) -> dict[str, Any]:
    """A check as the chart has it."""
    made: dict[str, Any] = {
        "name": name,
        "image": f"aicr.local/{name}:1",
        "env": [{"name": "BW_THRESHOLD_GBPS", "value": "100"}],
        "volumeMounts": [{"name": "nvsentinel-socket", "mountPath": "/var/run"}],
    }
    return {**made, **more}


def document(**more: Any) -> dict[str, Any]:
    """Cfg-A of the spec as a file: three checks, token, coordination on with Volcano."""
    return {
        "initContainers": [entry(DCGM), entry(LOOPBACK), entry(ALLREDUCE)],
        "networkResourceNames": [EFA],
        "connectorSocket": "unix:///var/run/nvsentinel.sock",
        "ncclEnvPatterns": ["NCCL_*", "FI_*", "LD_LIBRARY_PATH"],
        "volumeMountPatterns": ["host-opt-amazon*", "nccl-*", "dev-shm"],
        "gangDiscovery": VOLCANO,
        "gangCoordination": {"enabled": True},
        **TOKEN,
        **more,
    }


def prepared(**more: Any) -> Prepared:
    """Cfg-A with *more*."""
    return prepare(parse(document(**more)))


def without_gangs(**more: Any) -> Prepared:
    """Cfg-B with *more*: coordination off."""
    return prepared(gangCoordination={"enabled": False}, **more)


def container(name: str = "train", *, limits: Any = None, requests: Any = None, **more: Any) -> Any:
    """A container of the workload."""
    made: dict[str, Any] = {"name": name, "image": "train:1", **more}
    resources = {k: v for k, v in (("limits", limits), ("requests", requests)) if v is not None}
    return {**made, "resources": resources} if resources else made


def gpu_container(count: Any = "1", name: str = "train", **more: Any) -> Any:
    """A container that gets GPUs, as limit and request."""
    return container(name, limits={GPU: count}, requests={GPU: count}, **more)


def pod(
    *containers: Any,
    annotations: Mapping[str, str] | None = None,
    metadata: Mapping[str, Any] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """A pod with one GPU, unless containers are given."""
    found: dict[str, Any] = {"name": "w-0", "namespace": "team-a", **(metadata or {})}
    if annotations is not None:
        found["annotations"] = dict(annotations)
    inner: dict[str, Any] = {"containers": list(containers) or [gpu_container()], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": found, "spec": inner}


def request_for(made: Any, **more: Any) -> bytes:
    """An AdmissionReview for the creation of *made*."""
    request = {
        "uid": "u-1",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "operation": "CREATE",
        "namespace": "team-a",
        "object": made,
        **more,
    }
    body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    return json.dumps(body).encode()


class Reply:
    """What the API server would read of an answer."""

    def __init__(self, made: Any, answer: bytes) -> None:
        self.sent = made
        self.document = json.loads(answer)
        self.response = self.document["response"]
        self.allowed: bool = self.response["allowed"]
        self.message: str = (self.response.get("status") or {}).get("message", "")
        self.warnings: list[str] = self.response.get("warnings", [])
        encoded = self.response.get("patch")
        self.patch: list[Any] = json.loads(base64.b64decode(encoded)) if encoded else []

    @property
    def pod(self) -> dict[str, Any]:
        """The pod as it would be stored."""
        made: dict[str, Any] = apply(self.sent, self.patch)
        return made

    @property
    def paths(self) -> list[str]:
        """The paths of the patch, in order."""
        return [operation["path"] for operation in self.patch]

    @property
    def order(self) -> list[str]:
        """Names of the init containers afterwards."""
        return [item["name"] for item in self.pod["spec"].get("initContainers") or []]

    @property
    def volumes(self) -> dict[str, Any]:
        """The volumes afterwards, by name."""
        return {item["name"]: item for item in self.pod["spec"].get("volumes") or []}

    def check(self, name: str = DCGM) -> dict[str, Any]:
        """An injected container."""
        found: dict[str, Any] = next(
            item for item in self.pod["spec"]["initContainers"] if item["name"] == name
        )
        return found

    def env(self, name: str = DCGM) -> dict[str, Any]:
        """Its env: value, or valueFrom."""
        return {
            item["name"]: item.get("value", item.get("valueFrom"))
            for item in self.check(name).get("env", [])
        }

    def mounts(self, name: str = DCGM) -> list[tuple[str, str]]:
        """Its mounts: volume and path."""
        return [(m["name"], m["mountPath"]) for m in self.check(name).get("volumeMounts", [])]

    def amounts(self, name: str = DCGM) -> dict[str, str]:
        """Its limits; for extended resources equal to its requests, which is asserted."""
        resources = self.check(name)["resources"]
        limits, requests = resources.get("limits", {}), resources["requests"]
        for resource in (*limits, *requests):
            if "/" in resource:
                assert limits[resource] == requests[resource]
        return {key: value for key, value in limits.items() if "/" in key}


def send(
    made: Any,
    config: Prepared | None = None,
    membership: Membership | None = None,
    facts: claims.Facts = claims.NONE,
    **more: Any,
) -> Reply:
    """Send *made* to the webhook, without a cluster."""
    config = config or without_gangs()
    return Reply(made, review(request_for(made, **more), config, membership, facts))


def names(items: Sequence[Mapping[str, Any]]) -> list[str]:
    """The names of *items*."""
    return [str(item["name"]) for item in items]
