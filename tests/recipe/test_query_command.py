"""``aicr query``: selectors into the hydrated document, and how values are printed."""

from __future__ import annotations

import json

import pytest
from tests.recipe.conftest import Install
from tests.recipe.trees import command, refusal, refused
from tests.recipe.world import TRAINING, WORLD

from aicr.recipe.hydrate import hydrate
from aicr.recipe.query import select
from aicr.yamlio.read import load


def query(selector: str, *more: str) -> str:
    """What a query on the training recipe prints."""
    ran = command("query", *TRAINING, "--selector", selector, *more)
    assert ran.status == 0, ran.err
    return ran.out


@pytest.mark.covers("R11-11")
def test_a_query_without_selector_is_a_usage_error(installed: Install) -> None:
    """Decision 46: a missing flag exits 2, where the original exits 1."""
    installed(WORLD)
    ran = refused("query", "--service", "eks")
    assert ran.status == 2
    assert 'Required flag "selector" not set' in ran.err


@pytest.mark.covers("R11-12")
def test_an_absent_key_lists_the_keys_there_are(installed: Install) -> None:
    """Exit 3, with the selector, the key and the sorted alternatives."""
    installed(WORLD)
    ran = refused("query", *TRAINING, "--selector", "foo")
    assert ran.status == 3
    assert (
        '[NOT_FOUND] selector "foo": key "foo" not found, available keys: apiVersion, components, '
        "constraints, criteria, deploymentOrder, kind, metadata"
    ) in ran.err


@pytest.mark.covers("R11-12")
def test_the_failing_key_is_named_not_the_whole_selector(installed: Install) -> None:
    """Below the top the keys of that very map are listed, and a typo is helped."""
    installed(WORLD)
    ran = refused("query", *TRAINING, "--selector", ".components.gpu-operator.vresion")
    assert ran.status == 3
    assert 'selector ".components.gpu-operator.vresion": key "vresion" not found' in ran.err
    assert "available keys: chart, dependencyRefs, name, namespace, source, type, values" in ran.err
    assert 'did you mean "version"?' in ran.err


@pytest.mark.covers("R11-13")
def test_a_scalar_is_printed_bare_and_quoted_in_json(installed: Install) -> None:
    """Shell scripts read the value; JSON readers get JSON. The leading dot is optional."""
    installed(WORLD)
    assert query(".components.gpu-operator.version") == "v26.7.0\n"
    assert query("components.gpu-operator.version") == "v26.7.0\n"
    assert query("components.gpu-operator.version", "--format", "json") == '"v26.7.0"\n'
    assert query("components.gpu-operator.values.driver.enabled") == "true\n"
    assert query("components.gpu-operator.values.driver.version") == "580\n"
    assert query("criteria.nodes") == "0\n"


@pytest.mark.covers("R11-14")
@pytest.mark.parametrize(
    ("selector", "key"),
    [
        ("deploymentOrder.0", "0"),
        ("constraints.0.name", "0"),
        ("kind.x", "x"),
        ("components.gpu-operator.version.major", "major"),
        ("kind.", ""),
    ],
)
def test_only_maps_are_descended_into(installed: Install, selector: str, key: str) -> None:
    """Lists and scalars are selected whole or not at all."""
    installed(WORLD)
    ran = refused("query", *TRAINING, "--selector", selector)
    assert ran.status == 3
    assert f'selector "{selector}": cannot descend into non-map value at "{key}"' in ran.err


@pytest.mark.covers("R11-15")
def test_an_empty_selector_is_the_whole_document(installed: Install) -> None:
    """Empty and a lone dot both mean everything, keys sorted."""
    installed(WORLD)
    whole = query("")
    assert whole == query(".")
    document = load(whole, source="out")
    assert list(document) == sorted(document)
    assert set(document) == {
        "apiVersion",
        "components",
        "constraints",
        "criteria",
        "deploymentOrder",
        "kind",
        "metadata",
    }
    assert json.loads(query("", "--format", "json")) == document


@pytest.mark.covers("R11-16")
def test_an_empty_list_of_dependencies_is_no_key(installed: Install) -> None:
    """What is empty is left out, so asking for it is NOT_FOUND."""
    installed(WORLD)
    assert query("components.gpu-operator.dependencyRefs") == "- nfd\n"
    ran = refused("query", *TRAINING, "--selector", "components.nfd.dependencyRefs")
    assert ran.status == 3
    assert 'key "dependencyRefs" not found, available keys: chart, name, namespace' in ran.err


@pytest.mark.covers("R11-10")
def test_an_unknown_format_of_a_query_lists_the_formats(installed: Install) -> None:
    """As for recipes, before anything is resolved."""
    installed(WORLD)
    ran = refused("query", *TRAINING, "--selector", "kind", "--format", "xml")
    assert ran.status == 2
    assert 'unknown output format: "xml", valid formats are: yaml, json' in ran.err


def test_maps_are_printed_with_sorted_keys_and_json_escapes(installed: Install) -> None:
    """A map is a document of its own in either format."""
    installed(WORLD)
    assert query("metadata").splitlines()[0] == "appliedOverlays:"
    assert '"\\u003e= 1.32"' in query("constraints", "--format", "json")


@pytest.mark.parametrize(
    ("selector", "key"), [("..", ""), ("a.", ""), ("a..b", ""), ("x.y", "x"), (" ", " ")]
)
def test_odd_selectors_are_not_found(selector: str, key: str) -> None:
    """Empty steps are keys that nobody has."""
    error = refusal(lambda: select({"a": {"b": 1}}, selector))
    assert error.code == "NOT_FOUND"
    assert f'key "{key}" not found' in error.message


def test_a_key_with_dots_cannot_be_addressed() -> None:
    """The selector has no escape: the documented limit holds."""
    assert select({"a": {"b": 1}}, "a.b") == 1
    assert refusal(lambda: select({"a.b": 1}, "a.b")).code == "NOT_FOUND"


def test_the_hydrated_document_always_has_its_lists_and_all_six_criteria(
    installed: Install,
) -> None:
    """metadata's three lists are there when empty; nodes is there when not stated."""
    from tests.recipe.trees import resolved

    document = hydrate(resolved(installed(WORLD), service="eks"))
    assert document["metadata"]["excludedOverlays"] == []
    assert document["metadata"]["constraintWarnings"] == []
    assert document["metadata"]["appliedOverlays"] == ["base", "monitoring-hpa", "eks"]
    assert document["criteria"]["nodes"] == 0
    assert set(document["criteria"]) == {
        "service",
        "accelerator",
        "intent",
        "os",
        "platform",
        "nodes",
    }
    assert list(document["components"]["nfd"])[:3] == ["name", "type", "source"]
    assert "values" not in document["components"]["nfd"]
