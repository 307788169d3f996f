"""Whether a validation applies to a recipe: its ``conditions`` against the recipe's criteria."""

from __future__ import annotations

from aicr.catalog.criteria_values import ALIASES, ANY, FIELDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any


def applies(conditions: Mapping[str, Iterable[Any]], criteria: Mapping[str, Any] | None) -> bool:
    """Whether the criteria meet every condition (bundler spec 6.2).

    All keys have to match, and of each key one value. A condition on ``any`` matches everything,
    as an overlay's would; criteria that leave a field open match no stated value. A key that is no
    criteria field is left out of account, so that a typo makes a check run more often, not less.

    Args:
        conditions: criteria field -> values; empty means always.
        criteria: the recipe's criteria; None when it has none, which meets no condition.

    >>> applies({"service": ["aks", "gke"]}, {"service": "gke", "os": "any"})
    True
    >>> applies({"service": ["aks"], "os": ["ubuntu"]}, {"service": "aks", "os": "any"})
    False
    """
    if not conditions:
        return True
    if criteria is None:
        return False
    for field in FIELDS:
        if field not in conditions:
            continue
        actual = _word(field, criteria.get(field))
        wanted = [_word(field, value) for value in conditions[field]]
        if ANY not in wanted and actual not in wanted:
            return False
    return True


def _word(field: str, value: Any) -> str:
    word = str(value if value is not None else "").strip().lower()
    return ALIASES.get(field, {}).get(word, word) or ANY
