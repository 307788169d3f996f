"""Gang id → name and label of its ConfigMap.

Operators, KAI and checks find the ConfigMap by these, so the algorithm is fixed to the bit (preflight
spec 4.1). Two ids may give one name (``job.1`` and ``job-1``); `distinct_name` is where the second
comer goes instead, and it cannot meet the first (field case J5). This module must not know
ConfigMaps.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

PREFIX: Final = "preflight-"
#: Longest label value, and the longest name that fits wherever a label does.
LIMIT: Final = 63
_HASH: Final = 8
_OTHER: Final = re.compile(r"[^a-z0-9-]")
_RUNS: Final = re.compile(r"-+")


def sanitize(value: str) -> str:
    """*value* as a label value of at most 63 characters; "" stays ""."""
    if not value:
        return ""
    # One code point for one: str.lower() may give two, of which the first is the simple mapping.
    lower = "".join(char.lower()[0] for char in value)
    plain = _RUNS.sub("-", _OTHER.sub("-", lower)).strip("-")
    if not plain:
        return _digest(value)[:LIMIT]
    return plain if len(plain) <= LIMIT else _shorten(plain, value, LIMIT)


def config_map_name(gang_id: str) -> str:
    """The name of a gang's ConfigMap."""
    plain = sanitize(gang_id)
    if len(PREFIX) + len(plain) <= LIMIT:
        return PREFIX + plain
    return distinct_name(gang_id)


def distinct_name(gang_id: str) -> str:
    """The name with a hash of the unsanitised id, for an id whose plain name another gang has."""
    return PREFIX + _shorten(sanitize(gang_id), gang_id, LIMIT - len(PREFIX))


def names_of(gang_id: str) -> tuple[str, ...]:
    """Every name that the ConfigMap of *gang_id* may have, the usual one first."""
    return tuple(dict.fromkeys((config_map_name(gang_id), distinct_name(gang_id))))


def _shorten(plain: str, original: str, limit: int) -> str:
    head = plain[: limit - _HASH - 1].rstrip("-")
    return f"{head}-{_digest(original)[:_HASH]}"


def _digest(value: str) -> str:
    return hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()
