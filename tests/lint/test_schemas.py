"""The shipped JSON Schemas: made from the types, true of what ships, and strict about the rest."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from tests.cli.sample_snapshot import SNAPSHOT
from tests.recipe.trees import (
    chart,
    command,
    document,
    document_of,
    overlay,
    refused,
    registry,
    resolved,
)

from aicr.catalog.catalog import Catalog
from aicr.collectors import readings, taking
from aicr.errors import not_found
from aicr.lint import schema_files
from aicr.yamlio import read
from tools import gen_lint_page, gen_schemas

ROOT = Path(__file__).resolve().parents[2]
RECIPES = ROOT / "recipes"
#: Kinds whose documents say another word in ``kind``.
KINDS = {"Test": "HealthCheck"}


def validator(kind: str) -> Any:
    """A validator of a kind's shipped schema."""
    return jsonschema_rs.Draft7Validator(json.loads(schema_files.text(kind)))


def shipped() -> list[Path]:
    """Every document of the catalogue that has a kind of ours."""
    values = {path for path in RECIPES.glob("components/*/*.yaml") if path.name != "upgrades.yaml"}
    manifests = set(RECIPES.glob("**/manifests/*.yaml"))
    testdata = set(RECIPES.glob("validators/*/**/*.yaml"))
    return sorted(set(RECIPES.rglob("*.yaml")) - values - manifests - testdata)


@pytest.mark.parametrize(("kind", "text"), gen_schemas.schemas().items())
def test_a_schema_is_current(kind: str, text: str) -> None:
    """A type that changed changes its schema: run `python -m tools.gen_schemas`."""
    assert schema_files.text(kind) == text
    assert schema_files.kinds() == sorted(gen_schemas.DOCUMENTS)


def test_the_tables_of_the_generator_speak_of_types_that_exist() -> None:
    """A row about a field that was renamed would be lost without a word."""
    assert gen_schemas.unused_rows() == []


@pytest.mark.parametrize("kind", schema_files.kinds())
def test_a_schema_is_a_schema(kind: str) -> None:
    """Each is valid draft-07, needs no other file, and every reference leads somewhere."""
    schema = json.loads(schema_files.text(kind))
    jsonschema_rs.meta.validate(schema)
    text = json.dumps(schema)
    for part in text.split('"$ref": "')[1:]:
        name = part.partition('"')[0].removeprefix("#/definitions/")
        assert name in schema["definitions"]


@pytest.mark.parametrize("path", shipped(), ids=lambda path: str(path.relative_to(RECIPES)))
def test_every_shipped_document_fits_its_schema(path: Path) -> None:
    """An editor has nothing to say about our own files."""
    for value in read.load_all(path.read_text(encoding="utf-8"), source=path.name):
        found = validator(KINDS.get(value["kind"], value["kind"]))
        errors = [f"{list(e.instance_path)}: {e.message}" for e in found.iter_errors(value)]
        assert errors == []


def test_a_resolved_recipe_fits_its_schema() -> None:
    """What `aicr recipe` writes is a RecipeResult to an editor too."""
    catalog = Catalog.from_dir(str(RECIPES))
    found = document_of(
        resolved(catalog, service="eks", accelerator="h100", intent="training", os="ubuntu")
    )
    assert [e.message for e in validator("RecipeResult").iter_errors(found)] == []


def test_a_snapshot_that_was_taken_fits_its_schema() -> None:
    """Readings of each kind of scalar, items, and what could not be read; more keys may come."""
    found = readings.Collected("K8s")
    found.add("server", {"version": "v1.34.2", "nodes": 4, "load": 0.5, "ready": True})
    item = readings.item({"kind": "Controller"}, {"external": False})
    found.add("slinky-slurm", {}, context={"source": "api"}, items=[item])
    found.lacks("node", not_found("there is no such node"))
    now = datetime(2026, 1, 2, tzinfo=UTC)
    taken = taking.document([found], now=now, node="node-1", version="1.0.0")
    assert taken["notCollected"]
    judge = validator("Snapshot")
    assert [error.message for error in judge.iter_errors(taken)] == []
    assert [error.message for error in judge.iter_errors(SNAPSHOT)] == []
    assert judge.is_valid({**taken, "signedBy": "a newer version"})


