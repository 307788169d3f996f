"""Measurements as documents: what a collector returns, and how it says that it could not tell.

A reading that was not taken is never written as an empty one, since a constraint would then be
compared with nothing; it is a `Missing` with an error, and the snapshot says so. "There is none" is a
reading like any other.

This module must not know what is measured. Source: recipe spec 8.1, decision 9.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from aicr.constraints import paths
from aicr.errors import AicrError

K8S: Final = "K8s"
GPU: Final = "GPU"
OS: Final = "OS"
SYSTEMD: Final = "SystemD"
NODE_TOPOLOGY: Final = "NodeTopology"
NETWORK_TOPOLOGY: Final = "NetworkTopology"
#: Every measurement type, in the order in which they are written.
TYPES: Final = (K8S, GPU, OS, SYSTEMD, NODE_TOPOLOGY, NETWORK_TOPOLOGY)
assert set(TYPES) == set(paths.TYPES)

Document = dict[str, Any]
Scalar = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Missing:
    """A reading that could not be taken: ``K8s``, ``K8s.policy`` or ``GPU.smi``, and why."""

    name: str
    error: AicrError


@dataclass(slots=True)
class Collected:
    """What one collector found, and what it could not tell."""

    type: str
    subtypes: list[Document] = field(default_factory=list)
    missing: list[Missing] = field(default_factory=list)
    #: Facts for the person who runs the command, such as that there is no GPU.
    remarks: list[str] = field(default_factory=list)

    def add(
        self,
        name: str,
        data: Mapping[str, Scalar],
        *,
        context: Mapping[str, str] | None = None,
        items: Sequence[Document] = (),
    ) -> None:
        """Add a subtype."""
        self.subtypes.append(subtype(name, data, context=context, items=items))

    def lacks(self, name: str, error: AicrError) -> None:
        """Say that a subtype could not be read."""
        self.missing.append(Missing(f"{self.type}.{name}", error))


def subtype(
    name: str,
    data: Mapping[str, Scalar],
    *,
    context: Mapping[str, str] | None = None,
    items: Sequence[Document] = (),
) -> Document:
    """A subtype in wire form, keys sorted; ``data`` is always there, if only empty."""
    found: Document = {"subtype": name, "data": {key: data[key] for key in sorted(data)}}
    if context:
        found["context"] = {key: context[key] for key in sorted(context)}
    if items:
        found["items"] = list(items)
    return found


def item(context: Mapping[str, str], data: Mapping[str, Scalar]) -> Document:
    """An entry of ``items``; an empty half is left out."""
    found: Document = {}
    if context:
        found["context"] = dict(context)
    if data:
        found["data"] = dict(data)
    return found


def measurement(collected: Collected) -> Document | None:
    """The measurement in wire form, subtypes sorted by name; None if nothing was measured."""
    if not collected.subtypes:
        return None
    ordered = sorted(collected.subtypes, key=lambda found: str(found["subtype"]))
    return {"type": collected.type, "subtypes": ordered}
