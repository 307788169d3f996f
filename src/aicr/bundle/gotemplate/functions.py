"""What a pipeline may call: Go's own functions and the few that manifests use besides.

Design: a function takes plain values and returns one, or raises EvaluationError with the reason in
Go's words. The table gives each its least and most number of arguments. ``and`` and ``or`` are in
it for their names only; the evaluator runs them, because they do not look at every argument.

It must not know about scopes or nodes.
Source of the rules: bundler spec 2.7, and the documentation of Go's ``text/template``.
"""

from __future__ import annotations

from aicr.bundle.gotemplate.formatting import (
    EvaluationError,
    display,
    quoted,
    sprint,
    sprintf,
    type_name,
)
from aicr.yamlio.write import dump

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Final

#: What Go counts as white space.
_SPACE: Final = "\t\n\v\f\r \u0085\u00a0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    [chr(code) for code in range(0x2000, 0x200B)]
)
_MOST_INDENT: Final = 200


# -- comparison --------------------------------------------------------------------------------


def _kind(value: Any) -> str:
    """The kind by which Go compares; "" for what is not a basic value."""
    name = type_name(value)
    return name if name in ("bool", "int", "float64", "string") else ""


def equal(first: Any, *others: Any) -> bool:
    """``eq``: whether the first equals any of the others."""
    if not others:
        raise EvaluationError("eq: missing argument for comparison")
    kind = _kind(first)
    for other in others:
        if first is None or other is None:
            if first is None and other is None:
                return True
        elif kind != _kind(other):
            raise EvaluationError(
                f"incompatible types for comparison: {type_name(first)} and {type_name(other)}"
            )
        elif not kind:
            raise EvaluationError(f"non-comparable type {type_name(first)}: {display(first)}")
        elif first == other:
            return True
    return False


def less(first: Any, second: Any) -> bool:
    """``lt``: numbers of one type by size, strings by their code points."""
    kind, other = _kind(first), _kind(second)
    if not kind or not other:
        raise EvaluationError("invalid type for comparison")
    if kind != other:
        raise EvaluationError(
            f"incompatible types for comparison: {type_name(first)} and {type_name(second)}"
        )
    if kind == "bool":
        raise EvaluationError("invalid type for comparison")
    return bool(first < second)


def _not_equal(first: Any, second: Any) -> bool:
    return not equal(first, second)


def _less_or_equal(first: Any, second: Any) -> bool:
    return less(first, second) or equal(first, second)


def _greater(first: Any, second: Any) -> bool:
    return not _less_or_equal(first, second)


def _greater_or_equal(first: Any, second: Any) -> bool:
    return not less(first, second)


# -- collections -------------------------------------------------------------------------------


def index(item: Any, *keys: Any) -> Any:
    """``index``: the value below the keys; a map gives nil for a key that it lacks."""
    if item is None:
        raise EvaluationError("index of untyped nil")
    for key in keys:
        if isinstance(item, dict):
            if not isinstance(key, str):
                raise EvaluationError(f"value has type {type_name(key)}; should be string")
            item = item.get(key)
        elif isinstance(item, list | tuple | str):
            if not isinstance(key, int) or isinstance(key, bool):
                raise EvaluationError(f"cannot index slice/array with type {type_name(key)}")
            sequence = item.encode() if isinstance(item, str) else item
            if not 0 <= key < len(sequence):
                raise EvaluationError(f"index out of range: {key}")
            item = sequence[key]
        elif item is None:
            raise EvaluationError("index of nil pointer")
        else:
            raise EvaluationError(f"can't index item of type {type_name(item)}")
    return item


def length(item: Any) -> int:
    """``len``: items of a list or map, or bytes of a string."""
    if isinstance(item, str):
        return len(item.encode())
    if isinstance(item, dict | list | tuple):
        return len(item)
    if item is None:
        raise EvaluationError("len of nil pointer")
    raise EvaluationError(f"len of type {type_name(item)}")


def _has_key(item: Any, key: Any) -> bool:
    if item is None:
        # Go hands nil over as an empty map.
        item = {}
    if not isinstance(item, dict):
        raise EvaluationError(
            f"wrong type for value; expected map[string]interface {{}}; got {type_name(item)}"
        )
    return _string(key) in item


# -- text --------------------------------------------------------------------------------------


def _string(value: Any) -> str:
    """An argument that must be a string."""
    if not isinstance(value, str):
        raise EvaluationError(f"wrong type for value; expected string; got {type_name(value)}")
    return value


def _columns(value: Any) -> str:
    """The spaces of an indentation."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise EvaluationError(f"wrong type for value; expected int; got {type_name(value)}")
    if not 0 <= value <= _MOST_INDENT:
        raise EvaluationError(f"cannot indent by {value}; from 0 to {_MOST_INDENT}")
    return " " * value


def to_yaml(value: Any) -> str:
    """``toYaml``: a value as YAML without the newline at its end."""
    return dump(value, sort_keys=True).rstrip("\n")


def indent(columns: Any, text: Any) -> str:
    """``indent``: every line moved right."""
    pad = _columns(columns)
    return pad + _string(text).replace("\n", "\n" + pad)


def nindent(columns: Any, text: Any) -> str:
    """``nindent``: a newline, then the lines moved right; empty lines stay empty (2.7)."""
    pad = _columns(columns)
    lines = _string(text).split("\n")
    return "\n" + "\n".join([pad + line if line else line for line in lines])


def default(fallback: Any, value: Any) -> Any:
    """``default``: the fallback for nil and "" only; false and 0 are values (2.7)."""
    return fallback if value is None or value == "" else value


def _quote(*values: Any) -> str:
    return " ".join([quoted(display(value)) for value in values if value is not None])


def _print(*values: Any) -> str:
    return sprint(values)


def _println(*values: Any) -> str:
    return " ".join([display(value) for value in values]) + "\n"


def _printf(template: Any, *values: Any) -> str:
    return sprintf(_string(template), values)


def _trim(text: Any) -> str:
    return _string(text).strip(_SPACE)


def _not(value: Any) -> bool:
    return not value


#: Name, then the function and the least and most number of its arguments.
FUNCTIONS: Final[dict[str, tuple[Callable[..., Any], int, int | None]]] = {
    "and": (_not, 1, None),
    "default": (default, 2, 2),
    "eq": (equal, 1, None),
    "ge": (_greater_or_equal, 2, 2),
    "gt": (_greater, 2, 2),
    "hasKey": (_has_key, 2, 2),
    "indent": (indent, 2, 2),
    "index": (index, 1, None),
    "le": (_less_or_equal, 2, 2),
    "len": (length, 1, 1),
    "lt": (less, 2, 2),
    "ne": (_not_equal, 2, 2),
    "nindent": (nindent, 2, 2),
    "not": (_not, 1, 1),
    "or": (_not, 1, None),
    "print": (_print, 0, None),
    "printf": (_printf, 1, None),
    "println": (_println, 0, None),
    "quote": (_quote, 0, None),
    "toString": (display, 1, 1),
    "toYaml": (to_yaml, 1, 1),
    "trim": (_trim, 1, 1),
}

NAMES: Final[list[str]] = sorted(FUNCTIONS)
