"""Kubernetes quantities, exactly: ``100m``, ``1.5Gi``, ``1e3``.

A quantity is an exact fraction, never a float, so that ``100m``, ``0.1`` and ``1e-1`` are equal and
sums do not drift. The grammar is Kubernetes' own: a decimal number and one suffix (binary ``Ki`` to
``Ei``, decimal ``n u m k M G T P E``, or an exponent). ``1E`` is an exa, not an exponent without
digits.

The module knows nothing of resources but that extended ones are counted in whole units.
Imports nothing but errors. Source: field case C7.
"""

from __future__ import annotations

from aicr.errors import invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_SUFFIXES: Final[dict[str, tuple[int, int]]] = {
    "": (1, 1),
    "n": (1, 10**9),
    "u": (1, 10**6),
    "m": (1, 1000),
    "k": (1000, 1),
    "M": (10**6, 1),
    "G": (10**9, 1),
    "T": (10**12, 1),
    "P": (10**15, 1),
    "E": (10**18, 1),
    "Ki": (1 << 10, 1),
    "Mi": (1 << 20, 1),
    "Gi": (1 << 30, 1),
    "Ti": (1 << 40, 1),
    "Pi": (1 << 50, 1),
    "Ei": (1 << 60, 1),
}
_DIGITS: Final = "0123456789"
#: Far beyond what Kubernetes keeps (2**63 units, 1e-9 steps), small enough to compute with.
_LARGEST_EXPONENT: Final = 400
_LONGEST: Final = 400


class Quantity:
    """An exact amount: ``numerator / denominator``, in lowest terms, and the text it was written
    as."""

    __slots__ = ("denominator", "numerator", "text")

    def __init__(self, numerator: int, denominator: int, text: str) -> None:
        divisor = _greatest_common_divisor(numerator, denominator)
        self.numerator = numerator // divisor
        self.denominator = denominator // divisor
        self.text = text

    def is_whole(self) -> bool:
        """Whether the amount is a whole number of units."""
        return self.denominator == 1

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Quantity):
            return NotImplemented
        return self.numerator == other.numerator and self.denominator == other.denominator

    def __lt__(self, other: Quantity) -> bool:
        return self.numerator * other.denominator < other.numerator * self.denominator

    def __le__(self, other: Quantity) -> bool:
        return not other < self

    def __gt__(self, other: Quantity) -> bool:
        return other < self

    def __ge__(self, other: Quantity) -> bool:
        return not self < other

    def __hash__(self) -> int:
        return hash((self.numerator, self.denominator))

    def __repr__(self) -> str:
        return f"Quantity({self.text!r})"


def parse(text: str | int | float) -> Quantity:
    """The quantity *text*; a YAML number counts as its shortest decimal text.

    Raises:
        AicrError: INVALID_REQUEST for text outside the grammar (blanks, underscores, unknown or
            wrongly cased suffixes, hexadecimal, digits other than 0 to 9), and for sizes that no
            one means.
    """
    if type(text) is int or type(text) is float:
        text = repr(text)
    if type(text) is not str:
        raise invalid(f"invalid quantity {text!r}", hint=_GRAMMAR)
    if len(text) > _LONGEST:
        raise invalid(f'invalid quantity "{text[:40]}...": it is too long', hint=_GRAMMAR)
    start = 1 if text[:1] in ("+", "-") else 0
    end = _digits_end(text, start)
    whole = text[start:end]
    fraction = ""
    if text[end : end + 1] == ".":
        start, end = end + 1, _digits_end(text, end + 1)
        fraction = text[start:end]
    if not whole and not fraction:
        raise _malformed(text)
    up, down = _scale(text, text[end:])
    numerator = int(whole + fraction) * up
    if text[0] == "-":
        numerator = -numerator
    return Quantity(numerator, 10 ** len(fraction) * down, text)


def _digits_end(text: str, start: int) -> int:
    end = start
    while end < len(text) and text[end] in _DIGITS:
        end += 1
    return end


def _scale(text: str, suffix: str) -> tuple[int, int]:
    """What *suffix* multiplies and divides by."""
    known = _SUFFIXES.get(suffix)
    if known is not None:
        return known
    exponent = suffix[1:]
    digits = exponent[1:] if exponent[:1] in ("+", "-") else exponent
    if suffix[0] not in "eE" or not (digits.isascii() and digits.isdigit()):
        raise _malformed(text)
    power = int(digits)
    if power > _LARGEST_EXPONENT:
        raise invalid(f'invalid quantity "{text}": the exponent is too large', hint=_GRAMMAR)
    return (1, 10**power) if exponent[0] == "-" else (10**power, 1)


_GRAMMAR: Final = "write a number and at most one suffix, for example 500m, 2, 1.5Gi or 10G"
_MISTAKES: Final[dict[str, str]] = {
    "K": "k (1000) or Ki (1024)",
    "KB": "k (1000) or Ki (1024)",
    "kb": "k (1000) or Ki (1024)",
    "kB": "k (1000) or Ki (1024)",
    "ki": "Ki",
    "MB": "M (10^6) or Mi (2^20)",
    "mb": "M (10^6) or Mi (2^20)",
    "mi": "Mi",
    "GB": "G (10^9) or Gi (2^30)",
    "gb": "G (10^9) or Gi (2^30)",
    "g": "G (10^9) or Gi (2^30)",
    "gi": "Gi",
    "TB": "T (10^12) or Ti (2^40)",
    "t": "T (10^12) or Ti (2^40)",
    "ti": "Ti",
}


def _malformed(text: str) -> Exception:
    meant = _MISTAKES.get(text.lstrip("+-." + _DIGITS).strip())
    return invalid(
        f'invalid quantity "{text}"',
        hint=f"did you mean the suffix {meant}?" if meant else _GRAMMAR,
    )


def whole_units(text: str | int | float, resource: str) -> int:
    """The number of units of an extended *resource* such as ``nvidia.com/gpu``.

    Raises:
        AicrError: INVALID_REQUEST for a malformed, fractional or negative quantity (field case C7:
            ``1m`` of a GPU is no GPU).
    """
    quantity = parse(text)
    if not quantity.is_whole():
        raise invalid(
            f"{resource}: {quantity.text} is not a whole number of units",
            hint="extended resources are counted in whole units, for example 1",
        )
    if quantity.numerator < 0:
        raise invalid(f"{resource}: {quantity.text} is negative", hint="use 0 or more units")
    return quantity.numerator


def extended_count(
    limit: str | int | float | None, request: str | int | float | None, resource: str
) -> int:
    """The units of an extended *resource* that a container with this limit and request gets.

    Raises:
        AicrError: INVALID_REQUEST when request and limit differ or only the request is set, because
            Kubernetes does not overcommit extended resources, and as :func:`whole_units`.
    """
    if limit is None:
        if request is None:
            return 0
        raise invalid(
            f"{resource}: request {request} without a limit",
            hint="set the limit; the request follows it",
        )
    count = whole_units(limit, resource)
    if request is not None and whole_units(request, resource) != count:
        raise invalid(
            f"{resource}: request {request} and limit {limit} differ",
            hint="extended resources are not overcommitted: make both equal",
        )
    return count


def _greatest_common_divisor(a: int, b: int) -> int:
    a = abs(a)
    while b:
        a, b = b, a % b
    return a
