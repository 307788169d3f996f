"""What a snapshot says of a cluster that a bundle has to agree with, for a recipe's ``metadata``.

```
GPU.hardware.driver-loaded      gpuDriverState            preinstalled, absent
K8s.mariadb-operator            mariaDBOperatorState      absent, api-detected, crs-detected, unknown
K8s.default-storage-class       defaultStorageClassState  present, multiple, absent, unknown
K8s.percona-server-mongodb      perconaOperatorState      as MariaDB's, and operator-detected, aicr-owned
```
A state is left out when the snapshot has no such subtype, as one of an older collector. A subtype that
is there and says something else than it may is ``unknown``: could not tell is never "absent".

It must not know overlays or components; what a state means for a bundle is judged there.
Source: recipe spec 4.12, 8.3; bundler spec 6.4.8, 6.4.16.
"""

from __future__ import annotations

from aicr.constraints import paths
from aicr.errors import NOT_FOUND, AicrError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Final

    from aicr.recipe.types import RecipeMetadataBlock

UNKNOWN: Final = "unknown"
_STATE: Final = "collection-state"
_OPERATOR: Final = ("absent", "api-detected", "crs-detected", UNKNOWN)
_PERCONA: Final = (*_OPERATOR, "operator-detected", "aicr-owned")
_COUNTED: Final = ("absent", "detected")


def read(snapshot: Mapping[str, Any]) -> RecipeMetadataBlock:
    """The states that a snapshot gives, in the order of ``metadata``; none for what it lacks.

    Raises:
        AicrError: INVALID_REQUEST for a reading that has no text.
    """
    found: RecipeMetadataBlock = {}
    # A driver reading that is neither true nor false could not tell, and such a state has no name.
    driver = {"true": "preinstalled", "false": "absent"}.get(
        _reading(snapshot, "GPU.hardware.driver-loaded") or ""
    )
    if driver:
        found["gpuDriverState"] = driver
    mariadb = _operator(snapshot, "mariadb-operator", _OPERATOR)
    if mariadb:
        found["mariaDBOperatorState"] = mariadb
    storage = _storage_class(snapshot)
    if storage:
        found["defaultStorageClassState"] = storage
    percona = _operator(snapshot, "percona-server-mongodb", _PERCONA)
    if percona:
        found["perconaOperatorState"] = percona
    return found


def _operator(snapshot: Mapping[str, Any], subtype: str, known: tuple[str, ...]) -> str:
    state = _reading(snapshot, f"K8s.{subtype}.{_STATE}")
    return "" if state is None else state if state in known else UNKNOWN


def _storage_class(snapshot: Mapping[str, Any]) -> str:
    state = _reading(snapshot, f"K8s.default-storage-class.{_STATE}")
    if state is None:
        return ""
    count = _reading(snapshot, "K8s.default-storage-class.default-count") or ""
    if state not in _COUNTED or not (count.isascii() and count.isdigit()):
        return UNKNOWN
    return {0: "absent", 1: "present"}.get(int(count), "multiple")


def _reading(snapshot: Mapping[str, Any], path: str) -> str | None:
    """A reading, None when the snapshot has none there."""
    try:
        return paths.extract(snapshot, paths.parse(path))
    except AicrError as error:
        if error.code != NOT_FOUND:
            raise
        return None
