"""A recipe file is held to its shape before it is bundled, in the parts that are only copied as well."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.recipe.trees import V1, catalog, chart, refusal

from aicr.recipe.document import load_recipe

HEAD = """\
kind: RecipeResult
apiVersion: aicr.run/v1
metadata: {appliedOverlays: [base]}
componentRefs:
  - {name: a, type: Helm, source: "https://charts.example.com", chart: a, version: 1.0.0}
"""


@pytest.mark.covers("A8")
@pytest.mark.parametrize(
    ("more", "message", "place", "hint"),
    [
        (
            "validation:\n  performance:\n    constraints:\n      - {name: bw, value: 24.10}\n",
            "value must be text, found a number",
            "r.yaml:9:27",
            'quote it: "24.10"',
        ),
        (
            "constraints:\n  - {name: K8s.server.version, value: 1.30}\n",
            "value must be text, found a number",
            "r.yaml:7:39",
            'quote it: "1.30"',
        ),
        (
            "validation:\n  deployment:\n    checks: [operator-health, 1]\n",
            "an entry of checks must be text, found a number",
            "r.yaml:8:31",
            'quote it: "1"',
        ),
        (
            "validation:\n  deployment:\n    checks: operator-health\n",
            "checks must be a list, found text",
            "r.yaml:8:13",
            "correct the file",
        ),
        (
            "validation:\n  deploymnet: {}\n",
            'unknown validation phase "deploymnet"',
            "r.yaml:7:3",
            'did you mean "deployment"?',
        ),
        (
            "validation:\n  deployment:\n    timeout: 5\n",
            "timeout must be text, found a number",
            "r.yaml:8:14",
            'quote it: "5"',
        ),
        (
            "constraints:\n  - {value: ubuntu}\n",
            "a constraint needs a name",
            "r.yaml:7:5",
            "correct the file",
        ),
    ],
    ids=["phase-value", "value", "check", "checks", "phase", "timeout", "nameless"],
)
def test_texts_that_are_none_are_refused_where_they_stand(
    more: str, message: str, place: str, hint: str, tmp_path: Path
) -> None:
    """They would be written into the bundle as something else; the hint has the spelling of the file."""
    error = refusal(lambda: load_recipe(HEAD + more, "r.yaml", catalog(tmp_path)))
    assert (error.code, error.message, error.where) == ("INVALID_REQUEST", message, place)
    assert error.hint.startswith(hint)


@pytest.mark.parametrize(
    ("profile", "message"),
    [
        (["p"], "selectedProfile must be a map, found a list"),
        ({"name": "p"}, "selectedProfile needs a name and a value"),
        ({"name": "p", "value": 1}, "value must be text, found a number"),
        (
            {"name": "p", "value": "v", "ownedPaths": ["a"]},
            "ownedPaths must be a map, found a list",
        ),
        ({"name": "p", "value": "v", "ownedPaths": {"a": "x"}}, "a must be a list, found text"),
        (
            {"name": "p", "value": "v", "ownedPaths": {"a": [["x"]]}},
            "an entry of a must be text, found a list",
        ),
    ],
    ids=["list", "no-value", "number", "owned-list", "owned-text", "owned-nested"],
)
def test_a_selected_profile_of_another_shape_is_refused(
    profile: Any, message: str, tmp_path: Path
) -> None:
    """What a profile locks must be readable, or an override would get past it (recipe spec 4.11)."""
    document = {
        "kind": "RecipeResult",
        "apiVersion": V1,
        "metadata": {"selectedProfile": profile},
        "componentRefs": [chart("a")],
    }
    text = json.dumps(document)
    error = refusal(lambda: load_recipe(text, "r.json", catalog(tmp_path)))
    assert (error.code, error.message) == ("INVALID_REQUEST", message)
    assert error.where.startswith("r.json:1:")


def test_a_long_chain_of_disabled_components_is_followed(tmp_path: Path) -> None:
    """What waits through thousands of disabled components still waits for what is behind them."""
    last = 3000
    refs = [chart(f"c{n}", dependencyRefs=[f"c{n + 1}"]) for n in range(last)]
    for ref in refs[1:]:
        ref["overrides"] = {"enabled": False}
    document = {
        "kind": "RecipeResult",
        "apiVersion": V1,
        "componentRefs": [*refs, chart(f"c{last}")],
    }
    recipe = load_recipe(json.dumps(document), "r.json", catalog(tmp_path))
    assert recipe.document["deploymentOrder"] == [f"c{last}", "c0"]
