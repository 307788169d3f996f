"""What NVSentinel's datastore needs from the cluster: each state of the table (6.4.16)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.validations.situations import context, error_of, nested, only

from aicr.bundle.validations.datastore import CLASS, prerequisites
from aicr.errors import CONFLICT, INVALID_REQUEST

NAME = "nvsentinel-mongodb"
SILENT, NAMED = "silent", nested(CLASS, "fast")


def judged(metadata: dict[str, str], values: dict[str, Any] | None = None) -> Any:
    """The verdict on the datastore with these states."""
    return prerequisites(context(NAME, {NAME: values or {}}, metadata=dict(metadata)))


def assert_outcome(verdict: Any, outcome: str) -> None:
    """Silent, an error with a code, or a finding with some words."""
    if outcome in (CONFLICT, INVALID_REQUEST):
        assert error_of(verdict).code == outcome
    elif outcome == SILENT:
        assert verdict == ([], [])
    else:
        assert outcome in only(verdict)


@pytest.mark.parametrize(
    ("state", "unnamed", "named"),
    [
        ("present", SILENT, SILENT),
        ("", "does not record whether the cluster has a default", SILENT),
        ("multiple", "several default StorageClasses", SILENT),
        ("absent", CONFLICT, SILENT),
        ("unknown", CONFLICT, SILENT),
        ("Present", INVALID_REQUEST, INVALID_REQUEST),
    ],
)
def test_volumes_need_a_default_class_or_a_named_one(state: str, unnamed: str, named: str) -> None:
    """A class by name makes the default irrelevant; a state nobody knows is an error."""
    states = {"defaultStorageClassState": state, "perconaOperatorState": "absent"}
    assert_outcome(judged(states), unnamed)
    assert_outcome(judged(states, NAMED), named)


@pytest.mark.parametrize(
    ("state", "outcome"),
    [
        ("absent", SILENT),
        ("aicr-owned", SILENT),
        ("", "does not record whether the cluster runs a Percona operator"),
        ("api-detected", "serves the Percona operator's API already"),
        ("crs-detected", CONFLICT),
        ("operator-detected", CONFLICT),
        ("unknown", CONFLICT),
        ("none", INVALID_REQUEST),
    ],
)
def test_another_percona_operator_blocks_warns_or_is_unknown(state: str, outcome: str) -> None:
    """Objects, an operator and doubt block; the API alone and no evidence warn."""
    states = {"defaultStorageClassState": "present", "perconaOperatorState": state}
    assert_outcome(judged(states), outcome)


def test_both_requirements_are_judged_at_once() -> None:
    """Nothing is known: two findings; everything is wrong: two errors."""
    findings, errors = judged({})
    assert (len(findings), len(errors)) == (2, 0)
    findings, errors = judged(
        {"defaultStorageClassState": "absent", "perconaOperatorState": "crs-detected"}
    )
    assert (len(findings), len(errors)) == (0, 2)


@pytest.mark.parametrize("blank", ["", None])
def test_a_blank_class_is_none(blank: Any) -> None:
    """Only a name counts as a class."""
    states = {"defaultStorageClassState": "absent", "perconaOperatorState": "absent"}
    assert_outcome(judged(states, nested(CLASS, blank)), CONFLICT)
