"""The readiness gate: constraints of the recipe against the snapshot, before anything runs.

It ends the run at the first constraint that fails or cannot be evaluated, with exit status 2
whatever ``--fail-on-error`` says: a cluster that is not what the recipe is for is no finding of a
check. Constraints of phases are not read here; they are thresholds of the checks. Pure.

Source: validators spec 1.8; decisions 9, 10; field case G12.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aicr.constraints.evaluate import evaluate_constraint
from aicr.errors import AicrError, invalid


def constraints_of(recipe: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """What the gate evaluates, in order: the recipe's own constraints, then those of readiness."""
    block = (recipe.get("validation") or {}).get("readiness") or {}
    return [*(recipe.get("constraints") or ()), *(block.get("constraints") or ())]


def check_readiness(recipe: Mapping[str, Any], snapshot: Mapping[str, Any] | None) -> list[str]:
    """Hold the snapshot against the recipe.

    Returns:
        One line for each constraint that holds, with the values that were compared.

    Raises:
        AicrError: INVALID_REQUEST ``readiness check failed``, with the constraint's remediation, or
            ``readiness check could not evaluate`` with the cause.
    """
    found = constraints_of(recipe)
    if found and snapshot is None:
        raise invalid(
            f"readiness needs a snapshot: the recipe has {len(found)} constraints and there is none",
            where="--snapshot",
            hint="name a snapshot, or leave --no-cluster out so that one is taken",
        )
    return [_judge(constraint, snapshot) for constraint in found]


def _judge(constraint: Mapping[str, Any], snapshot: Mapping[str, Any] | None) -> str:
    name = str(constraint.get("name"))
    try:
        outcome = evaluate_constraint(constraint, snapshot)
    except AicrError as error:
        raise invalid(
            f"readiness check could not evaluate: {name}",
            hint=error.hint or "take the snapshot again, or correct the constraint",
        ) from error
    if outcome.passed:
        return f"{name} holds: {outcome.explanation}"
    message = f"readiness check failed: {name} {outcome.explanation}"
    remediation = str(constraint.get("remediation") or "").strip()
    raise invalid(
        f"{message}\n{remediation}" if remediation else message,
        hint="change the cluster, or use a recipe that was made for it; "
        "--fail-on-error=false does not cover readiness",
        context={
            "constraint": name,
            "expected": outcome.expected_normalised,
            "actual": outcome.actual_normalised,
        },
    )
