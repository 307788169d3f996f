"""Why a recipe demands what it demands: constraints, and the checks of the validation phases.

Constraints go by name and the later entry replaces the whole of the earlier one; a profile narrows. The
lists of a phase unite until a layer writes an empty list, which clears them (recipe spec 4.5, 4.7, 4.11).
It must not know how selectors are written or how answers are drawn.
"""

from __future__ import annotations

from aicr.errors import nearest, not_found
from aicr.recipe.explain_refs import ADDS, REPEATS
from aicr.recipe.explain_values import SET, SETS, step
from aicr.recipe.provenance import PROFILE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Final

    from aicr.recipe.explain_types import Item, Step
    from aicr.recipe.provenance import Layer, Origins

TIGHTENS: Final = "tightens"
CLEARS: Final = "clears"


def constraints(origins: Origins) -> list[Item]:
    """Every constraint of the recipe."""
    return [
        _constraint(origins, constraint)
        for constraint in origins.recipe.document.get("constraints") or ()
    ]


def constraint(origins: Origins, name: str) -> list[Item]:
    """One constraint.

    Raises:
        AicrError: NOT_FOUND with the nearest name.
    """
    found = [c for c in origins.recipe.document.get("constraints") or () if c["name"] == name]
    if not found:
        known = [c["name"] for c in origins.recipe.document.get("constraints") or ()]
        raise _unknown("the recipe has no constraint", name, known)
    return [_constraint(origins, found[0])]


def _constraint(origins: Origins, final: Any) -> Item:
    steps: list[Step] = []
    for source in origins.sources:
        for index, entry in enumerate(source.content.get("constraints") or ()):
            if entry["name"] == final["name"]:
                narrowing = source.kind == PROFILE and steps
                said = step(
                    origins,
                    source,
                    ("constraints", index, "value"),
                    TIGHTENS if narrowing else SETS,
                )
                said["value"] = entry["value"]
                steps.append(said)
    for said in steps[-1:]:
        said["inForce"] = True
    return {
        "selector": f"constraints.{final['name']}",
        "state": SET,
        "value": final["value"],
        "steps": steps,
    }


def phases(origins: Origins) -> list[Item]:
    """Everything that the validation block of the recipe holds."""
    return [
        item
        for name in origins.recipe.document.get("validation") or {}
        for item in phase(origins, [name])
    ]


def phase(origins: Origins, keys: Sequence[str]) -> list[Item]:
    """One phase, one field of it, or one entry of such a field.

    Args:
        origins: the layers of the recipe.
        keys: the phase, then a field, then an entry (a check, or the name of a constraint).

    Raises:
        AicrError: NOT_FOUND with the nearest name.
    """
    validation: Any = origins.recipe.document.get("validation") or {}
    name = keys[0]
    if name not in validation:
        raise _unknown("the recipe validates nothing in phase", name, list(validation))
    block = validation[name]
    if len(keys) == 1:
        return [item for field in block for item in _field(origins, name, field, block[field])]
    if keys[1] not in block:
        raise _unknown(f"phase {name} of the recipe has no", keys[1], list(block))
    items = _field(origins, name, keys[1], block[keys[1]])
    if len(keys) == 2:
        return items
    wanted = ".".join(keys[2:])
    prefix = f"validation.{name}.{keys[1]}."
    found = [item for item in items if item["selector"] == prefix + wanted]
    if not found:
        known = [item["selector"].removeprefix(prefix) for item in items]
        raise _unknown(f"{keys[1]} of phase {name} have no entry", wanted, known)
    return found


def _field(origins: Origins, phase_name: str, field: str, final: Any) -> list[Item]:
    prefix = f"validation.{phase_name}.{field}"
    said = _said(origins, phase_name, field)
    if field == "checks":
        return [_listed(origins, said, f"{prefix}.{check}", check, field) for check in final]
    if field == "constraints":
        return [
            {
                **_listed(origins, said, f"{prefix}.{entry['name']}", entry["name"], field),
                "value": entry["value"],
            }
            for entry in final
        ]
    steps = []
    for layer in said:
        found = step(origins, layer, (), SETS)
        found["value"] = layer.content
        if layer.content or field == "nodeSelection":
            steps.append(found)
    for found in steps[-1:]:
        found["inForce"] = True
    return [{"selector": prefix, "state": SET, "value": final, "steps": steps}]


def _said(origins: Origins, phase_name: str, field: str) -> list[Layer]:
    """What each layer writes in one field of a phase; ``content`` is that."""
    found = []
    for source in origins.sources:
        if source.kind == PROFILE:
            added = source.content.get("readinessConstraints")
            if added and (phase_name, field) == ("readiness", "constraints"):
                found.append(source.inside("readinessConstraints", content=added))
            continue
        block = (source.content.get("validation") or {}).get(phase_name) or {}
        if block.get(field) is not None:
            found.append(
                source.inside("validation", phase_name, field, content=block[field]),
            )
    return found


def _listed(origins: Origins, said: list[Layer], selector: str, name: str, field: str) -> Item:
    """An entry of a list that unites: checks are their first layer's, constraints their last's."""
    steps: list[Step] = []
    start = 0
    for layer in said:
        if not layer.content:
            if steps:
                steps.append(step(origins, layer, (), CLEARS))
            start = len(steps)
            continue
        for index, entry in enumerate(layer.content):
            if field == "checks" and entry == name:
                action = REPEATS if len(steps) > start else ADDS
                steps.append(step(origins, layer, (index,), action))
            elif field == "constraints" and entry["name"] == name:
                found = step(origins, layer, (index, "value"), SETS)
                found["value"] = entry["value"]
                steps.append(found)
    if len(steps) > start:
        steps[start if field == "checks" else -1]["inForce"] = True
    return {"selector": selector, "state": SET, "value": name, "steps": steps}


def _unknown(what: str, name: str, known: list[str]) -> Exception:
    near = nearest(name, known)
    listed = ", ".join(sorted(known)) or "none"
    return not_found(
        f'{what} "{name}"', hint=f'did you mean "{near}"?' if near else f"there are: {listed}"
    )
