"""The rules are judged: they excuse what they name and nothing else, and cite what is written."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.conformance.compare import Difference, at, matches
from tests.conformance.conftest import RULES
from tests.conformance.rules import ABSENT, Case, Everywhere, Exactly, Rule, dead, judge, refused

DIFFERENCES = Path(__file__).resolve().parents[2] / "docs" / "differences.md"


@pytest.mark.parametrize("rule", RULES, ids=[rule.id for rule in RULES])
def test_a_rule_that_cites_our_differences_is_written_there(rule: Rule) -> None:
    """What no decision or section means is an entry of docs/differences.md."""
    for source in rule.source.split("; "):
        document, _, words = source.partition(": ")
        if document == "docs/differences.md":
            written = DIFFERENCES.read_text(encoding="utf-8").lower()
            assert words.lower() in written, f"docs/differences.md says nothing about {words!r}"


def test_rules_have_names_of_their_own() -> None:
    """No two rules share an id, and each says what it means."""
    assert len({rule.id for rule in RULES}) == len(RULES)
    assert all(rule.text.endswith(".") and rule.source for rule in RULES)


@pytest.mark.parametrize(
    ("pattern", "path", "hit"),
    [
        ("a.b", "a.b", True),
        ("a.b", "a.b.c", False),
        ("a.*", "a.b", True),
        ("a[*].b", "a[3].b", True),
        ("a.**", "a", True),
        ("a.**.d", "a.b.c.d", True),
        ("a.{b,c}", "a.c", True),
        ("a.{b,c}", "a.d", False),
        ('a."x.y"', 'a."x.y"', True),
        ("a.x.y", 'a."x.y"', False),
        ("a.+", "a.+", True),
    ],
)
def test_a_pattern_names_places_exactly(pattern: str, path: str, hit: bool) -> None:
    """A pattern matches whole paths only."""
    assert matches(pattern, path) is hit


def test_values_are_found_by_path() -> None:
    """Paths lead through maps and lists; what is not there is None."""
    assert at({"a": [{"x.y": 1}]}, 'a[0]."x.y"') == 1
    assert at({"a": [1]}, "a[1].b") is None


def test_a_difference_beside_the_rule_fails_and_a_rule_without_work_is_dead() -> None:
    """Rules excuse exactly what they name; nothing else passes, and unused ones are reported."""
    rules: tuple[Rule, ...] = (
        Exactly(
            "exact", "s", "t.", "part", {"one": {"document.a": 2}, "two": {"document": ABSENT}}
        ),
        Everywhere("wide", "s", "t.", ("part",), ("document.b",), only=("one", "two")),
    )
    case = Case("part", "one", {}, {})
    differences = [
        Difference("document.a", "value", 1, 2),
        Difference("document.a", "value", 1, 3),
        Difference("document.b", "extra", None, 1),
        Difference("document.c", "extra", None, 1),
    ]
    verdict = judge(case, differences, rules)
    assert verdict.claimed == [("exact", "one: document.a"), ("wide", "one: document.b")]
    assert [d.path for d in verdict.unexplained] == ["document.a", "document.c"]
    assert verdict.word(rules) == "failing"
    assert dead(rules, verdict.claimed) == ["rule exact: two: document", "rule wide: two"]


def test_a_refusal_is_excused_by_code_and_words_only() -> None:
    """Another code or another message is another refusal."""
    rule = Exactly("r", "s", "t.", "part", {"one": refused("NOT_FOUND", "no such thing")})
    case = Case("part", "one", {}, {})
    said = {"code": "NOT_FOUND", "message": "there is no such thing here"}
    claimed = [
        rule.claims(case, Difference("refused", "extra", None, {**said, **change}))
        for change in ({}, {"code": "INTERNAL"}, {"message": "other"})
    ]
    assert claimed == ["one: refused", "", ""]
