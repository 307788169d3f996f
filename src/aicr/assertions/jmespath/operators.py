"""The operators of expressions on numbers: ordering and arithmetic, as Go's floating point has them.

Dividing by nought gives an infinity or no number, never a Python exception. What is no number does not
come here (`compiler`). Source: validators spec 8.8.4; where that is silent, jmespath-community/go-jmespath.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

ORDER: Final[dict[str, Callable[[float, float], bool]]] = {
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}


def _divide(left: float, right: float) -> float:
    if right != 0:
        return left / right
    if left == 0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


def _floor_divide(left: float, right: float) -> float:
    quotient = _divide(left, right)
    return float(math.floor(quotient)) if math.isfinite(quotient) else quotient


def _remainder(left: float, right: float) -> float:
    if right == 0 or math.isinf(left):
        return math.nan
    return math.fmod(left, right)


ARITHMETIC: Final[dict[str, Callable[[float, float], float]]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "times": lambda left, right: left * right,
    "/": _divide,
    "//": _floor_divide,
    "%": _remainder,
}
