"""add, subtract, multiply, divide, modulo, sum and round, on numbers, quantities and durations.

A string is a quantity if it reads as one (``1Gi``, ``100m``), else a duration (``1h30m``). Quantities are
exact; results are written as Kubernetes writes them. Kinds do not mix but for scaling by a number.
Source: validators spec 8.8.5.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Final, NamedTuple

from aicr.assertions.jmespath.signatures import Function, function
from aicr.assertions.jmespath.values import FunctionError, word
from aicr.errors import AicrError
from aicr.values import durations, quantities

Arguments = list[Any]
_BINARY: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DECIMAL: Final = {
    -9: "n",
    -6: "u",
    -3: "m",
    0: "",
    3: "k",
    6: "M",
    9: "G",
    12: "T",
    15: "P",
    18: "E",
}
_LARGEST_DURATION: Final = (1 << 63) - 1


class Amount(NamedTuple):
    """A quantity: its exact value and how it is written (``binary``, ``decimal``, ``exponent``)."""

    value: Fraction
    style: str


class Span(NamedTuple):
    """A duration in nanoseconds."""

    nanoseconds: int


def _operand(value: Any, name: str) -> float | Amount | Span:
    if type(value) is float:
        return value
    if type(value) is str:
        try:
            return _amount(value)
        except AicrError:
            pass
        try:
            return Span(durations.parse(value))
        except AicrError:
            pass
    hint = "; convert integers with to_number()" if type(value) is int else ""
    raise FunctionError(
        f"{name}(): invalid operand, a {word(value)} that is no quantity or duration{hint}"
    )


def _amount(text: str) -> Amount:
    found = quantities.parse(text)
    style = "decimal"
    if text.endswith("i"):
        style = "binary"
    elif text[-1:].isdigit() and "e" in text.lower():
        style = "exponent"
    return Amount(Fraction(found.numerator, found.denominator), style)


def _written(amount: Amount) -> str:
    """A quantity in canonical form, rounded away from zero to 1e-9."""
    value = amount.value * 10**9
    units = math.ceil(value) if value >= 0 else math.floor(value)
    if units == 0:
        return "0"
    if amount.style == "binary" and abs(units) >= 1024 * 10**9:
        whole, rest = divmod(abs(units), 10**9)
        whole += bool(rest)
        step = 0
        while whole % 1024 == 0 and step < len(_BINARY) - 1:
            whole //= 1024
            step += 1
        return f"{'-' if units < 0 else ''}{whole}{_BINARY[step]}"
    exponent = -9
    while units % 10 == 0 and exponent < 18:
        units //= 10
        exponent += 1
    while exponent % 3:
        units *= 10
        exponent -= 1
    if amount.style == "exponent":
        return f"{units}e{exponent}" if exponent else str(units)
    return f"{units}{_DECIMAL[exponent]}"


def _span(nanoseconds: float) -> str:
    if not math.isfinite(nanoseconds) or abs(nanoseconds) > _LARGEST_DURATION:
        raise FunctionError("the duration does not fit in 64 bits of nanoseconds")
    return durations.format(int(nanoseconds))


def _mismatch(name: str) -> FunctionError:
    return FunctionError(
        f"{name}(): Types mismatch: numbers, quantities and durations do not mix here"
    )


def _fraction(number: float, name: str) -> Fraction:
    if not math.isfinite(number):
        raise FunctionError(f"{name}(): {number} is no quantity")
    return Fraction(repr(number))


def _plus(name: str, sign: int, left: Any, right: Any) -> Any:
    one, two = _operand(left, name), _operand(right, name)
    if isinstance(one, float) and isinstance(two, float):
        return one + sign * two
    if isinstance(one, Amount) and isinstance(two, Amount):
        return _written(Amount(one.value + sign * two.value, one.style if one.value else two.style))
    if isinstance(one, Span) and isinstance(two, Span):
        return _span(one.nanoseconds + sign * two.nanoseconds)
    raise _mismatch(name)


def _multiply(arguments: Arguments) -> Any:
    one, two = (_operand(value, "multiply") for value in arguments)
    if isinstance(one, float) and not isinstance(two, float):
        one, two = two, one
    if isinstance(two, float):
        if isinstance(one, float):
            return one * two
        if isinstance(one, Amount):
            return _written(Amount(one.value * _fraction(two, "multiply"), one.style))
        return _span(one.nanoseconds * two)
    raise _mismatch("multiply")


def _divide(arguments: Arguments) -> Any:
    one, two = (_operand(value, "divide") for value in arguments)
    if two in (0.0, Span(0)) or (isinstance(two, Amount) and not two.value):
        raise FunctionError("divide(): Zero divisor passed")
    if isinstance(one, Amount) and isinstance(two, Amount):
        return float(one.value) / float(two.value)
    if isinstance(one, Span) and isinstance(two, Span):
        return one.nanoseconds / two.nanoseconds
    if isinstance(two, float):
        if isinstance(one, float):
            return one / two
        if isinstance(one, Span):
            return _span(one.nanoseconds / two)
        divisor = _fraction(two, "divide")
        # The result keeps as many decimal places as the operands have, cut towards zero.
        places = max(_places(one.value), _places(divisor))
        cut = math.trunc(one.value / divisor * 10**places)
        return _written(Amount(Fraction(cut, 10**places), one.style))
    raise _mismatch("divide")


def _places(value: Fraction) -> int:
    places = 0
    while (value * 10**places).denominator != 1 and places < 18:
        places += 1
    return places


def _remainder(left: int, right: int) -> int:
    if right == 0:
        raise FunctionError("modulo(): Zero divisor passed")
    return int(math.copysign(1, left)) * (abs(left) % abs(right))


def _integer(value: float | Fraction) -> int:
    if (isinstance(value, float) and not math.isfinite(value)) or value != math.floor(value):
        raise FunctionError("modulo(): Non-integer argument(s) passed for modulo")
    return int(value)


def _modulo(arguments: Arguments) -> Any:
    one, two = (_operand(value, "modulo") for value in arguments)
    if isinstance(one, float) and isinstance(two, float):
        return float(_remainder(_integer(one), _integer(two)))
    if isinstance(one, Amount) and isinstance(two, Amount):
        rest = _remainder(_integer(one.value), _integer(two.value))
        return _written(Amount(Fraction(rest), one.style))
    if isinstance(one, Span) and isinstance(two, Span):
        return _span(_remainder(one.nanoseconds, two.nanoseconds))
    raise _mismatch("modulo")


def _sum(arguments: Arguments) -> Any:
    if not arguments[0]:
        raise FunctionError("sum(): at least one element in the array is required")
    total = arguments[0][0]
    for item in arguments[0][1:]:
        total = _plus("sum", 1, total, item)
    return total


def _round(arguments: Arguments) -> Any:
    value, places = arguments
    if not math.isfinite(places) or places != math.floor(places):
        raise FunctionError("round(): Non-integer argument(s) passed for round off")
    if places < 0:
        raise FunctionError("round(): the number of places must not be negative")
    shift = 10.0 ** min(places, 300.0)
    scaled = value * shift
    if not math.isfinite(scaled):
        return value
    return math.copysign(math.floor(abs(scaled) + 0.5), scaled) / shift


def _with_name(name: str, sign: int) -> Callable[[Arguments], Any]:
    return lambda arguments: _plus(name, sign, arguments[0], arguments[1])


FUNCTIONS: Final[list[Function]] = [
    function("add", _with_name("add", 1), "any", "any"),
    function("subtract", _with_name("subtract", -1), "any", "any"),
    function("multiply", _multiply, "any", "any"),
    function("divide", _divide, "any", "any"),
    function("modulo", _modulo, "any", "any"),
    function("sum", _sum, "array"),
    function("round", _round, "number", "number"),
]
