"""``gangDiscovery``, of the webhook's file and of a PreflightConfig object: typed, defaulted, judged.

Both places have one schema. An empty block means the gang API of Kubernetes itself; any other block
must say how a PodGroup is found and where its minimum size stands. What the API server serves is not
this module's business. Source: preflight spec 1.4, seed (default of ``minCountExpr``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from aicr.errors import AicrError, invalid
from aicr.preflight.config_types import GangDiscovery as DiscoveryDocument
from aicr.preflight.shapes import conform

DEFAULT_MIN_COUNT: Final = "podGroup.spec.minMember"


@dataclass(frozen=True, slots=True)
class GangDiscovery:
    """How pods of one gang are recognised."""

    name: str = ""
    annotation_keys: tuple[str, ...] = ()
    label_keys: tuple[str, ...] = ()
    group: str = ""
    version: str = ""
    resource: str = ""
    min_count_expr: str = ""

    @property
    def native(self) -> bool:
        """Whether the gang API of Kubernetes itself is meant: every field is empty."""
        return self == _NATIVE

    def problem(self) -> AicrError | None:
        """Why the block says neither "native" nor how to find a PodGroup; None if it does."""
        complete = (
            self.name
            and (self.annotation_keys or self.label_keys)
            and self.group
            and self.version
            and self.resource
        )
        if self.native or complete:
            return None
        return invalid(
            f'invalid gangDiscovery config: name "{self.name}" requires annotationKeys/labelKeys, '
            "podGroupGVR, and minCountExpr",
            hint="leave gangDiscovery empty for the gang API of Kubernetes, or set name, "
            "annotationKeys or labelKeys, and group, version and resource of podGroupGVR",
        )


_NATIVE: Final = GangDiscovery()


def read_discovery(document: Mapping[str, Any] | None, *, where: str = "") -> GangDiscovery:
    """The block *document* with its default; it may still have a `GangDiscovery.problem`.

    Raises:
        AicrError: INVALID_REQUEST when a field has the wrong type; *where* is the place it names.
    """
    if not document:
        return _NATIVE
    conform(document, DiscoveryDocument, where=where)
    resource = document.get("podGroupGVR") or {}
    found = GangDiscovery(
        name=document.get("name") or "",
        annotation_keys=tuple(document.get("annotationKeys") or ()),
        label_keys=tuple(document.get("labelKeys") or ()),
        group=resource.get("group") or "",
        version=resource.get("version") or "",
        resource=resource.get("resource") or "",
        min_count_expr=document.get("minCountExpr") or "",
    )
    if found == _NATIVE or found.min_count_expr:
        return found
    return GangDiscovery(
        found.name,
        found.annotation_keys,
        found.label_keys,
        found.group,
        found.version,
        found.resource,
        DEFAULT_MIN_COUNT,
    )
