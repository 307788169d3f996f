"""The weights cache: its StorageClass, whether that fits the node, its claim, the Job that fills it.

Which class is used is settled before anything is created, because a claim without a class, or with disks
that the node cannot attach, stays Pending until a wait runs out. The lists of types hold for Google's
disk driver, whose machine families differ in what they attach; for other drivers nothing is known here
and nothing is refused.

The Job runs on the workers' node, so that a ``WaitForFirstConsumer`` volume binds there. It requests
memory and has no memory limit: page cache of a large download counts against a limit (cgroup v2) and
would get it killed. Pure, but for what its callers read.
Source: validators spec 7.3 "Deployment"; requirements V-311 to V-325.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from aicr.checks.performance.inference_knobs import KNOBS, Settings
from aicr.checks.sdk.nodes import labels_of
from aicr.errors import invalid, nearest

PVC: Final = "aicr-model-cache"
VOLUME: Final = "model-cache"
#: Where the cache is mounted, and what HF_HOME says.
MOUNT: Final = "/model-cache"
SECRET: Final = "aicr-hf-token"
TOKEN_KEY: Final = "token"
RUNTIME_IMAGE: Final = "nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.2.1"
#: Group of the runtime image's user, so that it can write to the volume.
GROUP: Final = 1000

_DEFAULT: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_GOOGLE: Final = frozenset({"pd.csi.storage.gke.io", "kubernetes.io/gce-pd"})
#: What Google's driver makes when a class states no type.
_GOOGLE_DEFAULT: Final = "pd-standard"
_FAMILY: Final = "cloud.google.com/machine-family"
_INSTANCE: Final = "node.kubernetes.io/instance-type"
_HYPERDISK: Final = ("hyperdisk-balanced", "hyperdisk-extreme", "hyperdisk-ml")
#: Start of a machine type, or a family → types of disks that attach. The longest start that fits counts.
COMPATIBLE: Final[Mapping[str, tuple[str, ...]]] = {
    "a4x": _HYPERDISK,
    "a4": _HYPERDISK,
    "a3-ultragpu": (*_HYPERDISK, "hyperdisk-balanced-high-availability"),
}

_DOWNLOAD: Final = """\
import os
from huggingface_hub import snapshot_download
path = snapshot_download(os.environ["AICR_MODEL"])
print("model cached at", path, flush=True)
"""

Document = dict[str, Any]


def storage_class(
    settings: Settings, classes: Sequence[Mapping[str, Any]], node: Mapping[str, Any]
) -> str:
    """The name of the class for the cache, known to exist and to fit the node.

    Args:
        settings: with the class that was asked for, if any.
        classes: StorageClasses of the cluster.
        node: the Node that the workers run on.

    Raises:
        AicrError: INVALID_REQUEST when the class is not there, none was asked for and the cluster has no
            default, or its disks do not attach to the node.
    """
    by_name = {str(each["metadata"]["name"]): each for each in classes}
    if settings.storage_class:
        chosen = by_name.get(settings.storage_class)
        if chosen is None:
            near = nearest(settings.storage_class, list(by_name))
            raise invalid(
                f'StorageClass "{settings.storage_class}" of the model cache does not exist',
                hint=f"did you mean {near}?" if near else "kubectl get storageclasses",
            )
    else:
        chosen = default_class(classes)
        if chosen is None:
            raise invalid(
                "the model cache needs a StorageClass, and the cluster has no default one",
                hint=f"{_ways()}; or switch the cache off with AICR_INFERENCE_PERF_MODEL_CACHE_SIZE=off",
            )
    _fits(chosen, node, settings.extra_types)
    return str(chosen["metadata"]["name"])


def default_class(classes: Iterable[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The cluster's default class; of several the newest, as the API server chooses."""
    marked = [
        each
        for each in classes
        if any((each["metadata"].get("annotations") or {}).get(key) == "true" for key in _DEFAULT)
    ]
    # By name first, so that of several that are equally new the first by name is left.
    marked.sort(key=lambda each: str(each["metadata"]["name"]))
    marked.sort(key=lambda each: str(each["metadata"].get("creationTimestamp")), reverse=True)
    return marked[0] if marked else None


