"""The support matrix of a catalogue: one row for each overlay that criteria can select.

Nothing in a row is claimed. Whether a combination works is found out by resolving it with the overlay's
own criteria and filling in all values, and its coverage is counted in the recipe that comes out
(recipe spec 6.2). A recipe that lacks a typed choice is resolved once more with a sample of that choice,
so "needs flags" means that with the flag it does resolve.

This module must not know tables, terminals or files.
"""

from __future__ import annotations

from aicr.catalog.criteria_values import FIELDS
from aicr.catalog.fields import PHASES
from aicr.errors import AicrError
from aicr.recipe.criteria import Criteria
from aicr.recipe.hydrate import hydrate
from aicr.recipe.match import chain, stated_words
from aicr.recipe.resolve import resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Final, NotRequired, TypedDict

    from aicr.catalog.catalog import Catalog
    from aicr.catalog.types import Overlay
    from aicr.recipe.recipe import Recipe

    class PhaseCoverage(TypedDict):
        """What a recipe declares for one validation phase."""

        declared: bool
        checks: list[str]
        constraints: int

    class Health(TypedDict):
        """What resolving an overlay's own criteria showed."""

        status: str
        dimensions: dict[str, str]
        flags: NotRequired[list[str]]
        reason: NotRequired[str]
        hint: NotRequired[str]
        coverage: NotRequired[dict[str, PhaseCoverage]]

    class ProfileSummary(TypedDict):
        """The choice that a recipe declares."""

        name: str
        description: NotRequired[str]
        default: str
        values: list[str]

    class Row(TypedDict):
        """One selectable overlay."""

        name: str
        criteria: dict[str, str]
        is_leaf: bool
        source: str
        profile: NotRequired[ProfileSummary]
        components: NotRequired[int]
        health: NotRequired[Health]


#: The overlay's own criteria give a recipe.
OK: Final = "ok"
#: They give one once a choice is made that no default can make.
NEEDS_FLAGS: Final = "needs-flags"
#: They give none.
REFUSED: Final = "refused"

#: Choices that a recipe may demand: the flag, and a value of the right form.
CHOICES: Final = (
    (
        "--gke-tcpxo-interfaces",
        {
            "gke": {
                "tcpxoInterfaces": [
                    {"interfaceName": f"eth{n}", "network": f"gpu-nic-{n}"} for n in range(1, 9)
                ]
            }
        },
    ),
)


def support_matrix(
    catalog: Catalog, *, filters: Mapping[str, str] | None = None, health: bool = True
) -> list[Row]:
    """Every overlay with criteria, sorted by criteria and name.

    Args:
        catalog: what there is.
        filters: words by field; a row is kept if its overlay states each of them.
        health: resolve each overlay; without it the rows lack ``components`` and ``health``.
    """
    inherited = {
        overlay["spec"].get("base")
        for overlay in catalog.overlays.values()
        if overlay["spec"].get("base")
    }
    rows = []
    for name, overlay in catalog.overlays.items():
        words = stated_words(overlay)
        if overlay["spec"].get("criteria") is None:
            continue
        if any(words.get(field) != word for field, word in (filters or {}).items()):
            continue
        rows.append(_row(catalog, overlay, words, name not in inherited, health))
    rows.sort(key=lambda row: ([row["criteria"].get(field, "") for field in FIELDS], row["name"]))
    return rows


def compact(coverage: Mapping[str, PhaseCoverage]) -> str:
    """Coverage on one line: the number of checks of each phase, ``R:0 D:4 P:1 C:10``."""
    return " ".join(f"{phase[0].upper()}:{len(coverage[phase]['checks'])}" for phase in PHASES)


def _row(
    catalog: Catalog, overlay: Overlay, words: dict[str, str], is_leaf: bool, health: bool
) -> Row:
    row: Row = {
        "name": overlay["name"],
        "criteria": words,
        "is_leaf": is_leaf,
        "source": overlay["origin"],
    }
    recipe, found = _judge(catalog, overlay["name"], words) if health else (None, None)
    profile = _profile(catalog, overlay["name"], recipe)
    if profile is not None:
        row["profile"] = profile
    if recipe is not None:
        row["components"] = len(recipe.document["deploymentOrder"])
    if found is not None:
        row["health"] = found
    return row


def _judge(catalog: Catalog, name: str, words: dict[str, str]) -> tuple[Recipe | None, Health]:
    criteria = Criteria(**words)  # type: ignore[arg-type]
    try:
        return _checked(catalog, name, resolve(catalog, criteria), OK)
    except AicrError as error:
        refusal = error
    for flag, choice in CHOICES:
        try:
            recipe = resolve(catalog, criteria, configuration=choice)
        except AicrError:
            # The first refusal is the one that the person would get.
            continue
        recipe, found = _checked(catalog, name, recipe, NEEDS_FLAGS)
        if found["status"] == NEEDS_FLAGS:
            found["flags"] = [flag]
            found.update(_reason(refusal))  # type: ignore[typeddict-item]
        return recipe, found
    return None, _refused({"resolves": REFUSED}, refusal)


def _checked(catalog: Catalog, name: str, recipe: Recipe, status: str) -> tuple[Recipe, Health]:
    """The verdict on a recipe that came out: the overlay must be in it, and all values readable."""
    dimensions = {"resolves": status}
    if name not in recipe.document["metadata"]["appliedOverlays"]:
        return recipe, {
            "status": REFUSED,
            "dimensions": {"resolves": REFUSED},
            "reason": "its own criteria give a recipe without this overlay",
            "hint": f"see why with: aicr explain … overlays.{name}",
        }
    try:
        hydrate(recipe)
    except AicrError as error:
        return recipe, _refused({**dimensions, "values": REFUSED}, error)
    dimensions["values"] = OK
    return recipe, {"status": status, "dimensions": dimensions, "coverage": _coverage(recipe)}


def _refused(dimensions: dict[str, str], error: AicrError) -> Health:
    found: Any = {"status": REFUSED, "dimensions": dimensions, **_reason(error)}
    return found  # type: ignore[no-any-return]


def _reason(error: AicrError) -> dict[str, str]:
    chain_ = error.chain()
    hints = [link.hint for link in chain_ if link.hint]
    found = {"reason": chain_[-1].message}
    if hints:
        found["hint"] = hints[-1]
    return found


def _coverage(recipe: Recipe) -> dict[str, PhaseCoverage]:
    declared = recipe.document.get("validation") or {}
    found: dict[str, PhaseCoverage] = {}
    for phase in PHASES:
        block = declared.get(phase)
        found[phase] = {
            "declared": block is not None,
            "checks": sorted((block or {}).get("checks") or ()),
            "constraints": len((block or {}).get("constraints") or ()),
        }
    return found


def _profile(catalog: Catalog, name: str, recipe: Recipe | None) -> ProfileSummary | None:
    """The profile that a recipe of this overlay has: its own, or that of an overlay below it."""
    if recipe is not None:
        names = [n for n in recipe.document["metadata"]["appliedOverlays"] if n != "base"]
    else:
        try:
            names = list(chain(catalog, name))
        except AicrError:
            # A broken chain is the row's refusal; what it would declare nobody knows.
            return None
    for member in reversed(names):
        profile = catalog.overlays[member]["spec"].get("profile")
        if profile is not None:
            summary: ProfileSummary = {
                "name": profile["name"],
                "default": profile["default"],
                "values": sorted(profile["values"]),
            }
            if profile.get("description"):
                summary["description"] = profile["description"]
            return summary
    return None
