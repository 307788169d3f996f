"""The snapshot document: read from text, checked for shape, converted when an older version wrote
it.

A snapshot is a plain dict in wire form (recipe spec 8.1). Reading is by content, not by file name:
text that starts like a JSON object is JSON. A cluster of 20,000 nodes makes documents of tens of
megabytes, so JSON goes through the standard decoder and YAML through the fast reader first, and the
shape check looks at each entry once.

The check is strict about structure and lenient about extras: unknown fields are left alone, because
newer collectors may write more, while a wrong structure is an error that names the place. Readings
are not judged here; whoever needs one says what it must be.

This module must not know constraints or criteria. Source: recipe spec 0.3, 0.4, 8.1, decisions 1,
48.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aicr.constraints.paths import TYPES
from aicr.contract import documents
from aicr.errors import AicrError, invalid

if TYPE_CHECKING:
    from typing import Final

KIND: Final = "Snapshot"


def load(text: str, source: str, *, mode: str = "helm") -> tuple[dict[str, Any], list[str]]:
    """Read a snapshot from YAML or JSON text.

    Args:
        text: the whole document.
        source: what to call it in messages, usually the file name.
        mode: how YAML scalars read, as in ``aicr.yamlio.read.load``.

    Returns:
        The document with a current header, and notices for the user (one line each): a legacy
        header, a measurement or subtype that is hidden by an earlier one of the same name.

    Raises:
        AicrError: INVALID_REQUEST for text that does not parse and for a wrong header or shape.
    """
    text = text.removeprefix("\ufeff")
    document = _read(text, source, mode)
    if document is None:
        raise invalid("snapshot is empty", where=source, hint="aicr snapshot writes one")
    notices = validate(document, source)
    if document.get("apiVersion") != documents.V1 or document.get("kind") != KIND:
        header = {"kind": KIND, "apiVersion": documents.V1}
        document = header | {k: v for k, v in document.items() if k not in header}
    return document, notices


def validate(document: Any, source: str) -> list[str]:
    """Check header and shape of a snapshot; return notices as ``load`` does.

    Raises:
        AicrError: INVALID_REQUEST naming the entry, such as ``measurements[2].subtypes[0].data``.
    """
    notice = documents.check_header(document, KIND, source=source)
    notices = [notice] if notice else []
    metadata = document.get("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        raise _misshapen(source, "metadata", "a map", metadata)
    measurements = document.get("measurements")
    if measurements is None and "measurements" not in document:
        raise invalid(
            "snapshot has no measurements",
            where=source,
            hint="the document needs a list under measurements:; aicr snapshot writes one",
        )
    seen: set[str] = set()
    for index, measurement in enumerate(_listed(measurements, source, "measurements")):
        place = f"measurements[{index}]"
        if not isinstance(measurement, dict):
            raise _misshapen(source, place, "a map", measurement)
        type_ = measurement.get("type")
        if type_ not in TYPES:
            raise invalid(
                f'invalid measurement type "{type_}"',
                where=f"{source}: {place}.type",
                hint=f"valid types: {', '.join(TYPES)} (case matters)",
                context={"validTypes": list(TYPES)},
            )
        if type_ in seen:
            notices.append(f"{source}: {place} is a second {type_} measurement and is not read")
        seen.add(type_)
        notices += _validate_subtypes(measurement, source, place)
    return notices


def _validate_subtypes(measurement: dict[str, Any], source: str, place: str) -> list[str]:
    notices = []
    seen: set[str] = set()
    for index, subtype in enumerate(
        _listed(measurement.get("subtypes"), source, f"{place}.subtypes")
    ):
        here = f"{place}.subtypes[{index}]"
        if not isinstance(subtype, dict):
            raise _misshapen(source, here, "a map", subtype)
        name = subtype.get("subtype")
        if name is None:
            spelt = ' (it has "name:", and the key is "subtype:")' if "name" in subtype else ""
            notices.append(f"{source}: {here} has no subtype and is not read{spelt}")
        elif not isinstance(name, str):
            raise _misshapen(source, f"{here}.subtype", "text", name)
        elif name in seen:
            notices.append(f"{source}: {here} is a second subtype {name} and is not read")
        seen.add(name or "")
        _validate_content(subtype, source, here)
    return notices


def _validate_content(subtype: dict[str, Any], source: str, place: str) -> None:
    data, items = subtype.get("data"), subtype.get("items")
    if data is None and not items:
        raise invalid(
            "subtype has neither data nor items",
            where=f"{source}: {place}",
            hint="write data: {} when nothing was measured",
        )
    for field in ("data", "context"):
        value = subtype.get(field)
        if value is not None and not isinstance(value, dict):
            raise _misshapen(source, f"{place}.{field}", "a map", value)
    for index, item in enumerate(_listed(items, source, f"{place}.items")):
        if not isinstance(item, dict):
            raise _misshapen(source, f"{place}.items[{index}]", "a map", item)
        for field in ("data", "context"):
            value = item.get(field)
            if value is not None and not isinstance(value, dict):
                raise _misshapen(source, f"{place}.items[{index}].{field}", "a map", value)


def _listed(value: object, source: str, place: str) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise _misshapen(source, place, "a list", value)
    return value


def _misshapen(source: str, place: str, expected: str, found: object) -> AicrError:
    return invalid(
        f"{place} must be {expected}, found {documents.type_name(found)}",
        where=source,
        hint="the shape of a snapshot is in the reference, section Snapshot",
    )


def _read(text: str, source: str, mode: str) -> Any:
    from aicr import yamlio
    from aicr.yamlio import jsontext

    if jsontext.is_json(text):
        return jsontext.load_json(text, source=source)

    return yamlio.read_fast(text, source=source, mode=mode)
