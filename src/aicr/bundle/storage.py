"""Storage classes, written to the value paths that the registry names (bundler spec 3.6).

``--storage-class`` goes to block volumes and ``--shared-storage-class`` to volumes that many pods
write; neither ever stands in for the other. A volume that is left without a class is worth a word,
because what the cluster's default class is differs between clusters.
"""

from __future__ import annotations

from aicr.bundle.value_slots import held
from aicr.values import paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from aicr.bundle.options import Scheduling
    from aicr.bundle.placement import Target

#: Registry field and the flag that fills its paths.
KINDS: Final = (
    ("storageClassPaths", "--storage-class"),
    ("sharedStorageClassPaths", "--shared-storage-class"),
)

#: Keys beside a storage class that show a volume claim is really rendered there.
_CLAIM_KEYS: Final = ("accessModes", "resources", "size", "storage", "volumeMode")


def write_storage_classes(target: Target, scheduling: Scheduling) -> None:
    """Write the given classes to every routed path that no ``--set`` names exactly.

    Raises:
        AicrError: INVALID_REQUEST when a ``--set`` lies above or below a path (decision 7).
    """
    given = (scheduling.storage_class, scheduling.shared_storage_class)
    for (field, flag), name in zip(KINDS, given, strict=True):
        if not name:
            continue
        for path in target.entry.get(field) or ():
            if not _set_exactly(target, path) and target.takes(path, flag):
                target.write(path, name, flag)


def missing_class_notes(target: Target) -> list[str]:
    """Notes on volume claims in the final values that name no storage class."""
    notes = []
    for field, flag in KINDS:
        for path in target.entry.get(field) or ():
            segments = paths.split(path)
            claim = held(target.values, paths.join(segments[:-1])) if len(segments) > 1 else None
            if target.deferred(path):
                continue
            if held(target.values, path) is None and _is_claim(claim):
                notes.append(
                    f"{target.name} renders a PVC without storageClassName at {path}; set "
                    f"{flag} <name> or --set {target.name}:{path}=<name>, else the cluster's "
                    f"default class is used"
                )
    return notes


def _set_exactly(target: Target, path: str) -> bool:
    segments = paths.split(path)
    return any(override.segments == segments for override in target.scalars)


def _is_claim(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and value.get("enabled") is not False
        and any(value.get(key) for key in _CLAIM_KEYS)
    )
