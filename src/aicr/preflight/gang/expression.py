"""``minCountExpr``: a CEL expression over ``podGroup`` → the gang's minimum size.

Nearly every expression is a chain of fields, ``podGroup.spec.minMember``. Those are read without CEL,
so that the usual configuration needs no extra; a law in the tests says that both ways agree. Anything
else is compiled by cel-expr-python (extra ``cel``), imported only then. Source: preflight spec 3.3.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from aicr.errors import AicrError, invalid
from aicr.kube.extras import missing

VARIABLE: Final = "podGroup"
_CHAIN: Final = re.compile(rf"\s*{VARIABLE}((?:\s*\.\s*[A-Za-z_][A-Za-z0-9_]*)+)\s*")
#: Words that CEL keeps for itself; a chain with one of them is for CEL to judge.
_RESERVED: Final = frozenset({"true", "false", "null", "in"})
_INT64: Final = range(-(1 << 63), 1 << 63)


class MinCount:
    """A compiled expression.

    Raises:
        AicrError: INVALID_REQUEST ``failed to compile minCountExpr "<e>": ...``.
    """

    def __init__(self, expression: str) -> None:
        self.expression = expression
        chain = _CHAIN.fullmatch(expression)
        fields = [word.strip() for word in chain[1].split(".")[1:]] if chain else []
        if fields and not _RESERVED.intersection(fields):
            self._evaluate = _select(fields)
        else:
            self._evaluate = compile_cel(expression)

    def of(self, group: Mapping[str, Any]) -> int:
        """The minimum size that *group* sets; fractions are cut off.

        Raises:
            AicrError: INVALID_REQUEST ``failed to evaluate minCountExpr "<e>": ...`` or
                ``minCountExpr "<e>" returned non-numeric type <t>``.
        """
        try:
            value, kind = self._evaluate(group)
        except ValueError as error:
            raise invalid(
                f'failed to evaluate minCountExpr "{self.expression}"',
                hint="compare the expression with the object: kubectl get -o yaml",
            ) from error
        if kind not in ("int", "double"):
            raise invalid(f'minCountExpr "{self.expression}" returned non-numeric type {kind}')
        if not math.isfinite(value):
            raise invalid(f'minCountExpr "{self.expression}" returned {value}, which is no size')
        return int(value)


#: An object → (value, CEL's name of its type); ValueError when it cannot be evaluated.
Evaluate = Callable[[Mapping[str, Any]], tuple[Any, str]]


def _select(fields: list[str]) -> Evaluate:
    def evaluate(group: Mapping[str, Any]) -> tuple[Any, str]:
        value: Any = group
        for field in fields:
            if not isinstance(value, Mapping):
                raise ValueError(f"no field {field} in a value of type {_type_of(value)}")
            if field not in value:
                raise ValueError(f'Key not found in map : "{field}"')
            value = value[field]
        return value, _type_of(value)

    return evaluate


def _type_of(value: Any) -> str:
    if value is None:
        return "null_type"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int" if value in _INT64 else "uint"
    if isinstance(value, float):
        return "double"
    if isinstance(value, str):
        return "string"
    return "map" if isinstance(value, Mapping) else "list"


def compile_cel(expression: str) -> Evaluate:
    """*expression* compiled by CEL itself; see the module for why it is not always used.

    Raises:
        AicrError: INVALID_REQUEST when it does not compile or the extra is not installed.
    """
    try:
        from cel_expr_python import cel  # type: ignore[import-untyped]
    except ImportError as error:
        raise _without_cel(expression, error) from error
    variables = {VARIABLE: cel.Type.Map(cel.Type.STRING, cel.Type.DYN)}
    try:
        program = cel.NewEnv(variables=variables).compile(expression)
    except RuntimeError as error:
        raise invalid(
            f'failed to compile minCountExpr "{expression}"',
            hint="the one variable is podGroup, the whole object",
        ) from ValueError(_first_line(str(error)))

    def evaluate(group: Mapping[str, Any]) -> tuple[Any, str]:
        try:
            value = program.eval(data={VARIABLE: group})
        except (RuntimeError, TypeError) as error:
            raise ValueError(str(error)) from error
        if value.type() == cel.Type.ERROR:
            raise ValueError(str(value.value()).partition(": ")[2])
        kind = value.type().name().partition("<")[0].lower()
        return value.value(), "null_type" if kind == "null" else kind

    return evaluate


def _first_line(text: str) -> str:
    return text.removeprefix("INVALID_ARGUMENT: ").removeprefix("ERROR: ").partition("\n")[0]


def _without_cel(expression: str, cause: ImportError) -> AicrError:
    error = missing("cel_expr_python", "cel", cause)
    return invalid(
        f'minCountExpr "{expression}" needs the package cel_expr_python, which cannot be imported',
        hint=f"{error.hint}; a plain chain of fields such as podGroup.spec.minMember needs none",
        context=error.context,
    )
