"""What a function takes: how many arguments, of which types, and the check of both.

A signature is a tuple of texts: alternatives separated by ``|``, a final ``?`` for optional, a final
``*`` for any further number. Numbers are floats only: an int of a document is refused, as the
reference implementation does, and the message says how to convert it.
Source: validators spec 8.8.4 (typing), 8.8.5.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from aicr.assertions.jmespath.values import FunctionError, Reference, word

Handler = Callable[[list[Any]], Any]


def _all_of(kind: type) -> Callable[[Any], bool]:
    return lambda value: type(value) is list and all(type(item) is kind for item in value)


_TESTS: Final[dict[str, Callable[[Any], bool]]] = {
    "any": lambda value: True,
    "number": lambda value: type(value) is float,
    "string": lambda value: type(value) is str,
    "array": lambda value: type(value) is list,
    "object": lambda value: type(value) is dict,
    "expref": lambda value: type(value) is Reference,
    "array[number]": _all_of(float),
    "array[string]": _all_of(str),
    "array[array]": lambda value: type(value) is list,
}


class Function(NamedTuple):
    """One function: its name, what it takes, how it answers."""

    name: str
    parameters: tuple[tuple[str, ...], ...]
    least: int
    most: int | None
    handler: Handler

    def check(self, arguments: list[Any]) -> None:
        """Refuse a wrong number of arguments, or one of a wrong type, with `FunctionError`."""
        count = len(arguments)
        if count < self.least or (self.most is not None and count > self.most):
            raise FunctionError(f"{self.name}() takes {self._counts()}, not {count}")
        last = len(self.parameters) - 1
        for index, argument in enumerate(arguments):
            types = self.parameters[min(index, last)] if self.parameters else ("any",)
            if not any(_TESTS[name](argument) for name in types):
                self._refuse(index, types, argument)

    def _counts(self) -> str:
        if self.most is None:
            return f"at least {self.least} argument{'s' if self.least != 1 else ''}"
        if self.least == self.most:
            return f"{self.least} argument{'s' if self.least != 1 else ''}"
        return f"{self.least} to {self.most} arguments"

    def _refuse(self, index: int, types: tuple[str, ...], argument: Any) -> None:
        found = word(argument)
        if type(argument) is int and "number" in types:
            found = "an integer of the document; convert it with to_number()"
        elif argument is None:
            found += "; give a default with || where the field may be absent"
        raise FunctionError(
            f"invalid type for argument {index + 1} of {self.name}(): expected "
            f"{' or '.join(types)}, found {found}"
        )


def function(name: str, handler: Handler, *signature: str) -> Function:
    """A function from its written signature; with none, it takes whatever comes."""
    required = [text for text in signature if not text.endswith("?")]
    endless = not signature or signature[-1].endswith("*")
    return Function(
        name,
        tuple(tuple(text.rstrip("?*").split("|")) for text in signature),
        len(required),
        None if endless else len(signature),
        handler,
    )
