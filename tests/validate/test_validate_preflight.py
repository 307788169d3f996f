"""Names of checks before anything runs: declared ones, withheld ones, and phases."""

from __future__ import annotations

import pytest
from tests.validate.cases import entry, recipe

from aicr.errors import AicrError
from aicr.validate import phases, preflight
from aicr.validate.catalog import ValidatorCatalog

CATALOG = ValidatorCatalog(
    (
        entry("operator-health"),
        entry("expected-resources"),
        entry("dra-support", "conformance"),
        entry("nccl-all-reduce-bw", "performance"),
    )
)
HEADER = "validation declares checks that do not match the validator catalog:"


def refused(document: dict[str, object], wanted: tuple[str, ...] = phases.ORDER) -> AicrError:
    """The refusal of a recipe's declared checks."""
    with pytest.raises(AicrError) as raised:
        preflight.check_declared(document, CATALOG, wanted)
    assert raised.value.code == "INVALID_REQUEST"
    assert raised.value.exit_status == 2
    return raised.value


@pytest.mark.covers("V-045", "V-046", "G1")
def test_a_name_that_is_nothing_is_refused_with_the_nearest() -> None:
    """A typo would otherwise leave its phase with nothing to run."""
    error = refused(recipe(deployment=["operator-healht"]))
    assert error.message.splitlines() == [
        HEADER,
        '  - declared check "operator-healht" in phase deployment matches no validator in the catalog',
    ]
    assert error.hint == 'did you mean "operator-health"?'


@pytest.mark.covers("V-047", "V10-5")
def test_a_name_of_another_phase_is_refused() -> None:
    """It says under which phase the check is."""
    error = refused(recipe(deployment=["nccl-all-reduce-bw"]))
    assert "matches no validator in that phase (found under phase: performance)" in error.message


@pytest.mark.covers("V10-6", "V-048", "V-049")
def test_all_offenders_come_in_one_error() -> None:
    """Two typos in two phases and one name twice: three bullets."""
    error = refused(
        recipe(
            deployment=["operator-healht", "expected-resources", "expected-resources"],
            conformance=["dra-suport"],
        )
    )
    assert error.message.splitlines()[1:] == [
        '  - declared check "operator-healht" in phase deployment matches no validator in the catalog',
        '  - declared check "expected-resources" is declared more than once in phase deployment',
        '  - declared check "dra-suport" in phase conformance matches no validator in the catalog',
    ]


def test_only_requested_phases_are_held_to_it() -> None:
    """A phase that is not asked for does not stop a run."""
    preflight.check_declared(recipe(conformance=["typo"]), CATALOG, ("deployment",))
    refused(recipe(conformance=["typo"]), ("conformance",))


@pytest.mark.covers("V10-8", "V-061", "V-066")
def test_a_withheld_name_that_is_no_check_is_refused() -> None:
    """A mistyped skip would let the check run, unnoticed."""
    with pytest.raises(AicrError) as raised:
        preflight.check_skipped(recipe(), CATALOG, phases.ORDER, ["typo"])
    assert raised.value.code == "INVALID_REQUEST"
    assert raised.value.message.splitlines() == [
        "invalid skipChecks:",
        '  - skipChecks entry "typo" matches no validator in the catalog',
    ]


@pytest.mark.covers("V10-9", "V-062")
def test_a_phase_keeps_at_least_one_check() -> None:
    """A phase whose every check is withheld would read as if it had been looked at."""
    both = ["operator-health", "expected-resources"]
    with pytest.raises(AicrError) as raised:
        preflight.check_skipped(recipe(deployment=both), CATALOG, phases.ORDER, both)
    assert "skipChecks removes every declared check from phase deployment; " in raised.value.message
    assert preflight.check_skipped(recipe(deployment=both), CATALOG, phases.ORDER, both[:1]) == []


@pytest.mark.covers("V10-10", "V-064")
def test_a_known_name_that_nothing_declares_only_warns() -> None:
    """It is inert rather than wrong."""
    found = preflight.check_skipped(
        recipe(deployment=["operator-health"]), CATALOG, ("deployment",), ["dra-support"]
    )
    assert len(found) == 1
    assert '"dra-support"' in found[0]


@pytest.mark.covers("V-075", "V10-4", "V-073")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], None),
        (["all"], None),
        (["performance", "deployment"], ("deployment", "performance")),
        (["conformance", "conformance"], ("conformance",)),
    ],
)
def test_phases_run_in_one_order(words: list[str], expected: tuple[str, ...] | None) -> None:
    """Whatever order they are asked for in; none and `all` are everything."""
    assert phases.parse_selection(words) == expected


@pytest.mark.covers("V10-2", "V10-3", "V-076")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["all", "deployment"], 'phase "all" excludes every other'),
        (["readiness"], 'unknown phase "readiness"'),
        (["deploy"], 'unknown phase "deploy"'),
        ([""], 'unknown phase ""'),
    ],
)
def test_a_wrong_selection_is_refused(words: list[str], said: str) -> None:
    """A word that is no phase, and `all` beside another."""
    with pytest.raises(AicrError) as raised:
        phases.parse_selection(words)
    assert raised.value.code == "INVALID_REQUEST"
    assert said in raised.value.message
