"""How long to wait before trying again: exponential with a ceiling, jittered upwards.

Pure; randomness is passed in. It must not know what is tried or how waiting is done.
"""

from __future__ import annotations

from collections.abc import Callable

#: Exponents beyond this no longer change the result for any sensible base, and would overflow.
HIGHEST_EXPONENT = 60


def delay(
    attempt: int,
    *,
    base: float,
    cap: float,
    random: Callable[[], float],
    jitter: float = 1.0,
) -> float:
    """Seconds to wait after failure number *attempt* (0 is the first).

    ``min(cap, base * 2**attempt)``, plus a random share of up to *jitter* times that, so that many
    clients that lost the same server do not come back together. *random* gives numbers in [0, 1).
    """
    plain = min(cap, base * 2.0 ** min(attempt, HIGHEST_EXPONENT))
    return plain * (1.0 + jitter * random())
