"""Differences from chainsaw that are meant: each names a construct and says why (docs/assertions.md)."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tests.chainsaw.chainsaw_case import Case
from tests.chainsaw.chainsaw_harness import CRASH, ERROR, FAIL, PASS, Answer


@dataclass(frozen=True)
class Excuse:
    """A difference that is meant.

    Attributes:
        construct: the construct of the case, exactly.
        reason: why, as docs/assertions.md says it.
        theirs, ours: the verdicts that it explains; "" is any.
        about: whether it is about this case, whose resource is given as text, and our words.
    """

    construct: str
    reason: str
    theirs: str
    ours: str
    about: Callable[[str, str], bool]

    def holds(self, case: Case, theirs: Answer, ours: Answer) -> bool:
        """Whether the rule explains these answers to *case*."""
        return self.theirs == theirs[0] and self.may_hold(case, ours)

    def may_hold(self, case: Case, ours: Answer) -> bool:
        """Whether it would, if chainsaw answers as the rule says."""
        return (
            self.construct == case.construct
            and self.ours in ("", ours[0])
            and self.about(json.dumps(case.resource, ensure_ascii=False), ours[1])
        )


def _always(resource: str, words: str) -> bool:
    return True


def _with_start(resource: str, words: str) -> bool:
    """Whether a search has a start or an end, which chance takes from few that can be out of range."""
    return "invalid type" not in words and any(
        f", {start}" in resource
        for start in ("`10`", "length(texts)", "to_number(int)", "`2.5`", "`-1`")
    )


_SEARCH: Final = "a start or an end outside of the text: null here, a crash there"
_ABSENT: Final = "a kind that is not served is absent: retried, and fine for an error (decision 68)"
_LEAVING: Final = "an object that is being removed counts for nothing"

EXCUSES: Final[tuple[Excuse, ...]] = (
    Excuse(
        "compare numbers",
        "integers beyond 2^53 are compared exactly, there as floats",
        *(PASS, FAIL),
        lambda resource, words: '"large": 9007199254740992' in resource,
    ),
    Excuse(
        "compare maps of expressions",
        "a map that differs from the one an expression gives is a mismatch here, a crash there",
        *(CRASH, FAIL),
        _always,
    ),
    Excuse(
        "operator variable",
        "variables of the program that runs the test are not defined here",
        *(FAIL, ERROR),
        lambda resource, words: any(
            f"(${name})" in resource for name in ("client", "namespace", "values")
        ),
    ),
    Excuse(
        "operator let",
        "a binding without = is malformed here, a crash there",
        *(CRASH, ERROR),
        lambda resource, words: 'expected "="' in words,
    ),
    Excuse(
        "function at",
        "an index out of range is an error here, a crash there",
        *(CRASH, ERROR),
        lambda resource, words: "is out of range" in words,
    ),
    Excuse("function find_first", _SEARCH, CRASH, "", _with_start),
    Excuse("function find_last", _SEARCH, CRASH, "", _with_start),
    *(
        Excuse(
            f"function pad_{side}",
            "a letter that is not ASCII is one character here, several there",
            *(ERROR, ours),
            lambda resource, words: "é" in resource,
        )
        for side in ("left", "right")
        for ours in (PASS, FAIL)
    ),
    Excuse(
        "function items",
        "the list that items() makes of a list has a type here, none there",
        *(ERROR, FAIL),
        lambda resource, words: "(type(items(" in resource,
    ),
    *(
        Excuse(
            construct,
            _ABSENT,
            ERROR,
            ours,
            lambda resource, words: '"Nothing"' in resource or '"Gadget"' in resource,
        )
        for construct, ours in (("named assert", FAIL), ("named error", PASS))
    ),
    Excuse("named assert", _LEAVING, PASS, FAIL, lambda resource, words: '"leaving"' in resource),
    Excuse("named error", _LEAVING, FAIL, PASS, lambda resource, words: '"leaving"' in resource),
)


def excuse(case: Case, theirs: Answer, ours: Answer) -> Excuse | None:
    """The rule that excuses a difference, or None."""
    return next((rule for rule in EXCUSES if rule.holds(case, theirs, ours)), None)


def may_crash(case: Case, ours: Answer) -> bool:
    """Whether chainsaw is known to end on such a case, so that it is given to it alone."""
    return any(rule.theirs == CRASH and rule.may_hold(case, ours) for rule in EXCUSES)
