"""Numbers of devices: read, added and printed as Kubernetes prints a quantity.

Values are exact: whole numbers stay ints, which nearly all device counts are. This module must not
know which resources there are. Source: preflight spec 2.4.1, Appendix B.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Final

from aicr.errors import AicrError, invalid
from aicr.preflight.admission.pod import NOT_A_POD, not_a_pod
from aicr.values import quantities

Number = int | Fraction

_DECIMAL: Final = ("", "k", "M", "G", "T", "P", "E")
_BINARY: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_SMALL: Final = (("m", 1000), ("u", 10**6), ("n", 10**9))


def number(text: object, path: str) -> Number:
    """The value of a quantity; *path* is where it stands, for the error."""
    if type(text) is str and text.isascii() and text.isdigit():
        return int(text) if len(text) < 30 else _parsed(text, path)
    if type(text) is int:
        return text
    if type(text) is not str and type(text) is not float:
        raise not_a_pod(path, "a quantity", text)
    return _parsed(text, path)


def _parsed(text: str | float, path: str) -> Number:
    try:
        return _value(text)
    except AicrError as error:
        message = f"{path}: {error.message}" if path else error.message
        raise invalid(message, hint=error.hint, context={NOT_A_POD: True}) from None


@lru_cache(maxsize=4096)
def _value(text: str | float) -> Number:
    found = quantities.parse(text)
    if found.denominator == 1:
        return found.numerator
    return Fraction(found.numerator, found.denominator)


def is_binary(text: object) -> bool:
    """Whether a quantity is written with a suffix like ``Ki``, so that it is printed with one."""
    return type(text) is str and text.endswith("i")


def canonical(value: Number, *, binary: bool = False) -> str:
    """*value* as Kubernetes prints it: the largest suffix that leaves a whole number."""
    if type(value) is int and 0 <= value < 1000:
        return str(value)
    if isinstance(value, Fraction) and value.denominator != 1:
        for suffix, scale in _SMALL:
            scaled = value * scale
            if scaled.denominator == 1:
                return f"{scaled.numerator}{suffix}"
        # Kubernetes rounds up what is below its finest step.
        return f"{-((-value * 10**9).__floor__())}n"
    whole = int(value)
    step, suffixes = (1024, _BINARY) if binary else (1000, _DECIMAL)
    power = 0
    while whole and whole % step == 0 and power < len(suffixes) - 1:
        whole //= step
        power += 1
    return f"{whole}{suffixes[power]}"
