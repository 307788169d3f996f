"""Functions of kyverno on text and objects; several replace those of the community edition.

Regular expressions are of Python's `re` with Go's replacement templates (``$1``, ``${name}``).
Source: validators spec 8.8.5.
"""

from __future__ import annotations

import base64
import binascii
import math
import posixpath
import re
from typing import Any, Final

from aicr.assertions.jmespath.functions_core import parse_json, wildcard
from aicr.assertions.jmespath.signatures import Function, function
from aicr.assertions.jmespath.values import FunctionError, equal, number_text
from aicr.errors import AicrError
from aicr.yamlio import read

Arguments = list[Any]
_TEMPLATE: Final = re.compile(r"\$(?:\$|(\w+)|\{(\w+)\})", re.ASCII)
_VERSION: Final = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?", re.ASCII
)
_RANGE: Final = re.compile(r"(>=|<=|==|!=|!|=|>|<)?\s*([0-9xX*][^\s<>=!|]*)")
#: A parsed version: three numbers, then what sorts pre-releases before the release.
_Version = tuple[tuple[int, int, int], tuple[tuple[int, int, str], ...], bool]


def _compare(arguments: Arguments) -> int:
    """An integer, as in kyverno, so that it equals no literal but orders like any number."""
    left, right = arguments
    return int(left > right) - int(left < right)


def _replace(arguments: Arguments) -> str:
    text, old, new, count = arguments
    if not math.isfinite(count):
        raise FunctionError("replace() expects its count to be an integer")
    return str(text.replace(old, new, int(count) if count >= 0 else -1))


def _split(arguments: Arguments) -> list[str]:
    text, separator = arguments
    return text.split(separator) if separator else list(text)


def _text_of(value: Any) -> str:
    return value if type(value) is str else number_text(value)


def _pattern(name: str, text: str) -> re.Pattern[str]:
    try:
        return re.compile(re.sub(r"\(\?<(?=[A-Za-z_])", "(?P<", text).replace(r"\z", r"\Z"))
    except (re.error, OverflowError, RecursionError) as error:
        raise FunctionError(f"{name}(): {text!r} is no regular expression ({error})") from None


def _regex_replace_all(arguments: Arguments) -> str:
    pattern = _pattern("regex_replace_all", arguments[0])
    template = _text_of(arguments[2])

    def group(match: re.Match[str], name: str) -> str:
        try:
            return match.group(int(name) if name.isdigit() else name) or ""
        except (IndexError, OverflowError):
            return ""

    def fill(match: re.Match[str]) -> str:
        return _TEMPLATE.sub(
            lambda part: "$" if part.group() == "$$" else group(match, part[1] or part[2]), template
        )

    return pattern.sub(fill, _text_of(arguments[1]))


def _regex_replace_literal(arguments: Arguments) -> str:
    pattern = _pattern("regex_replace_all_literal", arguments[0])
    text = _text_of(arguments[2])
    return pattern.sub(lambda match: text, _text_of(arguments[1]))


def _regex_match(arguments: Arguments) -> bool:
    return _pattern("regex_match", arguments[0]).search(_text_of(arguments[1])) is not None


def _label_match(arguments: Arguments) -> bool:
    wanted, found = arguments
    return all(key in found and equal(found[key], value) for key, value in wanted.items())


def _to_boolean(arguments: Arguments) -> bool:
    found = {"true": True, "false": False}.get(arguments[0].lower())
    if found is None:
        raise FunctionError(f"to_boolean(): {arguments[0]!r} is neither 'true' nor 'false'")
    return found


def _base64_decode(arguments: Arguments) -> str:
    try:
        text = arguments[0].replace("\n", "").replace("\r", "")
        return base64.b64decode(text.encode(), validate=True).decode()
    except (binascii.Error, UnicodeError) as error:
        raise FunctionError(f"base64_decode(): not base64 of a text ({error})") from None


def _base64_encode(arguments: Arguments) -> str:
    return base64.b64encode(arguments[0].encode("utf-8", "surrogatepass")).decode()


def _path_canonicalize(arguments: Arguments) -> str:
    if not arguments[0]:
        return ""
    path = posixpath.normpath(arguments[0])
    return str(path[1:]) if path.startswith("//") else path


def _truncate(arguments: Arguments) -> str:
    length = arguments[1]
    if math.isnan(length):
        raise FunctionError("truncate(): the length is no number")
    return str(arguments[0][: int(min(max(length, 0.0), 1e9))])


def _version(text: str) -> _Version | None:
    match = _VERSION.fullmatch(text)
    if match is None:
        return None
    major, minor, patch, pre = match.groups()
    parts = []
    for part in pre.split(".") if pre else ():
        digits = part.isdigit() and len(part) < 19
        parts.append((0, int(part), "") if digits else (1, 0, part))
    return (int(major), int(minor), int(patch)), tuple(parts), not parts


def _order(left: _Version, right: _Version) -> int:
    one, two = (left[0], left[2], left[1]), (right[0], right[2], right[1])
    return (one > two) - (one < two)


