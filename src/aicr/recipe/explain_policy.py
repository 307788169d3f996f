"""Why a recipe demands what it demands: constraints, and the checks of the validation phases.

Constraints go by name and the later entry replaces the whole of the earlier one; a profile narrows. The
lists of a phase unite until a layer writes an empty list, which clears them (recipe spec 4.5, 4.7, 4.11).
It must not know how selectors are written or how answers are drawn.
"""

from __future__ import annotations

from aicr.catalog.fields import PHASE_KEYS, PHASES
from aicr.errors import nearest, not_found
from aicr.recipe.explain_refs import ADDS, REPEATS
from aicr.recipe.explain_values import DELETED, SET, SETS, step
from aicr.recipe.provenance import PROFILE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Final

    from aicr.recipe.explain_types import Item, Step
    from aicr.recipe.provenance import Layer, Origins

TIGHTENS: Final = "tightens"
CLEARS: Final = "clears"

#: Fields of a phase that unite.
_LISTS: Final = ("checks", "constraints")


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
    """Everything that the validation block of the recipe holds, and what was cleared from it."""
    return [item for name in PHASES for item in _phase(origins, name)]


def phase(origins: Origins, keys: Sequence[str]) -> list[Item]:
    """One phase, one field of it, or one entry of such a field.

    Args:
        origins: the layers of the recipe.
        keys: the phase, then a field, then an entry (a check, or the name of a constraint).

    Raises:
        AicrError: NOT_FOUND with the nearest name.
    """
    name = keys[0]
    found = _phase(origins, name) if name in PHASES else []
    if not found:
        said = [known for known in PHASES if _phase(origins, known)]
        raise _unknown("the recipe validates nothing in phase", name, said)
    if len(keys) == 1:
        return found
    prefix = f"validation.{name}.{keys[1]}"
    items = [item for item in found if f"{item['selector']}.".startswith(prefix + ".")]
    if not items:
        fields = [item["selector"].split(".")[2] for item in found]
        raise _unknown(f"phase {name} of the recipe has no", keys[1], list(dict.fromkeys(fields)))
    if len(keys) == 2:
        return items
    wanted = ".".join(keys[2:])
    chosen = [item for item in items if item["selector"] == f"{prefix}.{wanted}"]
    if not chosen:
        entries = [item["selector"].removeprefix(prefix + ".") for item in items]
        raise _unknown(f"{keys[1]} of phase {name} have no entry", wanted, entries)
    return chosen


def _phase(origins: Origins, name: str) -> list[Item]:
    validation: Any = origins.recipe.document.get("validation") or {}
    block = validation.get(name) or {}
    return [item for field in PHASE_KEYS for item in _field(origins, name, field, block.get(field))]


def _field(origins: Origins, phase_name: str, field: str, final: Any) -> list[Item]:
    prefix = f"validation.{phase_name}.{field}"
    said = _said(origins, phase_name, field)
    if field in _LISTS:
        # A constraint goes by its name, a check is its name.
        final_names = {_name(entry): entry for entry in final or ()}
        names = dict.fromkeys(
            [*final_names, *(_name(entry) for layer in said for entry in layer.content)]
        )
        return [_listed(origins, said, prefix, name, final_names.get(name)) for name in names]
    steps = []
    for layer in said:
        if layer.content or field == "nodeSelection":
            found = step(origins, layer, (), SETS)
            found["value"] = layer.content
            steps.append(found)
    if not steps or final is None:
        return []
    steps[-1]["inForce"] = True
    return [{"selector": prefix, "state": SET, "value": final, "steps": steps}]


def _name(entry: Any) -> str:
    name: str = entry["name"] if isinstance(entry, dict) else entry
    return name


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


def _listed(origins: Origins, said: list[Layer], prefix: str, name: str, final: Any) -> Item:
    """An entry of a list that unites: checks are their first layer's, constraints their last's."""
    steps: list[Step] = []
    start = 0
    for layer in said:
        if not layer.content:
            if len(steps) > start:
                steps.append(step(origins, layer, (), CLEARS))
            start = len(steps)
        for index, entry in enumerate(layer.content):
            if _name(entry) != name:
                continue
            if isinstance(entry, dict):
                found = step(origins, layer, (index, "value"), SETS)
                found["value"] = entry["value"]
            else:
                found = step(origins, layer, (index,), REPEATS if len(steps) > start else ADDS)
            steps.append(found)
    selector = f"{prefix}.{name}"
    if final is None:
        steps[-1]["inForce"] = True
        return {"selector": selector, "state": DELETED, "steps": steps}
    steps[-1 if isinstance(final, dict) else start]["inForce"] = True
    value = final["value"] if isinstance(final, dict) else final
    return {"selector": selector, "state": SET, "value": value, "steps": steps}


def _unknown(what: str, name: str, known: list[str]) -> Exception:
    near = nearest(name, known)
    listed = ", ".join(sorted(known)) or "none"
    return not_found(
        f'{what} "{name}"', hint=f'did you mean "{near}"?' if near else f"there are: {listed}"
    )
