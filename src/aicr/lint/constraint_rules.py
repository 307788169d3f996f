"""Rules about constraints: do they speak of a reading, and can they be evaluated at all.

Constraints of the recipe, of the readiness phase, of mixins and of profiles speak of readings; those of
the other phases name metrics, which are free (recipe spec 2.2 step 7).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from aicr.constraints import addressable, expression, nodeset, ranges
from aicr.errors import AicrError
from aicr.lint.decoder import problem_of
from aicr.lint.findings import ERROR, WARNING, Problem, rule

if TYPE_CHECKING:
    from aicr.catalog.types import Constraint
    from aicr.constraints.expression import Expression
    from aicr.lint.ground import Ground
    from aicr.lint.reading import Path, Source


def _readings(ground: Ground) -> Iterator[tuple[Source, Path, Constraint]]:
    """Every constraint that speaks of a reading, with its place."""
    for source in ground.sources():
        for path, constraint in source.constraints:
            if path[:2] != ("spec", "validation") or path[2] == "readiness":
                yield source, path, constraint


@rule(
    "constraint-path",
    ERROR,
    "A path that no collector writes can never be met: it would exclude the overlay for ever.",
)
def constraint_path(ground: Ground) -> Iterator[Problem]:
    """Names outside the catalogue of addressable readings (recipe spec 8.3)."""
    for source, path, constraint in _readings(ground):
        try:
            addressable.lint(constraint["name"])
        except AicrError as error:
            message = f'constraint "{constraint["name"]}": {error.message}'
            yield Problem(source.where(*path, "name"), message, error.hint)


@rule(
    "constraint-expression",
    ERROR,
    "An expression that cannot be read is refused, because as plain text it would never match.",
)
def constraint_expression(ground: Ground) -> Iterator[Problem]:
    """Values that are no expression, or no node-set rule (recipe spec 8.5 and 8.7)."""
    for source, path, constraint in _readings(ground):
        parse = nodeset.parse if constraint["name"] == nodeset.NAME else expression.parse
        try:
            parse(constraint["value"])
        except AicrError as error:
            where = source.where(*path, "value")
            _, message, hint = problem_of(error, where)
            yield Problem(where, f'constraint "{constraint["name"]}": {message}', hint)


@rule(
    "constraint-repeated",
    WARNING,
    "Constraints are united by name, so of two in one list the first is dropped silently.",
)
def constraint_repeated(ground: Ground) -> Iterator[Problem]:
    """The same name twice in one list."""
    for source in ground.sources():
        seen: dict[tuple[Path, str], Path] = {}
        for path, constraint in source.constraints:
            key = (path[:-1], constraint["name"])
            if key in seen:
                first = source.where(*seen[key], "name").split(":", 1)[1].partition(":")[0]
                yield Problem(
                    source.where(*path, "name"),
                    f'constraint "{constraint["name"]}" stands twice in this list, first on line '
                    f"{first}; only the last one counts",
                    'join them in one value, for example ">= 1.32 < 1.36"',
                )
            seen.setdefault(key, path)


@rule(
    "constraint-redundant",
    WARNING,
    "A constraint that repeats its ancestor's hides that a change up there should reach down here.",
)
def constraint_redundant(ground: Ground) -> Iterator[Problem]:
    """A recipe constraint equal to the one that the overlay inherits."""
    for inherited in _inherited(ground):
        if inherited.value == inherited.constraint["value"]:
            yield Problem(
                inherited.where("name"),
                f'constraint "{inherited.constraint["name"]}" repeats what overlay '
                f'"{inherited.owner}" says',
                "remove it here",
            )


@rule(
    "constraint-loosened",
    WARNING,
    "A constraint replaces its ancestor's, so a wider one lets in clusters that were ruled out above.",
)
def constraint_loosened(ground: Ground) -> Iterator[Problem]:
    """A recipe constraint that allows all that the inherited one allows, and more (field pain 24)."""
    for inherited in _inherited(ground):
        name, value = inherited.constraint["name"], inherited.constraint["value"]
        if value != inherited.value and _is_wider(value, inherited.value):
            yield Problem(
                inherited.where("value"),
                f'constraint "{name}": "{value}" is wider than "{inherited.value}", which overlay '
                f'"{inherited.owner}" asks for',
                "ask for as much as the overlay above, or change it there",
            )


class _Inherited(NamedTuple):
    """A recipe constraint of an overlay, and the one of that name that it replaces."""

    source: Source
    path: Path
    constraint: Constraint
    value: str
    owner: str

    def where(self, field: str) -> str:
        """Where a field of the constraint stands."""
        return self.source.where(*self.path, field)


def _inherited(ground: Ground) -> Iterator[_Inherited]:
    """Every recipe constraint of an overlay that replaces one of the base or of an ancestor."""
    base = ground.overlays.get("base")
    for name, source in ground.overlays.items():
        chain = ground.chain(name)
        if chain is None or base is None or source is base:
            continue
        above = {}
        for ancestor in [base, *chain[:-1]]:
            for constraint in ancestor.spec.get("constraints") or ():
                above[constraint["name"]] = (constraint["value"], ancestor.name)
        for path, constraint in source.constraints:
            if path[:2] == ("spec", "constraints") and constraint["name"] in above:
                yield _Inherited(source, path, constraint, *above[constraint["name"]])


def _is_wider(value: str, other: str) -> bool:
    """Whether the first expression holds wherever the second does, and elsewhere too.

    False as well where that cannot be told: of text, and of ranges given with different precision.
    """
    try:
        one, two = expression.parse(value), expression.parse(other)
        floor, asked = _floor(one), _floor(two)
        if floor and asked and floor != asked:
            return floor < asked
        both = expression.parse(ranges.intersect(value, other))
    except AicrError:
        return False
    return _spelt(both) == _spelt(two) != _spelt(one)


def _floor(found: Expression) -> tuple[int, int, int] | None:
    """The numbers of an expression that is nothing but ``>= version``; those not given are 0."""
    if len(found.arms) != 1 or len(found.arms[0]) != 1 or found.arms[0][0].operator != ">=":
        return None
    version = found.arms[0][0].version
    return None if version is None else version.numbers


def _spelt(found: Expression) -> set[frozenset[str]]:
    """An expression without the order in which it was written."""
    return {frozenset(part.text for part in arm) for arm in found.arms}
