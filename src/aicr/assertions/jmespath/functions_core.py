"""Functions of the JMESPath community edition, of kyverno-json and of chainsaw.

Those that kyverno replaces (items, replace, split, sum, trim) are in the other modules.
Handlers get arguments that `signatures` has checked. Strings count characters.
Source: validators spec 8.8.5.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Any, Final

from aicr.assertions.jmespath import lexer
from aicr.assertions.jmespath.signatures import Function, function
from aicr.assertions.jmespath.values import FunctionError, equal, json_text, number

Arguments = list[Any]
#: Longest string that padding may make.
_WIDEST: Final = 100_000


def _whole(value: float, function_name: str, what: str, *, least: float = -math.inf) -> int:
    if not math.isfinite(value) or value != math.floor(value) or value < least:
        kind = "a positive integer" if least == 0 else "an integer"
        raise FunctionError(f"{function_name}() expects its {what} to be {kind}, not {value:g}")
    return int(value)


def _avg(arguments: Arguments) -> Any:
    return sum(arguments[0]) / len(arguments[0]) if arguments[0] else None


def _rounded(by: Callable[[float], int]) -> Callable[[Arguments], Any]:
    def run(arguments: Arguments) -> float:
        value: float = arguments[0]
        return float(by(value)) if math.isfinite(value) else value

    return run


def _contains(arguments: Arguments) -> Any:
    where, what = arguments
    if type(where) is str:
        return type(what) is str and what in where
    return any(equal(item, what) for item in where)


def _find(name: str, last: bool) -> Callable[[Arguments], Any]:
    def run(arguments: Arguments) -> float | None:
        subject, wanted = arguments[0], arguments[1]
        if not subject or not wanted:
            return None
        start = max(0, _whole(arguments[2], name, "start")) if len(arguments) > 2 else 0
        end = len(subject)
        if len(arguments) > 3:
            end = min(_whole(arguments[3], name, "end"), end)
        if end < start:
            return None
        found = subject.rfind(wanted, start, end) if last else subject.find(wanted, start, end)
        return None if found < 0 else float(found)

    return run


def _from_items(arguments: Arguments) -> Any:
    result = {}
    for item in arguments[0]:
        if type(item) is not list or len(item) != 2 or type(item[0]) is not str:
            raise FunctionError("from_items() takes an array of pairs of a string and a value")
        result[item[0]] = item[1]
    return result


def _group_by(arguments: Arguments) -> Any:
    groups: dict[str, list[Any]] = {}
    for element in arguments[0]:
        key = arguments[1](element)
        if type(key) is not str:
            raise FunctionError("group_by(): the expression must evaluate to a string")
        groups.setdefault(key, []).append(element)
    return groups or None


def _extreme(choose: Callable[..., Any]) -> Callable[[Arguments], Any]:
    return lambda arguments: choose(arguments[0]) if arguments[0] else None


def _keys(name: str, arguments: Arguments) -> list[Any]:
    keys = [arguments[1](item) for item in arguments[0]]
    kinds = {type(key) for key in keys}
    if len(keys) > 1 and (len(kinds) != 1 or not kinds <= {str, float}):
        hint = "; convert integers with to_number()" if int in kinds else ""
        raise FunctionError(f"{name}(): keys must be all numbers or all strings{hint}")
    return keys


def _extreme_by(name: str, choose: Callable[..., Any]) -> Callable[[Arguments], Any]:
    def run(arguments: Arguments) -> Any:
        keys = _keys(name, arguments)
        if not keys:
            return None
        return arguments[0][choose(range(len(keys)), key=keys.__getitem__)]

    return run


def _sort_by(arguments: Arguments) -> Any:
    keys = _keys("sort_by", arguments)
    if len(keys) < 2:
        return list(arguments[0])
    order = sorted(range(len(keys)), key=keys.__getitem__)
    return [arguments[0][index] for index in order]


def _merge(arguments: Arguments) -> Any:
    result: dict[str, Any] = {}
    for each in arguments:
        result.update(each)
    return result


def _pad(name: str, left: bool) -> Callable[[Arguments], Any]:
    def run(arguments: Arguments) -> str:
        text: str = arguments[0]
        width = _whole(arguments[1], name, "width", least=0)
        filler = arguments[2] if len(arguments) > 2 else " "
        if len(filler) > 1:
            raise FunctionError(f"{name}() expects its pad to be a string of length 1")
        if width > _WIDEST:
            raise FunctionError(f"{name}() expects a width of at most {_WIDEST}")
        padding = filler * max(0, width - len(text))
        return padding + text if left else text + padding

    return run


def _strip(side: str) -> Callable[[Arguments], Any]:
    def run(arguments: Arguments) -> Any:
        cut = getattr(arguments[0], side)
        return cut(arguments[1]) if len(arguments) > 1 and arguments[1] else cut()

    return run


def _to_number(arguments: Arguments) -> Any:
    value = arguments[0]
    if type(value) is not str:
        return number(value)
    # Python reads blanks and digits of other scripts, which Go does not.
    if not value.isascii() or value != "".join(value.split()):
        return None
    try:
        return float(value)
    except ValueError:
        return None


def _type(arguments: Arguments) -> Any:
    names = {
        float: "number",
        str: "string",
        list: "array",
        dict: "object",
        type(None): "null",
        bool: "boolean",
    }
    found = names.get(type(arguments[0]))
    if found is None:
        raise FunctionError(
            "type(): unknown type; convert integers of the document with to_number()"
        )
    return found


def _not_null(arguments: Arguments) -> Any:
    return next((value for value in arguments if value is not None), None)


def _zip(arguments: Arguments) -> Any:
    return [list(group) for group in zip(*arguments, strict=False)]


def _at(arguments: Arguments) -> Any:
    index = int(arguments[1]) if math.isfinite(arguments[1]) else -1
    if not 0 <= index < len(arguments[0]):
        raise FunctionError(f"at(): index {index} is out of range")
    return arguments[0][index]


def parse_json(name: str) -> Callable[[Arguments], Any]:
    """The handler of a function that reads JSON."""

    def run(arguments: Arguments) -> Any:
        try:
            return lexer.decode(arguments[0])
        except (ValueError, RecursionError) as error:
            raise FunctionError(f"{name}(): not JSON ({error})") from None

    return run


def wildcard(pattern: str, text: str) -> bool:
    """Whether *text* matches *pattern*: ``*`` any characters, ``?`` one, everything else itself."""
    if not pattern:
        return text == ""
    at = place = 0
    star, mark = -1, 0
    while place < len(text):
        # A literal comparison must not shadow "*", which a text may contain as well.
        if at < len(pattern) and pattern[at] == "*":
            star, mark = at, place
            at += 1
        elif at < len(pattern) and pattern[at] in ("?", text[place]):
            at += 1
            place += 1
        elif star >= 0:
            mark += 1
            at, place = star + 1, mark
        else:
            return False
    return all(character == "*" for character in pattern[at:])


FUNCTIONS: Final[list[Function]] = [
    function("abs", lambda a: abs(a[0]), "number"),
    function("avg", _avg, "array[number]"),
    function("ceil", _rounded(math.ceil), "number"),
    function("contains", _contains, "array|string", "any"),
    function("ends_with", lambda a: a[0].endswith(a[1]), "string", "string"),
    *(
        function(name, _find(name, name == "find_last"), "string", "string", "number?", "number?")
        for name in ("find_first", "find_last")
    ),
    function("floor", _rounded(math.floor), "number"),
    function("from_items", _from_items, "array[array]"),
    function("group_by", _group_by, "array", "expref"),
    function("join", lambda a: a[0].join(a[1]), "string", "array[string]"),
    function("keys", lambda a: list(a[0]), "object"),
    function("length", lambda a: float(len(a[0])), "string|array|object"),
    function("lower", lambda a: a[0].lower(), "string"),
    function("map", lambda a: [a[0](item) for item in a[1]], "expref", "array"),
    function("max", _extreme(max), "array[number]|array[string]"),
    function("max_by", _extreme_by("max_by", max), "array", "expref"),
    function("merge", _merge, "object*"),
    function("min", _extreme(min), "array[number]|array[string]"),
    function("min_by", _extreme_by("min_by", min), "array", "expref"),
    function("not_null", _not_null, "any*"),
    function("pad_left", _pad("pad_left", True), "string", "number", "string?"),
    function("pad_right", _pad("pad_right", False), "string", "number", "string?"),
    function("reverse", lambda a: a[0][::-1], "array|string"),
    function("sort", lambda a: sorted(a[0]), "array[string]|array[number]"),
    function("sort_by", _sort_by, "array", "expref"),
    function("starts_with", lambda a: a[0].startswith(a[1]), "string", "string"),
    function("to_array", lambda a: a[0] if type(a[0]) is list else [a[0]], "any"),
    function("to_number", _to_number, "any"),
    function("to_string", lambda a: a[0] if type(a[0]) is str else json_text(a[0]), "any"),
    function("trim_left", _strip("lstrip"), "string", "string?"),
    function("trim_right", _strip("rstrip"), "string", "string?"),
    function("type", _type, "any"),
    function("upper", lambda a: a[0].upper(), "string"),
    function("values", lambda a: list(a[0].values()), "object"),
    function("zip", _zip, "array", "array*"),
    function("at", _at, "array", "number"),
    function("concat", lambda a: a[0] + a[1], "string", "string"),
    function("json_parse", parse_json("json_parse"), "string"),
    function("wildcard", lambda a: wildcard(a[0], a[1]), "string", "string"),
    function("env", lambda a: os.environ.get(a[0], ""), "string"),
    function("trim_space", lambda a: a[0].strip(), "string"),
    function("as_string", lambda a: a[0] if type(a[0]) is str else None, "any"),
]
