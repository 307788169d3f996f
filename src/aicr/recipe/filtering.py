"""Letting a snapshot rule out overlays whose own constraints the cluster does not meet (spec 4.8).

Only a leaf's own constraints and those that mixins bring are evaluated: what an ancestor states may have
been overridden by name on the way. A missing reading rules an overlay out; anything else that keeps a
constraint from being evaluated stops the build, because could-not-tell is not a no.
"""

from __future__ import annotations

from aicr.errors import NOT_FOUND, AicrError, invalid
from aicr.recipe.match import chain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, Final

    from aicr.catalog.catalog import Catalog
    from aicr.catalog.types import Constraint
    from aicr.recipe.types import ConstraintWarning, ExcludedOverlay

CONSTRAINT_FAILED: Final = "constraint-failed"
MIXIN_CONSTRAINT_FAILED: Final = "mixin-constraint-failed"


class Verdicts:
    """What a snapshot ruled out, and why."""

    __slots__ = ("excluded", "warnings")

    def __init__(self) -> None:
        self.excluded: list[ExcludedOverlay] = []
        self.warnings: list[ConstraintWarning] = []


def failure(constraint: Constraint, snapshot: Any) -> tuple[str, str] | None:
    """None when the constraint holds, else ``(actual, reason)``.

    Raises:
        AicrError: when the constraint cannot be evaluated for another reason than a missing reading.
    """
    from aicr.constraints.evaluate import evaluate_constraint

    name, value = constraint.get("name", ""), constraint.get("value", "")
    if not name:
        raise invalid("constraint name is required for snapshot evaluation")
    if not value:
        raise invalid(f'constraint "{name}" value is required for snapshot evaluation')
    try:
        outcome = evaluate_constraint(constraint, snapshot)
    except AicrError as error:
        if error.code == NOT_FOUND:
            return "", str(error)
        raise AicrError(
            error.code, f'constraint evaluation failed for "{name}"', hint=error.hint
        ) from error
    if outcome.passed:
        return None
    return outcome.actual, f"expected {value}, got {outcome.actual}"


def _warning(overlay: str, constraint: Constraint, actual: str, reason: str) -> ConstraintWarning:
    warning: ConstraintWarning = {
        "overlay": overlay,
        "constraint": constraint["name"],
        "expected": constraint["value"],
        "reason": reason,
    }
    if actual:
        warning = {
            "overlay": overlay,
            "constraint": constraint["name"],
            "expected": constraint["value"],
            "actual": actual,
            "reason": reason,
        }
    return warning


def filter_leaves(
    catalog: Catalog, leaves: Iterable[str], snapshot: Any, verdicts: Verdicts
) -> tuple[str, ...]:
    """The leaves whose own constraints hold; the others are recorded in *verdicts*."""
    kept = []
    for leaf in leaves:
        failed = False
        for constraint in catalog.overlays[leaf]["spec"].get("constraints") or ():
            try:
                found = failure(constraint, snapshot)
            except AicrError as error:
                place = catalog.tree.place(catalog.overlays[leaf]["path"])
                raise AicrError(
                    error.code,
                    f'overlay "{leaf}" cannot be judged by this snapshot',
                    where=place,
                    hint=error.hint,
                ) from error
            if found is not None:
                failed = True
                verdicts.warnings.append(_warning(leaf, constraint, *found))
        if failed:
            verdicts.excluded.append({"name": leaf, "reason": CONSTRAINT_FAILED})
        else:
            kept.append(leaf)
    return tuple(kept)


def filter_by_mixins(
    catalog: Catalog,
    leaves: tuple[str, ...],
    brought: dict[str, str],
    constraints: dict[str, Constraint],
    snapshot: Any,
    verdicts: Verdicts,
) -> tuple[str, ...]:
    """The leaves none of whose mixins brings a failing constraint.

    Args:
        catalog: where overlays are.
        leaves: leaves still in play.
        brought: mixin of each constraint that a mixin brought, by constraint name.
        constraints: the merged constraints by name.
        snapshot: the readings.
        verdicts: where exclusions are recorded.
    """
    failing: dict[str, list[tuple[Constraint, str, str]]] = {}
    for name, mixin in brought.items():
        found = failure(constraints[name], snapshot)
        if found is not None:
            failing.setdefault(mixin, []).append((constraints[name], *found))
    kept = []
    for leaf in leaves:
        own = {
            mixin
            for member in chain(catalog, leaf)
            for mixin in catalog.overlays[member]["spec"].get("mixins") or ()
        }
        hit = [entry for mixin in sorted(own & failing.keys()) for entry in failing[mixin]]
        if not hit:
            kept.append(leaf)
            continue
        verdicts.excluded.append({"name": leaf, "reason": MIXIN_CONSTRAINT_FAILED})
        verdicts.warnings.extend(
            _warning(leaf, constraint, actual, f"{MIXIN_CONSTRAINT_FAILED}: {reason}")
            for constraint, actual, reason in hit
        )
    return tuple(kept)