def _semver_compare(arguments: Arguments) -> bool:
    version = _version(arguments[0]) or ((0, 0, 0), (), True)
    if not arguments[1].strip():
        raise FunctionError("semver_compare(): the range is empty")
    results = [_all_hold(version, part, arguments[1]) for part in arguments[1].split("||")]
    return any(results)


def _all_hold(version: _Version, part: str, whole: str) -> bool:
    if _RANGE.sub("", part).strip() or not part.strip():
        raise FunctionError(
            f"semver_compare(): {whole!r} is no range; write for example '>=1.2.0 <2.0.0'"
        )
    # Every comparison is read, so that a malformed one is found whatever the others say.
    held = [_holds(version, op or "=", text, whole) for op, text in _RANGE.findall(part)]
    return all(held)


def _holds(version: _Version, operator: str, text: str, whole: str) -> bool:
    pieces = text.split(".")
    wild = [index for index, piece in enumerate(pieces) if piece == "x"]
    if wild:
        first = wild[0]
        numbers = [int(piece) if piece.isdigit() else -1 for piece in pieces[:first]]
        if -1 in numbers or not 0 < first < 3 or len(wild) != len(pieces) - first:
            raise FunctionError(f"semver_compare(): {text!r} in {whole!r} is no version")
        here = list(version[0][:first])
        sign = (here > numbers) - (here < numbers)
    else:
        wanted = _version(text)
        if wanted is None:
            raise FunctionError(
                f"semver_compare(): {text!r} in {whole!r} is no version; write all three parts"
            )
        sign = _order(version, wanted)
    return {
        "=": sign == 0,
        "==": sign == 0,
        "!": sign != 0,
        "!=": sign != 0,
        ">": sign > 0,
        ">=": sign >= 0,
        "<": sign < 0,
        "<=": sign <= 0,
    }[operator]


def _parse_yaml(arguments: Arguments) -> Any:
    try:
        return _floats(read.load(arguments[0], source="text"))
    except AicrError as error:
        raise FunctionError(f"parse_yaml(): {error.message}") from error


def _floats(value: Any) -> Any:
    if type(value) is int:
        try:
            return float(value)
        except OverflowError:
            raise FunctionError(f"parse_yaml(): {str(value)[:40]}... is out of range") from None
    if type(value) is list:
        return [_floats(item) for item in value]
    if type(value) is dict:
        return {key: _floats(item) for key, item in value.items()}
    return value


def _lookup(arguments: Arguments) -> Any:
    where, key = arguments
    if type(where) is dict:
        if type(key) is not str:
            raise FunctionError("lookup(): argument 2 must be a string for an object")
        return where.get(key)
    if type(key) is not float or not math.isfinite(key) or key != math.floor(key):
        raise FunctionError("lookup(): argument 2 must be an integer number for an array")
    return where[int(key)] if 0 <= key < len(where) else None


def _items(arguments: Arguments) -> Any:
    where, key_name, value_name = arguments
    if type(where) is dict:
        return [{key_name: key, value_name: where[key]} for key in sorted(where)]
    return [{key_name: float(index), value_name: item} for index, item in enumerate(where)]


def _object_from_lists(arguments: Arguments) -> Any:
    keys, found = arguments
    result: dict[str, Any] = {}
    for index, key in enumerate(keys):
        if type(key) is bool:
            name = "true" if key else "false"
        elif type(key) in (str, float):
            name = _text_of(key)
        else:
            raise FunctionError("object_from_lists(): keys must be strings")
        result[name] = found[index] if index < len(found) else None
    return result


FUNCTIONS: Final[list[Function]] = [
    function("compare", _compare, "string", "string"),
    function("equal_fold", lambda a: a[0].casefold() == a[1].casefold(), "string", "string"),
    function("replace", _replace, "string", "string", "string", "number"),
    function("replace_all", lambda a: a[0].replace(a[1], a[2]), "string", "string", "string"),
    function("to_upper", lambda a: a[0].upper(), "string"),
    function("to_lower", lambda a: a[0].lower(), "string"),
    function("trim", lambda a: a[0].strip(a[1]) if a[1] else a[0], "string", "string"),
    function("trim_prefix", lambda a: a[0].removeprefix(a[1]), "string", "string"),
    function("split", _split, "string", "string"),
    function("regex_replace_all", _regex_replace_all, "string", "string|number", "string|number"),
    function(
        "regex_replace_all_literal",
        _regex_replace_literal,
        *("string", "string|number", "string|number"),
    ),
    function("regex_match", _regex_match, "string", "string|number"),
    function("pattern_match", lambda a: wildcard(a[0], _text_of(a[1])), "string", "string|number"),
    function("label_match", _label_match, "object", "object"),
    function("to_boolean", _to_boolean, "string"),
    function("base64_decode", _base64_decode, "string"),
    function("base64_encode", _base64_encode, "string"),
    function("path_canonicalize", _path_canonicalize, "string"),
    function("truncate", _truncate, "string", "number"),
    function("semver_compare", _semver_compare, "string", "string"),
    function("parse_json", parse_json("parse_json"), "string"),
    function("parse_yaml", _parse_yaml, "string"),
    function("lookup", _lookup, "object|array", "string|number"),
    function("items", _items, "object|array", "string", "string"),
    function("object_from_lists", _object_from_lists, "array", "array"),
]
