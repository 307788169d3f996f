"""Strict JSON: what YAML reading refuses is refused here too (duplicate keys, NaN, deep nesting).

The standard decoder reads and judges. It does not say where it stood when an object turned out to hold a
key twice, so the place is looked up afterwards, in a text that is known to be well formed up to there.
"""

from __future__ import annotations

import json
import re

from aicr.errors import AicrError, invalid
from aicr.yamlio.write import MAX_DEPTH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from aicr.yamlio.read import Positions

_TOKENS: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|NaN|-?Infinity', re.DOTALL)

#: Longest text whose places are looked up, in characters.
_MOST_PLACED: Final = 1 << 20

_INFINITY: Final = float("inf")


class _RefusedError(ValueError):
    """Something json would let pass: a repeated key, or a constant that is no JSON."""


def load_json(text: str, *, source: str) -> Any:
    """The value of a JSON text.

    Raises:
        AicrError: INVALID_REQUEST with ``source:line:column`` for text that does not parse, a
            duplicate key (naming both lines), NaN or Infinity, half a surrogate pair, and nesting
            too deep to read.
    """
    try:
        value = json.loads(
            text, object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite
        )
    except json.JSONDecodeError as error:
        raise invalid(
            f"not valid JSON: {error.msg.lower()}",
            where=f"{source}:{error.lineno}:{error.colno}",
            hint="JSON wants double quotes around keys and text, and no comma after the last entry",
        ) from None
    except _RefusedError:
        raise _located(text, source) from None
    except OverflowError:
        raise invalid(
            "not valid JSON: a number is too large", where=source, hint="write it as text"
        ) from None
    except ValueError:
        raise invalid(
            "not valid JSON: a number is too long", where=source, hint="write it as text"
        ) from None
    except RecursionError:
        raise _too_deep(source) from None
    _check(value, text, source)
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _RefusedError
    return found


def _finite(text: str) -> float:
    number = float(text)
    if number in (_INFINITY, -_INFINITY):
        raise OverflowError
    return number


def _no_constant(text: str) -> Any:
    raise _RefusedError


def _located(text: str, source: str) -> AicrError:
    """The first repeated key or odd constant of *text*, with its place."""
    open_: list[dict[str, int] | None] = []
    at_key = False
    for token in _TOKENS.finditer(text):
        word, offset = token.group(), token.start()
        if word in "{[":
            open_.append({} if word == "{" else None)
            at_key = word == "{"
        elif word in "}]":
            open_.pop()
        elif word == ",":
            at_key = open_[-1] is not None
        elif word[0] == '"' and at_key:
            keys, key = open_[-1], json.loads(word)
            at_key = False
            if keys is not None and key in keys:
                line = text.count("\n", 0, keys[key]) + 1
                return invalid(
                    f'duplicate key "{key}": already set on line {line}, again on line '
                    f"{text.count(chr(10), 0, offset) + 1}",
                    where=_place(text, offset, source),
                    hint="keep one of the two",
                )
            if keys is not None:
                keys[key] = offset
        elif word[0] in "NI-":
            return invalid(
                f"{word} is not JSON; numbers must be finite",
                where=_place(text, offset, source),
                hint="write null or a finite number",
            )
    raise AssertionError("the decoder refused what is not there")


def _place(text: str, offset: int, source: str) -> str:
    start = text.rfind("\n", 0, offset) + 1
    return f"{source}:{text.count(chr(10), 0, offset) + 1}:{offset - start + 1}"


def _check(value: Any, text: str, source: str) -> None:
    """Refuse what the decoder lets pass and no writer of ours can write."""
    _check_depth(value, source)
    if not text.isascii() or "\\ud" in text or "\\uD" in text:
        _check_strings(value, source)


def _check_depth(value: Any, source: str) -> None:
    level = [value] if isinstance(value, (dict, list)) else []
    for _ in range(MAX_DEPTH + 1):
        level = [
            item
            for found in level
            for item in (found.values() if type(found) is dict else found)
            if type(item) is dict or type(item) is list
        ]
        if not level:
            return
    raise _too_deep(source)


def _check_strings(value: Any, source: str) -> None:
    waiting = [value]
    while waiting:
        found = waiting.pop()
        if isinstance(found, dict):
            waiting += found
            waiting += found.values()
        elif isinstance(found, list):
            waiting += found
        elif isinstance(found, str):
            try:
                found.encode("utf-8")
            except UnicodeEncodeError:
                raise invalid(
                    f"{found!a} holds half a surrogate pair, which is no character",
                    where=source,
                    hint="write the character itself",
                ) from None


def _too_deep(source: str) -> AicrError:
    return invalid("JSON is nested too deeply", where=source, hint="is it the right file?")


def is_json(text: str) -> bool:
    """Whether a document is JSON: YAML in braces rarely quotes its first key."""
    start = text[:1024].lstrip()
    return start[:1] == "{" and start[1:].lstrip()[:1] in ('"', "}")


def positions(text: str, *, source: str) -> Positions:
    """Where each value of a text stands that ``load_json`` reads.

    JSON is read as the YAML that it nearly is. The blanks between its words may be tabs, which YAML
    refuses; inside its words they cannot be. Where that does not help, every place is the file; so it
    is for a text of more than ``_MOST_PLACED`` characters, for which places would cost minutes.
    """
    from aicr.yamlio import read

    if len(text) > _MOST_PLACED:
        return read.Positions(source)
    try:
        return read.load_with_positions(text.replace("\t", " "), source=source, mode="helm")[1]
    except AicrError:
        return read.Positions(source)


def dump_json(value: Any) -> str:
    r"""JSON with two blanks of indent, ``<``, ``>`` and ``&`` escaped as Go does (recipe spec 0.7)."""
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text + "\n"
