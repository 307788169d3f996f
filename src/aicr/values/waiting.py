"""The rule for waiting times: a family of them is a `Waits`, and one factor scales each.

A layer declares the times that it waits for in a class of its own, next to what they mean; nothing else
holds a number of seconds that a person could want to change. ``AICR_TIMEOUT_FACTOR`` multiplies them all
(tests, slow lines), and it is read here only. A family, or a field, that must not be scaled says so and
why. ``docs/timeouts.md`` is the table of all families; it is written from the classes.

It must not know who waits, or for what. Source: validators spec 11, decision 67.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar

from aicr.errors import invalid

if TYPE_CHECKING:
    from typing import Self

FACTOR_VARIABLE = "AICR_TIMEOUT_FACTOR"


@dataclass(frozen=True, slots=True)
class Waits:
    """A family of waiting times: seconds, tuples of seconds, or other families."""

    #: Fields that the factor leaves alone.
    KEPT: ClassVar[frozenset[str]] = frozenset()
    #: Why `from_environment` scales nothing of the family; "" when it does.
    FIXED: ClassVar[str] = ""

    def scaled(self, factor: float) -> Self:
        """The same times, each but the kept ones multiplied by *factor*, those of inner families too.

        Raises:
            AicrError: INVALID_REQUEST for a factor that is not positive and finite.
        """
        _check(factor)
        changes = {
            field.name: _times(getattr(self, field.name), factor)
            for field in fields(self)
            if field.name not in self.KEPT
        }
        return replace(self, **changes)

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> Self:
        """The defaults, scaled by ``AICR_TIMEOUT_FACTOR`` if it is set and the family is not fixed.

        Raises:
            AicrError: INVALID_REQUEST for a factor that is no positive number.
        """
        return cls() if cls.FIXED else cls().scaled(factor_of(environ))


def factor_of(environ: Mapping[str, str]) -> float:
    """The number in ``AICR_TIMEOUT_FACTOR``, 1 if it is not set; INVALID_REQUEST if it is none."""
    text = environ.get(FACTOR_VARIABLE, "").strip()
    if not text:
        return 1.0
    try:
        factor = float(text)
    except ValueError as error:
        raise invalid(
            f"{FACTOR_VARIABLE} must be a positive number, not {text!r}",
            where=FACTOR_VARIABLE,
            hint=f"{FACTOR_VARIABLE}=1 keeps the defaults",
        ) from error
    _check(factor)
    return factor


def _times(value: Any, factor: float) -> Any:
    if isinstance(value, Waits):
        return value.scaled(factor)
    if isinstance(value, tuple):
        return tuple(each * factor for each in value)
    return value * factor


def _check(factor: float) -> None:
    if not (factor > 0 and math.isfinite(factor)):
        raise invalid(f"a timeout factor must be a positive number, not {factor!r}")
