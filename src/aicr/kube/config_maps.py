"""Documents in ConfigMaps: ``cm://namespace/name`` as a place to read from and to write to.

Reading takes the one key there is, or the key that belongs to the kind of document. Writing sets
one key of a ConfigMap and leaves its other keys and its labels alone. A ConfigMap holds one MiB,
so a document that is larger is refused before it is sent.

It must not know what the documents mean. Source: validators spec 1.1, recipe spec 6.1, bundler
spec 1.1.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from aicr.errors import invalid, not_found
from aicr.kube import kinds
from aicr.kube.port import Cluster

SCHEME: Final = "cm://"
FIELD_MANAGER: Final = "aicr"
#: Largest document that is written, in bytes: the API server's limit with room for metadata.
LARGEST: Final = 1_000_000

_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class Address:
    """A ConfigMap by namespace and name."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{SCHEME}{self.namespace}/{self.name}"


def parse(text: str) -> Address:
    """The ConfigMap that ``cm://namespace/name`` names.

    Raises:
        AicrError: INVALID_REQUEST for another form, and for names that no object can have.
    """
    namespace, _, name = text.removeprefix(SCHEME).partition("/")
    good = text.startswith(SCHEME) and _NAME.fullmatch(namespace) and _NAME.fullmatch(name)
    if not good or "." in namespace:
        raise invalid(f'"{text}" does not name a ConfigMap', hint="write cm://NAMESPACE/NAME")
    return Address(namespace, name)


async def read(cluster: Cluster, address: Address, *, what: str, key: str = "") -> str:
    """The document in a ConfigMap.

    Args:
        cluster: where it is.
        address: which.
        what: words for the document in messages, for example ``recipe file``.
        key: the key that is taken when there are several.

    Raises:
        AicrError: NOT_FOUND for an absent ConfigMap or key, INVALID_REQUEST when it cannot be told
            which of several keys is meant, what the API server refused.
    """
    found = await cluster.get(kinds.CONFIG_MAP, address.name, namespace=address.namespace)
    data: Mapping[str, str] = found.get("data") or {}
    if key in data:
        return data[key]
    if len(data) == 1:
        return next(iter(data.values()))
    if not data:
        raise not_found(f"{what} {address} has no data")
    raise invalid(
        f"{what} {address} has the keys {', '.join(sorted(data))}, and none is {key or 'named'}",
        hint=f"put the document under the key {key}" if key else "leave one key in it",
    )


async def write(cluster: Cluster, address: Address, *, key: str, text: str) -> None:
    """Put *text* under *key* of a ConfigMap, which is made if it is not there.

    Raises:
        AicrError: INVALID_REQUEST for a text that is too large, CONFLICT when another program
            owns the key, what the API server refused.
    """
    size = len(text.encode())
    if size > LARGEST:
        raise invalid(
            f"{address}: {size:,} bytes do not fit into a ConfigMap, which takes {LARGEST:,}",
            hint="write a file instead",
        )
    document = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": address.name, "namespace": address.namespace},
        "data": {key: text},
    }
    # One manager a key: writing a second document into the same ConfigMap keeps the first.
    await cluster.apply(document, field_manager=f"{FIELD_MANAGER}-{key.partition('.')[0]}")
