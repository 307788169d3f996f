"""The catalogue's own health checks: allowed, not vacuous, and able to pass and to fail."""

from __future__ import annotations

import functools
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from aicr.assertions.document import HealthCheck, Operation, read_check
from aicr.assertions.vacuity import warnings
from aicr.lint import check_rules
from aicr.lint.ground import Ground
from aicr.yamlio import read

CHECKS = Path(__file__).resolve().parents[2] / "recipes" / "checks"
FILES = sorted(CHECKS.glob("*/*.yaml"))


@functools.cache
def shipped(path: Path) -> HealthCheck:
    """One file of the catalogue."""
    return read_check(
        path.read_text(encoding="utf-8"), source=path.name, component=path.parent.name
    )


def name(path: Path) -> str:
    """How a file is called in the list of tests."""
    return path.parent.name


def healthy(operation: Operation) -> dict[str, Any]:
    """An object on which the assertions of the catalogue hold, made from the operation's own fields."""
    plain: dict[str, Any] = _plain(operation.resource)
    conditions = [
        {"type": kind, "status": "True"}
        for kind in ("Established", "Ready", "Active", "Accepted", "Programmed", "Available")
    ]
    plain["status"] = {
        "availableReplicas": 2,
        "readyReplicas": 2,
        "numberReady": 2,
        "desiredNumberScheduled": 2,
        "installedCSV": "operator.v1",
        "conditions": conditions,
        **plain.get("status", {}),
    }
    return plain


def _plain(value: Any) -> Any:
    """A copy without expression keys."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items() if not key.startswith("(")}
    return value


def test_the_catalogue_has_checks() -> None:
    """An empty list would make the tests below pass without testing."""
    assert len(FILES) > 40


@pytest.mark.covers("V-382", "V-389", "V-387")
@pytest.mark.parametrize("path", FILES, ids=name)
def test_shipped_checks_may_only_look(path: Path) -> None:
    """Every file is a Test that passes the allowlist, with all expressions readable."""
    check = shipped(path)
    assert check.tests
    assert check.operations or check.tests[0].no_op


@pytest.mark.covers("V-384")
@pytest.mark.parametrize("path", FILES, ids=name)
def test_shipped_checks_prove_something(path: Path) -> None:
    """None of the warnings for authors applies."""
    assert warnings(shipped(path)) == []


@pytest.mark.parametrize("path", FILES, ids=name)
def test_shipped_asserts_pass_on_a_healthy_object_and_fail_on_a_bare_one(path: Path) -> None:
    """Each assert can pass; and each that says more than existence fails, without a hard error."""
    for operation in shipped(path).operations:
        if operation.kind != "assert":
            continue
        assert operation.tree.judge(healthy(operation)).text == ""
        bare = {key: operation.resource[key] for key in ("apiVersion", "kind")}
        bare["metadata"] = operation.resource.get("metadata", {})
        stated = operation.resource.keys() - bare.keys()
        assert operation.tree.judge(bare).passed is not bool(stated)
        bare["status"] = {}
        assert operation.tree.judge(bare).passed is not bool(stated)


@pytest.mark.parametrize("path", FILES, ids=name)
def test_shipped_errors_find_what_they_forbid_and_let_the_rest_be(path: Path) -> None:
    """Each error matches the sick object that it describes, and no running one."""
    operations = shipped(path).operations
    asserted = {one.resource_kind: one.name for one in operations if one.kind == "assert"}
    for operation in operations:
        if operation.kind != "error":
            continue
        sick = _plain(operation.resource)
        if operation.resource_kind == "DaemonSet":
            sick.setdefault("status", {})["desiredNumberScheduled"] = 0
        assert operation.tree.judge(sick).passed, operation.where
        well = healthy(operation)
        well["status"]["phase"] = "Running"
        well["metadata"].setdefault("name", asserted.get(operation.resource_kind, "well"))
        assert not operation.tree.judge(well).passed, operation.where


HEAD = (
    "apiVersion: chainsaw.kyverno.io/v1alpha1\nkind: Test\nmetadata: {name: t}\nspec:\n  steps:\n"
)
DEPLOYMENT = "apiVersion: apps/v1, kind: Deployment, metadata: {name: d}"
POD = "apiVersion: v1, kind: Pod"


@pytest.mark.parametrize(
    ("entries", "rules"),
    [
        ([f"assert: {{resource: {{{DEPLOYMENT}, status: {{(a >= `1`): true}}}}}}"], []),
        ([f"error: {{resource: {{{POD}}}}}"], ["check-no-guard"]),
        ([f"assert: {{resource: {{{POD}, status: {{phase: Running}}}}}}"], ["check-no-guard"]),
        ([f"assert: {{resource: {{{DEPLOYMENT}}}}}"], ["check-existence-only"]),
        (
            [
                f"assert: {{resource: {{{DEPLOYMENT}}}}}",
                f"assert: {{resource: {{{DEPLOYMENT}, status: {{(a >= `1`): true}}}}}}",
            ],
            [],
        ),
        (
            [f"assert: {{resource: {{{DEPLOYMENT}, status: {{conditions: [{{type: A}}]}}}}}}"],
            ["check-conditions-list"],
        ),
        (
            [f"assert: {{resource: {{{DEPLOYMENT}, status: {{~.conditions: {{type: A}}}}}}}}"],
            ["check-vacuous-loop"],
        ),
        (
            [
                f"assert: {{resource: {{{DEPLOYMENT}, status: "
                "{~.conditions: {type: A}, (length(conditions) > `0`): true}}}"
            ],
            [],
        ),
        # The engine takes ASCII names of an index only, so this is the name of a field.
        ([f"assert: {{resource: {{{DEPLOYMENT}, status: {{~é.conditions: 1}}}}}}"], []),
    ],
)
def test_warnings_are_those_of_lint(entries: list[str], rules: list[str]) -> None:
    """The same judgement by the same names, on a file of one's own and in a catalogue."""
    lines = "".join(f"        - {entry}\n" for entry in entries)
    text = f"{HEAD}    - name: s\n      try:\n{lines}"
    told = warnings(read_check(text, source="f"))
    assert [found["rule"] for found in told] == rules
    assert all(found["hint"] and found["where"] for found in told)
    document = read.load_with_positions(text, source="f")
    reading = SimpleNamespace(
        streams={"f": [document]}, files=SimpleNamespace(place=lambda path: path)
    )
    ground = cast(Ground, SimpleNamespace(readings=[reading]))
    by_lint = {
        "check-no-guard": check_rules.check_no_guard,
        "check-existence-only": check_rules.check_existence_only,
        "check-conditions-list": check_rules.check_conditions_list,
        "check-vacuous-loop": check_rules.check_vacuous_loop,
    }
    problems = [(name, problem) for name, rule in by_lint.items() for problem in rule(ground)]
    assert [name for name, _ in problems] == rules
    said = [(problem.message, problem.hint) for _, problem in problems]
    assert said == [(found["message"], found["hint"]) for found in told]
