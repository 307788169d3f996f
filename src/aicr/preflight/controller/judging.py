"""Which PreflightConfig of a namespace counts, and what each is told. Pure.

| objects | in force | told |
|---|---|---|
| one, valid | it | Ready=True |
| one, invalid | the default | Ready=False |
| several | the oldest, then the first by name, as above | the others Ready=False |

An object without a ``gangDiscovery`` block sets nothing: it counts as valid, and the default stays in
force (decision 75). This module must not build discoverers or write. Source: preflight spec 3.6.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from aicr.kube.kinds import Resource
from aicr.kube.port import Document

PREFLIGHT_CONFIG: Final = Resource(
    *("preflight.nvsentinel.nvidia.com", "v1alpha1", "preflightconfigs", "PreflightConfig", True),
    *("preflightconfig", ("pfc",)),
    subresources=("status",),
)
READY: Final = "Ready"
ACTIVE: Final = "DiscovererActive"
INVALID: Final = "InvalidOrConflicting"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of the object that is first in its namespace."""

    discoverer: str = ""
    error: str = ""
    """Why it is not in force; "" if it is."""


def in_order(documents: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The objects of a namespace, the one that counts first."""

    def age(document: Mapping[str, Any]) -> tuple[str, str]:
        metadata = document["metadata"]
        return metadata.get("creationTimestamp") or "", metadata["name"]

    return sorted(documents, key=age)


def block(document: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The ``gangDiscovery`` block of an object; None if it has none."""
    found = (document.get("spec") or {}).get("gangDiscovery")
    return found if isinstance(found, Mapping) else None


def statuses(
    ordered: Sequence[Mapping[str, Any]], outcome: Outcome, now: datetime
) -> list[Document]:
    """The objects of *ordered* whose status has to change, with the new one.

    ``lastTransitionTime`` moves only when the condition's status does, so that nothing is written when
    nothing changed.
    """
    changed: list[Document] = []
    for position, document in enumerate(ordered):
        if position == 0:
            ready, message = not outcome.error, outcome.error or "discoverer active"
            message = f"invalid configuration: {message}" if outcome.error else message
            discoverer = "" if outcome.error else outcome.discoverer
        else:
            ready, discoverer = False, ""
            message = _superseded(ordered[0]["metadata"]["name"], active=not outcome.error)
        status = _status(document, ready=ready, discoverer=discoverer, message=message, now=now)
        if status != document.get("status"):
            changed.append({**document, "status": status})
    return changed


def _superseded(winner: str, *, active: bool) -> str:
    if active:
        return (
            f'PreflightConfig "{winner}" is already active in this namespace; only one is allowed'
        )
    return (
        f'superseded by older PreflightConfig "{winner}" (not active: invalid configuration); '
        "only one is allowed per namespace"
    )


def _status(
    document: Mapping[str, Any], *, ready: bool, discoverer: str, message: str, now: datetime
) -> Document:
    generation = document["metadata"].get("generation", 0)
    value = "True" if ready else "False"
    old = (document.get("status") or {}).get("conditions") or []
    before: Mapping[str, Any] = next((c for c in old if c.get("type") == READY), {})
    since = before.get("lastTransitionTime") if before.get("status") == value else None
    condition = {
        "type": READY,
        "status": value,
        "observedGeneration": generation,
        "lastTransitionTime": since or now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "reason": ACTIVE if ready else INVALID,
        "message": message,
    }
    others = [entry for entry in old if entry.get("type") != READY]
    status: Document = {
        "observedGeneration": generation,
        "conditions": [*others, condition],
    }
    # An empty text and an absent one are the same to the server, which drops it or not as it was sent.
    if discoverer or "discoverer" in (document.get("status") or {}):
        status["discoverer"] = discoverer
    return status
