"""Who is behind a Service, and who can reach it from outside: pure looks at documents.

Source: validators spec 6.2 (inference-gateway, robust-controller); requirement V-104.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from aicr.errors import invalid

SERVICE_NAME: Final = "kubernetes.io/service-name"

Document = Mapping[str, Any]


def ready_endpoints(slices: Iterable[Document], part: str) -> int:
    """How many ready endpoints there are behind Services whose name contains *part*."""
    return sum(
        len(endpoint.get("addresses") or [])
        for each in slices
        if part in str(((each.get("metadata") or {}).get("labels") or {}).get(SERVICE_NAME) or "")
        for endpoint in each.get("endpoints") or []
        # A condition that is not stated counts as ready.
        if (endpoint.get("conditions") or {}).get("ready") is not False
    )


def load_balancers(services: Iterable[Document], part: str) -> list[Document]:
    """The LoadBalancer Services whose name contains *part*, by name."""
    return sorted(
        (
            service
            for service in services
            if part in str(service["metadata"]["name"])
            and (service.get("spec") or {}).get("type") == "LoadBalancer"
        ),
        key=lambda each: str(each["metadata"]["name"]),
    )


def is_open(ranges: Sequence[str]) -> bool:
    """Whether source ranges let any source in; ranges that add up to all addresses do too.

    Raises:
        AicrError: INVALID_REQUEST for a range that is no CIDR.
    """
    if not ranges:
        return True
    four: list[ipaddress.IPv4Network] = []
    six: list[ipaddress.IPv6Network] = []
    for text in ranges:
        try:
            network = ipaddress.ip_network(text.strip(), strict=False)
        except ValueError as error:
            raise invalid(f'load balancer source range "{text}" is no CIDR') from error
        if isinstance(network, ipaddress.IPv4Network):
            four.append(network)
        else:
            six.append(network)
    return any(
        network.prefixlen == 0
        for merged in (ipaddress.collapse_addresses(four), ipaddress.collapse_addresses(six))
        for network in merged
    )
