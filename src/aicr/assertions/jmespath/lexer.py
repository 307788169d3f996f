"""Text of a JMESPath expression → tokens (community edition).

A token is ``(kind, value, column)``; columns count characters from 1. Kinds are the operator texts
themselves, and the names below for what has a value. The lexer knows nothing of precedence.
Source: validators spec 8.8.4; where that is silent, jmespath-community/go-jmespath.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, Final, NamedTuple, NoReturn

from aicr.errors import AicrError, invalid

END: Final = "end"
NAME: Final = "name"
QUOTED: Final = "quoted name"
NUMBER: Final = "number"
LITERAL: Final = "literal"
VARIABLE: Final = "variable"
ROOT: Final = "$"

#: Longest first; the last three are the typographic signs for multiply, divide and minus.
_OPERATORS: Final = (
    *("[?", "[]", "||", "&&", "<=", ">=", "==", "!=", "//"),
    *(".", "*", ",", ":", "{", "}", "[", "]", "(", ")", "@", "+", "-", "/", "%", "|", "<", ">"),
    *("!", "&", "=", "\u00d7", "\u00f7", "\u2212"),
)
_SAME: Final = {"\u00d7": "times", "\u00f7": "/", "\u2212": "-"}
_WORD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NUMBER: Final = re.compile(r"-?[0-9]+")
_VARIABLE: Final = re.compile(r"\$[A-Za-z0-9_]*")
_TO_QUOTE: Final = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_TO_TICK: Final = re.compile(r"'((?:[^'\\]|\\.)*)'", re.DOTALL)
_TO_BACKTICK: Final = re.compile(r"`((?:[^`\\]|\\.)*)`", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(['\\])")
#: Far beyond any real expression; keeps the parser's recursion within Python's.
LONGEST: Final = 20_000


class Token(NamedTuple):
    """One token; *value* is the decoded value of a name, number, literal or variable."""

    kind: str
    value: Any
    column: int


def syntax_error(expression: str, column: int, message: str, hint: str = "") -> AicrError:
    """The error for an expression that cannot be read."""
    return invalid(
        f"JMESPath expression {shown(expression)} is malformed at column {column}: {message}",
        hint=hint or "see docs/assertions.md for the syntax of expressions",
        context={"expression": expression, "column": column},
    )


def shown(expression: str) -> str:
    """An expression in a message, cut to a readable length."""
    return f"({expression if len(expression) <= 160 else expression[:157] + '...'})"


def tokens(expression: str) -> list[Token]:
    """The tokens of *expression*, an END token last; INVALID_REQUEST where there is none."""
    if len(expression) > LONGEST:
        raise syntax_error(expression, LONGEST, f"longer than {LONGEST} characters")
    found: list[Token] = []
    position = 0
    while position < len(expression):
        character = expression[position]
        if character in " \t\r\n":
            position += 1
            continue
        token, position = _token(expression, position, character)
        found.append(token)
    found.append(Token(END, "", len(expression) + 1))
    return found


def _token(text: str, start: int, character: str) -> tuple[Token, int]:
    column = start + 1
    if match := _WORD.match(text, start):
        return Token(NAME, match.group(), column), match.end()
    if match := _NUMBER.match(text, start):
        return Token(NUMBER, match.group(), column), match.end()
    if character == "'":
        match = _delimited(_TO_TICK, text, start)
        return Token(LITERAL, _ESCAPE.sub(r"\1", match.group(1)), column), match.end()
    if character == '"':
        match = _delimited(_TO_QUOTE, text, start)
        return Token(QUOTED, _json(text, column, match.group()), column), match.end()
    if character == "`":
        match = _delimited(_TO_BACKTICK, text, start)
        return Token(
            LITERAL, _json(text, column, match.group(1).replace("\\`", "`")), column
        ), match.end()
    if match := _VARIABLE.match(text, start):
        kind = ROOT if match.group() == "$" else VARIABLE
        return Token(kind, match.group(), column), match.end()
    for operator in _OPERATORS:
        if text.startswith(operator, start):
            return Token(_SAME.get(operator, operator), operator, column), start + len(operator)
    raise syntax_error(text, column, f"unknown character {character!r}")


def _delimited(pattern: re.Pattern[str], text: str, start: int) -> re.Match[str]:
    match = pattern.match(text, start)
    if match is None:
        raise syntax_error(text, start + 1, f"no closing {text[start]}", "close the quotation")
    return match


def _json(expression: str, column: int, text: str) -> Any:
    try:
        return decode(text)
    except (ValueError, RecursionError) as error:
        raise syntax_error(
            expression,
            column,
            f"{text} is not JSON ({error})",
            "between backticks stands JSON: `1`, `true`, `\"text\"`, `[]`; raw text is 'text'",
        ) from None


def decode(text: str) -> Any:
    """JSON with every number as a float, as JMESPath has it; ValueError if it is none."""
    return json.loads(text, parse_int=_float, parse_float=_float, parse_constant=_refuse)


def _float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text[:40]} is out of range")
    return number


def _refuse(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")
