"""What a rule is, and how differences are held against the rules.

A rule excuses a difference from the original that is meant (decision 2, recipe spec 12). It names the
decision or the section that means it and the exact places it excuses; a difference that no rule claims
fails its case, and a rule, a case of it or a pattern of it that excuses nothing fails the run.

There are two shapes:

* ``Everywhere``: patterns that hold in all cases of a part, with a condition on what may differ there.
* ``Exactly``: for one case after another, the paths at which we differ and the very value we have there.

The tables are in ``rules_recipes``, ``rules_bundles``, ``rules_refusals`` and ``rules_constraints``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.conformance.compare import Difference, matches


@dataclass(frozen=True)
class Case:
    """One case that is being compared.

    Attributes:
        part: part of the kit, such as ``resolve``.
        id: the kit's id.
        expected: the whole observation of the original.
        actual: the whole observation of the product.
        facts: more that a condition may need, such as the catalogue.
    """

    part: str
    id: str
    expected: Any
    actual: Any
    facts: Mapping[str, Any] = field(default_factory=dict)


class _Absent:
    """The product has nothing at that path."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT = _Absent()


@dataclass(frozen=True)
class Says:
    """A refusal of ours: its code, and words that its innermost message must hold."""

    code: str
    words: str

    def accepts(self, actual: Any) -> bool:
        """Whether *actual* (code and message) is this refusal."""
        return (
            isinstance(actual, dict)
            and actual.get("code") == self.code
            and self.words in str(actual.get("message"))
        )


@dataclass(frozen=True)
class Holding:
    """A text of ours that must hold these words."""

    words: str


@dataclass(frozen=True)
class Like:
    """A value of ours that must meet a condition."""

    holds: Callable[[Any], bool]


def refused(code: str, words: str) -> dict[str, Any]:
    """The paths of a case that the original accepts and that we refuse."""
    return {"document": ABSENT, "refused": Says(code, words)}


def reworded(words: str, code: str = "", exit_status: int | None = None) -> dict[str, Any]:
    """The paths of a case that both refuse, we with other words, and what else is other."""
    paths: dict[str, Any] = {"refused.message": Holding(words)} if words else {}
    if code:
        paths["refused.code"] = code
    if exit_status is not None:
        paths["refused.exit"] = exit_status
    return paths


def usage(words: str) -> dict[str, Any]:
    """The paths of a usage error: INVALID_REQUEST and exit 2 where the original exits 1."""
    return reworded(words, "INVALID_REQUEST", 2)


def accepted(holds: Callable[[Any], bool]) -> dict[str, Any]:
    """The paths of a case that the original refuses and that we accept, with what must come out."""
    return {"refused": ABSENT, "document": Like(holds)}


@dataclass(frozen=True)
class Everywhere:
    """A rule for all cases of some parts; see the module's docstring.

    Attributes:
        kinds: kinds of difference it excuses.
        holds: condition on the difference; None excuses any value at the path.
        only: ids of the only cases it is for; empty means all of the parts.
        routine: whether it is about what every output of the part has, such as its header.
    """

    id: str
    source: str
    text: str
    parts: tuple[str, ...]
    paths: tuple[str, ...]
    kinds: tuple[str, ...] = ("missing", "extra", "type", "value")
    holds: Callable[[Case, Difference], bool] | None = None
    only: tuple[str, ...] = ()
    routine: bool = False

    def claims(self, case: Case, difference: Difference) -> str:
        """What of this rule claims the difference: case and pattern, or "" when it does not."""
        if case.part not in self.parts or difference.kind not in self.kinds:
            return ""
        if self.only and case.id not in self.only:
            return ""
        for pattern in self.paths:
            if matches(pattern, difference.path):
                held = self.holds is None or self.holds(case, difference)
                return f"{case.id}: {pattern}" if held else ""
        return ""

    def unused(self, claims: Iterable[str]) -> list[str]:
        """Patterns, and cases of ``only``, that claimed nothing."""
        pairs = [claim.split(": ", 1) for claim in claims]
        live = {pattern for _, pattern in pairs} | {case for case, _ in pairs}
        return [owed for owed in (*self.paths, *self.only) if owed not in live]


@dataclass(frozen=True)
class Exactly:
    """A rule for named cases; see the module's docstring."""

    id: str
    source: str
    text: str
    part: str
    cases: Mapping[str, Mapping[str, Any]]

    def claims(self, case: Case, difference: Difference) -> str:
        """What of this rule claims the difference: case and path, or "" when it does not."""
        if case.part != self.part:
            return ""
        for path, ours in self.cases.get(case.id, {}).items():
            if matches(path, difference.path) and _is(ours, difference):
                return f"{case.id}: {path}"
        return ""

    def unused(self, claims: Iterable[str]) -> list[str]:
        """Cases with a path that claimed nothing."""
        owed = [f"{case}: {path}" for case, paths in self.cases.items() for path in paths]
        return [claim for claim in owed if claim not in set(claims)]


def _is(ours: Any, difference: Difference) -> bool:
    if ours is ABSENT:
        return difference.kind == "missing"
    if difference.kind == "missing":
        return False
    if isinstance(ours, Says):
        return ours.accepts(difference.actual)
    if isinstance(ours, Holding):
        return ours.words in str(difference.actual)
    if isinstance(ours, Like):
        return ours.holds(difference.actual)
    return type(ours) is type(difference.actual) and bool(ours == difference.actual)


Rule = Everywhere | Exactly


@dataclass
class Verdict:
    """How one case came out.

    Attributes:
        claimed: (rule id, pattern or path that claimed) of every excused difference.
        unexplained: the differences that no rule claims.
    """

    claimed: list[tuple[str, str]]
    unexplained: list[Difference]

    def word(self, rules: Sequence[Rule]) -> str:
        """``equal``, ``routine`` (only what every output differs in), ``excused``, ``failing``."""
        if self.unexplained:
            return "failing"
        if not self.claimed:
            return "equal"
        routine = {rule.id for rule in rules if isinstance(rule, Everywhere) and rule.routine}
        return "routine" if {name for name, _ in self.claimed} <= routine else "excused"


def judge(case: Case, differences: Iterable[Difference], rules: Sequence[Rule]) -> Verdict:
    """Hold every difference of a case against the rules; the first that claims it has it."""
    verdict = Verdict([], [])
    for difference in differences:
        for rule in rules:
            claim = rule.claims(case, difference)
            if claim:
                verdict.claimed.append((rule.id, claim))
                break
        else:
            verdict.unexplained.append(difference)
    return verdict


def dead(rules: Sequence[Rule], claimed: Iterable[tuple[str, str]]) -> list[str]:
    """Rules, or parts of rules, that excused nothing in a whole run."""
    used: dict[str, set[str]] = {}
    for name, claim in claimed:
        used.setdefault(name, set()).add(claim)
    return [
        f"rule {rule.id}: {owed}" for rule in rules for owed in rule.unused(used.get(rule.id, ()))
    ]
