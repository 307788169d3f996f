"""One address for each member, all of one family. Pure.

A master on IPv6 cannot be reached by a pod that has IPv4 only, so a gang uses one family throughout
(field case J11): the one that most members have; of two, the one that most have as primary; then IPv4.
Who lacks it is no peer, and is named.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from aicr.preflight.gang.pods import GangPod


def common_addresses(pods: Sequence[GangPod]) -> tuple[dict[str, str], list[str]]:
    """UID → address for every pod that has one of the gang's family, and what to say of the others."""
    by_family = [
        (pod, {_family(ip): ip for ip in reversed(pod.addresses)}) for pod in pods if pod.addresses
    ]
    if not by_family:
        return {}, []
    have = Counter(family for _, found in by_family for family in found)
    primary = Counter(_family(pod.addresses[0]) for pod, _ in by_family)
    chosen = max(("IPv4", "IPv6"), key=lambda family: (have[family], primary[family]))
    addresses = {pod.uid: found[chosen] for pod, found in by_family if chosen in found}
    without = [pod.name for pod, found in by_family if chosen not in found]
    if not without:
        return addresses, []
    return addresses, [
        f"{', '.join(without)} has no {chosen} address, which the other members use, "
        "and cannot be a peer"
    ]


def _family(ip: str) -> str:
    return "IPv6" if ":" in ip else "IPv4"
