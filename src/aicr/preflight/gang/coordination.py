"""What a gang's ConfigMap should say: (group, pods, current ConfigMap) → desired ConfigMap. Pure.

```
forming ──all have addresses──► complete (frozen) ──member lost or moved──► forming, next generation
   ▲                                                                              │
   └────────────────── nobody alive: emptied, next generation ◄───────────────────┘
```

- A member is a live pod (Pending or Running, not terminating) that mounts the ConfigMap, by UID. Ranks
  are by name in byte order.
- ``expected_count`` is "0" while the group is not there; then its minimum, less pods of the group that
  mount nothing (opted out, no GPU), or the number of members where that is more (decision 71). A
  failure does not lower it: the most members that were alive at once are waited for as long as the
  failed pod is still there, and `Rules.hold` seconds beyond.
- A size that is only the number of members seen so far counts once no member has come for
  `Rules.settle` seconds; until then "0" (known bug S13).
- A complete membership does not change. Who comes later is late, and is not in it. A lost member, or
  one with another address, opens the next generation.

This module must not read clocks or clusters. Source: preflight spec 4.4, decisions 22, 70 to 72, field
cases J1, J4, J10, J11.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, ClassVar, Final

from aicr.kube.port import Document
from aicr.preflight.gang import configmap as cm
from aicr.preflight.gang.addresses import common_addresses
from aicr.preflight.gang.groups import Group
from aicr.preflight.gang.pods import GangPod
from aicr.values.waiting import Waits

#: Characters of a UID's end that `configmap.Memory` keeps: 48 random bits.
_TAIL: Final = 12


@dataclass(frozen=True, slots=True)
class Rules(Waits):
    """The decision about a gang."""

    FIXED: ClassVar[str] = "replicas must decide alike, and need not have the same factor"

    #: A size that is only the number of members seen counts once none has come for so long.
    settle: float = 5.0
    #: How long members that were alive are waited for once their failed pods are gone.
    hold: float = 120.0


@dataclass(frozen=True, slots=True)
class Gang:
    """What is known of a gang apart from its pods."""

    namespace: str
    config_map: str
    gang_id: str
    master_port: int
    group: Group
    others: int = 0
    """Live pods of the group that mount no gang volume at all."""
    taken_ports: Callable[[str], frozenset[int]] = lambda node: frozenset()
    """Ports that masters of other gangs use in the network of *node*."""
    last_generation: int = 0
    """The generation of the ConfigMap before it was deleted, so that a new one does not repeat it."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do."""

    document: Document | None
    """The ConfigMap to write; None if the current one says it all."""
    state: cm.State
    """What will then be written there."""
    urgent: bool = False
    """Whether somebody may act wrongly on what is written now; else it may wait for more."""
    wait: float = 0.0
    """Seconds after which time alone may change the decision; 0 for never."""
    reasons: tuple[str, ...] = ()
    """What a person should know, one sentence each."""
    pruned: tuple[str, ...] = ()
    joined: tuple[str, ...] = ()
    late: tuple[str, ...] = ()


def plan(
    gang: Gang,
    pods: Sequence[GangPod],
    current: Mapping[str, Any] | None,
    *,
    now: datetime,
    checks_of: Callable[[GangPod], str],
    rules: Rules | None = None,
) -> Plan:
    """The decision for one gang.

    Args:
        gang: its names, and its group as just read.
        pods: every pod that mounts its ConfigMap, dead ones included.
        current: the ConfigMap as it is; None if there is none.
        now: wall clock, in the time zone of UTC.
        checks_of: the checks that a pod was admitted with, comma separated.
        rules: waiting times; the defaults are the product's.
    """
    return _Decision(gang, pods, current, now, checks_of, rules or Rules()).plan()


