"""Bounding a provenance record to what may be published: digests, and names of the Pod template's own
fields.

The record says which fields of a worker template were changed or inherited. A path can carry what an
operator chose: names of containers and volumes, keys of labels and node selectors. Each of these
collapses to the list or map that it stands in, unless it is in a closed, exact set; every other part
must be a field of the API. There is no prefix or domain rule, because a customer's name can begin like
a vendor's. What does not fit is dropped. Bounding twice changes nothing. Pure. Source: validators spec
4.4; requirements V-213 to V-222.

A selector is judged where it stands: the original looks at the first place where the same selector
occurs, so that a second one of the same name after another field would stay.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from aicr.validate.provenance_bound_fields import FIELDS

#: Paths of each list that are kept.
MOST: Final = 1024

#: Environment variables whose names may be published: those of the shipped fabric runtime.
FABRIC: Final = frozenset(
    {
        "CUDA_VISIBLE_DEVICES",
        "LD_LIBRARY_PATH",
        "NCCL_BUFFSIZE",
        "NCCL_CROSS_NIC",
        "NCCL_DEBUG",
        "NCCL_DEBUG_SUBSYS",
        "NCCL_FASTRAK_CTRL_DEV",
        "NCCL_FASTRAK_ENABLE_CONTROL_CHANNEL",
        "NCCL_FASTRAK_ENABLE_HOTPATH_LOGGING",
        "NCCL_FASTRAK_IFNAME",
        "NCCL_FASTRAK_LLCM_DEVICE_DIRECTORY",
        "NCCL_FASTRAK_NUM_FLOWS",
        "NCCL_FASTRAK_PLUGIN_ACCEPT_TIMEOUT_MS",
        "NCCL_FASTRAK_USE_LLCM",
        "NCCL_FASTRAK_USE_SNAP",
        "NCCL_MIN_NCHANNELS",
        "NCCL_NET_GDR_LEVEL",
        "NCCL_NVLS_ENABLE",
        "NCCL_NVLSTREE_MAX_CHUNKSIZE",
        "NCCL_P2P_NET_CHUNKSIZE",
        "NCCL_P2P_NVL_CHUNKSIZE",
        "NCCL_P2P_PCI_CHUNKSIZE",
        "NCCL_PROTO",
        "NCCL_SHIMNET_GUEST_CONFIG_CHECKER_CONFIG_FILE",
        "NCCL_SOCKET_IFNAME",
        "NCCL_TUNER_CONFIG_PATH",
        "NCCL_TUNER_PLUGIN",
    }
)
#: Maps whose keys an operator chooses.
FREE_KEY_MAPS: Final = frozenset(
    {
        "annotations",
        "labels",
        "nodeSelector",
        "limits",
        "requests",
        "overhead",
        "matchLabels",
        "volumeAttributes",
        "options",
        "userAnnotations",
    }
)
#: Keys of such maps that may be published, whole.
VENDOR_KEYS: Final = frozenset(
    {
        "networking.gke.io/interfaces",
        "networking.gke.io/default-interface",
        "devices.gke.io/container.tcpxo-daemon",
        "cloud.google.com/gke-accelerator",
        "trainer.kubeflow.org/trainjob-ancestor-step",
        "nvidia.com/gpu",
        "nvidia.com/gpu.present",
        "node.kubernetes.io/instance-type",
    }
)

_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_PATH: Final = re.compile(r"[A-Za-z0-9._/*\-\[\]]{1,256}")
_SELECTOR: Final = re.compile(r"\[([^\[\]]+)\]")
_SEGMENT: Final = re.compile(r"([A-Za-z0-9]+)(\[[^\[\]]+\])?")
_DIGESTS: Final = ("shippedDigest", "derivedDigest")
_LISTS: Final = ("overriddenPaths", "inheritedPaths")


def bound(record: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The publishable part of a provenance record; None when a digest is not lowercase sha256 hex."""
    if not isinstance(record, Mapping):
        return None
    made: dict[str, Any] = {}
    for key in _DIGESTS:
        digest = record.get(key)
        if not (isinstance(digest, str) and _DIGEST.fullmatch(digest)):
            return None
        made[key] = digest
    for key in _LISTS:
        paths = record.get(key)
        kept = bound_paths(paths) if isinstance(paths, list) else []
        if kept:
            made[key] = kept
    return made


def bound_paths(paths: list[Any]) -> list[str]:
    """The publishable forms of *paths*: sorted, each once, at most `MOST`."""
    found = {kept for path in paths if isinstance(path, str) and (kept := bound_path(path))}
    return sorted(found)[:MOST]


def bound_path(path: str) -> str:
    """The publishable form of one path; "" when there is none."""
    if not _PATH.fullmatch(path):
        return ""
    path = _without_key(_SELECTOR.sub(_collapsed, path))
    for segment in path.split("."):
        match = _SEGMENT.fullmatch(segment)
        if match is None or match[1] not in FIELDS:
            return ""
        if segment in FREE_KEY_MAPS:
            # The map itself: what follows is one key, and that was decided above.
            return path
    return path


def _collapsed(found: re.Match[str]) -> str:
    field = found.string[: found.start()].rpartition(".")[2]
    return found[0] if field == "env" and found[1] in FABRIC else "[*]"


def _without_key(path: str) -> str:
    """*path* up to its first free-key map, unless the key that follows may be published."""
    end = 0
    for segment in path.split("."):
        end += len(segment)
        if segment in FREE_KEY_MAPS:
            return path if path[end + 1 :] in VENDOR_KEYS else path[:end]
        end += 1
    return path
