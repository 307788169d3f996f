"""Decoding of ``NodeTopology.label``: which nodes carry which value of a label.

A snapshot holds labels in up to two encodings. The older one is a map of texts: a key with one
value is ``key: value|n1,n2``; a key with several values becomes ``key.value: value|n1,n2`` for
each. It is lossy: a label whose own name is ``key.value`` looks the same, and long node lists are
cut to ``n1,n2 (+5 more)``. The newer one is a list of items with the key, the value and the nodes
apart.

Design: decoding is strict and says why it refuses, because a rule about all GPU nodes must not hold
by accident of an encoding. Items are used whenever there are any. This module must not know rules
or services. Source: recipe spec 8.4 (NodeTopology rows) and 8.7.
"""

from __future__ import annotations

import re

from aicr.errors import AicrError, invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Final

_TRUNCATED: Final = re.compile(r" ?\(\+([0-9]+) more\)\Z")
_NODE_NAME: Final = re.compile(
    r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*", re.ASCII
)
_MAX_NODE_NAME: Final = 253
_RECOLLECT: Final = "collect the snapshot again with complete node lists"


class NodeList:
    """The nodes of one reading: the names given, and how many more were cut off."""

    __slots__ = ("cut", "names")

    def __init__(self, names: Sequence[str], cut: int) -> None:
        self.names = names
        self.cut = cut

    @property
    def count(self) -> int:
        """How many nodes there are, named or not."""
        return len(self.names) + self.cut


def values_of(subtype: Mapping[str, Any], key: str) -> dict[str, NodeList]:
    """Nodes by value of one label, as the readings say, without judging completeness.

    Returns {} when no node carries the label.

    Raises:
        AicrError: INVALID_REQUEST for a reading that is malformed or can be read in two ways.
    """
    items = subtype.get("items")
    if items:
        return _from_items(items, key)
    return _from_readings(subtype.get("data") or {}, key)


def nodes_by_value(subtype: Mapping[str, Any], key: str) -> dict[str, frozenset[str]]:
    """Nodes by value of one label, complete and disjoint.

    Raises:
        AicrError: INVALID_REQUEST for a malformed or ambiguous reading, a list that was cut, an
            empty or repeated node name, and a node that carries two values (recipe spec 8.7).
    """
    found: dict[str, frozenset[str]] = {}
    seen: set[str] = set()
    for value, nodes in values_of(subtype, key).items():
        place = f"{key}={value}"
        if nodes.cut:
            raise invalid(
                f"node list of label {place} is truncated ({nodes.cut} more)", hint=_RECOLLECT
            )
        names = frozenset(nodes.names)
        for name in nodes.names:
            if len(name) > _MAX_NODE_NAME or not _NODE_NAME.fullmatch(name):
                raise _malformed(place, f'"{name}" is not a node name')
        if not names or len(names) != len(nodes.names):
            raise _malformed(place, "a node is listed twice" if names else "it lists no node")
        both = sorted(seen & names)
        if both:
            raise _ambiguous(key, f"node {both[0]} is listed under two values")
        seen |= names
        found[value] = names
    return found


def _from_readings(data: Mapping[str, Any], key: str) -> dict[str, NodeList]:
    if key in data:
        value, nodes = _decode(key, data[key])
        return {value: nodes}
    prefix = f"{key}."
    found = {}
    for name, reading in data.items():
        if not name.startswith(prefix):
            continue
        value, nodes = _decode(name, reading)
        # Another label may merely start like this one; only a suffix that repeats the value is
        # ours.
        if name == prefix + value:
            found[value] = nodes
    if len(found) == 1:
        only = next(iter(found))
        raise _ambiguous(
            key,
            f'"{prefix}{only}" may be a label of that name, or {key}={only} without its siblings',
        )
    return found


def _decode(name: str, reading: object) -> tuple[str, NodeList]:
    """``value|n1,n2 (+3 more)`` taken apart."""
    if not isinstance(reading, str) or reading.count("|") != 1:
        raise _malformed(name, 'it is not "<value>|<node>,<node>"')
    value, _, listed = reading.partition("|")
    return value, _split_nodes(listed)


def _split_nodes(listed: str) -> NodeList:
    cut = 0
    # Only a list that ends like a cut one is searched; lists of thousands of names are common.
    match = _TRUNCATED.search(listed, max(0, len(listed) - 40)) if listed[-1:] == ")" else None
    if match is not None:
        cut = int(match.group(1))
        listed = listed[: match.start()]
    return NodeList(listed.split(",") if listed else [], cut)


def _from_items(items: Sequence[Any], key: str) -> dict[str, NodeList]:
    found: dict[str, NodeList] = {}
    for index, item in enumerate(items):
        place = f"item {index}"
        context = item.get("context") if isinstance(item, dict) else None
        if not isinstance(context, dict) or not isinstance(context.get("key"), str):
            raise _malformed(place, 'its context has no "key"')
        if context["key"] != key:
            continue
        value = context.get("value", "")
        data = item.get("data")
        if not isinstance(value, str) or not isinstance(data, dict):
            raise _malformed(place, 'it has no text "value" or no "data"')
        nodes = _item_nodes(data, f"{key}={value}")
        if value in found:
            raise _malformed(place, f"a second item for {key}={value}")
        found[value] = nodes
    return found


def _item_nodes(data: Mapping[str, Any], place: str) -> NodeList:
    listed = data.get("node-list")
    if isinstance(listed, list) and all(isinstance(name, str) for name in listed):
        nodes = NodeList(listed, 0)
    elif isinstance(listed, str):
        nodes = _split_nodes(listed)
    else:
        raise _malformed(place, 'its "node-list" is not a list of names')
    count = data.get("node-count")
    truncated = data.get("truncated", False)
    if not isinstance(truncated, bool) and truncated not in ("true", "false"):
        raise _malformed(place, '"truncated" is neither true nor false')
    if count is not None and (isinstance(count, bool) or not isinstance(count, int)):
        raise _malformed(place, '"node-count" is not a whole number')
    if truncated in (True, "true"):
        missing = max(nodes.cut, 1, (count or 0) - len(nodes.names))
        return NodeList(nodes.names, missing)
    if count is not None and count != nodes.count:
        raise _malformed(place, f"node-count is {count}, and {nodes.count} nodes are listed")
    return nodes


def _malformed(place: str, why: str) -> AicrError:
    return invalid(f"malformed NodeTopology.label reading {place}: {why}", hint=_RECOLLECT)


def _ambiguous(key: str, why: str) -> AicrError:
    return invalid(
        f"ambiguous NodeTopology.label readings for {key}: {why}",
        hint="collect the snapshot with the current version, which writes labels unambiguously",
    )
