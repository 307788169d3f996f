"""The verdicts of the conformance suite: one judge for each case, one table at the end.

Every case is compared through the ``conformance`` fixture, which holds its differences against the
rules. The verdicts travel as test properties, so that the table is right under pytest-xdist too. A rule
that excused nothing in a complete run makes the run fail (decision 80).
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from tests.conformance.kit import Kit, kit
from tests.conformance.product import Product
from tests.conformance.rules import Case, Rule, dead, judge
from tests.conformance.rules_bundles import BUNDLES
from tests.conformance.rules_constraints import CONSTRAINTS
from tests.conformance.rules_recipes import RECIPES
from tests.conformance.rules_refusals import REFUSALS

RULES: tuple[Rule, ...] = (*RECIPES, *BUNDLES, *REFUSALS, *CONSTRAINTS)
PARTS = {
    "resolve": "resolve: aicr recipe",
    "matrix": "resolve: bodies of the criteria matrix",
    "query": "query: aicr query",
    "bundle-base": "bundle: whole bundles",
    "bundle-variant": "bundle: variants",
    "bundle-error": "bundle: refusals",
    "expression": "constraints: one expression each",
}
#: What can become of a case; see ``Verdict.word``.
WORDS = ("equal", "routine", "excused", "failing")
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
        self._record(_PROPERTY, json.dumps([part, verdict.word(RULES), verdict.claimed]))
        if verdict.unexplained:
            places = "\n  ".join(map(str, verdict.unexplained))
            pytest.fail(f"{part} {case_id}: no rule excuses\n  {places}", pytrace=False)


@pytest.fixture
def conformance(record_property: Callable[[str, object], None]) -> Judge:
    """The judge of one case."""
    return Judge(kit(), record_property)


@pytest.fixture
def product(monkeypatch: pytest.MonkeyPatch) -> Product:
    """The product over the kit's catalogue, with the coverage refusal on."""
    return Product(kit(), monkeypatch)


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

    def whole(self) -> bool:
        """Whether every case of the kit was compared."""
        compared = {part: sum(words.values()) for part, words in self.words.items()}
        return bool(compared) and compared == kit().totals()

    def corpses(self) -> list[str]:
        """What of the rules excused nothing; known only after a whole run."""
        return dead(RULES, self.claims.elements()) if self.whole() else []


_LEDGER = pytest.StashKey[Ledger]()


def pytest_configure(config: pytest.Config) -> None:
    """Start the ledger, also in a process that only gathers what others ran."""
    if _LEDGER not in config.stash:
        config.stash[_LEDGER] = Ledger()
        config.pluginmanager.register(config.stash[_LEDGER], "aicr-conformance-ledger")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """A rule that excuses nothing fails the run."""
    if session.exitstatus == pytest.ExitCode.OK and session.config.stash[_LEDGER].corpses():
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print the totals of every part, the cases of every rule, and the dead rules."""
    ledger = config.stash[_LEDGER]
    if not ledger.words:
        return
    out: Callable[..., None] = terminalreporter.write_line
    terminalreporter.section("conformance with v0.11.1")
    out(f"{'part':<42}" + "".join(f"{word:>9}" for word in ("total", *WORDS, "not run")))
    for part, total in kit().totals().items():
        words = ledger.words.get(part, Counter())
        counts = (total, *(words[word] for word in WORDS), total - sum(words.values()))
        out(f"{PARTS[part]:<42}" + "".join(f"{count:>9}" for count in counts))
    out("")
    out(f"{'rule':<28}{'cases':>6}{'places':>7}  source")
    for rule in RULES:
        places = sum(n for (name, _), n in ledger.claims.items() if name == rule.id)
        out(f"{rule.id:<28}{ledger.cases[rule.id]:>6}{places:>7}  {rule.source}")
    for corpse in ledger.corpses():
        out(f"DEAD: {corpse} excuses nothing", red=True)
