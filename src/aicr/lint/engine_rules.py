"""Rules about health checks that ask the engine itself: can it read what stands there, and as what.

The rules in `aicr.lint.check_rules` tell one by one what a check may not hold; the engine also parses each
expression, and refuses the file at the first that it cannot read (validators spec 8.3, 8.5).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from aicr.assertions.document import read_check
from aicr.assertions.tree import ITERATOR
from aicr.assertions.vacuity import maps_of
from aicr.errors import AicrError
from aicr.lint import check_rules
from aicr.lint.decoder import problem_of
from aicr.lint.findings import ERROR, WARNING, Problem, rule, split_place

if TYPE_CHECKING:
    from aicr.lint.ground import Ground

_BINDING = re.compile(r"\s*->\s*\w+\Z")


@rule(
    "check-unreadable",
    ERROR,
    "An expression, a budget or a name that the engine cannot read stops the check of the component.",
)
def check_unreadable(ground: Ground) -> Iterator[Problem]:
    """What the engine refuses in files that the other rules about checks are content with."""
    others = (
        check_rules.check_document,
        check_rules.check_forbidden,
        check_rules.check_operation,
        check_rules.check_empty,
    )
    told = {split_place(problem.where)[0] for find in others for problem in find(ground)}
    for path, _ in check_rules.tests(ground):
        place = ground.tree.place(path)
        if place not in told:
            try:
                read_check(ground.tree.read_text(path), source=place)
            except AicrError as error:
                yield problem_of(error, place)


@rule(
    "check-half-expression",
    WARNING,
    "A key with one parenthesis too few is the name of a field, which no object has.",
)
def check_half_expression(ground: Ground) -> Iterator[Problem]:
    """Keys with the first or the last parenthesis of an expression only."""
    for _, found in check_rules.tests(ground):
        for test in found:
            for operation in check_rules.operations(test):
                start = (*operation.path, "resource")
                for path, node in maps_of(operation.resource, start):
                    for key in node:
                        bare = _BINDING.sub("", ITERATOR.sub(r"\2", key, count=1))
                        if bare.startswith("(") != bare.endswith(")"):
                            yield Problem(
                                test.positions.key((*path, key)),
                                f'"{key}" is the name of a field and no expression',
                                "begin and end it with a parenthesis",
                            )
