"""Expressions ready to be evaluated: a text read and compiled once.

The same text gives the same expression, so a check that is looked at often is read once.
Source: validators spec 8.8.4.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from aicr.assertions.jmespath import lexer, parser
from aicr.assertions.jmespath.compiler import Compiler, Env, Run, unknown_function
from aicr.assertions.jmespath.functions import TABLE
from aicr.errors import AicrError, invalid

_NO_BINDINGS: Final[Env] = {}


class Expression:
    """A compiled expression.

    Attributes:
        text: as it was written.
        functions: names of the functions that it calls, known or not, with their columns.
    """

    __slots__ = ("_noting", "_run", "functions", "text", "tree")

    def __init__(self, text: str) -> None:
        self.text = text
        self.tree = parser.parse(text)
        compiler = Compiler(text)
        self._run = compiler.compile(self.tree)
        self.functions: tuple[tuple[str, int], ...] = tuple(compiler.called)
        self._noting: tuple[list[str], Run] | None = None

    def evaluate(self, value: Any, bindings: Mapping[str, Any] | None = None) -> Any:
        """What the expression gives for *value*, a plain document that is not changed.

        *bindings* are variables by name, with their ``$``. Raises AicrError INVALID_REQUEST for an
        unknown function or variable, and for arguments of a wrong number or type.
        """
        try:
            return self._run(value, _NO_BINDINGS if bindings is None else dict(bindings))
        except RecursionError:
            raise invalid(
                f"JMESPath expression {lexer.shown(self.text)} or its value is nested too deeply",
                hint="split the expression with let",
            ) from None

    def remarks(self, value: Any, bindings: Mapping[str, Any] | None = None) -> list[str]:
        """What may surprise about the result: ``string compared with number``, 3 that is not 3.0."""
        if self._noting is None:
            notes: list[str] = []
            self._noting = notes, Compiler(self.text, notes).compile(self.tree)
        notes, run = self._noting
        notes.clear()
        try:
            run(value, _NO_BINDINGS if bindings is None else dict(bindings))
        except (AicrError, RecursionError):
            return []
        return list(dict.fromkeys(notes))

    def unknown_function(self) -> AicrError | None:
        """The error for the first function that does not exist, before anything is evaluated."""
        for name, column in self.functions:
            if name not in TABLE:
                return unknown_function(self.text, column, name)
        return None


@lru_cache(maxsize=1024)
def compiled(text: str) -> Expression:
    """The compiled expression *text*; the same one for the same text.

    Raises:
        AicrError: INVALID_REQUEST with expression and column if it cannot be read.
    """
    return Expression(text)


def search(text: str, value: Any, bindings: Mapping[str, Any] | None = None) -> Any:
    """Compile *text* and evaluate it for *value*."""
    return compiled(text).evaluate(value, bindings)
