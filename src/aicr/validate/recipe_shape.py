"""What validation asks of a recipe's ``validation`` block beyond what reading the recipe has checked.

Pure. Source: validators spec 0.5; recipe spec 4.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from aicr.errors import invalid
from aicr.validate.phases import ORDER

READINESS: Final = "readiness"


def check_validation(recipe: Mapping[str, Any], source: str) -> None:
    """Refuse checks where none is run.

    Args:
        recipe: as `recipe.document.load_recipe` gives it, with the shape that it checks.
        source: where it was read, for the error.

    Raises:
        AicrError: INVALID_REQUEST for checks of the readiness phase.
    """
    readiness = (recipe.get("validation") or {}).get(READINESS) or {}
    if readiness.get("checks"):
        raise invalid(
            "validation.readiness declares checks, and readiness runs none",
            where=source,
            hint=f"declare them under one of {', '.join(ORDER)}",
        )
