"""Narrowing one constraint by another: the intersection of two expressions.

A profile may tighten a constraint that the recipe already states. The result must hold exactly
where both hold, so it is never wider than either. What cannot be intersected faithfully is an
error, not a guess: text against version, bounds given with different precision (``>= 1.32`` means a
whole series, ``>= 1.32.4`` one release), and two ranges with nothing in common.

An expression becomes alternatives; each alternative is one required text, or a range of versions
with an optional lower and upper bound and a set of exclusions.

This module must not know profiles or recipes. Source: recipe spec 4.11, last part.
"""

from __future__ import annotations

from aicr.constraints import expression
from aicr.constraints.expression import Comparison, Expression
from aicr.errors import AicrError, invalid
from aicr.values import versions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Final

_TIGHTEN_HINT: Final = (
    "state one of the two constraints so that it already contains the other, with versions of the "
    "same number of components"
)


def intersect(a: str, b: str) -> str:
    """The expression that holds exactly where both *a* and *b* hold, in canonical spelling.

    Equal texts are returned as they are, whatever their grammar.

    Raises:
        AicrError: INVALID_REQUEST when either is malformed, nothing satisfies both, bounds differ
            in precision, or text meets versions (recipe spec 4.11).
    """
    if a.strip() == b.strip():
        return a.strip()
    left, right = expression.parse(a), expression.parse(b)
    arms = []
    empty: AicrError | None = None
    for one in left.arms:
        for other in right.arms:
            try:
                arms.append(_Alternative([*one, *other], f'"{a}" and "{b}"'))
            except _UnsatisfiableError as reason:
                empty = invalid(str(reason))
    if not arms:
        raise invalid(
            f'constraints "{a}" and "{b}" cannot both hold', hint=_TIGHTEN_HINT
        ) from empty
    return " || ".join(alternative.text for alternative in _without_contained(arms))


class _UnsatisfiableError(Exception):
    """Two alternatives have nothing in common; internal, never leaves this module."""


class _Alternative:
    """All comparisons of one alternative, reduced to at most two bounds and some exclusions."""

    __slots__ = ("excluded", "lower", "required", "text", "upper")

    def __init__(self, comparisons: Iterable[Comparison], what: str) -> None:
        parts = list(comparisons)
        _refuse_incomparable(parts, what)
        self.required: Comparison | None = None
        self.lower: Comparison | None = None
        self.upper: Comparison | None = None
        self.excluded: dict[str, Comparison] = {}
        for part in parts:
            self._add(part)
        self._check()
        kept = (self.required, self.lower, self.upper, *self.excluded.values())
        self.text = " ".join(part.text for part in kept if part is not None)

    def _add(self, part: Comparison) -> None:
        if part.operator in ("==", expression.EXACT):
            current = self.required
            if current is not None and not _same(current, part):
                raise _UnsatisfiableError(f"{current.text} excludes {part.text}")
            # An exact text is stricter than an equality of versions, so it is the one kept.
            if current is None or part.operator == expression.EXACT:
                self.required = part
        elif part.operator == "!=":
            shown = part.version.normalised if part.version is not None else part.operand
            self.excluded.setdefault(shown, part)
        elif part.operator in (">", ">="):
            self.lower = _stricter(self.lower, part, sign=1)
        else:
            self.upper = _stricter(self.upper, part, sign=-1)

    def _check(self) -> None:
        if self.lower is not None and self.upper is not None:
            order = _order(self.lower, self.upper)
            open_end = self.lower.operator == ">" or self.upper.operator == "<"
            if order > 0 or (order == 0 and open_end):
                raise _UnsatisfiableError(f"{self.lower.text} excludes {self.upper.text}")
        if self.required is None:
            return
        for other in self.excluded.values():
            if _same(self.required, other):
                raise _UnsatisfiableError(f"{self.required.text} excludes {other.text}")
        for bound in (self.lower, self.upper):
            if bound is not None and not _within(self.required, bound):
                raise _UnsatisfiableError(f"{self.required.text} excludes {bound.text}")
        # One required value inside both bounds and outside the exclusions says it all.
        self.lower = self.upper = None
        self.excluded = {}

    def contains(self, other: _Alternative) -> bool:
        """Whether every value of *other* is one of this alternative, as far as bounds tell."""
        if self.required is not None or other.required is not None:
            return self.text == other.text
        bounds = [bound for bound in (other.lower, other.upper) if bound is not None]
        for shown, hole in self.excluded.items():
            if shown not in other.excluded and all(_within(hole, bound) for bound in bounds):
                return False
        return all(
            mine is None or (theirs is not None and _stricter(mine, theirs, sign=sign) is theirs)
            for mine, theirs, sign in (
                (self.lower, other.lower, 1),
                (self.upper, other.upper, -1),
            )
        )


def _refuse_incomparable(parts: list[Comparison], what: str) -> None:
    versioned = [part for part in parts if part.version is not None]
    textual = [part for part in parts if part.version is None]
    if versioned and textual:
        raise invalid(
            f"constraints {what} are not comparable: "
            f'"{textual[0].text}" is text and "{versioned[0].text}" compares versions',
            hint=_TIGHTEN_HINT,
        )
    precisions = {part.version.precision for part in versioned if part.version is not None}
    if len(precisions) > 1:
        shown = ", ".join(f'"{part.text}"' for part in versioned)
        raise invalid(
            f"constraints {what} have a precision mismatch between {shown}", hint=_TIGHTEN_HINT
        )


def _order(a: Comparison, b: Comparison) -> int:
    assert a.version is not None
    assert b.version is not None
    return versions.compare(a.version, b.version)


def _same(a: Comparison, b: Comparison) -> bool:
    if a.version is not None and b.version is not None:
        return versions.equal(a.version, b.version)
    return a.operand == b.operand


def _stricter(current: Comparison | None, new: Comparison, *, sign: int) -> Comparison:
    """The bound that admits less; *sign* is 1 for lower bounds and -1 for upper ones."""
    if current is None:
        return new
    order = _order(new, current) * sign
    if order != 0:
        return new if order > 0 else current
    return new if len(new.operator) <= len(current.operator) else current


def _within(required: Comparison, bound: Comparison) -> bool:
    single = Expression(bound.text, ((bound,),))
    return expression.evaluate(single, required.operand).passed


def _without_contained(arms: list[_Alternative]) -> list[_Alternative]:
    kept: list[_Alternative] = []
    for index, arm in enumerate(arms):
        wider = any(
            other.contains(arm) and not (arm.contains(other) and position > index)
            for position, other in enumerate(arms)
            if position != index
        )
        if not wider:
            kept.append(arm)
    return kept
