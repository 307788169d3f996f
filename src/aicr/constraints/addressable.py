"""Which readings a constraint can speak of at all: the check that catches a typo at load time.

A misspelt path would otherwise look like a reading that the cluster lacks, and quietly exclude an
overlay. The catalogue says, for each subtype that collectors write, which keys it has; subtypes
whose keys come from the cluster (labels, sysctls, units) are open. It describes what is written
today; evaluation itself does not consult it, so that snapshots of other versions can still be read.

A new collector key is one entry here. Source: recipe spec 8.3.
"""

from __future__ import annotations

from aicr.constraints import nodeset, paths
from aicr.errors import edit_distance, invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from aicr.constraints.paths import MeasurementPath

#: Keys that come from the cluster; any name is addressable.
OPEN: Final = None
#: A subtype of this name stands for every subtype of its type.
ANY: Final = "*"

#: Scalar keys by type and subtype; OPEN for any key.
SCALARS: Final[dict[str, dict[str, tuple[str, ...] | None]]] = {
    "K8s": {
        "server": ("version", "platform", "goVersion"),
        "node": (
            "source-node",
            "provider",
            "provider-id",
            "container-runtime-id",
            "container-runtime-name",
            "container-runtime-version",
            "kubelet-version",
            "kernel-version",
            "operating-system",
            "os-image",
        ),
        "image": OPEN,
        "policy": OPEN,
        "aks-gpu-pools": ("gpu-pool-count", "gpu-pools", "gpu-driver"),
        "gke-gpu-pools": ("gpu-pool-count", "gpu-pools", "gpu-driver-installation"),
        "oke-addons": ("addon-count", "nvidia-gpu-plugin"),
        "oke-legacy-plugin": ("nvidia-gpu-device-plugin", "daemonset"),
        "slinky-slurm": (
            "api-available",
            "api-version",
            "collection-state",
            "controller-count",
            "detected",
            "nodeset-count",
            "loginset-count",
            "restapi-count",
            "accounting-count",
        ),
        "mariadb-operator": ("collection-state", "api-available", "api-version"),
        "default-storage-class": ("collection-state", "default-count", "default-classes"),
        # Its keys are not documented; refusing all of them would be worse than checking none.
        "percona-server-mongodb": OPEN,
    },
    "GPU": {
        "hardware": ("gpu-present", "gpu-count", "driver-loaded", "detection-source", "model"),
    },
    "OS": {"release": OPEN, "sysctl": OPEN, "grub": OPEN, "kmod": OPEN, "extensions": OPEN},
    "SystemD": {ANY: OPEN},
    "NodeTopology": {
        "summary": ("node-count", "taint-count", "label-count"),
        "label": OPEN,
        "taint": OPEN,
    },
    "NetworkTopology": {
        "identity": ("pf-count", "rail-count"),
        "capabilities": ("sriov", "rdma", "ib"),
        "pfs": (),
        "kernel-modules": OPEN,
    },
}

#: Keys of items, for the subtypes that have any.
ITEMS: Final[dict[tuple[str, str], tuple[str, ...] | None]] = {
    ("K8s", "slinky-slurm"): (
        "cluster-name",
        "external",
        "accounting-ref-present",
        "partition-enabled",
        "id",
        "kind",
        "namespace",
        "name",
        "api-version",
        "controller-id",
    ),
    ("NodeTopology", "label"): OPEN,
    ("NodeTopology", "taint"): OPEN,
    ("NetworkTopology", "pfs"): OPEN,
}

#: A suggestion further away than this many edits is a guess, not help.
_SUGGESTION_DISTANCE: Final = 2


def lint(name: str) -> None:
    """Refuse a constraint name that no collector can ever answer (recipe spec 8.3).

    Raises:
        AicrError: INVALID_REQUEST for a malformed path, an unknown subtype or key (with the nearest
            known one), or a selector where there are no items, and the reverse.
    """
    if name == nodeset.NAME:
        return
    path = paths.parse(name)
    subtypes = SCALARS[path.type]
    items: tuple[str, ...] | None
    if ANY in subtypes:
        keys, items = subtypes[ANY], ()
    elif path.subtype in subtypes:
        keys, items = subtypes[path.subtype], ITEMS.get((path.type, path.subtype), ())
    else:
        raise invalid(
            f'unknown subtype "{path.subtype}" for measurement type "{path.type}"'
            f"{_suggestion(path.subtype, list(subtypes))}",
            where=name,
            hint=f"subtypes of {path.type}: {', '.join(sorted(subtypes))}",
        )
    _check_key(path, keys, items)


def _check_key(
    path: MeasurementPath, keys: tuple[str, ...] | None, items: tuple[str, ...] | None
) -> None:
    has_items = items is OPEN or bool(items)
    if path.selector is None and keys == ():
        raise invalid(
            f'subtype "{path.subtype}" exposes no scalar readings; it requires an item selector, '
            f"e.g. {path.type}.{path.subtype}[0].{path.key}",
            where=path.text,
        )
    if path.selector is not None and not has_items:
        raise invalid(
            f'subtype "{path.subtype}" has no items; an item selector is not valid here',
            where=path.text,
            hint=f"write {path.type}.{path.subtype}.{path.key}",
        )
    known = keys if path.selector is None else items
    if known is not OPEN and path.key not in known:
        raise invalid(
            f'unknown key "{path.key}" for subtype "{path.type}.{path.subtype}"'
            f"{_suggestion(path.key, list(known))}",
            where=path.text,
            hint=f"keys of {path.type}.{path.subtype}: {', '.join(sorted(known))}",
        )


def _suggestion(word: str, known: list[str]) -> str:
    ranked = sorted((edit_distance(word, entry), entry) for entry in known if entry != ANY)
    if ranked and ranked[0][0] <= _SUGGESTION_DISTANCE:
        return f'; did you mean "{ranked[0][1]}"?'
    return ""
