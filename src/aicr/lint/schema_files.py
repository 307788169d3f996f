"""The JSON Schemas that ship with the product, and the one use that lint makes of them.

The files in ``aicr/schemas`` are generated from the types and committed. They know which keys a
document may have; what the loader ignores because it does not know it is found by walking a document
beside its schema. Full validation is the editor's business, and in tests that of a real validator.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import aicr
from aicr.errors import nearest, not_found


def folder() -> str:
    """Where the files are."""
    return os.path.join(os.path.dirname(os.path.abspath(aicr.__file__)), "schemas")


def kinds() -> list[str]:
    """Names of the schemas, sorted."""
    return sorted(name[:-5] for name in os.listdir(folder()) if name.endswith(".json"))


def text(kind: str) -> str:
    """The schema of a kind, as text.

    Raises:
        AicrError: NOT_FOUND with the nearest kind.
    """
    known = kinds()
    if kind not in known:
        near = nearest(kind, known)
        raise not_found(
            f'there is no schema of "{kind}"',
            hint=f"did you mean {near}?" if near else f"kinds: {', '.join(known)}",
        )
    with open(os.path.join(folder(), f"{kind}.json"), encoding="utf-8") as file:
        return file.read()


def unknown_keys(kind: str, value: Any) -> Iterator[tuple[tuple[str | int, ...], list[str]]]:
    """Keys of a document that its schema does not have: their path, and what is known there."""
    schema = json.loads(text(kind))
    yield from _walk(schema, schema["definitions"], value, ())


def _walk(
    schema: dict[str, Any], definitions: dict[str, Any], value: Any, path: tuple[str | int, ...]
) -> Iterator[tuple[tuple[str | int, ...], list[str]]]:
    while "$ref" in schema or "allOf" in schema:
        part = schema if "$ref" in schema else schema["allOf"][0]
        schema = definitions[part["$ref"].rpartition("/")[2]]
    if isinstance(value, dict):
        inner = schema.get("additionalProperties")
        if isinstance(inner, dict):
            properties: dict[str, Any] = dict.fromkeys(value, inner)
        elif "properties" in schema:
            properties = schema["properties"]
        else:
            return
        for key, item in value.items():
            if key in properties:
                yield from _walk(properties[key], definitions, item, (*path, key))
            else:
                yield (*path, key), sorted(properties)
    elif isinstance(value, list) and "items" in schema:
        for index, item in enumerate(value):
            yield from _walk(schema["items"], definitions, item, (*path, index))
