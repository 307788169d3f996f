"""``manifest.json``: which files a bundle has, how large they are, and their digests.

It leaves out itself and the two files that speak about it: the statement, which holds its digest, and
the attestation, which signs that. Everything else that is there must be listed, and the other way
round. Pure. Source: validators spec 9.3; field pain 77.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from aicr.artifacts import checksums
from aicr.errors import AicrError, invalid
from aicr.yamlio.jsontext import load_json

MANIFEST: Final = "manifest.json"
STATEMENT: Final = "statement.intoto.json"
ATTESTATION: Final = "attestation.intoto.jsonl"
EXCLUDED: Final = frozenset({MANIFEST, STATEMENT, ATTESTATION})
SCHEMA_VERSION: Final = "1.0.0"

_MEDIA_TYPES: Final = {
    ".cdx.json": "application/vnd.cyclonedx+json",
    ".json": "application/json",
    ".yaml": "application/yaml",
}


def manifest(files: Mapping[str, bytes]) -> bytes:
    """The text of manifest.json for *files* (relative path → bytes)."""
    listed = [_entry(path, files[path]) for path in sorted(files) if path not in EXCLUDED]
    return dump({"schemaVersion": SCHEMA_VERSION, "files": listed})


def dump(document: Any) -> bytes:
    """JSON with two blanks of indent and a newline at its end."""
    return (json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def load(data: bytes, source: str) -> Any:
    """The value of a JSON file.

    Raises:
        AicrError: INVALID_REQUEST when it is not UTF-8 or no strict JSON.
    """
    try:
        return load_json(data.decode(), source=source)
    except UnicodeDecodeError:
        raise invalid("not UTF-8 text", where=source) from None


def examine(files: Mapping[str, bytes]) -> list[str]:
    """Every difference between *files* and their manifest, each beginning with a path."""
    if MANIFEST not in files:
        return [f"{MANIFEST}: is missing"]
    try:
        document = load(files[MANIFEST], MANIFEST)
    except AicrError as error:
        return [f"{MANIFEST}: {error.message}"]
    listed, problems = _listed(document)
    for path in sorted(files):
        if path in EXCLUDED:
            continue
        if path not in listed:
            problems.append(f"{path}: file is not listed in {MANIFEST}")
            continue
        size, digest = listed[path]
        if len(files[path]) != size:
            problems.append(f"{path}: has {len(files[path])} bytes, and {size} are listed")
        elif checksums.sha256_hex(files[path]) != digest:
            problems.append(f"{path}: content differs from its digest in {MANIFEST}")
    problems += [f"{path}: listed file is missing" for path in listed if path not in files]
    return sorted(problems)


def count(data: bytes) -> int:
    """How many files a manifest lists; -1 when it cannot be read."""
    try:
        document = load(data, MANIFEST)
    except AicrError:
        return -1
    files = document.get("files") if isinstance(document, dict) else None
    return len(files) if isinstance(files, list) else -1


def _entry(path: str, data: bytes) -> dict[str, Any]:
    made: dict[str, Any] = {
        "path": path,
        "size": len(data),
        "sha256": checksums.sha256_hex(data),
    }
    for ending, media_type in _MEDIA_TYPES.items():
        if path.endswith(ending):
            return {**made, "mediaType": media_type}
    return made


def _listed(document: Any) -> tuple[dict[str, tuple[int, str]], list[str]]:
    """Size and digest by path, and what is wrong with the list itself."""
    if not isinstance(document, dict) or document.get("schemaVersion") != SCHEMA_VERSION:
        return {}, [f"{MANIFEST}: is not an inventory of schema version {SCHEMA_VERSION}"]
    entries = document.get("files")
    if not isinstance(entries, list) or not entries:
        return {}, [f"{MANIFEST}: lists no files"]
    listed: dict[str, tuple[int, str]] = {}
    problems = []
    for number, entry in enumerate(entries):
        fields = entry if isinstance(entry, dict) else {}
        path, size, digest = (fields.get(key) for key in ("path", "size", "sha256"))
        if not isinstance(path, str) or type(size) is not int or not isinstance(digest, str):
            problems.append(f"{MANIFEST}: files[{number}] has no path, size and sha256")
            continue
        fault = checksums.listing_fault(path, listed, EXCLUDED)
        if fault:
            problems.append(f"{MANIFEST}: path {path!r} {fault}")
        else:
            listed[path] = (size, digest)
    return listed, problems
