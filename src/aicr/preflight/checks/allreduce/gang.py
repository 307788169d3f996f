"""The gang stage: wait until the mounted ConfigMap says who is in the gang, and find our place in it.

The kubelet writes the files of a ConfigMap into a folder and then turns one link, `..data`; all files are
read through that link, so that one reading shows one version. A file can be late by a minute or two: one
that knows nothing of this pod, or knows an earlier pod of its name, is waited out for a while before it
counts as wrong.

Reading and time are handed in. It must not know: how a gang is decided (`aicr.preflight.gang`), torch.
Source: preflight specification 7.2, known bugs S23 and S26, decisions 27, 70 to 72, field case J14.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from aicr.preflight.checks import exit_codes
from aicr.preflight.checks.allreduce.clock import Clock
from aicr.preflight.checks.allreduce.settings import GangSettings
from aicr.preflight.checks.times import CheckTimes
from aicr.preflight.gang import configmap as cm

CONFIG_ERROR: Final = "NCCL_GANG_CONFIG_ERROR"
TIMED_OUT: Final = "NCCL_GANG_TIMEOUT"
DEFAULT_PORT: Final = 29500


@dataclass(frozen=True)
class GangFile:
    """One version of the mounted ConfigMap."""

    state: cm.State
    master_addr: str = ""
    #: As written; "" stands for the default.
    master_port: str = ""
    #: Names of live members without an address, as the controller wrote them.
    missing: str = ""

    @property
    def complete(self) -> bool:
        """Whether all that are to come have come (preflight specification 7.2)."""
        return 0 < self.state.expected <= len(self.state.peers)


@dataclass(frozen=True)
class Place:
    """A gang that has formed, and our place in it."""

    gang_id: str
    generation: int
    rank: int
    #: Nodes of the benchmark, and their pods by rank.
    pods: tuple[str, ...]
    master_addr: str
    master_port: int

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return len(self.pods)


@dataclass(frozen=True)
class Refusal:
    """Why there is no benchmark."""

    exit_code: int
    #: Error code of the event.
    code: str
    message: str


def read(directory: Path) -> GangFile | None:
    """The mounted ConfigMap as it is now; None while `expected_count` is not there."""
    folder = directory / "..data"
    if not os.path.isdir(folder):
        folder = directory
    # One version: the link may be turned between two files.
    folder = folder.resolve()
    data = {}
    keys = (cm.GANG_ID, cm.EXPECTED, cm.MASTER_ADDR, cm.MASTER_PORT, cm.PEERS, cm.MEMBERS)
    for key in (*keys, cm.MISSING, cm.CHECKS, cm.GENERATION):
        try:
            data[key] = (folder / key).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError):
            continue
    if cm.EXPECTED not in data:
        return None
    return GangFile(
        cm.read({"data": data}),
        data.get(cm.MASTER_ADDR, ""),
        data.get(cm.MASTER_PORT, ""),
        data.get(cm.MISSING, ""),
    )


def wait(
    settings: GangSettings,
    look: Callable[[], GangFile | None],
    clock: Clock,
    say: Callable[[str], None],
) -> Place | Refusal:
    """Read until the gang is complete and knows us, or time is up.

    Args:
        settings: who we are and how long to wait.
        look: reads the mounted ConfigMap.
        clock: time and sleeping.
        say: progress, when it changes and now and then.
    """
    return _Waiting(settings, look, clock, say).go()


class _Waiting:
    """One wait."""

    def __init__(
        self,
        settings: GangSettings,
        look: Callable[[], GangFile | None],
        clock: Clock,
        say: Callable[[str], None],
    ) -> None:
        self.settings, self.look, self.clock, self.say = settings, look, clock, say
        self.deadline = clock.now() + settings.timeout * settings.factor
        self.times = CheckTimes().scaled(settings.factor)
        self.said, self.said_at = "", 0.0
        self.doubted_since: float | None = None

    def go(self) -> Place | Refusal:
        """Wait."""
        while True:
            found = self.look()
            late = self.clock.now() >= self.deadline
            if found is not None and found.complete:
                doubt = self._doubt(found)
                if not doubt:
                    return place(found, self.settings.pod)
                if late or self._doubted_long():
                    return Refusal(exit_codes.MISCONFIGURED, CONFIG_ERROR, doubt)
                self._tell(f"{doubt}; the mounted file may be late")
            else:
                self.doubted_since = None
                progress = self._progress(found)
                if late:
                    message = f"Gang formation timeout after {self.settings.timeout}s: {progress}"
                    return Refusal(exit_codes.GANG_TIMEOUT, TIMED_OUT, message)
                self._tell(f"Waiting for the gang: {progress}")
            self.clock.sleep(self.times.gang)

    def _doubt(self, found: GangFile) -> str:
        """Why a complete file is not about this pod; "" when it is."""
        pod = self.settings.pod
        peer = next((one for one in found.state.peers if one.name == pod), None)
        if peer is None:
            return f"Pod {pod} not found in peers list"
        member = next((one for one in found.state.members if one.name == pod), None)
        if self.settings.uid and member is not None and member.uid != self.settings.uid:
            return f"Pod {pod} in the members list is an earlier pod of that name"
        # Addresses are compared only where no UID says it better: a pod may have two of them.
        known = self.settings.uid and member is not None
        if not known and self.settings.address and peer.ip and peer.ip != self.settings.address:
            return (
                f"Pod {pod} in peers list has the address {peer.ip} and not {self.settings.address}"
            )
        return ""

    def _doubted_long(self) -> bool:
        now = self.clock.now()
        if self.doubted_since is None:
            self.doubted_since = now
        return now - self.doubted_since >= self.times.late

    def _progress(self, found: GangFile | None) -> str:
        if found is None:
            return f"no {cm.EXPECTED} in {self.settings.directory}"
        state = found.state
        if state.expected < 1:
            return f"its size is not known yet, {_count(len(state.peers))} registered"
        text = f"{len(state.peers)} of {_count(state.expected)} registered"
        if found.missing:
            return f"{text}; missing: {found.missing}"
        return f"{text}; missing: {state.expected - len(state.peers)} that no pod exists for"

    def _tell(self, text: str) -> None:
        now = self.clock.now()
        if text != self.said or now - self.said_at >= self.times.quiet:
            self.said, self.said_at = text, now
            self.say(text)


def place(found: GangFile, pod: str) -> Place | Refusal:
    """Our place in a gang that is complete, or what is wrong with it (preflight specification 7.2)."""
    peers, expected = found.state.peers, found.state.expected
    ranks = [peer.rank for peer in peers]
    if all(rank < 0 for rank in ranks):
        # Lines without ranks stand in the order of their ranks.
        ranks = list(range(len(peers)))
    rank = next((ranks[n] for n, peer in enumerate(peers) if peer.name == pod), -1)
    if rank < 0:
        return _wrong(f"Pod {pod} not found in peers list")
    if not found.master_addr:
        return _wrong("Master address not set in ConfigMap")
    if len({peer.checks for peer in peers}) > 1:
        lists = "; ".join(f"{peer.name}=[{peer.checks}]" for peer in peers)
        return _wrong(f"Check name mismatch across gang: {lists}")
    if rank >= expected:
        return _wrong(
            f"Pod {pod} has rank {rank}, and the gang was made for {_count(expected)}: it takes part in no "
            "benchmark"
        )
    pods = {rank: peer.name for rank, peer in zip(ranks, peers, strict=True)}
    if not all(number in pods for number in range(expected)) or len(pods) != len(peers):
        return _wrong(f"Ranks in peers list are {', '.join(map(str, ranks))}")
    port = found.master_port or str(DEFAULT_PORT)
    if not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        return _wrong(f"Master port {port} in ConfigMap is no port")
    return Place(
        found.state.gang_id,
        found.state.generation,
        rank,
        tuple(pods[number] for number in range(expected)),
        found.master_addr,
        int(port),
    )


def _wrong(message: str) -> Refusal:
    return Refusal(exit_codes.MISCONFIGURED, CONFIG_ERROR, message)


def _count(number: int) -> str:
    return f"{number} member" if number == 1 else f"{number} members"
