"""The gang's ConfigMap: what stands in it, read and written. Pure.

| key | holds |
|---|---|
| ``gang_id``, ``master_port`` | the full id; the port of PyTorch's rendezvous |
| ``expected_count`` | members to wait for; "0" while that is not known |
| ``peers`` | a line ``podName;podIP;rank;checks`` for each member with an address, by rank |
| ``master_addr`` | the address of rank 0 |
| ``members`` | the same members as JSON, with their UIDs |
| ``missing`` | names of live members that have no address yet |
| ``checks`` | the checks that the members agreed on, comma separated |
| ``generation`` | counts memberships: a completed one never changes, a restart opens the next |

What only the controller needs between two writes is one annotation (`STATE`), which no mounted file
shows. This module must not know how a membership is decided. Source: preflight spec 4.2, decisions 22,
27, 72.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import msgspec

from aicr.kube.port import Document
from aicr.preflight import names
from aicr.preflight.gang.naming import sanitize

GANG_ID: Final = "gang_id"
EXPECTED: Final = "expected_count"
MASTER_PORT: Final = "master_port"
MASTER_ADDR: Final = "master_addr"
PEERS: Final = "peers"
MEMBERS: Final = "members"
MISSING: Final = "missing"
CHECKS: Final = "checks"
GENERATION: Final = "generation"

STATE: Final = "aicr.run/gang-state"
#: Who named the checks first, and when: for the words of a refusal, and to know an old agreement.
AGREED_BY: Final = "aicr.run/gang-checks-by"
AGREED_AT: Final = "aicr.run/gang-checks-at"

#: A list of names that a person reads need not be longer.
MOST_MISSING: Final = 64


@dataclass(frozen=True, slots=True)
class Peer:
    """One line of ``peers``; rank -1 if the line has none."""

    name: str
    ip: str
    rank: int = -1
    checks: str = ""


@dataclass(frozen=True, slots=True)
class Member:
    """One entry of ``members``."""

    uid: str
    name: str
    ip: str
    rank: int
    checks: str = ""

    @property
    def line(self) -> str:
        """Its line of ``peers``, with four fields (decision 27)."""
        return f"{self.name};{self.ip};{self.rank};{self.checks}"


@dataclass(frozen=True, slots=True)
class Memory:
    """What the controller remembers in the annotation `STATE`."""

    group_uid: str = ""
    minimum: int | None = None
    most: int = 0
    """Members that were alive at once."""
    lost_at: str = ""
    seen: tuple[str, ...] = ()
    """Ends of the UIDs of the pods that were alive at the last write."""


@dataclass(frozen=True, slots=True)
class State:
    """A ConfigMap as read; what cannot be read counts as not written."""

    gang_id: str = ""
    expected: int = 0
    master_port: int = 0
    generation: int = 0
    checks: str = ""
    peers: tuple[Peer, ...] = ()
    members: tuple[Member, ...] = ()
    memory: Memory = field(default_factory=Memory)

    @property
    def complete(self) -> bool:
        """Whether its membership is complete, and so frozen."""
        return 0 < self.expected <= len(self.members)


def read_peers(text: str) -> tuple[Peer, ...]:
    """The lines of ``peers``, of two to four fields each; shorter lines are no lines (decision 27).

    IPv6 addresses hold colons and no semicolons, so nothing else is split on (field case J11).
    """
    found: list[Peer] = []
    for line in text.splitlines():
        parts = [part.strip() for part in line.split(";")]
        if len(parts) < 2:
            continue
        rank = _number(parts[2], -1) if len(parts) > 2 else -1
        found.append(Peer(parts[0], parts[1], rank, parts[3] if len(parts) > 3 else ""))
    return tuple(found)


def read(document: Mapping[str, Any] | None) -> State:
    """What the ConfigMap *document* says; None is an empty one."""
    if document is None:
        return State()
    data = document.get("data") or {}
    annotations = (document.get("metadata") or {}).get("annotations") or {}
    return State(
        gang_id=data.get(GANG_ID, ""),
        expected=_number(data.get(EXPECTED, ""), 0),
        master_port=_number(data.get(MASTER_PORT, ""), 0),
        generation=_number(data.get(GENERATION, ""), 0),
        checks=data.get(CHECKS, ""),
        peers=read_peers(data.get(PEERS, "")),
        members=_decoded(data.get(MEMBERS, ""), tuple[Member, ...], ()),
        memory=_decoded(annotations.get(STATE, ""), Memory, Memory()),
    )


def skeleton(name: str, namespace: str, gang_id: str, master_port: int) -> Document:
    """The ConfigMap of a gang of which no member is known yet."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {
                names.GANG_ID_LABEL: sanitize(gang_id),
                names.MANAGED_BY_LABEL: names.MANAGED_BY,
            },
        },
        "data": {
            GANG_ID: gang_id,
            EXPECTED: "0",
            MASTER_PORT: str(master_port),
            PEERS: "",
            MASTER_ADDR: "",
            MEMBERS: "[]",
            MISSING: "",
            CHECKS: "",
            GENERATION: "1",
        },
    }


def with_data(document: Mapping[str, Any], data: Mapping[str, str]) -> Document:
    """*document* with some keys of ``data`` replaced."""
    return {**document, "data": {**(document.get("data") or {}), **data}}


def with_annotations(document: Mapping[str, Any], annotations: Mapping[str, str]) -> Document:
    """*document* with some annotations replaced."""
    metadata = document.get("metadata") or {}
    merged = {**(metadata.get("annotations") or {}), **annotations}
    return {**document, "metadata": {**metadata, "annotations": merged}}


def with_owner(document: Mapping[str, Any], owner: Mapping[str, Any] | None) -> Document:
    """*document* owned by the gang's object.

    A reference with the same apiVersion, kind and name gets the new UID in its place, others are
    kept; *owner* None changes nothing (preflight spec 4.3).
    """
    metadata = document.get("metadata") or {}
    references = copy.deepcopy(list(metadata.get("ownerReferences") or []))
    if owner is None:
        return dict(document)
    for reference in references:
        if all(reference.get(key) == owner[key] for key in ("apiVersion", "kind", "name")):
            if reference.get("uid") == owner["uid"]:
                return dict(document)
            reference["uid"] = owner["uid"]
            break
    else:
        references.append(dict(owner))
    return {**document, "metadata": {**metadata, "ownerReferences": references}}


def member_data(members: Sequence[Member], missing: Iterable[str]) -> dict[str, str]:
    """The keys that say who the members are; *members* by rank."""
    absent = list(missing)
    shown = absent[:MOST_MISSING]
    if len(absent) > len(shown):
        shown.append(f"and {len(absent) - len(shown)} more")
    return {
        PEERS: "\n".join(member.line for member in members),
        MEMBERS: msgspec.json.encode(members).decode(),
        MASTER_ADDR: members[0].ip if members else "",
        MISSING: ", ".join(shown),
    }


def memory_text(memory: Memory) -> str:
    """The value of the annotation `STATE`."""
    return msgspec.json.encode(memory).decode()


def stamp(now: datetime) -> str:
    """A time as annotations hold it."""
    return now.isoformat(timespec="seconds")


def endpoint(address: str, port: int | str) -> str:
    """``host:port``, with an IPv6 address in brackets."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _number(text: str, otherwise: int) -> int:
    try:
        return int(text)
    except ValueError:
        return otherwise


def _decoded(text: str, into: Any, otherwise: Any) -> Any:
    # A hand-edited value must not stop a gang: it is written anew from what is alive.
    try:
        return msgspec.json.decode(text, type=into)
    except msgspec.DecodeError:
        return otherwise
