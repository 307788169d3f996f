"""Run a template: turn its tree into closures once, then call them with the data.

Design: each node becomes a function of the dot and the scope. The scope is a stack of
``[name, value]`` pairs that is searched from its top and cut back at each ``{{end}}``, as Go does
it, so shadowing and assignment inside branches behave as they do there. What has been compiled
is kept per text, because the same manifests are rendered again and again by a server or a test.

Nil is Python's None. A key that is missing gives None and ends a chain of fields, while a key that
holds null lets the next field fail, which is Go's own distinction. Printing None is refused.

It must not know what the data mean.
"""

from __future__ import annotations

from aicr.bundle.gotemplate.formatting import EvaluationError, display, type_name
from aicr.bundle.gotemplate.functions import FUNCTIONS, NAMES
from aicr.bundle.gotemplate.lexer import line_of
from aicr.bundle.gotemplate.parser import parse
from aicr.errors import INTERNAL, AicrError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Scope = list[list[Any]]
    Value = Callable[[Any, Scope], Any]
    #: Writes to the list; returns "" or the loop exit ("break", "continue") that it ran into.
    Step = Callable[[Any, Scope, list[str]], str]

_compiled: dict[tuple[str, str], Step] = {}
_MOST_KEPT = 256


def render(text: str, data: dict[str, Any], *, source: str) -> str:
    """The output of a template.

    Args:
        text: the template; text without an action is returned as it is.
        data: the dot of the template: plain maps, lists and scalars. It is not changed.
        source: the name of the template in errors.

    Raises: AicrError INVALID_REQUEST when the template cannot be parsed, INTERNAL when it cannot be
        executed; both with ``where`` as ``source:line`` (bundler spec 2.7).
    """
    if "{{" not in text:
        return text
    key = (text, source)
    step = _compiled.get(key)
    if step is None:
        step = _Compiler(text, source).body(parse(text, source, NAMES))
        if len(_compiled) >= _MOST_KEPT:
            _compiled.clear()
        _compiled[key] = step
    out: list[str] = []
    step(data, [["$", data]], out)
    return "".join(out)


class _Compiler:
    """Makes closures of one template's nodes; the text is kept to tell where a failure is."""

    __slots__ = ("source", "text")

    def __init__(self, text: str, source: str) -> None:
        self.text = text
        self.source = source

    def guard(self, value: Value, start: int, end: int) -> Value:
        """The same value, with failures turned into errors that name the action and its line."""
        text, source = self.text, self.source

        def located(reason: str) -> AicrError:
            return AicrError(
                INTERNAL,
                f"cannot execute {text[start:end]}: {reason}",
                where=f"{source}:{line_of(text, start)}",
                hint="correct the template, or set the value that it reads",
            )

        def run(dot: Any, scope: Scope) -> Any:
            try:
                return value(dot, scope)
            except EvaluationError as failure:
                raise located(str(failure)) from None
            except AicrError as error:
                raise located(error.message) from error

        return run

    # -- text and controls ---------------------------------------------------------------------

    def body(self, nodes: tuple[Any, ...]) -> Step:
        steps = tuple(node if isinstance(node, str) else self.node(node) for node in nodes)

        def run(dot: Any, scope: Scope, out: list[str]) -> str:
            for step in steps:
                if isinstance(step, str):
                    out.append(step)
                else:
                    leaving = step(dot, scope, out)
                    if leaving:
                        return leaving
            return ""

        return run

    def node(self, node: tuple[Any, ...]) -> Step:
        kind = node[0]
        if kind == "action":
            return self.action(node)
        if kind == "range":
            return self.loop(node)
        if kind in ("if", "with"):
            return self.branch(node)
        return lambda dot, scope, out: kind

    def action(self, node: tuple[Any, ...]) -> Step:
        _, pipe, start, end = node
        value = self.pipe(pipe)
        if pipe[0]:
            silent = self.guard(value, start, end)

            def declare(dot: Any, scope: Scope, out: list[str]) -> str:
                silent(dot, scope)
                return ""

            return declare

        def printed(dot: Any, scope: Scope) -> str:
            result = value(dot, scope)
            if result.__class__ is str:
                return result
            if result is None:
                raise EvaluationError("the value is missing or null, and would print <no value>")
            return display(result)

        text = self.guard(printed, start, end)

        def write(dot: Any, scope: Scope, out: list[str]) -> str:
            out.append(text(dot, scope))
            return ""

        return write

    def branch(self, node: tuple[Any, ...]) -> Step:
        kind, pipe, chosen, otherwise, start, end = node
        condition = self.guard(self.pipe(pipe), start, end)
        then = self.body(chosen)
        other = self.body(otherwise or ())
        moves_dot = kind == "with"

        def run(dot: Any, scope: Scope, out: list[str]) -> str:
            mark = len(scope)
            value = condition(dot, scope)
            inner = value if moves_dot else dot
            leaving = then(inner, scope, out) if value else other(dot, scope, out)
            del scope[mark:]
            return leaving

        return run

    def loop(self, node: tuple[Any, ...]) -> Step:
        _, pipe, repeated, otherwise, start, end = node
        names, assigns, _ = pipe
        evaluated = self.pipe(pipe)
        body = self.body(repeated)
        other = self.body(otherwise or ())

        def pairs_of(dot: Any, scope: Scope) -> list[tuple[Any, Any]]:
            value = evaluated(dot, scope)
            if isinstance(value, list | tuple):
                return list(enumerate(value))
            if isinstance(value, dict):
                return [(key, value[key]) for key in sorted(value)]
            if value is None:
                return []
            raise EvaluationError(f"range can't iterate over {display(value)}")

        pairs = self.guard(pairs_of, start, end)

        def run(dot: Any, scope: Scope, out: list[str]) -> str:
            mark = len(scope)
            found = pairs(dot, scope)
            inside = len(scope)
            leaving = ""
            for key, element in found:
                if names:
                    _bind(scope, inside, names, assigns, key, element)
                leaving = body(element, scope, out)
                del scope[inside:]
                if leaving == "break":
                    break
            if not found:
                leaving = other(dot, scope, out)
            del scope[mark:]
            # As in Go, a break ends this loop even from its else; a continue there goes further up.
            return leaving if not found and leaving == "continue" else ""

        return run

    # -- pipelines -----------------------------------------------------------------------------

    def pipe(self, pipe: tuple[Any, ...]) -> Value:
        names, assigns, commands = pipe
        value: Value | None = None
        for command in commands:
            value = self.command(command, value)
        assert value is not None
        if not names:
            return value
        final = value

        def declare(dot: Any, scope: Scope) -> Any:
            result = final(dot, scope)
            for name in names:
                if assigns:
                    _assign(scope, name, result)
                else:
                    scope.append([name, result])
            return result

        return declare

    def command(self, operands: tuple[Any, ...], piped: Value | None) -> Value:
        first = operands[0]
        if first[0] == "call":
            arguments = [self.operand(operand) for operand in operands[1:]]
            return self.call(first[1], arguments, piped)
        if first[0] == "nil":
            return _failing("nil is not a command")
        if len(operands) > 1 or piped is not None:
            return _failing("can't give argument to non-function")
        return self.operand(first)

    def call(self, name: str, arguments: list[Value], piped: Value | None) -> Value:
        if name in ("and", "or"):
            return _deciding(name, arguments, piped)
        function, least, most = FUNCTIONS[name]
        given = len(arguments) + (piped is not None)
        if given < least or (most is not None and given > most):
            wanted = str(least) if least == most else f"at least {least}"
            return _failing(f"wrong number of args for {name}: want {wanted} got {given}")
        if piped is None:
            if given == 1:
                only = arguments[0]
                return lambda dot, scope: function(only(dot, scope))
            return lambda dot, scope: function(*[each(dot, scope) for each in arguments])
        last = piped

        def run(dot: Any, scope: Scope) -> Any:
            # Go has the value of the earlier stage before it looks at the arguments.
            value = last(dot, scope)
            return function(*[each(dot, scope) for each in arguments], value)

        return run

    def operand(self, operand: tuple[Any, ...]) -> Value:
        kind = operand[0]
        if kind == "field":
            return _fields(operand[1])
        if kind == "value":
            constant = operand[1]
            return lambda dot, scope: constant
        if kind == "variable":
            return _variable(operand[1], operand[2])
        if kind == "dot":
            return lambda dot, scope: dot
        if kind == "nil":
            return lambda dot, scope: None
        if kind == "call":
            return self.call(operand[1], [], None)
        if kind == "pipe":
            return self.pipe(operand[1])
        inner = self.operand(operand[1])
        names = operand[2]

        def chain(dot: Any, scope: Scope) -> Any:
            value = inner(dot, scope)
            return None if value is None else _walk(value, names)

        return chain


