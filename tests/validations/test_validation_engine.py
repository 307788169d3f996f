"""The engine: severities, conditions, messages, unknown functions, where it stops."""

from __future__ import annotations

import logging
import sys
from typing import Any, cast

import pytest
from tests.validations.situations import component

from aicr.bundle.options import BundleOptions, parse_scheduling
from aicr.bundle.validations import engine
from aicr.bundle.validations.conditions import applies
from aicr.bundle.validations.effective import ABSENT, BROKEN, Finding, look, shown, truth
from aicr.bundle.validations.table import FUNCTIONS
from aicr.errors import CONFLICT, INVALID_REQUEST, AicrError, invalid

#: A stand-in is wired under a real name, since the engine knows no others.
NAME = "CheckWorkloadSelectorMissing"
OTHER = "CheckAcceleratedSelectorMissing"

FALSE: list[Any] = [False, 0, 0.0, "", [], {}, None, ABSENT, BROKEN]
TRUE: list[Any] = [True, 1, -1, 0.5, "false", "0", " ", [0], {"a": None}]

WARNS: Any = ([Finding("it leans", "prop it up")], [])
FAILS: Any = ([], [invalid("it broke", hint="mend it")])
CLASHES: Any = ([], [AicrError(CONFLICT, "two of them", hint="drop one")])


