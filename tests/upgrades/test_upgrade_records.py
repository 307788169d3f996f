"""Upgrade records are read strictly: what they claim is done to a running cluster."""

from __future__ import annotations

from typing import Any

import pytest
from tests.catalogue.catalogue_files import upgrades as catalogue_records
from tests.upgrades.upgrade_samples import STEP, record, transition

from aicr.bundle import upgrade_records, upgrades
from aicr.catalog.catalog import Catalog
from aicr.errors import AicrError


def read(text: str, **options: Any) -> upgrade_records.Record:
    """A record in a file called r.yaml."""
    return upgrade_records.read(text, source="r.yaml", **options)


@pytest.mark.covers("C-022")
@pytest.mark.parametrize("name", sorted(catalogue_records()))
def test_every_record_of_the_catalogue_can_be_read(name: str) -> None:
    """The registry names it, and it keeps every rule (recipe 3.9)."""
    found = upgrades.load_record(name, Catalog.builtin())
    assert found is not None
    assert found.component == name
    assert found.transitions


def test_a_component_without_a_record_has_none() -> None:
    """The registry says nothing of it, or does not know it."""
    assert upgrades.load_record("cert-manager", Catalog.builtin()) is None
    assert upgrades.load_record("nonesuch", Catalog.builtin()) is None


def test_every_field_is_taken_over() -> None:
    """Texts, resources, groups and references, as written."""
    groups = [{"deployers": ["helm"], "steps": [STEP]}, {"steps": [{**STEP, "id": "rest"}]}]
    item = transition(
        precondition="Ready.",
        reversible=False,
        reversibleNotes="Data moves.",
        affectedResources=[{"group": "", "kinds": ["Pod"]}],
        references=["https://x.example"],
        stepsByDeployer=groups,
    )
    found = read(record(item)).transitions[0]
    assert (found.verdict, found.summary, found.precondition) == ("manual", "Moves.", "Ready.")
    assert (found.reversible, found.reversible_notes) == (False, "Data moves.")
    assert found.affected == [("", ["Pod"])]
    assert found.references == ["https://x.example"]
    assert [step.id for step in found.steps("helm")] == ["one"]
    assert [step.id for step in found.steps("terraform")] == ["rest"]


REFUSED = [
    ("no upper bound on from", transition(from_=">=1.0"), "has no upper bound"),
    ("no upper bound on to", transition(to=">=2.0"), "needs a lower and an upper bound"),
    ("no lower bound on to", transition(to="<3.0"), "needs a lower and an upper bound"),
    ("no range", transition(to="newest"), "cannot be read"),
    ("unknown verdict", transition(verdict="manuel"), 'unknown verdict "manuel"'),
    ("safe without proof", transition(verdict="safe", verifiedBy=None), "needs verifiedBy"),
    (
        "safe with steps",
        transition(verdict="safe", stepsByDeployer=[{"steps": [STEP]}]),
        "has no steps",
    ),
    ("manual without steps", transition(stepsByDeployer=None), "needs steps for every deployer"),
    (
        "blocked that leaves one out",
        transition(
            verdict="blocked",
            stepsByDeployer=[
                {"deployers": ["helm", "helmfile", "argocd", "argocd-helm"], "steps": [STEP]}
            ],
        ),
        "missing: flux",
    ),
    (
        "two remainders",
        transition(stepsByDeployer=[{"steps": [STEP]}, {"steps": [STEP]}]),
        "only one group",
    ),
    (
        "deployer twice",
        transition(
            stepsByDeployer=[
                {"deployers": ["helm"], "steps": [STEP]},
                {"deployers": ["helm"], "steps": [STEP]},
                {"steps": [STEP]},
            ]
        ),
        "is in two groups",
    ),
    (
        "unknown deployer",
        transition(stepsByDeployer=[{"deployers": ["helmm"], "steps": [STEP]}]),
        'unknown deployer "helmm"',
    ),
    ("empty group", transition(stepsByDeployer=[{"steps": []}]), "needs a step"),
    (
        "same id twice",
        transition(stepsByDeployer=[{"steps": [STEP, STEP]}]),
        'two steps have the id "one"',
    ),
    (
        "step without reason",
        transition(stepsByDeployer=[{"steps": [{"id": "a", "description": "b"}]}]),
        "needs reason",
    ),
    ("unknown field", transition(sumary="x"), 'unknown field "sumary"'),
    ("no summary", transition(summary=None), "needs summary"),
    ("empty summary", transition(summary=" "), "is empty"),
    ("reversible as text", transition(reversible="yes"), "reversible must be true or false"),
    ("references no list", transition(references="x"), "must be a list"),
    ("resource without kinds", transition(affectedResources=[{"group": "x"}]), "needs kinds"),
    ("number as text", transition(precondition=3), "must be a string"),
    ("a list for a transition", [], "must be a map"),
]


