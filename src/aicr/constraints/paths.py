"""The path of a constraint: which reading of a snapshot it speaks of, and how to fetch it.

``{Type}.{Subtype}.{Key}`` names a scalar reading; ``{Type}.{Subtype}[<selector>].{Key}`` names a
reading of one item of a list, chosen by index or by ``key=value``. Keys may contain dots; so may
systemd unit names, which is why SystemD paths are split at their last dot.

A snapshot is a plain document here. Fetching never guesses: what is absent is NOT_FOUND, what is
ambiguous is CONFLICT. This module must not know expressions or which readings collectors write.
Source: recipe spec 8.1 and 8.2.
"""

from __future__ import annotations

from aicr.errors import CONFLICT, AicrError, invalid, not_found

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Final

    Selector = int | tuple[str, str]

#: Measurement types, in the order of the snapshot schema; names are case-sensitive.
TYPES: Final = ("K8s", "GPU", "OS", "SystemD", "NodeTopology", "NetworkTopology")

_FORMAT: Final = "invalid constraint path: expected format {Type}.{Subtype}.{Key}"
_FORMAT_ITEMS: Final = "invalid constraint path: expected format {Type}.{Subtype}[selector].{Key}"
_EXAMPLE: Final = "for example K8s.server.version or NetworkTopology.pfs[rail=0].pciAddress"
_DIGITS: Final = frozenset("0123456789")
#: More digits than any list has items; longer numbers are refused before they are converted.
_MAX_INDEX_DIGITS: Final = 9
#: Floats print with an exponent from this power of ten up (and below the minus fourth).
_EXPONENT_FROM: Final = 6


class MeasurementPath:
    """A parsed path.

    Attributes:
        type, subtype, key: the three names.
        selector: None for a scalar reading, an item's index, or a (key, value) predicate.
        text: the path as written.
    """

    __slots__ = ("key", "selector", "subtype", "text", "type")

    def __init__(
        self, text: str, type_: str, subtype: str, key: str, selector: Selector | None
    ) -> None:
        self.text = text
        self.type = type_
        self.subtype = subtype
        self.key = key
        self.selector = selector


def parse(text: str) -> MeasurementPath:
    """Read a path (recipe spec 8.2).

    Raises:
        AicrError: INVALID_REQUEST with the message of the table in 8.2.
    """
    if not text.strip():
        raise invalid("constraint path cannot be empty", hint=_EXAMPLE)
    type_, dot, rest = text.partition(".")
    if not dot:
        raise invalid(_FORMAT_ITEMS, hint=f'"{text}" names no subtype and key; {_EXAMPLE}')
    if type_ not in TYPES:
        raise invalid(
            "invalid measurement type in constraint path",
            hint=f'"{type_}" is none of {", ".join(TYPES)} (case matters)',
            context={"type": type_, "validTypes": list(TYPES)},
        )
    bracket, first_dot = rest.find("["), rest.find(".")
    if bracket >= 0 and (first_dot < 0 or bracket < first_dot):
        return _parse_item(text, type_, rest, bracket)
    if first_dot < 0:
        raise invalid(_FORMAT, hint=f'"{text}" names no key; {_EXAMPLE}')
    split = rest.rfind(".") if type_ == "SystemD" else first_dot
    subtype, key = rest[:split], rest[split + 1 :]
    if not subtype or not key:
        raise invalid("invalid constraint path: subtype or key is empty", hint=f'in "{text}"')
    return MeasurementPath(text, type_, subtype, key, None)


def _parse_item(text: str, type_: str, rest: str, bracket: int) -> MeasurementPath:
    place = f'in "{text}"; {_EXAMPLE}'
    subtype = rest[:bracket]
    if not subtype:
        raise invalid("invalid constraint path: subtype before '[' is empty", hint=place)
    close = rest.find("]", bracket)
    if close < 0:
        raise invalid("invalid constraint path: unclosed item selector bracket", hint=place)
    selector = _parse_selector(rest[bracket + 1 : close], place)
    after = rest[close + 1 :]
    if after in ("", "."):
        raise invalid("invalid constraint path: missing key after item selector", hint=place)
    if after[0] != ".":
        raise invalid("invalid constraint path: expected '.' after item selector", hint=place)
    return MeasurementPath(text, type_, subtype, after[1:], selector)


def _parse_selector(text: str, place: str) -> Selector:
    if not text:
        raise invalid("invalid constraint path: item selector is empty", hint=place)
    key, equals, value = text.partition("=")
    if equals:
        if not key or not value:
            raise invalid(
                "invalid constraint path: predicate selector requires non-empty key and value",
                hint=place,
            )
        return (key, value)
    digits = text[1:] if text[0] == "-" else text
    if not digits or not _DIGITS.issuperset(digits) or len(digits) > _MAX_INDEX_DIGITS:
        raise invalid(
            "invalid constraint path: item selector must be an integer index "
            "or 'key=value' predicate",
            hint=place,
        )
    if text[0] == "-":
        raise invalid("invalid constraint path: item index cannot be negative", hint=place)
    return int(digits)


def find_subtype(snapshot: Mapping[str, Any], type_: str, subtype: str) -> Mapping[str, Any] | None:
    """The first subtype of that name in the first measurement of that type, or None."""
    measurement = _first(snapshot.get("measurements"), "type", type_)
    return None if measurement is None else _first(measurement.get("subtypes"), "subtype", subtype)


