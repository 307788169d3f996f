"""The dependency graph of component refs: checks, the flat order, and the tiers.

Order is derived from ``dependencyRefs`` and nothing else; ties are alphabetical (components seed,
deploymentOrder; recipe spec 5.2 and 5.3). A disabled component is not deployed, yet what it depends on
must still come before what depends on it: edges pass through it (field case F1).
"""

from __future__ import annotations

from aicr.errors import INVALID_REQUEST, AicrError, invalid, nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from aicr.catalog.types import ComponentRef


def is_enabled(ref: ComponentRef) -> bool:
    """Whether a ref is deployed: only a literal false of ``enabled`` or ``install`` disables it."""
    overrides = ref.get("overrides")
    if not overrides:
        return True
    return overrides.get("enabled") is not False and overrides.get("install") is not False


def toggle_warnings(refs: Sequence[ComponentRef]) -> list[str]:
    """Texts about toggles that are no booleans and therefore do nothing (recipe spec 4.6)."""
    return [
        f'component "{ref["name"]}": overrides.{key} is {ref["overrides"][key]!r}, not true or '
        f"false; the component stays enabled"
        for ref in refs
        for key in ("enabled", "install")
        if key in (ref.get("overrides") or {}) and not isinstance(ref["overrides"][key], bool)
    ]


def check_dependencies(refs: Sequence[ComponentRef]) -> None:
    """Every edge must name a declared component, and no edges may form a circle.

    Raises:
        AicrError: INVALID_REQUEST naming the edge, or the whole circle.
    """
    names = {ref["name"] for ref in refs}
    for ref in refs:
        for dependency in ref.get("dependencyRefs") or ():
            if dependency not in names:
                near = nearest(dependency, sorted(names))
                raise invalid(
                    f'component "{ref["name"]}" references unknown dependency "{dependency}"',
                    hint=f'did you mean "{near}"?'
                    if near
                    else f'add "{dependency}" to componentRefs, or drop the reference',
                )
    circle = _find_circle(refs)
    if circle:
        inner = invalid(
            f"circular dependency detected: [{' '.join(circle)}]",
            hint="drop one of these dependencyRefs",
        )
        raise AicrError(INVALID_REQUEST, "dependency validation failed") from inner


def _find_circle(refs: Sequence[ComponentRef]) -> list[str]:
    edges = {ref["name"]: sorted(set(ref.get("dependencyRefs") or ())) for ref in refs}
    done: set[str] = set()
    for start in sorted(edges):
        trail: list[str] = []
        on_trail: set[str] = set()
        stack = [(start, iter(edges[start]))] if start not in done else []
        if stack:
            trail.append(start)
            on_trail.add(start)
        while stack:
            name, rest = stack[-1]
            for dependency in rest:
                if dependency in on_trail:
                    return [*trail[trail.index(dependency) :], dependency]
                if dependency not in done and dependency in edges:
                    stack.append((dependency, iter(edges[dependency])))
                    trail.append(dependency)
                    on_trail.add(dependency)
                    break
            else:
                stack.pop()
                done.add(name)
                trail.pop()
                on_trail.discard(name)
    return []


def effective_dependencies(refs: Sequence[ComponentRef]) -> dict[str, list[str]]:
    """For each enabled component, the enabled ones it waits for: direct, or through disabled ones.

    The graph must be free of circles. Undeclared names are left out.
    """
    by_name = {ref["name"]: ref for ref in refs}
    enabled = {name for name, ref in by_name.items() if is_enabled(ref)}
    effective = {}
    for ref in refs:
        if ref["name"] in enabled:
            needed: set[str] = set()
            passed: set[str] = set()
            waiting = [*(ref.get("dependencyRefs") or ())]
            while waiting:
                name = waiting.pop()
                if name in enabled:
                    needed.add(name)
                elif name in by_name and name not in passed:
                    passed.add(name)
                    waiting += by_name[name].get("dependencyRefs") or ()
            effective[ref["name"]] = sorted(needed)
    return effective


def deployment_order(refs: Sequence[ComponentRef]) -> list[str]:
    """Names of the enabled components, each after all it depends on, ties alphabetical.

    Raises:
        AicrError: INVALID_REQUEST when the edges form a circle.
    """
    waiting = effective_dependencies(refs)
    dependents: dict[str, list[str]] = {name: [] for name in waiting}
    missing = {}
    for name, needed in waiting.items():
        missing[name] = len(needed)
        for dependency in needed:
            dependents[dependency].append(name)
    ready = sorted(name for name, count in missing.items() if not count)
    order = []
    while ready:
        name = ready.pop(0)
        order.append(name)
        freed = False
        for dependent in dependents[name]:
            missing[dependent] -= 1
            if not missing[dependent]:
                ready.append(dependent)
                freed = True
        if freed:
            ready.sort()
    if len(order) != len(waiting):
        raise invalid("cannot determine deployment order: circular dependencies exist")
    return order


def levels(refs: Sequence[ComponentRef]) -> list[list[str]]:
    """Tiers: a tier holds the components whose dependencies all lie in earlier tiers, sorted.

    Raises:
        AicrError: INVALID_REQUEST when the edges form a circle.
    """
    waiting = effective_dependencies(refs)
    try:
        order = deployment_order(refs)
    except AicrError as error:
        raise invalid("cannot determine deployment levels: circular dependencies exist") from error
    depth: dict[str, int] = {}
    for name in order:
        depth[name] = 1 + max((depth[dependency] for dependency in waiting[name]), default=-1)
    tiers: list[list[str]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for name in sorted(depth):
        tiers[depth[name]].append(name)
    return tiers
