"""Upgrade records say what an upgrade asks of people, and claim nothing that nobody tried."""

from __future__ import annotations

import itertools
import re
from typing import Any

import pytest
from tests.catalogue.catalogue_files import registry, upgrades

from aicr.values.versions import compare, parse

RECORDS = upgrades()
REGISTRY = registry()
TRANSITIONS = [
    (f"{name}-{number}", name, transition)
    for name, record in sorted(RECORDS.items())
    for number, transition in enumerate(record["transitions"])
]
DEPLOYERS = {"argocd", "argocd-helm", "flux", "helm", "helmfile"}
FIELDS = {
    *("from", "to", "verdict", "summary", "precondition", "reversible", "reversibleNotes"),
    *("affectedResources", "stepsByDeployer", "verifiedBy", "references"),
}


def _bounds(text: str) -> dict[str, str]:
    """The comparisons of a range by operator."""
    parts = [re.fullmatch(r"(<=|>=|<|>|=)(\S+)", part) for part in text.split()]
    assert all(parts), text
    return {part[1]: part[2] for part in parts if part}


def _upper(bounds: dict[str, str]) -> str:
    return bounds.get("<") or bounds.get("<=") or bounds.get("=") or ""


@pytest.mark.parametrize("name", sorted(RECORDS))
def test_a_record_is_of_its_component(name: str) -> None:
    """Header and component agree with the registry entry that names the file."""
    record = RECORDS[name]
    assert list(record) == ["kind", "apiVersion", "component", "transitions"]
    assert record["kind"] == "ComponentUpgrades"
    assert record["apiVersion"] == "aicr.run/v1beta1"
    assert record["component"] == name
    assert record["transitions"]


@pytest.mark.parametrize(
    ("name", "transition"),
    [(name, transition) for _, name, transition in TRANSITIONS],
    ids=[label for label, _, _ in TRANSITIONS],
)
def test_a_transition_has_bounds_steps_and_no_unproved_claim(
    name: str, transition: dict[str, Any]
) -> None:
    """From has an upper bound, to has two; safe needs a proof, anything else steps for everyone."""
    assert set(transition) <= FIELDS
    assert _upper(_bounds(transition["from"]))
    to = _bounds(transition["to"])
    assert _upper(to)
    assert to.keys() & {">=", ">", "="}
    assert transition["verdict"] in ("safe", "manual", "blocked")
    assert transition["references"]
    if transition["verdict"] == "safe":
        pin = REGISTRY[name]["helm"]["defaultVersion"]
        assert transition["verifiedBy"]
        assert "stepsByDeployer" not in transition
        assert compare(parse(_upper(to)), parse(pin)) <= 0
        return
    groups = transition["stepsByDeployer"]
    named = [set(group.get("deployers", [])) for group in groups]
    assert sum(not group for group in named) <= 1
    assert sum(map(len, named)) == len(set().union(*named))
    assert not all(named) or set().union(*named) >= DEPLOYERS
    for group in groups:
        ids = [step["id"] for step in group["steps"]]
        assert ids
        assert len(ids) == len(set(ids))
        assert all({"id", "description", "reason"} == set(step) for step in group["steps"])


@pytest.mark.parametrize("name", sorted(RECORDS))
def test_consecutive_transitions_leave_no_hole(name: str) -> None:
    """Where one transition's destination ends, the next one's origin does not start later."""
    transitions = RECORDS[name]["transitions"]
    for first, second in itertools.pairwise(transitions):
        start = _bounds(second["from"]).get(">=")
        assert start is None or compare(parse(start), parse(_upper(_bounds(first["to"])))) <= 0