def extract(snapshot: Mapping[str, Any] | None, path: MeasurementPath) -> str:
    """The reading a path names, rendered as text (recipe spec 8.2).

    Raises:
        AicrError: NOT_FOUND when a step of the path is absent, CONFLICT when a predicate matches
            several items, INVALID_REQUEST for no snapshot or a reading that has no text.
    """
    if snapshot is None:
        raise invalid("snapshot is nil", hint="pass a snapshot; aicr snapshot collects one")
    measurement = _first(snapshot.get("measurements"), "type", path.type)
    if measurement is None:
        raise not_found("measurement type not found in snapshot", hint=_absent(snapshot, path))
    subtype = _first(measurement.get("subtypes"), "subtype", path.subtype)
    if subtype is None:
        raise not_found("subtype not found in measurement", hint=_absent(snapshot, path))
    if path.selector is None:
        data = subtype.get("data") or {}
        if data.get(path.key) is None:
            raise not_found("key not found in subtype", hint=_absent(snapshot, path))
        return render(data[path.key])
    items = subtype.get("items")
    if not items:
        raise not_found(
            "subtype has no items but path uses an item selector", hint=_absent(snapshot, path)
        )
    reading = _item_reading(_select(items, path.selector, path), path.key)
    if reading is None:
        raise not_found("key not found in item", hint=_absent(snapshot, path))
    return render(reading)


def render(reading: object) -> str:
    """A reading as text: booleans as ``true`` and ``false``, whole numbers in decimal.

    A float prints in its shortest form, with an exponent from a million up and below a
    ten-thousandth, as the original prints one; 4.0 prints ``4``. Lists and maps, which no collector
    writes, print in brackets.
    """
    if isinstance(reading, str):
        return reading
    if isinstance(reading, bool):
        return "true" if reading else "false"
    if isinstance(reading, float):
        return _render_float(reading)
    if isinstance(reading, list):
        return f"[{' '.join(map(render, reading))}]"
    if isinstance(reading, dict):
        inner = " ".join(f"{key}:{render(reading[key])}" for key in sorted(reading))
        return f"map[{inner}]"
    return "<nil>" if reading is None else str(reading)


def _render_float(value: float) -> str:
    if value != value or value in (float("inf"), float("-inf")):
        return {"nan": "NaN", "inf": "+Inf", "-inf": "-Inf"}[str(value)]
    # repr has the shortest digits that read back as the same number; only its layout differs.
    mantissa, _, exponent = f"{value!r}".partition("e")
    sign = "-" if mantissa.startswith("-") else ""
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    digits = (whole + fraction).lstrip("0")
    point = int(exponent or 0) + len(whole)
    if not digits:
        return f"{sign}0"
    point -= len(whole + fraction) - len(digits)
    digits = digits.rstrip("0")
    power = point - 1
    if power < -4 or power >= _EXPONENT_FROM:
        tail = f".{digits[1:]}" if len(digits) > 1 else ""
        return f"{sign}{digits[0]}{tail}e{'-' if power < 0 else '+'}{abs(power):02d}"
    if point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    if point >= len(digits):
        return sign + digits + "0" * (point - len(digits))
    return f"{sign}{digits[:point]}.{digits[point:]}"


def _first(entries: Sequence[Any] | None, field: str, name: str) -> Mapping[str, Any] | None:
    for entry in entries or ():
        if isinstance(entry, dict) and entry.get(field) == name:
            return entry
    return None


def _item_reading(item: Mapping[str, Any], key: str) -> object:
    """The item's measured value of that name, else its descriptive one, else None."""
    reading = (item.get("data") or {}).get(key)
    return reading if reading is not None else (item.get("context") or {}).get(key)


def _select(
    items: Sequence[Mapping[str, Any]], selector: Selector, path: MeasurementPath
) -> Mapping[str, Any]:
    if isinstance(selector, int):
        if selector >= len(items):
            raise not_found(
                "item index out of bounds",
                hint=f'"{path.text}" asks for item {selector} of {len(items)}, counted from 0',
            )
        return items[selector]
    key, value = selector
    matches = [
        item
        for item in items
        if (reading := _item_reading(item, key)) is not None and render(reading) == value
    ]
    if not matches:
        raise not_found(
            "no item matches predicate",
            hint=f"none of {len(items)} items of {path.type}.{path.subtype} has {key}={value}",
        )
    if len(matches) > 1:
        raise AicrError(
            CONFLICT,
            "item predicate matches multiple entries",
            hint=f"{len(matches)} items of {path.type}.{path.subtype} have {key}={value}; "
            f"use a key that is unique, or an index",
        )
    return matches[0]


def _absent(snapshot: Mapping[str, Any], path: MeasurementPath) -> str:
    """Who should have written the reading: the next step for somebody who misses it."""
    node = (snapshot.get("metadata") or {}).get("source-node")
    source = f" of node {node}" if node else ""
    return (
        f'measurement "{path.text}" is not in the snapshot{source}: '
        f"the {path.type} collector wrote no {path.type}.{path.subtype} with it; "
        f"run aicr snapshot again where the {path.type} collector can work"
    )
