"""Upgrade records for tests, and a catalogue that has them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from aicr.catalog.catalog import Catalog

STEP = {"id": "one", "description": "Do this.", "reason": "Because."}


def transition(
    from_: str = "<2.0.0", to: str = ">=2.0.0 <3.0.0", verdict: str = "manual", **more: Any
) -> dict[str, Any]:
    """A transition; steps for everyone unless it is safe or says its own."""
    made: dict[str, Any] = {"from": from_, "to": to, "verdict": verdict, "summary": "Moves."}
    made |= (
        {"verifiedBy": "test x"} if verdict == "safe" else {"stepsByDeployer": [{"steps": [STEP]}]}
    )
    return {key: value for key, value in (made | more).items() if value is not None}


def record(*transitions: dict[str, Any], component: str = "kueue", **more: Any) -> str:
    """The text of a record."""
    document = {
        "kind": "ComponentUpgrades",
        "apiVersion": "aicr.run/v1beta1",
        "component": component,
        "transitions": list(transitions),
        **more,
    }
    return yaml.safe_dump(document, sort_keys=False)


def catalogue(folder: Path, text: str, component: str = "kueue") -> Catalog:
    """The built-in catalogue with this record of a component laid over it."""
    place = folder / "components" / component
    place.mkdir(parents=True)
    (place / "upgrades.yaml").write_text(text, encoding="utf-8")
    entry = Catalog.builtin().registry.get(component)
    assert entry is not None
    registry = {
        "kind": "ComponentRegistry",
        "apiVersion": "aicr.run/v1beta1",
        "components": [{**entry, "upgrades": {"file": f"components/{component}/upgrades.yaml"}}],
    }
    (folder / "registry.yaml").write_text(yaml.safe_dump(registry), encoding="utf-8")
    return Catalog.builtin().overlay(str(folder))
