"""The verdicts of the conformance suite: one judge for each case, one table at the end.

Every case is compared through the ``conformance`` fixture, which holds its differences against the
rules. The verdicts travel as test properties, so that the table is right under pytest-xdist too. A rule
that excused nothing in a complete run makes the run fail (decision 80).
"""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest
from tests.conformance.kit import Kit, kit
from tests.conformance.product import Product
from tests.conformance.rules import Case, Rule, dead, judge
from tests.conformance.rules_bundles import BUNDLES
from tests.conformance.rules_constraints import CONSTRAINTS
from tests.conformance.rules_recipes import RECIPES

RULES: tuple[Rule, ...] = (*RECIPES, *BUNDLES, *CONSTRAINTS)
PARTS = {
    "resolve": "resolve: aicr recipe",
    "matrix": "resolve: bodies of the criteria matrix",
    "query": "query: aicr query",
    "bundle-base": "bundle: whole bundles",
    "bundle-variant": "bundle: variants",
    "bundle-error": "bundle: refusals",
    "expression": "constraints: one expression each",
}
_PROPERTY = "conformance"


class Judge:
    """Compares one case and records how it came out."""

    def __init__(self, subject: Kit, record: Callable[[str, object], None]) -> None:
        self.kit = subject
        self._record = record

    def __call__(
        self,
        part: str,
        case_id: str,
        expected: Any,
        actual: Any,
        *,
        by: Mapping[str, str] | None = None,
        sets: Sequence[str] = (),
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        """Compare, record, and fail on what no rule excuses."""
        differences = self.kit.comparer.diff(expected, actual, by=by or {}, sets=sets)
        case = Case(part, case_id, expected, actual, facts or {})
        verdict = judge(case, differences, RULES)
        self._record(_PROPERTY, json.dumps([part, verdict.word, verdict.claimed]))
        if verdict.unexplained:
            places = "\n  ".join(map(str, verdict.unexplained))
            pytest.fail(f"{part} {case_id}: no rule excuses\n  {places}", pytrace=False)


@pytest.fixture
def conformance(record_property: Callable[[str, object], None]) -> Judge:
    """The judge of one case."""
    return Judge(kit(), record_property)


@pytest.fixture
def product(monkeypatch: pytest.MonkeyPatch) -> Iterator[Product]:
    """The product over the kit's catalogue, with the coverage refusal on."""
    yield Product(kit(), monkeypatch)


class Ledger:
    """What a run found, gathered from the reports of its tests."""

    def __init__(self) -> None:
        self.words: dict[str, Counter[str]] = defaultdict(Counter)
        self.cases: Counter[str] = Counter()
        self.claims: Counter[tuple[str, str]] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take the verdict out of a report."""
        if report.when != "call":
            return
        for name, value in report.user_properties:
            if name == _PROPERTY:
                part, word, claimed = json.loads(str(value))
                self.words[part][word] += 1
                self.claims.update((rule, claim) for rule, claim in claimed)
                self.cases.update({rule for rule, _ in claimed})

    def total(self) -> int:
        """How many cases were compared."""
        return sum(sum(words.values()) for words in self.words.values())


_LEDGER = pytest.StashKey[Ledger]()
_WHOLE = pytest.StashKey[bool]()


def _ledger(config: pytest.Config) -> Ledger:
    if _LEDGER not in config.stash:
        config.stash[_LEDGER] = Ledger()
        config.pluginmanager.register(config.stash[_LEDGER], "aicr-conformance-ledger")
    return config.stash[_LEDGER]


def pytest_itemcollected(item: pytest.Item) -> None:
    """Start the ledger as soon as there is anything to write into it."""
    _ledger(item.config)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Note whether this run has every module of the suite and every case of each."""
    here = os.path.dirname(__file__)
    modules = {name for name in os.listdir(here) if name.startswith("test_")}
    found = {item.path.name for item in session.items if str(item.path.parent) == here}
    session.config.stash[_WHOLE] = modules <= found and not session.config.getoption("keyword")


def _corpses(config: pytest.Config) -> list[str]:
    ledger = _ledger(config)
    if not config.stash.get(_WHOLE, False) or not ledger.total():
        return []
    return dead(RULES, ledger.claims.elements())


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """A rule that excuses nothing fails the run."""
    if session.exitstatus == pytest.ExitCode.OK and _corpses(session.config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print the totals of every part, the cases of every rule, and the dead rules."""
    ledger = _ledger(config)
    if not ledger.total():
        return
    out: Callable[..., None] = terminalreporter.write_line
    terminalreporter.section("conformance with v0.11.1")
    out(f"{'part':<42}{'total':>7}{'equal':>7}{'excused':>9}{'failing':>9}")
    for part, title in PARTS.items():
        words = ledger.words[part]
        out(
            f"{title:<42}{sum(words.values()):>7}{words['equal']:>7}"
            f"{words['excused']:>9}{words['failing']:>9}"
        )
    out("")
    out(f"{'rule':<34}{'cases':>7}{'places':>8}  source")
    for rule in RULES:
        places = sum(n for (name, _), n in ledger.claims.items() if name == rule.id)
        out(f"{rule.id:<34}{ledger.cases[rule.id]:>7}{places:>8}  {rule.source}")
    for corpse in _corpses(config):
        out(f"DEAD: {corpse} excuses nothing", red=True)
