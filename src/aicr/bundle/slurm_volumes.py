"""Home and data volumes of a Slurm cluster, which its chart knows nothing of.

```
storage.home.storageClassName ─► PersistentVolumeClaim slurm-home, made before the chart
(--shared-storage-class)         a volume of every login and node set, mounted at /home
```
They exist only where a shared class is named, and that is known once every override is applied: a
``--set-json`` may name or remove a class as well as the flag (bundler spec 0.9). Claims outlive
the release, because they hold what people have written.

It must not know other components, folders or deployers.
"""

from __future__ import annotations

from aicr.errors import AicrError, invalid
from aicr.values import paths, quantities
from aicr.yamlio.write import dump

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, Final

    from aicr.bundle.overrides import Override

    Values = dict[str, Any]

SLURM: Final = "slinky-slurm"
#: The name under which the claims are listed among pre-manifests.
MANIFEST: Final = "slurm-shared-volumes.yaml"
#: Key below `storage` in the values, and where the volume is mounted.
MOUNTS: Final[dict[str, str]] = {"home": "/home", "data": "/data"}
#: Where no size is given: most shared file systems take any size and hold what is written.
DEFAULT_SIZE: Final = "100Gi"

#: Sets of pods by key in the values, and the container in which Slurm's users work.
_SETS: Final[dict[str, str]] = {"loginsets": "login", "nodesets": "slurmd"}
_VOLUMES: Final = "volumes"
_KEPT: Final[dict[str, str]] = {
    "helm.sh/resource-policy": "keep",
    "argocd.argoproj.io/sync-options": "Delete=false,Prune=false",
}


def check_dynamic(deferred: Iterable[Override]) -> None:
    """Refuse a class or size that is left to installation: it decides what the bundle holds.

    Raises:
        AicrError: INVALID_REQUEST naming the flag.
    """
    for override in deferred:
        if override.component == SLURM and override.segments[0] == "storage":
            raise invalid(
                f"{override.label} is not allowed: the class decides whether the bundle holds the "
                f"claim of a shared volume",
                where=override.flag,
                hint="name the class now, with --shared-storage-class",
            )


def materialise(values: Values, namespace: str) -> tuple[Values, list[tuple[str, str]], list[str]]:
    """Mount the shared volumes that have a class.

    Args:
        values: final values of the component; not changed.
        namespace: its namespace.

    Returns:
        Values, pre-manifests as (basename, text), and notes; all as they were without a class.

    Raises:
        AicrError: INVALID_REQUEST for a size that is none, and for values of a shape that cannot
            hold a volume.
    """
    claims: list[Values] = []
    notes: list[str] = []
    for key, mount in MOUNTS.items():
        wanted = _map(_map(values, "storage"), key)
        storage_class = wanted.get("storageClassName")
        if not isinstance(storage_class, str) or not storage_class:
            continue
        size = _size(key, wanted.get("size"))
        if wanted.get("size") is None:
            notes.append(
                f"{SLURM}: the shared volume {_claim(key)} asks for {size}; give another size with "
                f"--set {SLURM}:storage.{key}.size=<size>"
            )
        claims.append(_claim_object(key, storage_class, size, namespace))
        values = _mounted(values, key, mount)
    if not claims:
        return values, [], notes
    return values, [(MANIFEST, "---\n".join(dump(claim) for claim in claims))], notes


def written_paths(values: Values) -> list[list[str | int]]:
    """The paths that a shared volume is written to: two for each set of pods."""
    found: list[list[str | int]] = []
    for kind, container in _SETS.items():
        for own in sorted(_map(values, kind)):
            found.append([kind, own, "podSpec", _VOLUMES])
            found.append([kind, own, container, "volumeMounts"])
    return found


def _claim(key: str) -> str:
    return f"slurm-{key}"


def _size(key: str, given: Any) -> str:
    text = DEFAULT_SIZE if given is None else str(given)
    try:
        usable = quantities.parse(text).numerator > 0
    except AicrError:
        usable = False
    if not usable or isinstance(given, bool):
        raise invalid(
            f"{SLURM}:storage.{key}.size is {given!r}, which is no size of a volume",
            where=f"{SLURM}:storage.{key}.size",
            hint="write for example 500Gi",
        )
    return text


def _claim_object(key: str, storage_class: str, size: str, namespace: str) -> Values:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": _claim(key), "namespace": namespace, "annotations": dict(_KEPT)},
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "storageClassName": storage_class,
            "resources": {"requests": {"storage": size}},
        },
    }


def _mounted(values: Values, key: str, mount: str) -> Values:
    """The values with the volume in every set of pods; a set that has it already is left alone."""
    name = f"shared-{key}"
    claim = {"name": name, "persistentVolumeClaim": {"claimName": _claim(key)}}
    for path in written_paths(values):
        entry = claim if path[-1] == _VOLUMES else {"name": name, "mountPath": mount}
        values = _with_entry(values, path, entry)
    return values


def _with_entry(values: Values, path: list[str | int], entry: Values) -> Values:
    held = paths.get(values, path, None)
    listed = [] if held is None else held
    if not isinstance(listed, list):
        raise invalid(
            f"{SLURM}:{paths.join(path)} is {paths.a_type(held)}, and a shared volume needs a "
            f"list there",
            where=f"{SLURM}:{paths.join(path)}",
            hint="write a list",
        )
    if any(isinstance(each, dict) and each.get("name") == entry["name"] for each in listed):
        return values
    changed: Values = paths.put(values, path, [*listed, entry])
    return changed


def _map(values: Values, key: str) -> Values:
    held = values.get(key)
    return held if isinstance(held, dict) else {}
