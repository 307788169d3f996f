"""The registry's health check goes with its component: it looks where the ref deploys it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.recipe.trees import base, chart, entry, overlay, registry, tree

from aicr.catalog.catalog import Catalog
from aicr.catalog.registry import shipped_check
from aicr.recipe.criteria import Criteria
from aicr.recipe.explain import explain
from aicr.recipe.resolve import resolve

CHECK = "checks/app/health-check.yaml"


class OneFile:
    """A tree of one text."""

    def __init__(self, text: str) -> None:
        self.text = text

    def read_text(self, path: str) -> str:
        """The text, whatever is asked for."""
        assert path == CHECK
        return self.text


def checked(text: str, namespace: str, usual: str = "app-system") -> str | None:
    """The check of a component that the registry deploys into *usual* and the ref into *namespace*."""
    found: Any = {"name": "app", "healthCheck": {"assertFile": CHECK}}
    if usual:
        found["helm"] = {"defaultNamespace": usual}
    tree: Any = OneFile(text)
    return shipped_check({"name": "app", "namespace": namespace}, found, tree)


@pytest.mark.parametrize(
    ("text", "moved"),
    [
        ("a:\n  namespace: app-system\n", "a:\n  namespace: elsewhere\n"),
        ("a:\n  namespace: 'app-system'  # why\r\n", "a:\n  namespace: elsewhere  # why\r\n"),
        ('a: {namespace: "app-system", name: x}', "a: {namespace: elsewhere, name: x}"),
        ("a: {name: x, namespace: app-system}", "a: {name: x, namespace: elsewhere}"),
        ("a:\n  namespace: app-system", "a:\n  namespace: elsewhere"),
        ("a:\n  namespace: app-system-two\n", None),
        ("a:\n  namespace: my-app-system\n", None),
        ("a:\n  namespace: default\n", None),
        ("a:\n  other-namespace: app-system\n", None),
        ("a:\n  name: app-system\n", None),
    ],
    ids=["plain", "quoted", "flow", "last", "end", "longer", "other", "default", "key", "name"],
)
def test_a_check_moves_with_its_component(text: str, moved: str | None) -> None:
    """Only objects in the component's usual namespace do; every other byte stays."""
    assert checked(text, "elsewhere") == (text if moved is None else moved)
    assert checked(text, "app-system") == text
    assert checked(text, "") == text


def test_a_component_without_a_namespace_has_one_of_its_own_name() -> None:
    """So that is what its check names (docs/differences.md)."""
    assert checked("namespace: app\n", "elsewhere", usual="") == "namespace: elsewhere\n"


def test_a_recipe_and_its_explanation_have_the_check_that_was_moved(tmp_path: Path) -> None:
    """The ref of an overlay names another namespace; an inline check is left as it is."""
    text = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: app, namespace: app-system}\n"
    app = entry("app", healthCheck={"assertFile": CHECK}, helm={"defaultNamespace": "app-system"})
    files = {
        "registry.yaml": registry(app),
        CHECK: text,
        "overlays/base.yaml": base(componentRefs=[chart("app")]),
        "overlays/eks.yaml": overlay(
            "eks", {"service": "eks"}, componentRefs=[{"name": "app", "namespace": "elsewhere"}]
        ),
        "overlays/gke.yaml": overlay(
            "gke",
            {"service": "gke"},
            componentRefs=[{"name": "app", "namespace": "x", "healthCheckAsserts": text}],
        ),
    }
    catalog = Catalog.from_dir(str(tree(tmp_path, files)))
    recipe = resolve(catalog, Criteria(service="eks"))
    (ref,) = recipe.document["componentRefs"]
    assert ref["healthCheckAsserts"] == text.replace("app-system", "elsewhere")
    (item,) = explain(recipe, "components.app.healthCheckAsserts")["items"]
    assert item["value"] == ref["healthCheckAsserts"]
    inline = resolve(catalog, Criteria(service="gke")).document["componentRefs"][0]
    assert inline["healthCheckAsserts"] == text
