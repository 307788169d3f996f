"""Choosing a profile value and applying it above all overlays (recipe spec 4.11).

A chosen value owns the paths it sets: the bundler refuses to override them. With a snapshot at hand the
value's constraints must hold now (fail closed); without one the validate gate checks them later.
"""

from __future__ import annotations

from aicr.catalog.dependencies import is_enabled
from aicr.catalog.fields import REF_ORDER
from aicr.catalog.profiles import IDENTIFIER, assigned_paths
from aicr.errors import NOT_FOUND, AicrError, invalid, nearest
from aicr.values.merge import deep_merge

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from aicr.catalog.types import Constraint, Profile, ProfileValue
    from aicr.recipe.merge import Composition
    from aicr.recipe.types import SelectedProfile


def parse_selection(text: str) -> tuple[str, str]:
    """``name=value`` as the pair, or a pair of empty texts when nothing was selected.

    Raises:
        AicrError: INVALID_REQUEST for another form or for characters outside ``[A-Za-z0-9._-]``.
    """
    if not text:
        return "", ""
    import re

    name, equals, value = text.partition("=")
    if not equals or "=" in value:
        raise invalid(
            "profile must use the exact name=value form",
            where="--profile",
            hint="for example --profile gpuStack=operator-managed",
        )
    if not re.fullmatch(IDENTIFIER, name) or not re.fullmatch(IDENTIFIER, value):
        raise invalid(
            "profile name and value must match [A-Za-z0-9._-]+",
            where="--profile",
            hint="for example --profile gpuStack=operator-managed",
        )
    return name, value


def choose(composition: Composition, selection: tuple[str, str]) -> tuple[Profile, str] | None:
    """The declared profile and the value in force, or None when none is declared.

    Raises:
        AicrError: INVALID_REQUEST for several declarations, another name, or an unknown value.
    """
    wanted_name, wanted_value = selection
    declared = composition.profiles
    if len(declared) > 1:
        names = ", ".join(name for name, _ in declared)
        raise invalid(f"resolved composition has multiple profile declarations from [{names}]")
    if not declared:
        if wanted_name:
            raise invalid(
                f'profile "{wanted_name}={wanted_value}" was selected, but the resolved composition '
                f"declares no profile",
                where="--profile",
                hint="drop --profile",
            )
        return None
    profile = declared[0][1]
    if not wanted_name:
        return profile, profile["default"]
    if wanted_name != profile["name"]:
        raise invalid(
            f'resolved composition declares profile "{profile["name"]}", not "{wanted_name}"',
            where="--profile",
            hint=f"use --profile {profile['name']}={profile['default']}",
        )
    if wanted_value not in profile["values"]:
        valid = ", ".join(sorted(profile["values"]))
        near = nearest(wanted_value, list(profile["values"]))
        raise invalid(
            f'profile "{wanted_name}" has no value "{wanted_value}"; valid values: [{valid}]',
            where="--profile",
            hint=f'did you mean "{near}"?' if near else "",
        )
    return profile, wanted_value


def apply_profile(composition: Composition, profile: Profile, value: str) -> SelectedProfile:
    """Lay a profile value over the composition, in place, and say what it owns.

    Raises:
        AicrError: INVALID_REQUEST for a component that is absent or disabled, for constraints that
            cannot be tightened, or for a readiness constraint that is already there.
    """
    chosen = profile["values"][value]
    for ref in chosen.get("componentRefs") or ():
        present = composition.refs.get(ref["name"])
        if present is None or not is_enabled(present):
            raise invalid(
                f'profile "{profile["name"]}" references component "{ref["name"]}", which is not '
                f"enabled in the surviving composition"
            )
        merged: Any = dict(present)
        merged["overrides"] = deep_merge(
            present.get("overrides") or {}, ref.get("overrides") or {}, null_deletes=False
        )
        composition.refs[ref["name"]] = {k: merged[k] for k in REF_ORDER if k in merged}  # type: ignore[assignment]
    _tighten(composition, profile, value, chosen)
    _add_readiness(composition, profile, value, chosen)
    selected: SelectedProfile = {"name": profile["name"], "value": value, "ownedPaths": {}}
    if chosen.get("advertiser"):
        selected = {
            "name": profile["name"],
            "value": value,
            "advertiser": chosen["advertiser"],
            "ownedPaths": {},
        }
    selected["ownedPaths"] = owned_paths(chosen)
    return selected


def owned_paths(value: ProfileValue) -> dict[str, list[str]]:
    """Per component, the sorted dotted paths that a value owns, ``enabled`` among them."""
    owned: dict[str, set[str]] = {}
    for component, path in assigned_paths(value):
        owned.setdefault(component, {"enabled"}).add(path)
    return {component: sorted(owned[component]) for component in sorted(owned)}


def _tighten(composition: Composition, profile: Profile, value: str, chosen: ProfileValue) -> None:
    for constraint in chosen.get("constraints") or ():
        name = constraint["name"]
        present = composition.constraints.get(name)
        if present is None:
            composition.constraints[name] = constraint.copy()
            continue
        if present["value"] == constraint["value"]:
            continue
        from aicr.constraints import ranges

        try:
            narrowed = ranges.intersect(present["value"], constraint["value"])
        except AicrError as error:
            raise invalid(
                f'profile {profile["name"]}={value} cannot tighten constraint "{name}" from '
                f'"{present["value"]}" by "{constraint["value"]}"'
            ) from error
        merged = present.copy()
        merged["value"] = narrowed
        composition.constraints[name] = merged


def _add_readiness(
    composition: Composition, profile: Profile, value: str, chosen: ProfileValue
) -> None:
    added = chosen.get("readinessConstraints") or []
    if not added:
        return
    readiness: Any = dict(composition.validation.get("readiness") or {})
    present: list[Constraint] = list(readiness.get("constraints") or ())
    names = {constraint["name"] for constraint in present}
    for constraint in added:
        if constraint["name"] in names:
            raise invalid(
                f"profile {profile['name']}={value} adds readiness constraint "
                f'"{constraint["name"]}", which is already there'
            )
        names.add(constraint["name"])
        present.append(constraint.copy())
    readiness["constraints"] = present
    composition.validation["readiness"] = readiness


def check_against_snapshot(profile: Profile, value: str, snapshot: Any) -> None:
    """Evaluate a profile value's constraints now; anything but a pass is an error.

    Raises:
        AicrError: INVALID_REQUEST naming the reading that is absent or the constraint that failed.
    """
    from aicr.constraints.evaluate import evaluate_constraint

    chosen = profile["values"][value]
    label = f"profile {profile['name']}={value}"
    for key in ("constraints", "readinessConstraints"):
        found: list[Constraint] = chosen.get(key) or []  # type: ignore[assignment]
        for constraint in found:
            try:
                outcome = evaluate_constraint(constraint, snapshot)
            except AicrError as error:
                if any(link.code == NOT_FOUND for link in error.chain()):
                    raise invalid(
                        f'{label} cannot be validated because reading "{constraint["name"]}" is '
                        f"unavailable",
                        hint="collect a snapshot that holds it, or select another profile value",
                    ) from error
                raise AicrError(
                    error.code,
                    f'{label} cannot be validated: constraint "{constraint["name"]}" '
                    f"({constraint['value']}) cannot be evaluated on this snapshot",
                    hint=error.hint,
                ) from error
            if not outcome.passed:
                raise invalid(
                    f'{label} constraint "{constraint["name"]}" failed: expected '
                    f"{constraint['value']}, got {outcome.actual}",
                    hint=f"other values: {', '.join(v for v in profile['values'] if v != value)}",
                )
