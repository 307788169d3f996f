"""What a bundle-time validation must declare: a function, and how heavy its findings weigh."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from tests.recipe.trees import catalog, entry, registry, tree

from aicr.catalog.catalog import Catalog
from aicr.lint import schema_files
from aicr.lint.run import lint

FUNCTION = "CheckWorkloadSelectorMissing"


def declared(**fields: Any) -> str:
    """A registry whose one component declares a validation of these fields."""
    return registry(entry("x", validations=[{"function": FUNCTION, **fields}]))


@pytest.mark.covers("V-346")
@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"severity": "error"}, ""),
        ({"severity": "info"}, ""),
        ({}, "validations[0] states no severity, which is read as warning"),
        ({"severity": ""}, "validations[0] states no severity, which is read as warning"),
        ({"severity": "eror"}, 'severity "eror" is read as warning'),
    ],
)
def test_a_declaration_states_its_severity(
    fields: dict[str, Any], said: str, tmp_path: Path
) -> None:
    """The schema demands one of three words and lint says what happens without; a tree still loads."""
    text = declared(**fields)
    schema = jsonschema_rs.Draft7Validator(json.loads(schema_files.text("ComponentRegistry")))
    assert schema.is_valid(json.loads(text)) is not bool(said)
    report = lint(str(tree(tmp_path, {"registry.yaml": text})), alone=True)
    found = [each.message for each in report.findings if each.rule == "validation-terms"]
    assert found == ([said] if said else [])
    loaded = catalog(tmp_path / "again", {"registry.yaml": text})
    (block,) = loaded.registry.entries[0]["validations"]
    assert block == {"function": FUNCTION, **fields}


@pytest.mark.covers("V-346")
def test_every_shipped_validation_states_its_severity() -> None:
    """One of the three words, in lower case."""
    stated = {
        block.get("severity")
        for each in Catalog.builtin().registry.entries
        for block in each.get("validations") or ()
    }
    assert stated == {"error", "warning", "info"}