@pytest.mark.parametrize(
    ("item", "words"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
def test_a_transition_that_breaks_a_rule_is_refused_with_its_place(item: Any, words: str) -> None:
    """Bounds, proofs, steps, groups and fields (recipe 3.9); line and column are named."""
    with pytest.raises(AicrError) as caught:
        read(record(item))
    assert caught.value.code == "INVALID_REQUEST"
    assert words in str(caught.value)
    assert caught.value.where.startswith("r.yaml:")


def test_an_unquoted_version_that_readers_disagree_on_is_refused() -> None:
    """24.10 would be 24.1 to some readers (decision 43)."""
    text = record(transition(from_="24.10")).replace("'24.10'", "24.10")
    with pytest.raises(AicrError) as caught:
        read(text)
    assert 'quote it: "24.10"' in caught.value.hint


@pytest.mark.parametrize(
    ("second", "hole"),
    [
        (transition(">=3.0.0 <3.1.0", ">=3.1.0 <4.0.0"), False),
        (transition("<4.0.0", ">=4.0.0 <5.0.0"), False),
        (transition(">3.0.0 <4.0.0", ">=4.0.0 <5.0.0"), True),
        (transition(">=3.1.0 <4.0.0", ">=4.0.0 <5.0.0"), True),
    ],
)
def test_a_hole_between_transitions_is_refused(second: dict[str, Any], hole: bool) -> None:
    """Who stands between two transitions would find no way on."""
    text = record(transition(), second)
    if not hole:
        assert len(read(text).transitions) == 2
        return
    with pytest.raises(AicrError, match="leaves a hole after"):
        read(text)


@pytest.mark.parametrize(
    ("pin", "fits"), [("2.9.0", False), ("3.0.0", True), ("v3.1", True), ("", True)]
)
def test_safe_goes_no_further_than_the_pin(pin: str, fits: bool) -> None:
    """Nobody has tried what is not pinned yet."""
    text = record(transition(verdict="safe", to=">=2.0.0 <=3.0.0"))
    if fits:
        read(text, pin=pin)
        return
    with pytest.raises(AicrError, match=r"above the pin 2\.9\.0"):
        read(text, pin=pin)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (record(component="other"), "needs a transition"),
        (record(transition(), component="other"), 'is of "other", not of "kueue"'),
        (record(transition(), kind="Recipe"), "invalid kind"),
        (record(transition(), apiVersion="aicr.run/v9"), "invalid apiVersion"),
        (record(transition(), extra=1), 'unknown field "extra"'),
        ("- a\n", "expected a ComponentUpgrades document"),
        ("a: [\n", ""),
        ("", "expected a ComponentUpgrades document"),
    ],
)
def test_a_document_that_is_no_record_is_refused(text: str, words: str) -> None:
    """Header, component, fields and YAML itself."""
    with pytest.raises(AicrError) as caught:
        read(text, component="kueue" if "transitions" in text and "- from" in text else "")
    assert words in str(caught.value)
