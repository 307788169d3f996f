"""The ``NodeTopology`` measurement: labels and taints of all nodes, and which nodes carry them.

Two encodings of the same readings stand side by side. ``data`` is the older one, a map of texts that old
consumers read; it folds several values of a key into keys of their own and can lose a reading whose key
looks like another's. ``items`` is lossless, and `constraints.nodelabels` prefers it. Names are sorted; a
list may be cut to a number of names, and then says so, because a rule about all nodes must not be
answered from half of them (decision 9).

Nodes are read as projections of name, labels and taints: 5,000 of them take a few megabytes.
Source: recipe spec 8.4 (NodeTopology rows), 8.7.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from aicr.collectors.readings import NODE_TOPOLOGY, Collected, Document, Scalar
from aicr.kube import kinds
from aicr.kube.projection import Part, Taint, shared
from aicr.kube.reader import Reader

#: key, effect ("" for a label) and value → names of the nodes that carry it.
Readings = dict[tuple[str, str, str], list[str]]


class NodeMetadata(Part, frozen=True):
    """Name and labels."""

    name: str = ""
    labels: dict[str, str] | None = None


class NodeTaints(Part, frozen=True):
    """Taints."""

    taints: tuple[Taint, ...] | None = None


class LabelledNode(Part, frozen=True):
    """As much of a node as topology is about."""

    metadata: NodeMetadata = NodeMetadata()
    spec: NodeTaints = NodeTaints()


class Labelled(Protocol):
    """What `readings_of` needs of a node."""

    @property
    def metadata(self) -> Any:
        """Has ``name`` and ``labels``."""

    @property
    def spec(self) -> Any:
        """Has ``taints``."""


async def collect(cluster: Reader, *, most_names: int = 0) -> Collected:
    """The measurement of all nodes; lists of more than *most_names* names are cut (0: never).

    Raises:
        AicrError: what listing the nodes raises; half a list is never measured.
    """
    nodes = await cluster.list(kinds.NODE, into=LabelledNode)
    return measure(nodes, most_names=most_names)


def measure(nodes: Sequence[Labelled], *, most_names: int = 0) -> Collected:
    """The measurement of *nodes*."""
    labels, taints = readings_of(nodes)
    label_data, taint_data = fold_labels(labels, most_names), fold_taints(taints, most_names)
    found = Collected(NODE_TOPOLOGY)
    found.add(
        "summary",
        {
            "node-count": len(nodes),
            "label-count": len(label_data),
            "taint-count": len(taint_data),
        },
    )
    found.add("label", label_data, items=items(labels, most_names))
    found.add("taint", taint_data, items=items(taints, most_names))
    return found


def readings_of(nodes: Iterable[Labelled]) -> tuple[Readings, Readings]:
    """Labels and taints of *nodes*: reading → sorted node names, readings sorted."""
    labels: Readings = {}
    taints: Readings = {}
    for node in nodes:
        name = node.metadata.name
        for key, value in (node.metadata.labels or {}).items():
            labels.setdefault((shared(key), "", shared(value)), []).append(name)
        for taint in node.spec.taints or ():
            names = taints.setdefault((taint.key, taint.effect, taint.value), [])
            # The API allows one taint of a key and effect; a duplicate would count the node twice.
            if name not in names[-1:]:
                names.append(name)
    return _ordered(labels), _ordered(taints)


def _ordered(readings: Readings) -> Readings:
    return {reading: sorted(readings[reading]) for reading in sorted(readings)}


def fold_labels(labels: Readings, most_names: int = 0) -> dict[str, Scalar]:
    """The older encoding: ``key: value|nodes``, or ``key.value: value|nodes`` for several values."""
    values = _variants(key for key, _, _ in labels)
    return {
        (key if values[key] == 1 else f"{key}.{value}"): f"{value}|{listed(names, most_names)}"
        for (key, _, value), names in labels.items()
    }


def fold_taints(taints: Readings, most_names: int = 0) -> dict[str, Scalar]:
    """The older encoding: ``key: Effect|value|nodes``, or ``key.Effect: value|nodes`` for several."""
    variants = _variants(key for key, _, _ in taints)
    found: dict[str, Scalar] = {}
    for (key, effect, value), names in taints.items():
        nodes = listed(names, most_names)
        if variants[key] == 1:
            found[key] = f"{effect}|{value}|{nodes}"
        else:
            found[f"{key}.{effect}"] = f"{value}|{nodes}"
    return found


def items(readings: Readings, most_names: int = 0) -> list[Document]:
    """The lossless encoding: an item for each reading."""
    return [
        {
            "context": {"key": key, **({"effect": effect} if effect else {}), "value": value},
            "data": {
                "node-count": len(names),
                "node-list": listed(names, most_names),
                "truncated": bool(most_names) and len(names) > most_names,
            },
        }
        for (key, effect, value), names in readings.items()
    ]


def listed(names: Sequence[str], most: int = 0) -> str:
    """Names joined by commas; of more than *most* the first ones and how many follow."""
    if not most or len(names) <= most:
        return ",".join(names)
    return f"{','.join(names[:most])} (+{len(names) - most} more)"


def _variants(keys: Iterable[str]) -> Mapping[str, int]:
    found: dict[str, int] = {}
    for key in keys:
        found[key] = found.get(key, 0) + 1
    return found
