"""Criteria: folding of words, what counts as stated, text form, and asymmetric matching."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.recipe.trees import catalog, innermost, refusal

from aicr.catalog.criteria_values import ALIASES, VALUES
from aicr.recipe.criteria import Criteria, check, check_not_empty, check_value, normalise
from aicr.recipe.match import matches, specificity, stated_words

FIELDS = ("service", "accelerator", "intent", "os", "platform")


@pytest.mark.parametrize("field", FIELDS)
def test_every_built_in_word_is_its_own_spelling(field: str, tmp_path: Path) -> None:
    """Any case, blanks around it, and it is known without a catalogue's help."""
    found = catalog(tmp_path)
    for word in VALUES[field]:
        for spelling in (word, word.upper(), f"  {word}\t", word.title()):
            assert normalise(field, spelling) == word
            check_value(field, spelling, found)


def test_aliases_stand_for_built_in_words() -> None:
    """openshift, the self-managed words, and the two Amazon Linux versions."""
    assert normalise("service", " OpenShift ") == "ocp"
    for word in ("self-managed", "self", "vanilla"):
        assert normalise("service", word) == "generic"
    for word in ("al2", "AL2023"):
        assert normalise("os", word) == "amazonlinux"
    for field, aliases in ALIASES.items():
        assert set(aliases.values()) <= set(VALUES[field])
    assert normalise("os", "openshift") == "openshift"


@pytest.mark.parametrize("raw", ["", " ", "any", "ANY", "\tAny\n"])
def test_empty_and_any_are_not_stated(raw: str) -> None:
    """Both are the wildcard."""
    criteria = Criteria(service=raw)
    assert criteria.service == "any"
    assert criteria.stated() == {}
    assert criteria.specificity() == 0
    assert criteria.as_text() == "criteria(any)"


@pytest.mark.parametrize("raw", [None, 5, ["eks"]])
def test_a_word_that_is_no_text_is_an_error_of_ours(raw: Any) -> None:
    """The library never lets an AttributeError out."""
    error = refusal(lambda: Criteria(service=raw))
    assert error.code == "INVALID_REQUEST"
    assert error.message.startswith("service must be text, found ")


def test_a_negative_count_is_refused() -> None:
    """Zero is not stated; below is nonsense."""
    assert refusal(lambda: Criteria(nodes=-1)).message == "invalid nodes count: -1 (must be >= 0)"
    assert Criteria(nodes=0).specificity() == 0
    assert Criteria(nodes=1).specificity() == 1


def test_the_text_form_lists_stated_fields_in_order() -> None:
    """As messages quote it."""
    full = Criteria(
        nodes=8,
        platform="kubeflow",
        os="ubuntu",
        intent="training",
        accelerator="H100",
        service="eks",
    )
    assert full.as_text() == (
        "criteria(service=eks, accelerator=h100, intent=training, os=ubuntu, platform=kubeflow, "
        "nodes=8)"
    )
    assert repr(Criteria(nodes=2)) == "criteria(nodes=2)"


def test_the_document_form_has_all_words_and_nodes_only_when_stated() -> None:
    """Wildcards are printed as any."""
    assert list(Criteria(os="cos").document().items()) == [
        ("service", "any"),
        ("accelerator", "any"),
        ("intent", "any"),
        ("os", "cos"),
        ("platform", "any"),
    ]
    assert Criteria(os="cos", nodes=3).document()["nodes"] == 3


def test_equal_criteria_are_equal_and_copies_change_one_field() -> None:
    """Spelling is gone after construction."""
    one, other = Criteria(service="EKS"), Criteria(service=" eks ")
    assert one == other
    assert hash(one) == hash(other)
    assert one.replaced(os="cos") == Criteria(service="eks", os="cos")
    assert one == other
    assert one != Criteria(service="eks", nodes=1)
    assert one != "criteria(service=eks)"


@pytest.mark.covers("R11-3", "E4")
@pytest.mark.parametrize("field", FIELDS)
def test_an_unknown_word_is_refused_by_field(field: str, tmp_path: Path) -> None:
    """Outer words say which criterion, inner ones repeat the word; context is for programs."""
    found = catalog(tmp_path)
    words: Any = {field: "Zzz"}
    error = refusal(lambda: check(Criteria(**words), found))
    label = "OS" if field == "os" else field
    assert error.message == f"failed to parse {label} type"
    assert error.code == "INVALID_REQUEST"
    inner = innermost(error)
    assert inner.message == f"invalid {field} type: zzz"
    assert inner.context["allowed"] == list(VALUES[field])
    assert inner.hint.endswith("allowed: " + ", ".join(VALUES[field]))


def test_a_word_of_another_field_is_unknown(tmp_path: Path) -> None:
    """ubuntu is no service."""
    found = catalog(tmp_path)
    assert innermost(refusal(lambda: check(Criteria(service="ubuntu"), found))).message == (
        "invalid service type: ubuntu"
    )


@pytest.mark.covers("R11-1")
def test_the_guard_counts_nodes_and_repeats_the_callers_names() -> None:
    """The library and REST name fields, the command line names flags."""
    error = refusal(lambda: check_not_empty(Criteria(), "service, accelerator"))
    assert error.message == ("no criteria provided: specify at least one of service, accelerator")
    check_not_empty(Criteria(nodes=1), "x")


@pytest.mark.parametrize(
    ("theirs", "query", "expected"),
    [
        ({}, {}, True),
        ({}, {"service": "eks"}, True),
        ({"service": "eks"}, {}, False),
        ({"service": "eks"}, {"service": "eks"}, True),
        ({"service": "eks"}, {"service": "gke"}, False),
        ({"service": ""}, {"service": "gke"}, True),
        ({"service": "any"}, {}, True),
        ({"service": "eks", "os": "any"}, {"service": "eks", "os": "ubuntu"}, True),
        ({"service": "eks", "os": "ubuntu"}, {"service": "eks"}, False),
        ({"nodes": 8}, {}, True),
        ({"service": "eks", "nodes": 8}, {"service": "eks"}, True),
    ],
)
def test_matching_is_asymmetric(
    theirs: dict[str, Any], query: dict[str, str], expected: bool
) -> None:
    """A vague query never pulls in a specific overlay; nodes never match anything."""
    assert matches(theirs, query) is expected


@pytest.mark.covers("E1")
@pytest.mark.parametrize(
    "more", [{}, {"os": ""}, {"os": "any"}, {"os": " ANY "}, {"nodes": 8}, {"os": None}]
)
def test_empty_is_not_specific(more: dict[str, Any]) -> None:
    """Absent, empty and any are the same thing to specificity."""
    overlay: Any = {"spec": {"criteria": {"service": "eks", "accelerator": "h100", **more}}}
    assert specificity(overlay) == 2
    assert stated_words(overlay) == {"service": "eks", "accelerator": "h100"}
