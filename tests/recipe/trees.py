"""Small catalogues, snapshots and command runs for the tests of catalogue and recipe.

A tree is a map from relative path to text. Documents are written as JSON, which is YAML with every
string quoted, so that a test speaks about the rule it means and not about spelling; tests about places
and spelling write their YAML out.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from aicr.catalog.catalog import Catalog
from aicr.cli.console import Console
from aicr.cli.main import main
from aicr.errors import AicrError
from aicr.recipe.criteria import Criteria
from aicr.recipe.recipe import Recipe
from aicr.recipe.resolve import resolve

V1 = "aicr.run/v1"
V1BETA1 = "aicr.run/v1beta1"
V1BETA2 = "aicr.run/v1beta2"
SOURCE = "https://charts.example.com"


def document(kind: str, api: str | None, name: str | None = None, **fields: Any) -> str:
    """A document with a header; *api* None leaves the apiVersion out."""
    found: dict[str, Any] = {"kind": kind}
    if api is not None:
        found["apiVersion"] = api
    if name is not None:
        found["metadata"] = {"name": name}
    return json.dumps({**found, **fields}, indent=1) + "\n"


def overlay(name: str, criteria: Mapping[str, Any] | None = None, **spec: Any) -> str:
    """A RecipeMetadata document; v1beta2 when it has a profile."""
    if criteria is not None:
        spec = {"criteria": dict(criteria), **spec}
    api = V1BETA2 if spec.get("profile") is not None else V1BETA1
    return document("RecipeMetadata", api, name, spec=spec)


def base(**spec: Any) -> str:
    """The root overlay."""
    return overlay("base", **spec)


def mixin(name: str, **spec: Any) -> str:
    """A RecipeMixin document."""
    return document("RecipeMixin", V1BETA1, name, spec=spec)


def registry(*entries: Mapping[str, Any]) -> str:
    """A ComponentRegistry document."""
    return document("ComponentRegistry", V1BETA1, components=[dict(entry) for entry in entries])


def entry(name: str, **fields: Any) -> dict[str, Any]:
    """A registry entry with its required fields."""
    return {"name": name, "displayName": name.title(), **fields}


def chart(name: str, **fields: Any) -> dict[str, Any]:
    """A component ref that can be deployed from a chart."""
    own = {"name": name, "type": "Helm", "source": SOURCE, "chart": name, "version": "1.0.0"}
    return {**own, **fields}


def constraint(name: str, value: str, **more: str) -> dict[str, str]:
    """A constraint."""
    return {"name": name, "value": value, **more}


def write(root: Path, files: Mapping[str, str]) -> Path:
    """Write the files under *root* and return it."""
    for path, text in files.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    return root


def tree(root: Path, files: Mapping[str, str] | None = None) -> Path:
    """A directory with the files, an empty registry and an empty base where they bring none."""
    found = {"registry.yaml": registry(), "overlays/base.yaml": base(), **(files or {})}
    return write(root, found)


def catalog(root: Path, files: Mapping[str, str] | None = None) -> Catalog:
    """The catalogue of such a directory."""
    return Catalog.from_dir(str(tree(root, files)))


def data(root: Path, files: Mapping[str, str] | None = None) -> Path:
    """A directory for ``--data``: a stub registry unless the files bring one."""
    return write(root, {"registry.yaml": registry(), **(files or {})})


def resolved(found: Catalog, *, options: Mapping[str, Any] | None = None, **words: Any) -> Recipe:
    """Resolve criteria given as keywords."""
    return resolve(found, Criteria(**words), **(options or {}))


def document_of(recipe: Recipe) -> dict[str, Any]:
    """The recipe's document as a plain map."""
    return dict(recipe.document)


def refs_of(recipe: Recipe) -> dict[str, dict[str, Any]]:
    """The component refs of a recipe by name."""
    return {ref["name"]: dict(ref) for ref in recipe.document["componentRefs"]}


def snapshot(readings: Mapping[str, Any]) -> dict[str, Any]:
    """A snapshot of ``{"Type.subtype": {key: value}}``; a list stands for items."""
    types: dict[str, list[dict[str, Any]]] = {}
    for path, content in readings.items():
        kind, _, subtype = path.partition(".")
        field = "items" if isinstance(content, list) else "data"
        types.setdefault(kind, []).append({"subtype": subtype, field: content})
    return {
        "kind": "Snapshot",
        "apiVersion": V1,
        "measurements": [{"type": kind, "subtypes": found} for kind, found in types.items()],
    }


def refusal(action: Callable[[], object]) -> AicrError:
    """The error that *action* raises."""
    with pytest.raises(AicrError) as caught:
        action()
    return caught.value


def innermost(error: AicrError) -> AicrError:
    """The last AicrError of a chain: the reason itself."""
    return error.chain()[-1]


class Ran(NamedTuple):
    """What a command line did."""

    status: int
    out: str
    err: str


def command(*argv: str) -> Ran:
    """Run ``aicr`` in this process."""
    out, err = io.StringIO(), io.StringIO()
    status = main(list(argv), Console(out, err))
    return Ran(status, out.getvalue(), err.getvalue())


def refused(*argv: str) -> Ran:
    """Run a command that must fail, and check what every failure owes: no output, no traceback."""
    ran = command(*argv)
    assert ran.status != 0
    assert ran.out == ""
    assert any(line.startswith("error: [") for line in ran.err.splitlines())
    assert "Traceback" not in ran.err
    return ran