def _fields(names: tuple[str, ...]) -> Value:
    """A chain of fields of the dot."""
    if len(names) == 1:
        name = names[0]

        def single(dot: Any, scope: Scope) -> Any:
            return dot.get(name) if dot.__class__ is dict else _walk(dot, names)

        return single
    return lambda dot, scope: _walk(dot, names)


def _variable(name: str, names: tuple[str, ...]) -> Value:
    """A variable, with the fields that are read from it."""

    def read(dot: Any, scope: Scope) -> Any:
        for entry in reversed(scope):
            if entry[0] == name:
                value = entry[1]
                return _walk(value, names) if names and value is not None else value
        raise EvaluationError(f"undefined variable: {name}")

    return read


def _walk(value: Any, names: tuple[str, ...]) -> Any:
    """Follow keys: a missing key gives None for the whole chain, a field of anything else fails."""
    for name in names:
        if not isinstance(value, dict):
            if value is None:
                raise EvaluationError(f"nil pointer evaluating interface {{}}.{name}")
            raise EvaluationError(f"can't evaluate field {name} in type {type_name(value)}")
        if name not in value:
            return None
        value = value[name]
    return value


def _assign(scope: Scope, name: str, value: Any) -> None:
    """Give a new value to the innermost variable of that name."""
    for entry in reversed(scope):
        if entry[0] == name:
            entry[1] = value
            return
    raise EvaluationError(f"undefined variable: {name}")


def _bind(
    scope: Scope, inside: int, names: tuple[str, ...], assigns: bool, key: Any, element: Any
) -> None:
    """Set the variables of a loop for one round; one variable takes the element."""
    values = (element,) if len(names) == 1 else (key, element)
    for place, (name, value) in enumerate(zip(names, values, strict=True), inside - len(names)):
        if assigns:
            _assign(scope, name, value)
        else:
            # A new pair, so that no earlier round is changed.
            scope[place] = [name, value]


def _failing(reason: str) -> Value:
    """A value that fails whenever it is asked for."""

    def fail(dot: Any, scope: Scope) -> Any:
        raise EvaluationError(reason)

    return fail


def _deciding(name: str, arguments: list[Value], piped: Value | None) -> Value:
    """``and`` and ``or``: the first argument that decides, and no look at those after it."""
    if not arguments and piped is None:
        return _failing(f"wrong number of args for {name}: want at least 1 got 0")
    stop = name == "or"

    def run(dot: Any, scope: Scope) -> Any:
        last = piped(dot, scope) if piped is not None else None
        value = None
        for argument in arguments:
            value = argument(dot, scope)
            if bool(value) is stop:
                return value
        return value if piped is None else last

    return run
