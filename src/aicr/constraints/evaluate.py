"""One constraint against one snapshot: the order of steps, and the wording of each failure.

``{"name": path, "value": expression}`` is dispatched by name, its path parsed, the reading fetched,
the expression parsed, and the two compared. Every step that cannot be done is an error with its own
code, so that callers can tell "the reading is absent" (NOT_FOUND) from "the rule is wrong"
(INVALID_REQUEST). What a failed or impossible constraint means is the caller's business.

This module must not know overlays, phases or readiness. Source: recipe spec 8.8, decision 9.
"""

from __future__ import annotations

from aicr.constraints import addressable, expression, nodeset, paths
from aicr.errors import NOT_FOUND, AicrError, invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from aicr.constraints.expression import Outcome


def evaluate_constraint(
    constraint: Mapping[str, Any], snapshot: Mapping[str, Any] | None
) -> Outcome:
    """Evaluate ``{"name", "value"}`` against a snapshot document (recipe spec 8.8).

    Raises:
        AicrError: INVALID_REQUEST ``invalid constraint path`` or ``invalid constraint expression``,
            NOT_FOUND ``value not found in snapshot``, CONFLICT for an ambiguous item predicate,
            INVALID_REQUEST for no snapshot or a measured text that is no version. The cause says
            which step of the path or which token it was; ``where`` names the constraint.
    """
    name = _text(constraint.get("name"), "name")
    value = constraint.get("value")
    if name == nodeset.NAME:
        return nodeset.evaluate(nodeset.parse(_text(value, "value")), snapshot)
    path = _parse_path(name)
    try:
        actual = paths.extract(snapshot, path)
    except AicrError as error:
        message = (
            "value not found in snapshot"
            if error.code == NOT_FOUND
            else "value cannot be read from snapshot"
        )
        raise AicrError(error.code, message, where=name, hint=error.hint) from error
    parsed = _parse_expression(name, value)
    try:
        return expression.evaluate(parsed, actual)
    except AicrError as error:
        raise AicrError(
            error.code, "constraint evaluation failed", where=name, hint=error.hint
        ) from error


def check_constraint(constraint: Mapping[str, Any]) -> None:
    """Check everything about a constraint that needs no snapshot: path, known reading, expression.

    Raises:
        AicrError: INVALID_REQUEST, as ``evaluate_constraint`` raises it, or from the addressable
            catalogue (recipe spec 8.3).
    """
    name = _text(constraint.get("name"), "name")
    value = constraint.get("value")
    if name == nodeset.NAME:
        nodeset.parse(_text(value, "value"))
        return
    _parse_path(name)
    addressable.lint(name)
    _parse_expression(name, value)


def _parse_path(name: str) -> paths.MeasurementPath:
    try:
        return paths.parse(name)
    except AicrError as error:
        raise invalid("invalid constraint path", where=name, hint=error.hint) from error


def _parse_expression(name: str, value: object) -> expression.Expression:
    try:
        return expression.parse(_text(value, "value"))
    except AicrError as error:
        raise invalid("invalid constraint expression", where=name, hint=error.hint) from error


def _text(value: object, field: str) -> str:
    """A constraint's name or value as text; a number or boolean has lost its spelling (case A8)."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    # The spelling is gone here (24.10 reads as 24.1), so the hint must not offer one as the text.
    raise invalid(
        f"constraint {field} must be text, and was read as {paths.render(value)}",
        hint=f'quote it in the YAML as it was meant, for example {field}: "24.10"',
    )
