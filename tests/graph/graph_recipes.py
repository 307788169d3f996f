"""Recipes for tests of graphs: as few components as a case needs."""

from __future__ import annotations

from typing import Any


def ref(name: str, *waits_for: str, on: bool = True, **fields: Any) -> dict[str, Any]:
    """A component ref with dependencies; *on* False disables it."""
    found: dict[str, Any] = {"name": name, "type": "Helm", "version": "1.0.0", **fields}
    if waits_for:
        found["dependencyRefs"] = list(waits_for)
    if not on:
        found["overrides"] = {"enabled": False}
    return found


def recipe(*refs: dict[str, Any], **criteria: str) -> Any:
    """A recipe document with these components."""
    words = dict.fromkeys(("service", "accelerator", "intent", "os", "platform"), "any")
    return {
        "kind": "RecipeResult",
        "apiVersion": "aicr.run/v1",
        "metadata": {"appliedOverlays": ["base"]},
        "criteria": {**words, **criteria},
        "componentRefs": list(refs),
    }
