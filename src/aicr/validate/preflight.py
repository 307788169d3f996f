"""Gates on check names, before a cluster is touched: what a recipe declares, and what a run withholds.

Both refuse everything that is wrong in one error, and nothing switches them off: a name that
resolves nowhere would otherwise make a phase read as done although its gate never ran. They are
pure and hold in ``--no-cluster`` mode too.

Source: validators spec 1.6, 1.7; field case G1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from aicr.errors import AicrError, invalid, nearest
from aicr.validate.catalog import ValidatorCatalog
from aicr.validate.phases import declared_checks

#: What a withheld check says in its report; the code beside it survives redaction.
WITHHELD: Final = (
    "skipped: named in skipChecks, so the caller declared this check out of scope for this run"
)


def check_declared(
    recipe: Mapping[str, Any], catalog: ValidatorCatalog, phases: Sequence[str]
) -> None:
    """Every declared name must be one check of its phase, once.

    Raises:
        AicrError: INVALID_REQUEST with a bullet for each offender of all *phases*.
    """
    bullets: list[str] = []
    hints: list[str] = []
    for phase in phases:
        seen: set[str] = set()
        repeated: set[str] = set()
        for name in declared_checks(recipe, phase):
            if name in seen:
                if name not in repeated:
                    bullets.append(
                        f'declared check "{name}" is declared more than once in phase {phase}'
                    )
                repeated.add(name)
                continue
            seen.add(name)
            entry = catalog.find(name)
            if entry is None:
                bullets.append(
                    f'declared check "{name}" in phase {phase} matches no validator in the catalog'
                )
                hints.append(nearest(name, catalog.names()))
            elif entry.phase != phase:
                bullets.append(
                    f'declared check "{name}" in phase {phase} matches no validator in that phase '
                    f"(found under phase: {entry.phase})"
                )
    if bullets:
        header = "validation declares checks that do not match the validator catalog:"
        raise _refused(header, bullets, hints, "correct the recipe; aicr lint finds these too")


def check_skipped(
    recipe: Mapping[str, Any],
    catalog: ValidatorCatalog,
    phases: Sequence[str],
    skipped: Iterable[str],
) -> list[str]:
    """Every withheld name must be a check, and no requested phase may lose all of its checks.

    Returns:
        Warnings: names that no requested phase declares.

    Raises:
        AicrError: INVALID_REQUEST with a bullet for each offender.
    """
    names = list(dict.fromkeys(skipped))
    known = set(catalog.names())
    bullets = [
        f'skipChecks entry "{name}" matches no validator in the catalog'
        for name in names
        if name not in known
    ]
    hints = [nearest(name, catalog.names()) for name in names if name not in known]
    declared = {phase: declared_checks(recipe, phase) for phase in phases}
    for phase, checks in declared.items():
        if checks and set(checks) <= set(names):
            bullets.append(
                f"skipChecks removes every declared check from phase {phase}; "
                f"leave the phase out of --phase instead"
            )
    if bullets:
        raise _refused("invalid skipChecks:", bullets, hints, "correct --skip-check")
    wanted = {name for checks in declared.values() for name in checks}
    return [
        f'--skip-check {name} changes nothing: no requested phase declares "{name}"'
        for name in names
        if name not in wanted
    ]


def _refused(
    header: str, bullets: Sequence[str], hints: Sequence[str], otherwise: str
) -> AicrError:
    near = [f'"{name}"' for name in dict.fromkeys(hints) if name]
    return invalid(
        "\n".join([header, *(f"  - {bullet}" for bullet in bullets)]),
        hint=f"did you mean {' and '.join(near)}?" if near else otherwise,
        context={"offenders": list(bullets)},
    )
