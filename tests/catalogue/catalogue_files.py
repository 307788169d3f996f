"""The files of the catalogue as plain documents. Each is read once: a test must not change one."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
RECIPES = ROOT / "recipes"
SOURCES = ROOT / "docs" / "catalogue" / "sources.yaml"
LEAVES = ROOT / "docs" / "catalogue" / "leaves.yaml"


@cache
def load(path: Path) -> Any:
    """The one document of a file."""
    return yaml.safe_load(path.read_text(encoding="utf-8"))


@cache
def registry() -> dict[str, dict[str, Any]]:
    """The registry's entries by name."""
    return {entry["name"]: entry for entry in load(RECIPES / "registry.yaml")["components"]}


@cache
def overlays() -> dict[str, dict[str, Any]]:
    """The overlays, base included, by name."""
    found = [load(path) for path in sorted((RECIPES / "overlays").rglob("*.yaml"))]
    return {document["metadata"]["name"]: document for document in found}


@cache
def mixins() -> dict[str, dict[str, Any]]:
    """The mixins by name."""
    found = [load(path) for path in sorted((RECIPES / "mixins").glob("*.yaml"))]
    return {document["metadata"]["name"]: document for document in found}


@cache
def upgrades() -> dict[str, dict[str, Any]]:
    """The upgrade records by component, as the registry names them."""
    named = {name: entry.get("upgrades", {}).get("file") for name, entry in registry().items()}
    return {name: load(RECIPES / file) for name, file in named.items() if file}


def chain(name: str) -> list[str]:
    """An overlay and what it builds on, down to base."""
    documents = overlays()
    names = [name]
    while (parent := documents[names[-1]]["spec"].get("base")) not in (None, "", "base"):
        names.append(parent)
    return names if names[-1] == "base" else [*names, "base"]
