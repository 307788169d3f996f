"""The phases of a validation: their order, and which of them a run is asked for.

Readiness is no phase: it is a gate before all of them (`readiness`). Performance runs last,
because its benchmarks take every GPU and give them back late.

How a phase went is `aicr.contract.ctrf`.

Source: validators spec 0.2, 1.4.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from aicr.errors import invalid, nearest

DEPLOYMENT: Final = "deployment"
CONFORMANCE: Final = "conformance"
PERFORMANCE: Final = "performance"
#: The order in which phases run, whatever order they are asked for in.
ORDER: Final = (DEPLOYMENT, CONFORMANCE, PERFORMANCE)
ALL: Final = "all"


def parse_selection(words: Iterable[str], *, where: str = "--phase") -> tuple[str, ...] | None:
    """The phases that *words* ask for, in the order of running; None when all are.

    Raises:
        AicrError: INVALID_REQUEST for a word that is no phase, and for ``all`` beside another.
    """
    given = list(dict.fromkeys(words))
    for word in given:
        if word not in ORDER and word != ALL:
            near = nearest(word, [*ORDER, ALL])
            hint = f'did you mean "{near}"?' if near else f"phases: {', '.join(ORDER)}, {ALL}"
            if word == "readiness":
                hint = "readiness is no phase: its constraints are checked before every run"
            raise invalid(f'unknown phase "{word}"', where=where, hint=hint)
    if ALL in given and len(given) > 1:
        other = next(word for word in given if word != ALL)
        raise invalid(
            f'phase "{ALL}" excludes every other, and "{other}" was given too',
            where=where,
            hint=f"drop {ALL}, or drop the others",
        )
    if not given or ALL in given:
        return None
    return tuple(phase for phase in ORDER if phase in given)


def requested(selection: tuple[str, ...] | None) -> tuple[str, ...]:
    """What a parsed selection stands for."""
    return ORDER if selection is None else selection


def declared_checks(recipe: Mapping[str, Any], phase: str) -> list[str]:
    """The names under ``validation.<phase>.checks`` of a recipe document, as written."""
    block = (recipe.get("validation") or {}).get(phase) or {}
    return list(block.get("checks") or ())


def is_configured(recipe: Mapping[str, Any], phase: str) -> bool:
    """Whether a recipe says anything about a phase."""
    return bool((recipe.get("validation") or {}).get(phase))
