"""Why components are deployed in this order: tiers, and the chain of dependencies behind a place.

The order follows from ``dependencyRefs`` alone; among components that are ready at the same time it is
alphabetical. A disabled component is not deployed, yet chains pass through it (recipe spec 5.2, 5.3).
"""

from __future__ import annotations

from aicr.catalog.dependencies import effective_dependencies, levels
from aicr.errors import nearest, not_found
from aicr.recipe.explain_refs import edge

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aicr.recipe.explain_types import Edge, Explanation, OrderRow
    from aicr.recipe.provenance import Origins


def order(origins: Origins) -> list[OrderRow]:
    """The deployment order with tiers and what each component waits for."""
    refs = list(origins.by_name.values())
    waits_for = effective_dependencies(refs)
    tiers = {name: number for number, names in enumerate(levels(refs)) for name in names}
    return [
        {
            "component": name,
            "position": position,
            "tier": tiers[name],
            "waitsFor": waits_for[name],
        }
        for position, name in enumerate(origins.recipe.document.get("deploymentOrder") or (), 1)
    ]


def place(origins: Origins, component: str) -> Explanation:
    """Why *component* stands where it stands: the longest chain of components before it.

    Raises:
        AicrError: NOT_FOUND for a component that is not deployed.
    """
    rows = {row["component"]: row for row in order(origins)}
    _check_deployed(origins, rows, component)
    row = rows[component]
    chain: list[Edge] = []
    current = row
    while current["waitsFor"]:
        deepest = max(current["waitsFor"], key=lambda name: (rows[name]["tier"], name))
        chain += path(origins, current["component"], deepest)
        current = rows[deepest]
    after = [name for name, other in rows.items() if component in other["waitsFor"]]
    notes = []
    if not row["waitsFor"]:
        notes.append(f"{component} depends on nothing that is deployed")
    if after:
        notes.append(f"waiting for {component}: {', '.join(sorted(after))}")
    return {"component": component, "order": [row], "edges": chain, "notes": notes}


def between(origins: Origins, component: str, other: str) -> Explanation:
    """Why *component* comes after *other* or before it: the shortest chain that ties them.

    Raises:
        AicrError: NOT_FOUND for a component that is not deployed.
    """
    rows = {row["component"]: row for row in order(origins)}
    for name in (component, other):
        _check_deployed(origins, rows, name)
    pair = sorted((rows[component], rows[other]), key=lambda row: row["position"])
    edges = path(origins, component, other) or path(origins, other, component)
    notes = []
    if component == other:
        notes.append("these are the same component")
    elif not edges:
        notes.append(
            f"{component} and {other} do not depend on each other: among components that are "
            f"ready, the order is alphabetical, and a deployer that works by tiers may swap them"
        )
    return {
        "component": component,
        "other": other,
        "order": pair,
        "edges": edges,
        "notes": notes,
    }


def path(origins: Origins, start: str, end: str) -> list[Edge]:
    """The shortest chain of declared dependencies from *start* down to *end*; ties alphabetical.

    Empty when *start* does not depend on *end*.
    """
    came_from: dict[str, str] = {}
    queue = [start]
    for name in queue:
        if name == end:
            break
        for dependency in sorted(origins.by_name[name].get("dependencyRefs") or ()):
            if dependency not in came_from and dependency != start:
                came_from[dependency] = name
                queue.append(dependency)
    if end not in came_from:
        return []
    steps = [end]
    while steps[-1] != start:
        steps.append(came_from[steps[-1]])
    steps.reverse()
    return [edge(origins, name, steps[number]) for number, name in enumerate(steps[:-1], 1)]


def _check_deployed(origins: Origins, rows: dict[str, OrderRow], name: str) -> None:
    if name in rows:
        return
    if name in origins.by_name:
        raise not_found(
            f"component {name} is disabled, so it has no place in the order",
            hint=f"see why: aicr explain … components.{name}.overrides",
        )
    near = nearest(name, list(rows))
    raise not_found(
        f'the recipe has no component "{name}"',
        hint=f'did you mean "{near}"?' if near else f"it has: {', '.join(rows)}",
    )
