"""The files of the catalogue as plain documents, for the tests of this folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
RECIPES = ROOT / "recipes"
SOURCES = ROOT / "docs" / "catalogue" / "sources.yaml"
LEAVES = ROOT / "docs" / "catalogue" / "leaves.yaml"


def load(path: Path) -> Any:
    """The one document of a file."""
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def registry() -> dict[str, dict[str, Any]]:
    """The registry's entries by name."""
    return {entry["name"]: entry for entry in load(RECIPES / "registry.yaml")["components"]}


def overlays() -> dict[str, dict[str, Any]]:
    """The overlays, base included, by name."""
    found = [load(path) for path in sorted((RECIPES / "overlays").rglob("*.yaml"))]
    return {document["metadata"]["name"]: document for document in found}


def mixins() -> dict[str, dict[str, Any]]:
    """The mixins by name."""
    found = [load(path) for path in sorted((RECIPES / "mixins").glob("*.yaml"))]
    return {document["metadata"]["name"]: document for document in found}


def leaf_paths(value: Any, path: tuple[str, ...] = ()) -> Iterator[str]:
    """Dotted paths of a values document; a list and an empty map count as one leaf."""
    if isinstance(value, dict) and value:
        for key, child in value.items():
            yield from leaf_paths(child, (*path, str(key).replace(".", "\\.")))
    else:
        yield ".".join(path)


def named_objects(check: dict[str, Any]) -> set[str]:
    """Every object a health check asserts, as Kind/name, or Kind where it names none."""
    found = set()
    for step in check["spec"]["steps"]:
        for operation in step["try"]:
            resource = operation.get("assert", {}).get("resource")
            if resource:
                name = resource.get("metadata", {}).get("name")
                found.add(f"{resource['kind']}/{name}" if name else resource["kind"])
    return found