@pytest.mark.parametrize(
    ("kind", "text", "word"),
    [
        (
            "Snapshot",
            document("Snapshot", "aicr.run/v1", measurements=[{"type": "k8s", "subtypes": []}]),
            "k8s",
        ),
        (
            "Snapshot",
            document(
                "Snapshot",
                "aicr.run/v1",
                measurements=[{"type": "OS", "subtypes": [{"name": "release", "data": {}}]}],
            ),
            "subtype",
        ),
        (
            "Snapshot",
            document(
                "Snapshot",
                "aicr.run/v1",
                measurements=[{"type": "OS", "subtypes": [{"subtype": "a", "data": {"b": [1]}}]}],
            ),
            "[1]",
        ),
        (
            "ComponentUpgrades",
            document(
                "ComponentUpgrades",
                "aicr.run/v1beta1",
                component="a",
                transitions=[{"from": "< 2.0.0", "to": "= 2.0.0", "verdict": "manual"}],
            ),
            "summary",
        ),
        ("RecipeMetadata", overlay("a", critera={}), "critera"),
        ("RecipeMetadata", overlay("a", {"service": 1}), "1"),
        ("RecipeMetadata", overlay("a", constraints=[{"name": "a", "value": 24.1}]), "24.1"),
        ("RecipeMetadata", overlay("a", constraints=[{"name": "a"}]), "value"),
        ("RecipeMetadata", overlay("a", componentRefs=[chart("a", type="Chart")]), "Chart"),
        ("RecipeMetadata", overlay("a", componentRefs=[{"type": "Helm"}]), "name"),
        ("RecipeMetadata", overlay("a", validation={"deploy": {}}), "deploy"),
        ("RecipeMetadata", document("RecipeMetadata", "aicr.run/v1beta2", "a", spec={}), "v1beta1"),
        ("RecipeMetadata", document("RecipeMetadata", "aicr.run/v1beta1", spec={}), "metadata"),
        ("RecipeMixin", document("RecipeMixin", "aicr.run/v1", "a", spec={}), "v1beta1"),
        (
            "RecipeMixin",
            document("RecipeMixin", "aicr.run/v1beta1", "a", spec={"base": ""}),
            "base",
        ),
        ("ComponentRegistry", registry({"name": "a"}), "displayName"),
        (
            "ComponentRegistry",
            registry({"name": "a", "displayName": "A", "helm": {}, "kustomize": {}}),
            "not",
        ),
        (
            "ComponentRegistry",
            registry({"name": "a", "displayName": "A", "helm": {"defaultVerison": ""}}),
            "defaultVerison",
        ),
        (
            "ValidatorCatalog",
            document(
                "ValidatorCatalog",
                "validator.nvidia.com/v1alpha1",
                validators=[{"name": "a", "image": "a", "phase": "readiness"}],
            ),
            "readiness",
        ),
        (
            "HealthCheck",
            document(
                "Test",
                "chainsaw.kyverno.io/v1alpha1",
                "a",
                spec={"steps": [{"try": [{"script": {}}]}]},
            ),
            "script",
        ),
        (
            "HealthCheck",
            document("Test", "chainsaw.kyverno.io/v1alpha1", "a", spec={"steps": [{"try": []}]}),
            "",
        ),
        (
            "AICRConfig",
            document("AICRConfig", "aicr.run/v1beta1", spec={"recipe": {"ouput": {}}}),
            "ouput",
        ),
        ("AICRConfig", document("AICRConfig", "aicr.run/v1beta1", spec={"validate": 1}), "1"),
        ("PreflightFile", json.dumps({"gangCoordination": {"enable": True}}), "enable"),
        ("PreflightFile", json.dumps({"initContainers": [{"gangOnly": "yes"}]}), "yes"),
        (
            "RecipeCriteria",
            document("RecipeCriteria", "aicr.run/v1", spec={"gpu": "h100"}),
            "gpu",
        ),
    ],
)
def test_a_schema_refuses_what_the_document_may_not_hold(kind: str, text: str, word: str) -> None:
    """Misspelt keys, wrong types, words outside a list, half a header."""
    errors = [error.message for error in validator(kind).iter_errors(json.loads(text))]
    assert errors
    assert any(word in message for message in errors)


def test_fields_of_a_container_that_we_do_not_know_are_no_mistake() -> None:
    """They reach the pod as they are, so an editor has nothing to say about them."""
    check = {"name": "a", "image": "b", "newField": 1, "env": [{"name": "X", "newKey": {}}]}
    assert validator("PreflightFile").is_valid({"initContainers": [check]})


def test_a_word_that_data_teaches_is_no_mistake() -> None:
    """Criteria are suggestions to an editor, not a closed list."""
    assert validator("RecipeMetadata").is_valid(json.loads(overlay("a", {"service": "mycloud"})))


def test_the_command_prints_a_schema_and_lists_the_kinds(tmp_path: Path) -> None:
    """What is printed is the shipped file, byte for byte."""
    assert command("schema").out.splitlines() == schema_files.kinds()
    text = (ROOT / "src" / "aicr" / "schemas" / "RecipeMixin.json").read_text(encoding="utf-8")
    assert command("schema", "RecipeMixin").out == text
    target = tmp_path / "mixin.json"
    assert command("schema", "RecipeMixin", "-o", str(target)) == (0, "", "")
    assert target.read_text(encoding="utf-8") == text


@pytest.mark.parametrize("kind", ["RecipeMixn", "../RecipeMixin", "recipemixin"])
def test_an_unknown_kind_is_refused_with_the_nearest(kind: str) -> None:
    """A kind is a name of the list, never a path."""
    ran = refused("schema", kind)
    assert ran.status == 3
    assert f'there is no schema of "{kind}"' in ran.err
    assert "RecipeMixin" in ran.err


def test_the_editor_page_names_every_kind() -> None:
    """A new schema is of no use to somebody who does not hear of it."""
    page = (ROOT / "docs" / "editors.md").read_text(encoding="utf-8")
    assert [kind for kind in schema_files.kinds() if f"`{kind}`" not in page] == []


def test_the_lint_page_has_the_rules_of_the_table() -> None:
    """The manual is written from the table: run `python -m tools.gen_lint_page`."""
    assert gen_lint_page.PAGE.read_text(encoding="utf-8") == gen_lint_page.page()
