"""Which overlays a query selects: asymmetric matching, inheritance chains, maximal leaves.

A vague query never pulls in a specific overlay, and an overlay that another selected one inherits from
is not a leaf of its own (recipe spec 1.7, 4.2, 4.3).
"""

from __future__ import annotations

from aicr.catalog.criteria_values import FIELDS
from aicr.errors import INVALID_REQUEST, AicrError, invalid, nearest, not_found
from aicr.recipe.criteria import ANY, normalise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from aicr.catalog.catalog import Catalog
    from aicr.catalog.types import Overlay

ROOT = "base"


def matches(overlay_criteria: Mapping[str, object], query: Mapping[str, str]) -> bool:
    """Whether an overlay with these criteria applies to a query of stated words.

    >>> matches({"service": "eks"}, {"service": "eks", "os": "ubuntu"})
    True
    >>> matches({"service": "eks", "os": "ubuntu"}, {"service": "eks"})
    False
    """
    for field in FIELDS:
        wanted = overlay_criteria.get(field)
        if wanted and wanted != ANY and query.get(field) != wanted:
            return False
    return True


def specificity(overlay: Overlay) -> int:
    """Number of words that an overlay states; empty and ``any`` count nothing (field case E1)."""
    return len(stated_words(overlay))


def stated_words(overlay: Overlay) -> dict[str, str]:
    """The words that an overlay states, normalised, in field order."""
    criteria = overlay["spec"].get("criteria") or {}
    words = {}
    for field in FIELDS:
        word = normalise(field, criteria.get(field) or "")
        if word != ANY:
            words[field] = word
    return words


def _index(catalog: Catalog) -> list[tuple[int, str, list[tuple[str, str]]]]:
    """Selectable overlays as ``(specificity, name, words)``, in the order leaves are merged."""
    found: list[tuple[int, str, list[tuple[str, str]]]] | None = catalog.cache.get("index")
    if found is None:
        found = []
        for name, overlay in catalog.overlays.items():
            if overlay["spec"].get("criteria") is not None:
                words = list(stated_words(overlay).items())
                found.append((len(words), name, words))
        found.sort()
        catalog.cache["index"] = found
    return found


def chain(catalog: Catalog, name: str) -> tuple[str, ...]:
    """An overlay and its ancestors, root first; the base recipe itself is left out.

    Raises:
        AicrError: INVALID_REQUEST for a circle or a missing parent, naming the whole path.
    """
    chains: dict[str, tuple[str, ...]] = catalog.cache.setdefault("chains", {})
    known = chains.get(name)
    if known is not None:
        return known
    trail: list[str] = []
    current = name
    while current and current != ROOT:
        if current in trail:
            inner = invalid(
                f'circular inheritance detected: recipe "{current}" references itself in '
                f"inheritance chain",
                where=catalog.tree.place(catalog.overlays[current]["path"]),
                hint="the chain is " + " -> ".join([*trail, current]),
            )
            raise AicrError(INVALID_REQUEST, "failed to resolve inheritance chain") from inner
        overlay = catalog.overlays.get(current)
        if overlay is None:
            near = nearest(current, list(catalog.overlays))
            missing = not_found(
                f'recipe "{current}" not found (referenced in inheritance chain)',
                where=catalog.tree.place(catalog.overlays[trail[-1]]["path"]),
                hint=f'did you mean "{near}"?' if near else "correct spec.base",
            )
            raise AicrError(INVALID_REQUEST, "failed to resolve inheritance chain") from missing
        trail.append(current)
        current = overlay["spec"].get("base") or ""
    found = tuple(reversed(trail))
    chains[name] = found
    return found


def candidates(catalog: Catalog, query: Mapping[str, str]) -> list[str]:
    """Names of all overlays that match, least specific first, ties by name."""
    found = []
    for _, name, words in _index(catalog):
        for field, word in words:
            if query.get(field) != word:
                break
        else:
            found.append(name)
    return found


def maximal_leaves(catalog: Catalog, query: Mapping[str, str]) -> tuple[str, ...]:
    """The matching overlays that no other matching overlay inherits from, in merge order.

    Raises:
        AicrError: a broken inheritance chain of a matching overlay.
    """
    matching = candidates(catalog, query)
    inherited = {ancestor for name in matching for ancestor in chain(catalog, name)[:-1]}
    return tuple(name for name in matching if name not in inherited)
