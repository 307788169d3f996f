"""What values mean in expressions: types, truth, equality, text. No Python rule leaks from here.

The numbers of a document are ints or floats as they were written; literals and results of functions
are floats. Like the reference implementation, equality tells them apart and arithmetic does not.
Source: validators spec 8.8.3 and 8.8.4.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final


class FunctionError(Exception):
    """A function got what it cannot take; the caller adds the expression and the column."""


class Reference:
    """The value of ``&expression``: something that functions apply to elements."""

    __slots__ = ("_env", "_run")

    def __init__(self, run: Callable[[Any, dict[str, Any]], Any], env: dict[str, Any]) -> None:
        self._run = run
        self._env = env

    def __call__(self, value: Any) -> Any:
        """What the expression gives for *value*."""
        return self._run(value, self._env)


#: Names of types as the reference implementation has them in its messages.
_KINDS: Final[dict[type, str]] = {
    type(None): "null",
    bool: "bool",
    int: "int64",
    float: "float64",
    str: "string",
    list: "slice",
    dict: "map",
    Reference: "func",
}
_WORDS: Final[dict[type, str]] = {
    type(None): "null",
    bool: "boolean",
    int: "number",
    float: "number",
    str: "string",
    list: "list",
    dict: "map",
    Reference: "expression",
}


def kind(value: Any) -> str:
    """The type of a value in messages about comparison: ``int64``, ``string``, ``slice``."""
    return _KINDS.get(type(value), type(value).__name__)


def word(value: Any) -> str:
    """The type of a value for people: ``number``, ``string``, ``list``."""
    return _WORDS.get(type(value), type(value).__name__)


def is_false(value: Any) -> bool:
    """Whether a value counts as false: false, null and what is empty; no number does."""
    return value is None or value is False or (type(value) in (str, list, dict) and not value)


def number(value: Any) -> float | None:
    """A number as a float, None for anything else; a boolean is no number."""
    if type(value) is float:
        return value
    if type(value) is int:
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    return None


def equal(left: Any, right: Any) -> bool:
    """Deep equality in which types must be the same, so 1 is neither 1.0 nor true."""
    if type(left) is not type(right):
        return False
    if type(left) is list:
        return len(left) == len(right) and all(map(equal, left, right))
    if type(left) is dict:
        return left.keys() == right.keys() and all(equal(left[key], right[key]) for key in left)
    if type(left) is Reference:
        return False
    return bool(left == right)


def number_text(value: float) -> str:
    """A float as JSON of the reference implementation has it: ``1``, ``0.5``, ``1e+21``."""
    if not math.isfinite(value):
        raise FunctionError(f"{value} has no JSON form")
    if value == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    if 1e-6 <= abs(value) < 1e21:
        text = format(Decimal(repr(value)), "f")
        return text.rstrip("0").rstrip(".") if "." in text else text
    text = repr(value)
    mantissa, _, exponent = text.partition("e")
    mantissa = mantissa.removesuffix(".0")
    return f"{mantissa}e{int(exponent):+d}"


def json_text(value: Any) -> str:
    """A value as compact JSON with sorted keys."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, float):
        return number_text(value)
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, list):
        return f"[{','.join(map(json_text, value))}]"
    if isinstance(value, dict):
        pairs = sorted(value.items(), key=lambda pair: str(pair[0]))
        return "{" + ",".join(f"{_string(str(key))}:{json_text(item)}" for key, item in pairs) + "}"
    if isinstance(value, int):
        return str(value)
    raise FunctionError("an expression has no JSON form")


def _string(text: str) -> str:
    encoded = json.dumps(text, ensure_ascii=False)
    for character in "<>&\u2028\u2029":
        encoded = encoded.replace(character, f"\\u{ord(character):04x}")
    return encoded