def machine(node: Mapping[str, Any]) -> str:
    """The key of `COMPATIBLE` that a node falls under, "" if there is none."""
    labels = labels_of(node)
    kind = labels.get(_INSTANCE, "").lower()
    fitting = [key for key in COMPATIBLE if kind == key or kind.startswith(f"{key}-")]
    if fitting:
        return max(fitting, key=len)
    family = labels.get(_FAMILY, "").lower()
    return family if family in COMPATIBLE else ""


def _fits(chosen: Mapping[str, Any], node: Mapping[str, Any], extra: Sequence[str]) -> None:
    """Refuse a class of Google's driver whose disks do not attach to the node."""
    key = machine(node)
    if not key or chosen.get("provisioner") not in _GOOGLE:
        return
    kind = str((chosen.get("parameters") or {}).get("type") or _GOOGLE_DEFAULT)
    allowed = (*COMPATIBLE[key], *extra)
    if kind not in allowed:
        raise invalid(
            f"StorageClass {chosen['metadata']['name']} makes {kind} disks, which do not attach to "
            f"{key} nodes such as {node['metadata']['name']}; these take {', '.join(allowed)}",
            hint=f"{_ways()}; a type that is newer than this list goes into "
            "AICR_INFERENCE_PERF_MODEL_CACHE_EXTRA_COMPATIBLE_TYPES",
        )


def _ways() -> str:
    knob = next(each for each in KNOBS if each.key == "storage_class")
    return f"name a class with constraint {knob.constraint} or variable {knob.variable}"


def claim(settings: Settings, class_name: str) -> Document:
    """The PersistentVolumeClaim of the cache."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": PVC},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": class_name,
            "resources": {"requests": {"storage": settings.cache_size}},
        },
    }


def token_secret(token: str, name: str = SECRET) -> Document:
    """The Secret with a Hugging Face token."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name},
        "type": "Opaque",
        "stringData": {TOKEN_KEY: token},
    }


def token_variable(name: str = SECRET) -> Document:
    """HF_TOKEN from that Secret, if it is there."""
    reference = {"name": name, "key": TOKEN_KEY, "optional": True}
    return {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": reference}}


def cache_volume(*, read_only: bool) -> Document:
    """The volume of a pod that mounts the cache."""
    return {
        "name": VOLUME,
        "persistentVolumeClaim": {"claimName": PVC, **({"readOnly": True} if read_only else {})},
    }


def cache_mount(*, read_only: bool) -> Document:
    """Where a container sees it."""
    return {
        "name": VOLUME,
        "mountPath": MOUNT,
        **({"readOnly": True} if read_only else {}),
    }


def populate_job(
    settings: Settings, suffix: str, node: str, tolerated: Sequence[Mapping[str, Any]]
) -> Document:
    """The Job that downloads the model into the cache.

    Args:
        settings: with the model.
        suffix: of its name, 8 hex digits.
        node: value of the host name label.
        tolerated: tolerations, the workers' own.
    """
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": f"{PVC}-populate-{suffix}"},
        "spec": {
            "backoffLimit": 0,
            "template": {
                "spec": {
                    "restartPolicy": "Never",
                    "automountServiceAccountToken": False,
                    "nodeSelector": {"kubernetes.io/hostname": node},
                    "tolerations": [dict(each) for each in tolerated],
                    "securityContext": {"fsGroup": GROUP},
                    "containers": [
                        {
                            "name": "populate",
                            "image": RUNTIME_IMAGE,
                            "command": ["python3", "-c", _DOWNLOAD],
                            "env": [
                                {"name": "HF_HOME", "value": MOUNT},
                                {"name": "AICR_MODEL", "value": settings.model},
                                token_variable(),
                            ],
                            "resources": {"requests": {"cpu": "1", "memory": "4Gi"}},
                            "volumeMounts": [cache_mount(read_only=False)],
                        }
                    ],
                    "volumes": [cache_volume(read_only=False)],
                }
            },
        },
    }
