"""Profile declarations: a named choice whose every value sets the same paths (recipe spec 4.11)."""

from __future__ import annotations

from aicr.errors import invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from aicr.catalog.decoder import Decoder, Path
    from aicr.catalog.types import Profile, ProfileValue

IDENTIFIER: Final = r"[A-Za-z0-9._-]+"
_MAX_SAFE_INTEGER: Final = 2**53 - 1


def decode_profile(decoder: Decoder, value: Any, place: Path) -> Profile:
    """The ``spec.profile`` of an overlay, with every static rule checked.

    Raises:
        AicrError: INVALID_REQUEST naming the rule.
    """
    import re

    raw = decoder.as_map(value, place, "profile")
    decoder.known_keys(raw, ("name", "description", "default", "values"), place)
    name = decoder.as_text(raw.get("name"), (*place, "name"), "profile.name")
    default = decoder.as_text(raw.get("default"), (*place, "default"), "profile.default")
    if not re.fullmatch(IDENTIFIER, name):
        raise invalid(
            "profile name and value must match [A-Za-z0-9._-]+",
            where=decoder.where((*place, "name")),
        )
    values: dict[str, ProfileValue] = {}
    lowered: dict[str, str] = {}
    entries = decoder.as_map(raw.get("values"), (*place, "values"), "profile.values")
    for key, item in entries.items():
        here = (*place, "values", key)
        if not re.fullmatch(IDENTIFIER, key):
            raise invalid(
                "profile name and value must match [A-Za-z0-9._-]+", where=decoder.where(here)
            )
        if key.lower() in lowered:
            raise invalid(
                f'profile "{name}" has values "{lowered[key.lower()]}" and "{key}" that differ '
                f"only in case",
                where=decoder.where(here),
            )
        lowered[key.lower()] = key
        values[key] = _value(decoder, item, here)
    if default not in values:
        raise invalid(
            f'profile "{name}" has default "{default}", which is not one of its values: '
            f"{', '.join(values) or 'none'}",
            where=decoder.where((*place, "default")),
        )
    profile: Profile = {"name": name, "default": default, "values": values}
    if raw.get("description"):
        here = (*place, "description")
        profile["description"] = decoder.as_text(raw["description"], here, "description")
    _check_totality(profile, decoder.where(place))
    return profile


def _value(decoder: Decoder, item: Any, here: Path) -> ProfileValue:
    entry = decoder.as_map(item, here, "profile value")
    decoder.known_keys(
        entry, ("advertiser", "constraints", "readinessConstraints", "componentRefs"), here
    )
    value: ProfileValue = {}
    advertiser = decoder.as_text(entry.get("advertiser"), (*here, "advertiser"), "advertiser")
    if advertiser not in ("", "external"):
        raise invalid(
            f'advertiser must be "external" or absent, found "{advertiser}"',
            where=decoder.where((*here, "advertiser")),
        )
    if advertiser:
        value["advertiser"] = advertiser
    if entry.get("constraints"):
        place = (*here, "constraints")
        value["constraints"] = decoder.constraints(entry["constraints"], place, "constraints")
    if entry.get("readinessConstraints"):
        place = (*here, "readinessConstraints")
        value["readinessConstraints"] = decoder.constraints(
            entry["readinessConstraints"], place, "readinessConstraints"
        )
    refs = decoder.as_list(entry.get("componentRefs"), (*here, "componentRefs"), "componentRefs")
    for index, ref in enumerate(refs):
        place = (*here, "componentRefs", index)
        block = decoder.as_map(ref, place, "componentRef")
        for key in block:
            if key not in ("name", "overrides"):
                raise invalid(
                    f'a profile may only set name and overrides of a component, not "{key}"',
                    where=decoder.where((*place, key)),
                )
        overrides = decoder.as_map(block.get("overrides"), (*place, "overrides"), "overrides")
        _check_overrides(overrides, decoder, (*place, "overrides"))
        component = decoder.as_text(block.get("name"), (*place, "name"), "name")
        if not component:
            raise invalid(f"componentRefs[{index}]: name is required", where=decoder.where(place))
        value.setdefault("componentRefs", []).append({"name": component, "overrides": overrides})
    return value


def _check_overrides(value: Any, decoder: Decoder, place: Path) -> None:
    if isinstance(value, dict):
        if not value:
            raise invalid("a profile override may not be an empty map", where=decoder.where(place))
        for key, item in value.items():
            here = (*place, key)
            if not key or "." in key:
                raise invalid(
                    f'profile override key "{key}" is empty or holds a dot',
                    where=decoder.where(here),
                )
            if key == "enabled" and place[-1] == "overrides":
                raise invalid("a profile may not set enabled", where=decoder.where(here))
            _check_overrides(item, decoder, here)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            # A list is one value: maps in it are free, numbers must survive JSON as anywhere else.
            if not isinstance(item, dict):
                _check_overrides(item, decoder, (*place, index))
    elif isinstance(value, int) and not isinstance(value, bool):
        if abs(value) > _MAX_SAFE_INTEGER:
            raise invalid(
                f"{value} does not survive JSON (beyond 2^53-1)", where=decoder.where(place)
            )
    elif isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        raise invalid("a profile override must be a finite number", where=decoder.where(place))


def assigned_paths(value: ProfileValue) -> list[tuple[str, str]]:
    """Sorted ``(component, dotted path)`` pairs that a profile value sets; lists are leaves."""
    found: list[tuple[str, str]] = []

    def walk(component: str, node: Any, trail: str) -> None:
        if isinstance(node, dict):
            for key, item in node.items():
                walk(component, item, f"{trail}.{key}" if trail else key)
        else:
            found.append((component, trail))

    for ref in value.get("componentRefs", ()):
        walk(ref["name"], ref.get("overrides", {}), "")
    return sorted(found)


def _check_totality(profile: Profile, where: str) -> None:
    assigned = {name: assigned_paths(value) for name, value in profile["values"].items()}
    expected = sorted({pair for pairs in assigned.values() for pair in pairs})
    for name, pairs in assigned.items():
        if pairs != expected:
            raise invalid(
                f'profile "{profile["name"]}" violates union totality: value "{name}" assigns '
                f"{_show(pairs)}, expected {_show(expected)}",
                where=where,
                hint="every value must set the same component paths",
            )


def _show(pairs: list[tuple[str, str]]) -> str:
    return "[" + ", ".join(f"{component}:{path}" for component, path in pairs) + "]"
