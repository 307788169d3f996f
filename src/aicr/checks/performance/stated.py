"""The number that a constraint of a performance check states, such as ``>= 450 GB/s``.

Its operator is not looked at, as the seed's program does: what is better, more or less, is the check's to
know. It must not know units. Source: validators spec 7.1; requirement V-273.
"""

from __future__ import annotations

import math
from typing import Final

from aicr.errors import invalid

_OPERATOR: Final = "><=! \t"


def number(expression: str, name: str) -> float:
    """The number in the *expression* of constraint *name*.

    Raises:
        AicrError: INVALID_REQUEST when no positive finite number comes first: a gate of 0 would judge
            nothing.
    """
    words = expression.lstrip(_OPERATOR).split()
    try:
        value = float(words[0]) if words else math.nan
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise invalid(
            f'constraint {name} "{expression}" has no number', hint='write it like ">= 450"'
        )
    return value
