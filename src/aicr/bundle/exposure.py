"""Who may reach the inference gateway from outside (bundler spec 0.7).

The gateway's load balancer admits every source unless its ranges say otherwise, so ranges that
nobody set become the private networks, with a note. Ranges that were set are checked, because a
load balancer that cannot read one of them may ignore them all.
"""

from __future__ import annotations

from aicr.errors import invalid
from aicr.values import paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, Final

    from aicr.bundle.overrides import Override

GATEWAY: Final = "agentgateway"
RANGES: Final = "allowedSourceRanges"
#: The private networks of RFC 1918.
PRIVATE: Final = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")


def restrict(component: str, values: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The gateway's values with ranges that were checked or filled in, and notes.

    Any other component's values come back as they are.

    Raises:
        AicrError: INVALID_REQUEST when the ranges are no list of networks without host bits.
    """
    if component != GATEWAY:
        return values, []
    ranges = values.get(RANGES)
    place = f"{GATEWAY}:{RANGES}"
    if ranges is None or ranges == []:
        note = (
            f"{place} is not set, so the inference gateway admits private networks only "
            f"({', '.join(PRIVATE)}); to admit others: --set-json '{place}=[\"192.0.2.0/24\"]'"
        )
        return {**values, RANGES: list(PRIVATE)}, [note]
    if not isinstance(ranges, list):
        raise invalid(
            f"{place} is {paths.a_type(ranges)} and not a list of networks",
            where=place,
            hint=f"pass JSON: --set-json '{place}=[\"192.0.2.0/24\"]'",
        )
    return values, _everybody(place, ranges)


def check_dynamic(dynamic: Iterable[Override]) -> None:
    """Refuse to leave the ranges to the installation: the Gateway is rendered with the bundle.

    Raises:
        AicrError: INVALID_REQUEST naming the path.
    """
    for override in dynamic:
        if override.component == GATEWAY and paths.conflict(override.segments, [RANGES]):
            raise invalid(
                f'{override.label} is not allowed: "{RANGES}" decides who may reach the inference '
                f"gateway, and is checked and written when the bundle is made",
                where=override.flag,
                hint=f"decide now: --set-json '{override.key}:{RANGES}=[\"192.0.2.0/24\"]'",
            )


def _everybody(place: str, ranges: list[Any]) -> list[str]:
    import ipaddress

    networks: dict[int, list[Any]] = {4: [], 6: []}
    for text in ranges:
        try:
            if not isinstance(text, str) or not text.partition("/")[2].isdecimal():
                raise ValueError("expected address/prefix length")
            network = ipaddress.ip_network(text)
        except ValueError as error:
            raise invalid(
                f"{place}: {text!r} is no network in CIDR form: {error}",
                where=place,
                hint="write the first address and the length of the prefix, such as 10.0.0.0/8",
            ) from error
        networks[network.version].append(network)
    opened = [
        str(network)
        for held in networks.values()
        for network in ipaddress.collapse_addresses(held)
        if network.prefixlen == 0
    ]
    if not opened:
        return []
    return [
        f"{place} holds {', '.join(opened)}: EVERY source on the network can reach the inference "
        f"gateway, and so the models behind it"
    ]
