"""Assertions on what expressions give: every operator and every function, by hand and by chance.

A case is an expression and a value that it is said to give. Our engine computes the value; half of the
cases say another one, so both engines have to tell right from wrong, and a value that ours gets wrong
shows as a difference. Arguments of wrong types, wrong counts and broken text make authoring errors.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml
from tests.chainsaw.chainsaw_case import Case, on_spec
from tests.chainsaw.chainsaw_sample import SPEC

from aicr.assertions.jmespath import functions
from aicr.assertions.jmespath.evaluate import compiled
from aicr.errors import AicrError

#: Least number of cases of each construct.
EACH: Final = 12

_TABLES: Final[dict[str, dict[str, list[str]]]] = yaml.safe_load(
    Path(__file__).with_name("expressions.yaml").read_text(encoding="utf-8")
)
ATOMS: Final = _TABLES["operands"]
OPERATORS: Final = _TABLES["operators"]
ARGUMENTS: Final = _TABLES["functions"]
_LETTERS: Final[dict[str, str]] = {
    "s": "string",
    "n": "number",
    "l": "array",
    "o": "object",
    "x": "any",
    "e": "expref",
}
_WORDS: Final = ("a", "b", "name", "ready", "web", "none")
#: Answers change from call to call, so no value can be said beforehand; only refusals are compared.
_UNSTEADY: Final = ("time_now", "time_now_utc")


def cases(seed: int) -> Iterator[Case]:
    """Cases of every operator and function; the same for the same *seed*."""
    for construct in OPERATORS:
        yield from _of(
            f"operator {construct}", _operator(construct, random.Random(f"{seed}/{construct}"))
        )
    for name in functions.TABLE:
        yield from _of(f"function {name}", _calls(name, random.Random(f"{seed}/{name}")))


def _of(construct: str, expressions: Iterator[tuple[str, bool]]) -> Iterator[Case]:
    rng = random.Random(construct)
    seen: set[str] = set()
    for expression, by_hand in expressions:
        if expression in seen:
            continue
        seen.add(expression)
        yield on_spec(construct, _claim(expression, rng), by_hand=by_hand)
        if len(seen) >= EACH + 4:
            return


def _operator(construct: str, rng: random.Random) -> Iterator[tuple[str, bool]]:
    templates = OPERATORS[construct]
    for turn in range(10 * EACH):
        text = _filled(templates[turn % len(templates)], rng)
        if turn % 7 == 6:
            yield _broken(text, rng), False
        else:
            yield text, "{" not in templates[turn % len(templates)]


def _filled(template: str, rng: random.Random) -> str:
    """A template with what its letters stand for; doubled braces are braces."""
    out, at = [], 0
    while at < len(template):
        if template[at : at + 2] in ("{{", "}}"):
            out.append(template[at])
            at += 2
        elif template[at] == "{":
            out.append(_atom(template[at + 1], rng))
            at += 3
        else:
            out.append(template[at])
            at += 1
    return "".join(out)


def _atom(letter: str, rng: random.Random) -> str:
    if letter == "d":
        return str(rng.randrange(4))
    if letter == "w":
        return rng.choice(_WORDS)
    if letter == "i":
        return rng.choice(("int", "zero", "neg", "large", "ints[1]", "map.b", "pods[2].n"))
    return rng.choice(ATOMS[_LETTERS[letter]])


def _broken(text: str, rng: random.Random) -> str:
    """The expression with one character less or one too many."""
    place = rng.randrange(len(text))
    if rng.random() < 0.5:
        return text[:place] + text[place + 1 :] or "]"
    return text[:place] + rng.choice("()[]{}|&=!$#,.:?") + text[place:]


def _calls(name: str, rng: random.Random) -> Iterator[tuple[str, bool]]:
    found = functions.TABLE[name]
    for arguments in ARGUMENTS.get(name, ()):
        yield f"{name}({arguments})", True
    yield f"{name}()", True
    yield f"{name}({', '.join(['text'] * (found.least + 3))})", True
    if found.parameters:
        yield f"{name}({', '.join(['missing'] * found.least)})", True
    for turn in range(20 * EACH):
        count = found.least
        if found.most is None or found.most > count:
            count += rng.randrange(2 if found.most is None else found.most - count + 1)
        wrong = rng.randrange(max(count, 1)) if turn % 6 == 5 else -1
        words = []
        for index in range(count):
            types = (
                found.parameters[min(index, len(found.parameters) - 1)]
                if found.parameters
                else ("any",)
            )
            kind = "any" if index == wrong else rng.choice(types)
            words.append(rng.choice(ATOMS[kind]))
        yield f"{name}({', '.join(words)})", False


def _claim(expression: str, rng: random.Random) -> dict[str, Any]:
    """A tree that says what the expression gives: truly or not, by chance."""
    key = f"({expression})"
    try:
        value = compiled(expression).evaluate(SPEC, {})
    except AicrError:
        return {key: None}
    if any(name in expression for name in _UNSTEADY) or not _sayable(value):
        return {f"(type({expression}))": rng.choice(("string", "array"))}
    return {key: _said(value) if rng.random() < 0.52 else _said(_other(value, rng))}


def _sayable(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, list):
        return all(map(_sayable, value))
    if isinstance(value, dict):
        return all(_sayable(item) for item in value.values()) and not any(
            _special(key) or not key for key in value
        )
    return isinstance(value, (str, int, bool)) or value is None


def _special(text: str) -> bool:
    return text[:1] in ("(", "~", "\\") or "->" in text


def _said(value: Any) -> Any:
    """A value as an assertion tree writes it."""
    if isinstance(value, str) and _special(value):
        return f"\\{value}\\"
    if isinstance(value, list):
        return [_said(item) for item in value]
    if isinstance(value, dict):
        return {key: _said(item) for key, item in value.items()}
    return value


def _other(value: Any, rng: random.Random) -> Any:
    """A value near to *value* that differs: another of the type, or of another type."""
    if value is None:
        return rng.choice((True, "x", [], {"a": 1}))
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return rng.choice((value + 1, -value - 1, value + 0.5))
    if isinstance(value, str):
        return rng.choice((f"{value}x", value[1:] if value else "y"))
    if isinstance(value, list):
        if not value or rng.random() < 0.4:
            return [*value, "more"]
        return [*value[:-1], _other(value[-1], rng)]
    if not value:
        return {"a": 1}
    key = sorted(value)[0]
    return {**value, key: _other(value[key], rng)}