class _Decision:
    """One run of `plan`: the inputs, and what follows from them."""

    def __init__(
        self,
        gang: Gang,
        pods: Sequence[GangPod],
        current: Mapping[str, Any] | None,
        now: datetime,
        checks_of: Callable[[GangPod], str],
        rules: Rules,
    ) -> None:
        self.gang, self.group, self.rules = gang, gang.group, rules
        self.now, self.checks_of = now, checks_of
        self.current = current
        self.state = cm.read(current)
        if current is None:
            self.state = replace(self.state, generation=gang.last_generation)
        self.memory = self.state.memory
        self.pods = {_tail(pod.uid): pod for pod in pods}
        self.live = sorted((pod for pod in pods if pod.live), key=lambda pod: pod.name.encode())
        self.reasons: list[str] = []

    def plan(self) -> Plan:
        if not self.live:
            return self._emptied()
        if self.group.reason:
            self.reasons.append(self.group.reason)
        restarted = self._restarted()
        addresses, refused = common_addresses(self.live)
        self.reasons += refused
        if self.state.complete and not restarted:
            lost, moved = self._left(addresses)
            if not lost and not moved:
                return self._frozen()
            return self._forming(addresses, anew=True, lost=bool(lost), restarted=False)
        gone = bool(self._gone()) and not restarted
        anew = restarted or self.current is None
        return self._forming(addresses, anew=anew, lost=gone, restarted=restarted)

    # Who is still there

    def _restarted(self) -> bool:
        """Whether this is another gang of the same name: another group, or nobody known is left."""
        known = self.memory.group_uid
        if known and self.group.found and known != self.group.uid:
            return True
        if self.memory.seen:
            return not any(tail in self.pods for tail in self.memory.seen)
        # Written by somebody else, or before UIDs were: names and addresses have to do.
        present = {(pod.name, ip) for pod in self.pods.values() for ip in pod.addresses}
        return bool(self.state.peers) and not any(
            (peer.name, peer.ip) in present for peer in self.state.peers
        )

    def _gone(self) -> list[str]:
        """Known pods that are dead or gone without having ended well."""
        gone = []
        for tail in self.memory.seen:
            pod = self.pods.get(tail)
            if pod is None or not (pod.live or pod.succeeded):
                gone.append(tail)
        return gone

    def _left(self, addresses: Mapping[str, str]) -> tuple[list[str], list[str]]:
        """Names of frozen members that are lost, and of those whose address has changed."""
        lost, moved = [], []
        for member in self.state.members:
            pod = self.pods.get(_tail(member.uid))
            if pod is None or not (pod.live or pod.succeeded):
                lost.append(member.name)
            elif pod.live and pod.addresses and member.ip not in pod.addresses:
                moved.append(member.name)
        return lost, moved

    # The four outcomes

    def _emptied(self) -> Plan:
        """Nobody alive: what is written must not be believed by the next to come."""
        used = self.state.peers or self.state.members or self.memory.seen
        if self.current is None or not used:
            return Plan(None, self.state)
        data = {
            cm.EXPECTED: "0",
            cm.CHECKS: "",
            cm.GENERATION: str(self.state.generation + 1),
            **cm.member_data((), ()),
        }
        pruned = tuple(peer.name for peer in self.state.peers)
        return self._plan(data, cm.Memory(), urgent=True, pruned=pruned)

    def _frozen(self) -> Plan:
        inside = {_tail(member.uid) for member in self.state.members}
        late = tuple(pod.name for pod in self.live if _tail(pod.uid) not in inside)
        if late:
            self.reasons.append(
                f"{', '.join(late)} came after generation {self.state.generation} was complete with "
                f"{len(self.state.members)} members, and is not in it"
            )
        # Written again should somebody have spoiled it; else it is what stands there.
        return self._plan(cm.member_data(self.state.members, ()), self.memory, late=late)

    def _forming(
        self, addresses: Mapping[str, str], *, anew: bool, lost: bool, restarted: bool
    ) -> Plan:
        members = tuple(
            cm.Member(pod.uid, pod.name, addresses[pod.uid], rank, self.checks_of(pod))
            for rank, pod in enumerate(pod for pod in self.live if pod.uid in addresses)
        )
        missing = [pod.name for pod in self.live if pod.uid not in addresses]
        memory, wait = self._remember(lost=lost, restarted=restarted)
        expected = self._expected(memory)
        unsettled = self._unsettled(expected, len(members))
        if unsettled:
            expected, wait = 0, min(filter(None, (wait, unsettled)))
        before = {peer.name: peer for peer in self.state.peers}
        complete = 0 < expected <= len(members)
        data = {
            cm.EXPECTED: str(expected),
            cm.MASTER_PORT: str(self._port(members)),
            cm.CHECKS: self._agreed(restarted=restarted),
            cm.GENERATION: str(max(1, self.state.generation + anew)),
            **cm.member_data(members, missing),
        }
        current_names = {member.name for member in members}
        return self._plan(
            data,
            memory,
            urgent=anew or complete or bool(expected) != bool(self.state.expected),
            wait=wait,
            pruned=tuple(name for name in before if name not in current_names),
            joined=tuple(member.name for member in members if member.name not in before),
        )

    # Parts of the forming membership

    def _remember(self, *, lost: bool, restarted: bool) -> tuple[cm.Memory, float]:
        """What to remember, and after how many seconds the hold on a lost member's place ends."""
        alive = len(self.live)
        old = cm.Memory() if restarted else self.memory
        edited = self.group.found and old.minimum not in (None, self.group.minimum)
        most = alive if edited else max(old.most, alive)
        lost_at = cm.stamp(self.now) if lost else old.lost_at
        wait = 0.0
        if most > alive:
            dead = any(not (pod.live or pod.succeeded) for pod in self.pods.values())
            age = _since(lost_at, self.now)
            if age < self.rules.hold:
                wait = self.rules.hold - age
            elif not dead:
                most = alive
        if most == alive:
            lost_at = ""
        memory = cm.Memory(
            group_uid=self.group.uid if self.group.found else old.group_uid,
            minimum=self.group.minimum if self.group.found else old.minimum,
            most=most,
            lost_at=lost_at,
            seen=tuple(sorted(_tail(pod.uid) for pod in self.live)),
        )
        return memory, wait

    def _expected(self, memory: cm.Memory) -> int:
        if not self.group.found:
            return 0
        least = 0 if self.group.minimum is None else self.group.minimum - self.gang.others
        return max(least, memory.most)

    def _unsettled(self, expected: int, present: int) -> float:
        """Seconds until a size that is only a count may be believed; 0 if it may now."""
        if not 0 < expected <= present:
            return 0.0
        minimum = self.group.minimum
        if minimum is not None and minimum > 1 and expected == minimum - self.gang.others:
            return 0.0
        youngest = min(pod.age(self.now) for pod in self.live)
        return max(0.0, self.rules.settle - youngest)

    def _port(self, members: Sequence[cm.Member]) -> int:
        """The master's port: another than the usual one where its node's network has that taken."""
        wanted = self.gang.master_port
        master = self.pods[_tail(members[0].uid)] if members else None
        if master is None or not master.spec.host_network:
            return wanted
        taken = self.gang.taken_ports(master.spec.node_name)
        port = next(port for port in range(wanted, wanted + len(taken) + 1) if port not in taken)
        if port != wanted:
            self.reasons.append(
                f"port {wanted} of node {master.spec.node_name} is the master port of another gang "
                f"on the host network, so this one uses {port}"
            )
        return port

    def _agreed(self, *, restarted: bool) -> str:
        named: dict[str, str] = {}
        for pod in self.live:
            named.setdefault(self.checks_of(pod), pod.name)
        if len(named) > 1:
            lists = "; ".join(f"{name}=[{checks}]" for checks, name in named.items())
            self.reasons.append(f"members name different checks: {lists}")
        agreed = self.state.checks
        return agreed if agreed in named and not restarted else next(iter(named))

    def _plan(
        self,
        data: Mapping[str, str],
        memory: cm.Memory,
        *,
        urgent: bool = False,
        wait: float = 0.0,
        pruned: tuple[str, ...] = (),
        joined: tuple[str, ...] = (),
        late: tuple[str, ...] = (),
    ) -> Plan:
        gang = self.gang
        base = self.current
        if base is None:
            base = cm.skeleton(gang.config_map, gang.namespace, gang.gang_id, gang.master_port)
        elif not self.state.gang_id:
            data = {cm.GANG_ID: gang.gang_id, **data}
        wanted = cm.with_owner(cm.with_data(base, data), self.group.owner())
        if memory != self.memory:
            wanted = cm.with_annotations(wanted, {cm.STATE: cm.memory_text(memory)})
        same = self.current is not None and wanted == self.current
        return Plan(
            None if same else wanted,
            cm.read(wanted),
            urgent=urgent or self.current is None,
            wait=wait,
            reasons=tuple(self.reasons),
            pruned=pruned,
            joined=joined,
            late=late,
        )


def _tail(uid: str) -> str:
    return uid[-_TAIL:]


def _since(text: str, now: datetime) -> float:
    try:
        return (now - datetime.fromisoformat(text)).total_seconds()
    except ValueError:
        return float("inf")