@pytest.fixture
def verdicts(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the two stand-ins return, by function name."""
    found: dict[str, Any] = {NAME: ([], []), OTHER: ([], [])}
    from aicr.bundle.validations import selectors

    for name in (NAME, OTHER):
        _, function = FUNCTIONS[name]
        monkeypatch.setattr(selectors, function, lambda _, name=name: found[name])
    return found


def run(*wired: dict[str, Any] | list[dict[str, Any]], criteria: Any = None) -> engine.Outcome:
    """The engine over components a, b, … each with these validations."""
    components = [
        component(name, entry={"validations": block if isinstance(block, list) else [block]})
        for name, block in zip("abcd", wired, strict=False)
    ]
    recipe = {} if criteria is None else {"criteria": criteria}
    options = BundleOptions()
    return engine.run(
        recipe=cast("Any", recipe),
        refs=[item.ref for item in components],
        removed={},
        components=components[::-1],
        options=options,
        scheduling=parse_scheduling(options),
        tree=cast("Any", None),
    )


@pytest.mark.covers("V-347", "V-350", "V-351", "V-352", "V-353", "B10-63", "R11-77")
@pytest.mark.parametrize(
    ("severity", "findings", "errors"),
    [
        ("error", "blocks", "blocks"),
        ("ERROR", "blocks", "blocks"),
        ("warning", "note", "blocks"),
        ("Warn", "note", "blocks"),
        ("Erorr", "note", "blocks"),
        ("", "note", "blocks"),
        (None, "note", "blocks"),
        ("info", "advice", "advice"),
        ("Info", "advice", "advice"),
    ],
)
def test_severity_decides_what_an_outcome_does(
    severity: str | None, findings: str, errors: str, verdicts: dict[str, Any]
) -> None:
    """Nothing that a validation returns is dropped, whatever the severity says (6.1)."""
    wired = {"function": NAME} if severity is None else {"function": NAME, "severity": severity}
    for verdict, fate, text in ((WARNS, findings, "it leans"), (FAILS, errors, "it broke")):
        verdicts[NAME] = verdict
        if fate == "blocks":
            with pytest.raises(AicrError, match=text) as caught:
                run(wired)
            assert caught.value.code == INVALID_REQUEST
            continue
        outcome = run(wired)
        assert [text in line for line in outcome.notes] == [True] * (fate == "note")
        assert [text in line for line in outcome.advice] == [True] * (fate == "advice")


@pytest.mark.covers("B10-64")
def test_an_error_under_info_lets_the_bundle_pass_and_is_logged(
    verdicts: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    """Info is advice even when the check fails; a program with a log finds it there (V-353)."""
    verdicts[NAME] = FAILS
    with caplog.at_level(logging.INFO, "aicr.bundle.validations"):
        outcome = run({"function": NAME, "severity": "info"})
    assert outcome.notes == []
    assert outcome.advice == ["a: it broke"]
    assert [record.message for record in caplog.records] == ["a: it broke"]


def test_advice_does_not_load_a_logging_library(
    verdicts: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command line has no log, and importing one would cost more than the bundle."""
    monkeypatch.delitem(sys.modules, "logging")
    verdicts[NAME] = WARNS
    assert run({"function": NAME, "severity": "info"}).advice == ["it leans; prop it up"]
    assert "logging" not in sys.modules


@pytest.mark.covers("B10-65", "V-345", "V-354", "R11-77")
@pytest.mark.parametrize("severity", ["error", "warning", "info", "off"])
@pytest.mark.parametrize("name", ["CheckWorkloadSelectorMising", "", "Nonsense"])
def test_an_unknown_function_always_blocks(name: str, severity: str) -> None:
    """A typo must not become a check that never runs, conditions or not (6.1)."""
    wired = {"function": name, "severity": severity, "conditions": {"service": ["nowhere"]}}
    with pytest.raises(AicrError, match="unknown validation function") as caught:
        run(wired)
    assert caught.value.code == INVALID_REQUEST
    assert caught.value.exit_status == 2
    if name.startswith("Check"):
        assert f'did you mean "{NAME}"?' in caught.value.hint


@pytest.mark.covers("V-354")
@pytest.mark.parametrize("severity", ["error", "warning", "info"])
@pytest.mark.parametrize("values", [None, []], ids=["nothing", "empty list"])
def test_a_condition_without_a_value_always_blocks(values: Any, severity: str) -> None:
    """No recipe meets it, so the gate would never run and nobody would be told."""
    wired = {"function": NAME, "severity": severity, "conditions": {"service": values}}
    with pytest.raises(AicrError, match=f"condition service of {NAME}.* has no value") as caught:
        run(wired, criteria={"service": "eks"})
    assert caught.value.code == INVALID_REQUEST


@pytest.mark.covers("V-349")
def test_the_registry_message_is_appended_to_findings_and_wraps_errors(
    verdicts: dict[str, Any],
) -> None:
    """The registry adds what matters for its component (6.1)."""
    wired = {"function": NAME, "message": "Ask the owner."}
    verdicts[NAME] = WARNS
    assert run(wired).notes == ["it leans. Ask the owner"]
    assert run({"function": NAME}).notes == ["it leans; prop it up"]
    with pytest.raises(AicrError) as caught:
        run({**wired, "severity": "error"})
    assert caught.value.chain()[-1].message == "it leans. Ask the owner"
    verdicts[NAME] = FAILS
    with pytest.raises(AicrError) as caught:
        run(wired)
    assert [link.message for link in caught.value.chain()] == [
        f'{NAME} refuses component "a" as it is configured',
        "Ask the owner.",
        "it broke",
    ]
    assert caught.value.chain()[-1].hint == "mend it"


def test_a_conflict_keeps_its_code(verdicts: dict[str, Any]) -> None:
    """A returned error blocks with the code it came with; it exits 2 like the others (6.1)."""
    verdicts[NAME] = CLASHES
    with pytest.raises(AicrError) as caught:
        run({"function": NAME, "severity": "warning"})
    assert caught.value.code == CONFLICT
    assert caught.value.exit_status == 2
    assert caught.value.hint == "drop one"


def test_all_problems_of_a_component_are_told_at_once(verdicts: dict[str, Any]) -> None:
    """A person fixes a component in one go, not one refusal after another."""
    verdicts[NAME], verdicts[OTHER] = CLASHES, FAILS
    with pytest.raises(AicrError) as caught:
        run([{"function": NAME}, {"function": OTHER}])
    assert caught.value.message == f'{NAME}, {OTHER} refuse component "a" as it is configured'
    assert caught.value.code == CONFLICT
    assert caught.value.chain()[1].message == "(1) two of them; (2) it broke"
    assert caught.value.context["problems"] == ["two of them", "it broke"]
    assert caught.value.hint == "drop one; mend it"


def test_the_first_component_that_blocks_ends_the_run_and_earlier_notes_survive(
    verdicts: dict[str, Any],
) -> None:
    """Components are judged in the order of the recipe, not of deployment (6.1)."""
    verdicts[NAME], verdicts[OTHER] = WARNS, FAILS
    with pytest.raises(AicrError) as caught:
        run({"function": NAME}, {"function": OTHER}, {"function": "Unknown"})
    assert caught.value.context["component"] == "b"
    assert caught.value.context["notes"] == ["it leans; prop it up"]


def test_components_that_are_not_rendered_are_not_judged() -> None:
    """Evidence comes from all declared components, enforcement from rendered ones only (6.3)."""
    options = BundleOptions()
    absent = component("x", entry={"validations": [{"function": "Unknown"}]})
    outcome = engine.run(
        recipe=cast("Any", {}),
        refs=[absent.ref],
        removed={"x": "why"},
        components=[],
        options=options,
        scheduling=parse_scheduling(options),
        tree=cast("Any", None),
    )
    assert (outcome.notes, outcome.advice) == ([], [])


@pytest.mark.covers("V-348")
@pytest.mark.parametrize(
    ("conditions", "criteria", "expected"),
    [
        ({}, None, True),
        ({}, {"service": "aks"}, True),
        ({"service": ["aks"]}, None, False),
        ({"service": ["aks"]}, {}, False),
        ({"service": ["aks"]}, {"service": "aks"}, True),
        ({"service": [" AKS "]}, {"service": "aks"}, True),
        ({"service": ["gke", "aks"]}, {"service": "aks"}, True),
        ({"service": ["gke", "eks"]}, {"service": "aks"}, False),
        ({"service": ["aks"]}, {"service": "any"}, False),
        ({"service": ["any"]}, {"service": "aks"}, True),
        ({"service": []}, {"service": "aks"}, False),
        ({"service": ["aks"], "intent": ["training"]}, {"service": "aks", "intent": "any"}, False),
        (
            {"service": ["aks"], "intent": ["inference", "training"]},
            {"service": "aks", "intent": "training"},
            True,
        ),
        ({"colour": ["red"]}, {"service": "aks"}, True),
        ({"colour": ["red"], "service": ["eks"]}, {"service": "aks"}, False),
        ({"os": ["ubuntu"]}, {"os": "ubuntu"}, True),
        ({"platform": ["slurm"]}, {"platform": "kubeflow"}, False),
        ({"accelerator": ["h100"]}, {"accelerator": "h100"}, True),
    ],
)
def test_conditions_hold_when_every_field_has_one_of_its_values(
    conditions: dict[str, list[str]], criteria: dict[str, str] | None, expected: bool
) -> None:
    """AND over fields, OR over values, unknown fields left out (6.2)."""
    assert applies(conditions, criteria) is expected


def test_a_validation_whose_conditions_fail_does_not_run(verdicts: dict[str, Any]) -> None:
    """Conditions are looked at before the function is called."""
    verdicts[NAME] = FAILS
    wired = {"function": NAME, "conditions": {"service": ["aks"]}}
    assert run(wired, criteria={"service": "eks"}).notes == []
    with pytest.raises(AicrError):
        run(wired, criteria={"service": "aks"})


@pytest.mark.parametrize(
    ("value", "expected"),
    [(value, False) for value in FALSE] + [(value, True) for value in TRUE],
)
def test_go_truth_follows_the_templates_of_charts(value: Any, expected: bool) -> None:
    """The text "false" is true, empty things are not (6.3)."""
    assert truth(value) is expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, ABSENT),
        ({"a": {}}, ABSENT),
        ({"a": {"b": 1}}, 1),
        ({"a": {"b": None}}, None),
        ({"a": None}, BROKEN),
        ({"a": "text"}, BROKEN),
        ({"a": [1]}, BROKEN),
    ],
)
def test_a_path_is_absent_broken_or_has_a_value(values: dict[str, Any], expected: Any) -> None:
    """An absent key means the chart's default; a parent that is no map means nothing known."""
    found = look(values, "a.b")
    assert found is expected or found == expected


def test_values_in_messages_are_one_line_of_json() -> None:
    """Text is quoted, so that "false" and false can be told apart."""
    assert [shown(value) for value in ("false", False, None, [1], ABSENT)] == [
        '"false"',
        "false",
        "null",
        "[1]",
        "unset",
    ]
