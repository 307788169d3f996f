"""A map that works its values out when they are first asked for, and never grows without bound.

Pods of one job are alike, so most of what an admission computes has been computed before; but names and
amounts come from users, so what is remembered has a limit. Lookups of what is known run in C.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

LARGEST: Final = 10_000


class Memo(dict[K, V], Generic[K, V]):
    """``memo[key]`` is ``compute(key)``. Values are shared: nobody may change one."""

    def __init__(self, compute: Callable[[K], V], *, largest: int = LARGEST) -> None:
        super().__init__()
        self._compute = compute
        self._largest = largest

    def __missing__(self, key: K) -> V:
        value = self._compute(key)
        if len(self) >= self._largest:
            self.clear()
        self[key] = value
        return value
