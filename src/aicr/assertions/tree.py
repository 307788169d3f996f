"""Assertion trees, as kyverno-json has them: parsed once, evaluated purely on one document.

`parse` turns an assertion into nested functions, `Tree.judge` gives a `Judgement`: findings (what does
not match, with path, expected and actual) and notes (what matched without proving anything). What cannot
be evaluated is no finding but an `AicrError` INVALID_REQUEST, which outranks every finding and which no
waiting will cure. The module knows nothing of clusters, tests or retries.

Source: validators spec 8.8.1 to 8.8.3; decision 15; where they are silent, kyverno-json.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from aicr.assertions.findings import Finding, Item, Judgement, Trail, path_text, shown
from aicr.assertions.jmespath import Expression, compiled
from aicr.assertions.jmespath.values import equal, kind, number
from aicr.errors import AicrError, invalid

Env = dict[str, Any]
Check = Callable[[Any, Trail, Env, "_Findings"], None]

#: A key that loops: ``~.`` or ``~index.``, then the rest of the key.
ITERATOR: Final = re.compile(r"~(\w+)?\.(.*)", re.ASCII)
_BINDING: Final = re.compile(r"(.*)\s*->\s*(\w+)\Z", re.ASCII)
_ESCAPE: Final = re.compile(r"\\(.+)\\\Z")
_ENGINE: Final = re.compile(r"\((?:(\w+);)?(.+)\)\Z", re.ASCII)
_NO_BINDINGS: Final[Env] = {}


class _Findings:
    """Collects what one evaluation finds."""

    __slots__ = ("found", "notes")

    def __init__(self) -> None:
        self.found: list[Finding] = []
        self.notes: list[str] = []


class Tree:
    """A parsed assertion."""

    __slots__ = ("_check",)

    def __init__(self, check: Check) -> None:
        self._check = check

    def judge(self, actual: Any, bindings: Mapping[str, Any] | None = None) -> Judgement:
        """Compare *actual*, a plain document that is not changed, with the assertion.

        *bindings* are variables by name, with their ``$``. Raises AicrError INVALID_REQUEST with path
        and reason if the assertion cannot be evaluated on this document (validators spec 8.8.2).
        """
        findings = _Findings()
        try:
            self._check(
                actual, None, _NO_BINDINGS if bindings is None else dict(bindings), findings
            )
        except RecursionError:
            raise invalid(
                "the assertion or the document is nested too deeply to be compared",
                hint="assert on a part of the document",
            ) from None
        return Judgement(findings.found, findings.notes)


def parse(assertion: Any, *, strict: bool = False) -> Tree:
    """Parse an assertion tree (validators spec 8.8.1).

    With *strict*, functions that do not exist are refused here and not when they are first called.

    Raises:
        AicrError: INVALID_REQUEST for expressions that cannot be read, for iterators and bindings in
            values, and for CEL; the context has the path (``at``).
    """
    try:
        return Tree(_parse(assertion, (), strict))
    except RecursionError:
        raise invalid("the assertion is nested too deeply", hint="split it in several") from None


class _Key(NamedTuple):
    """A key or text of an assertion, taken apart."""

    statement: str
    loop: bool
    index_name: str
    binding: str
    engine: str


def _take_apart(text: str) -> _Key:
    loop, index, binding, engine = False, "", "", ""
    if match := ITERATOR.match(text):
        loop, index, text = True, match[1] or "", match[2]
    if match := _BINDING.search(text):
        text, binding = match[1], match[2]
    if match := _ESCAPE.match(text):
        text = match[1]
    elif match := _ENGINE.match(text):
        engine, text = match[1] or "jp", match[2]
    return _Key(text, loop, index, binding, engine)


def _refused(at: tuple[Any, ...], message: str, hint: str = "") -> AicrError:
    path = path_text(_trail(at))
    text = f"{path}: {message}" if path else message
    return invalid(text, hint=hint, context={"at": at})


def _trail(at: tuple[Any, ...]) -> Trail:
    trail: Trail = None
    for segment in at:
        trail = (trail, segment)
    return trail


def _expression(key: _Key, at: tuple[Any, ...], strict: bool) -> Expression | None:
    """The expression of a key or text; None if it is literal."""
    if key.engine == "cel":
        raise _refused(at, "CEL expressions are not supported", "write the expression in JMESPath")
    if key.engine != "jp":
        return None
    try:
        expression = compiled(key.statement)
        unknown = expression.unknown_function() if strict else None
        if unknown is not None:
            raise unknown
    except AicrError as error:
        raise _refused(at, error.message, error.hint) from None
    return expression


def _parse(assertion: Any, at: tuple[Any, ...], strict: bool) -> Check:
    if isinstance(assertion, dict):
        return _map(assertion, at, strict)
    if isinstance(assertion, list):
        return _list([_parse(item, (*at, index), strict) for index, item in enumerate(assertion)])
    return _scalar(assertion, at, strict)


def _scalar(expected: Any, at: tuple[Any, ...], strict: bool) -> Check:
    if not isinstance(expected, str):
        return _literal(expected)
    key = _take_apart(expected)
    for wrong, what in ((key.loop, "foreach"), (bool(key.binding), "binding")):
        if wrong:
            message = f"{shown(expected)}: {what} is not supported in scalar projections"
            raise _refused(at, message, f"write \\{expected}\\ if the text itself is meant")
    expression = _expression(key, at, strict)
    if expression is None:
        return _literal(key.statement)

    def check(value: Any, trail: Trail, env: Env, out: _Findings) -> None:
        _compare(_evaluated(expression, value, trail, env), value, trail, out)

    return check


def _literal(expected: Any) -> Check:
    return lambda value, trail, env, out: _compare(expected, value, trail, out)


def _compare(expected: Any, value: Any, trail: Trail, out: _Findings) -> None:
    if not _matches(expected, value, trail):
        reason = ""
        if type(expected) is list and type(value) is list and len(expected) != len(value):
            reason = _lengths(len(value), len(expected))
        out.found.append(Finding(trail, expected, value, reason))


def _lengths(found: int, expected: int) -> str:
    return (
        f"lengths of slices don't match: length {found}, expected {expected}; "
        f"lists compare by position"
    )


def _matches(expected: Any, actual: Any, trail: Trail) -> bool:
    """Whether *actual* is as *expected* (8.8.3); maps by the keys expected, lists by position."""
    if type(expected) is list:
        if type(actual) is not list:
            raise _hard(trail, f"invalid actual value, must be a slice, found {kind(actual)}")
        return len(expected) == len(actual) and all(
            _matches(one, two, (trail, index))
            for index, (one, two) in enumerate(zip(expected, actual, strict=True))
        )
    if type(expected) is dict:
        if type(actual) is not dict:
            raise _hard(trail, f"invalid actual value, must be a map, found {kind(actual)}")
        return all(
            key in actual and _matches(item, actual[key], (trail, key))
            for key, item in expected.items()
        )
    if expected is None or actual is None:
        return expected is actual
    if type(expected) is type(actual):
        return equal(expected, actual)
    if number(expected) is not None and number(actual) is not None:
        return bool(expected == actual)
    raise _hard(
        trail,
        f"types are not comparable, {kind(expected)} - {kind(actual)} "
        f"(expected {shown(expected)}, found {shown(actual)})",
        _type_hint(expected, actual),
    )


def _type_hint(expected: Any, actual: Any) -> str:
    if isinstance(expected, str) and not isinstance(actual, (dict, list)):
        return f"write the expected value without quotes: {shown(actual)} is a {kind(actual)}"
    if isinstance(actual, str):
        return f"the document has text there: write {shown(shown(expected).strip(chr(34)))}"
    return "write an expected value of the type that the document has"


def _hard(trail: Trail, message: str, hint: str = "") -> AicrError:
    path = path_text(trail)
    return invalid(
        f"{path}: Internal error: {message}" if path else message,
        hint=hint or "correct the assertion; waiting does not help",
        context={"path": path},
    )


def _evaluated(expression: Expression, value: Any, trail: Trail, env: Env) -> Any:
    try:
        return expression.evaluate(value, env)
    except AicrError as error:
        raise _hard(trail, error.message, error.hint) from None


def _list(checks: list[Check]) -> Check:
    def check(value: Any, trail: Trail, env: Env, out: _Findings) -> None:
        if value is None:
            out.found.append(Finding(trail, f"{len(checks)} elements", value, "value is null"))
        elif type(value) is not list:
            raise _hard(trail, f"expected a slice, found {kind(value)}")
        elif len(value) != len(checks):
            reason = _lengths(len(value), len(checks))
            out.found.append(Finding(trail, f"{len(checks)} elements", value, reason))
        else:
            for index, (inner, item) in enumerate(zip(checks, value, strict=True)):
                inner(item, (trail, index), env, out)

    return check


def _not_null(value: Any, trail: Trail, env: Env, out: _Findings) -> None:
    if value is None:
        out.found.append(Finding(trail, {}, value, "invalid value, must not be null"))


def _map(assertion: dict[Any, Any], at: tuple[Any, ...], strict: bool) -> Check:
    if not assertion:
        return _not_null
    entries = []
    for raw, child in assertion.items():
        here = (*at, raw)
        key = _take_apart(raw) if isinstance(raw, str) else None
        expression = _expression(key, here, strict) if key is not None else None
        statement = key.statement if key is not None else raw
        inner = _parse(child, here, strict)
        entries.append((raw, statement, expression, _looped(key, inner), key and key.binding))

    def check(value: Any, trail: Trail, env: Env, out: _Findings) -> None:
        for raw, statement, expression, inner, binding in entries:
            here = (trail, raw)
            if expression is None:
                if type(value) is dict and statement in value:
                    projected = value[statement]
                elif value is None or type(value) is dict:
                    reason = "field not found in the input object"
                    out.found.append(Finding(here, None, None, reason, required=True))
                    continue
                else:
                    raise _hard(
                        here,
                        f"projection not recognized: {shown(statement)} in a {kind(value)}",
                        "only maps have fields; in a list, use a filter or a loop (~.)",
                    )
            else:
                projected = _evaluated(expression, value, here, env)
            if binding:
                env = {**env, f"${binding}": projected}
            before = len(out.found)
            inner(projected, here, env, out)
            if expression is not None and len(out.found) > before:
                out.found[-1].remark(expression.remarks(value, env))

    return check


def _looped(key: _Key | None, inner: Check) -> Check:
    """*inner* for each element, if the key is an iterator; else *inner* itself."""
    if key is None or not key.loop:
        return inner
    name = f"${key.index_name}" if key.index_name else ""

    def check(value: Any, trail: Trail, env: Env, out: _Findings) -> None:
        if type(value) is list:
            pairs: list[tuple[Any, Any, Any]] = [(i, i, item) for i, item in enumerate(value)]
        elif type(value) is dict:
            pairs = [(Item(each), each, item) for each, item in value.items()]
        else:
            raise _hard(trail, f"Invalid value: {shown(value)}: expected a slice or a map")
        if not pairs:
            out.notes.append(f"{path_text(trail)}: 0 iterations")
        for segment, index, item in pairs:
            inner(item, (trail, segment), {**env, name: index} if name else env, out)

    return check
