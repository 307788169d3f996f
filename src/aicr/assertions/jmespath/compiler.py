"""Turns the syntax tree of an expression into nested functions.

Each node becomes a function of the current value and the bindings; evaluating walks no tree and looks
nothing up but fields. What an expression cannot do is an `AicrError`, never a Python exception, and
comparing what cannot be ordered gives null, as in the reference implementation.

It must not know texts that were compiled before (`evaluate`). Source: validators spec 8.8.4; where that is
silent, jmespath-community/go-jmespath.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aicr.assertions.jmespath import lexer
from aicr.assertions.jmespath.functions import TABLE
from aicr.assertions.jmespath.operators import ARITHMETIC, ORDER
from aicr.assertions.jmespath.parser import Node
from aicr.assertions.jmespath.values import FunctionError, Reference, equal, is_false, number, word
from aicr.errors import AicrError, invalid, nearest

Env = dict[str, Any]
Run = Callable[[Any, Env], Any]


def _failure(expression: str, column: int, message: str, hint: str = "") -> AicrError:
    return invalid(
        f"JMESPath expression {lexer.shown(expression)} failed at column {column}: {message}",
        hint=hint or "see docs/assertions.md for functions and their arguments",
        context={"expression": expression, "column": column},
    )


def unknown_function(expression: str, column: int, name: str) -> AicrError:
    """The error for a call of *name*, which does not exist."""
    close = nearest(name, list(TABLE))
    hint = f'did you mean "{close}"?' if close else "docs/assertions.md lists all functions"
    return _failure(expression, column, f"unknown function: {name}", hint)


class Compiler:
    """Turns nodes into functions; with *notes*, orderings of non-numbers leave a note there.

    Attributes:
        called: the functions that the nodes call, known or not, with their columns.
    """

    def __init__(self, text: str, notes: list[str] | None = None) -> None:
        self.text = text
        self.notes = notes
        self.called: list[tuple[str, int]] = []

    def compile(self, node: Node) -> Run:
        """The function of a node."""
        made: Run = getattr(self, f"_{node[0]}")(*node[1:])
        return made

    def failure(self, column: int, message: str, hint: str = "") -> AicrError:
        """What a node raises that cannot be evaluated."""
        return _failure(self.text, column, message, hint)

    def _field(self, column: int, name: str) -> Run:
        return lambda value, env: value.get(name) if type(value) is dict else None

    def _current(self, column: int) -> Run:
        return lambda value, env: value

    def _root(self, column: int) -> Run:
        # The assertion engine starts expressions without a root.
        return lambda value, env: None

    def _literal(self, column: int, literal: Any) -> Run:
        return lambda value, env: literal

    def _variable(self, column: int, name: str) -> Run:
        def run(value: Any, env: Env) -> Any:
            if name in env:
                return env[name]
            close = nearest(name, list(env))
            hint = f'did you mean "{close}"?' if close else "bind it with let, -> or a named loop"
            raise self.failure(column, f"variable not defined: {name}", hint)

        return run

    def _let(self, column: int, bindings: list[tuple[str, Node]], body: Node) -> Run:
        made = [(name, self.compile(node)) for name, node in bindings]
        inner = self.compile(body)

        def run(value: Any, env: Env) -> Any:
            return inner(value, {**env, **{name: bound(value, env) for name, bound in made}})

        return run

    def _sign(self, column: int, sign: str, operand: Node) -> Run:
        inner = self.compile(operand)

        def run(value: Any, env: Env) -> Any:
            found = number(inner(value, env))
            return found if found is None or sign == "+" else -found

        return run

    def _not(self, column: int, operand: Node) -> Run:
        inner = self.compile(operand)
        return lambda value, env: is_false(inner(value, env))

    def _reference(self, column: int, operand: Node) -> Run:
        inner = self.compile(operand)
        return lambda value, env: Reference(inner, env)

    def _pipe(self, column: int, left: Node, right: Node) -> Run:
        first, second = self.compile(left), self.compile(right)
        return lambda value, env: second(first(value, env), env)

    def _chain(self, column: int, left: Node, right: Node) -> Run:
        first, second = self.compile(left), self.compile(right)

        def run(value: Any, env: Env) -> Any:
            found = first(value, env)
            return None if found is None else second(found, env)

        return run

    def _or(self, column: int, left: Node, right: Node) -> Run:
        first, second = self.compile(left), self.compile(right)

        def run(value: Any, env: Env) -> Any:
            found = first(value, env)
            return second(value, env) if is_false(found) else found

        return run

    def _and(self, column: int, left: Node, right: Node) -> Run:
        first, second = self.compile(left), self.compile(right)

        def run(value: Any, env: Env) -> Any:
            found = first(value, env)
            return found if is_false(found) else second(value, env)

        return run

    def _compare(self, column: int, operator: str, left: Node, right: Node) -> Run:
        first, second = self.compile(left), self.compile(right)
        if operator in ("==", "!="):
            return self._equality(first, second, same=operator == "==")
        order, notes = ORDER[operator], self.notes

        def run(value: Any, env: Env) -> Any:
            one, two = first(value, env), second(value, env)
            left_number, right_number = number(one), number(two)
            if left_number is None or right_number is None:
                if notes is not None:
                    notes.append(f"{word(one)} compared with {word(two)}")
                return None
            return order(left_number, right_number)

        return run

    def _equality(self, first: Run, second: Run, *, same: bool) -> Run:
        notes = self.notes
        if notes is None:
            if same:
                return lambda value, env: equal(first(value, env), second(value, env))
            return lambda value, env: not equal(first(value, env), second(value, env))

        def run(value: Any, env: Env) -> Any:
            one, two = first(value, env), second(value, env)
            if {type(one), type(two)} == {int, float} and one == two:
                notes.append(
                    f"the integer {int(one)} of the document is not equal to the number "
                    f"{int(one)}; convert it with to_number()"
                )
            return equal(one, two) is same

        return run

    def _arithmetic(self, column: int, operator: str, left: Node, right: Node) -> Run:
        first, second, apply = self.compile(left), self.compile(right), ARITHMETIC[operator]

        def run(value: Any, env: Env) -> Any:
            one, two = number(first(value, env)), number(second(value, env))
            return None if one is None or two is None else apply(one, two)

        return run

    def _call(self, column: int, name: str, arguments: list[Node]) -> Run:
        made = [self.compile(argument) for argument in arguments]
        self.called.append((name, column))
        entry = TABLE.get(name)

        def run(value: Any, env: Env) -> Any:
            found = [argument(value, env) for argument in made]
            if entry is None:
                raise unknown_function(self.text, column, name)
            try:
                entry.check(found)
                return entry.handler(found)
            except FunctionError as error:
                message = str(error)
            except (ArithmeticError, ValueError, TypeError, MemoryError) as error:
                message = f"{name}(): {error}"
            raise self.failure(column, message)

        return run

    def _index(self, column: int, index: int) -> Run:
        def run(value: Any, env: Env) -> Any:
            if type(value) is not list:
                return None
            return value[index] if -len(value) <= index < len(value) else None

        return run

    def _slice(self, column: int, parts: list[int | None]) -> Run:
        start, stop, step = parts
        cut = slice(start, stop, step) if step != 0 else None

        def run(value: Any, env: Env) -> Any:
            if type(value) not in (list, str):
                return None
            if cut is not None:
                return value[cut]
            if type(value) is str:
                return None
            raise self.failure(column, "invalid slice, step cannot be 0")

        return run

    def _list(self, column: int, items: list[Node]) -> Run:
        made = [self.compile(item) for item in items]
        return lambda value, env: [item(value, env) for item in made]

    def _hash(self, column: int, pairs: list[tuple[str, Node]]) -> Run:
        made = [(key, self.compile(item)) for key, item in pairs]
        return lambda value, env: {key: item(value, env) for key, item in made}

    def _lenient(self, node: Node) -> Run:
        """What filters, flattenings and object projections do with a failing left side: null."""
        inner = self.compile(node)

        def run(value: Any, env: Env) -> Any:
            try:
                return inner(value, env)
            except AicrError:
                return None

        return run

    def _flatten(self, column: int, source: Node) -> Run:
        inner = self._lenient(source)

        def run(value: Any, env: Env) -> Any:
            found = inner(value, env)
            if type(found) is not list:
                return None
            flat: list[Any] = []
            for item in found:
                if type(item) is list:
                    flat += item
                else:
                    flat.append(item)
            return flat

        return run

    def _projection(self, column: int, source: Node, each: Node) -> Run:
        inner, then = self.compile(source), self.compile(each)
        may_be_text = source[0] == "chain" and source[3][0] == "slice"

        def run(value: Any, env: Env) -> Any:
            found = inner(value, env)
            if type(found) is list:
                return _kept(found, then, env)
            return found if may_be_text and type(found) is str else None

        return run

    def _values(self, column: int, source: Node, each: Node) -> Run:
        inner, then = self._lenient(source), self.compile(each)

        def run(value: Any, env: Env) -> Any:
            found = inner(value, env)
            return _kept(list(found.values()), then, env) if type(found) is dict else None

        return run

    def _filter(self, column: int, source: Node, each: Node, condition: Node) -> Run:
        inner, then, holds = self._lenient(source), self.compile(each), self.compile(condition)

        def run(value: Any, env: Env) -> Any:
            found = inner(value, env)
            if type(found) is not list:
                return None
            return _kept([item for item in found if not is_false(holds(item, env))], then, env)

        return run


def _kept(items: list[Any], then: Run, env: Env) -> list[Any]:
    """*then* of each item, without nulls."""
    results = [then(item, env) for item in items]
    return [result for result in results if result is not None]
