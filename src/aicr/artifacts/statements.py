"""What an attestation says: an in-toto statement with a SLSA provenance predicate.

```
checksums.txt + facts of the bundle --statement--> bytes that are signed
signed bytes --parse--> Claims, once a signature over them has been checked
```
The subject is checksums.txt, which lists everything else, so one digest covers the whole bundle.
A statement depends on the bundle alone: no time, no path of this machine, and an invocation id
derived from the content (bundler spec 7.4, "deterministic mode"; decisions 3 and 57). When it was
signed is for a transparency log to say.

This module must not know how statements are signed or carried.
"""

from __future__ import annotations

import dataclasses
import json
import re
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Final

from aicr.artifacts import checksums
from aicr.errors import AicrError, invalid
from aicr.yamlio.jsontext import load_json

STATEMENT_TYPE: Final = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE: Final = "https://slsa.dev/provenance/v1"
BUILD_TYPE: Final = "https://aicr.run/bundle/v1"
BUILDER: Final = "https://aicr.run/cli"

_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_INVOCATIONS: Final = uuid.uuid5(uuid.NAMESPACE_URL, BUILD_TYPE)


@dataclasses.dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a bundle when it is attested.

    Attributes:
        recipe: path of the recipe in the bundle.
        deployer: name of the deployer.
        components: names in deployment order.
        tool_version: version of this program.
        dependencies: path in the bundle -> sha256 of what went in from outside (recipe, ``data/``).
        external: whether the catalogue was extended with ``--data``.
    """

    recipe: str
    deployer: str
    components: Sequence[str]
    tool_version: str
    dependencies: Mapping[str, str]
    external: bool


@dataclasses.dataclass(frozen=True, slots=True)
class Claims:
    """What a parsed statement claims.

    Attributes:
        subjects: name -> sha256.
        builder: id of what made it.
        tool_version: version of the program that made the bundle, "" when it does not say.
    """

    subjects: Mapping[str, str]
    builder: str
    tool_version: str


def statement(subjects: Mapping[str, str], facts: Facts) -> bytes:
    """The statement about *subjects* (name -> sha256 in hex), as canonical JSON.

    Raises:
        AicrError: INVALID_REQUEST for no subject, a subject without a name, or a digest that is
            not 64 lower-case hex digits (bundler spec 7.4).
    """
    if not subjects:
        raise invalid("a statement needs a subject")
    for name, digest in subjects.items():
        _check_subject(name, digest, "the statement")
    dependencies = [
        {"uri": path, "digest": {"sha256": digest}}
        for path, digest in sorted(facts.dependencies.items())
    ]
    listed = [{"name": name, "digest": {"sha256": subjects[name]}} for name in sorted(subjects)]
    document = {
        "_type": STATEMENT_TYPE,
        "subject": listed,
        "predicateType": PREDICATE_TYPE,
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": {
                    "recipe": facts.recipe,
                    "recipeSource": "external" if facts.external else "embedded",
                },
                "internalParameters": {
                    "components": list(facts.components),
                    "deployer": facts.deployer,
                    "toolVersion": facts.tool_version,
                },
                "resolvedDependencies": dependencies,
            },
            "runDetails": {
                "builder": {"id": BUILDER, "version": {"aicr": facts.tool_version}},
                "metadata": {
                    "invocationId": str(uuid.uuid5(_INVOCATIONS, json.dumps(listed))),
                },
            },
        },
    }
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


def parse(payload: bytes, *, source: str) -> Claims:
    """The claims of a statement whose signature has been checked.

    Raises:
        AicrError: INVALID_REQUEST for another kind of document or an unusable subject.
    """
    try:
        text = payload.decode()
    except UnicodeDecodeError:
        raise invalid("the attested statement is not UTF-8 text", where=source) from None
    document = load_json(text, source=source)
    if not isinstance(document, dict) or document.get("_type") != STATEMENT_TYPE:
        raise invalid("what was signed is not an in-toto statement v1", where=source)
    if document.get("predicateType") != PREDICATE_TYPE:
        raise invalid(
            f"what was signed is about {document.get('predicateType')!r}, not {PREDICATE_TYPE}",
            where=source,
        )
    subjects: dict[str, str] = {}
    listed = document.get("subject")
    for item in listed if isinstance(listed, list) else ():
        name = _dig(item, "name")
        digest = _dig(item, "digest", "sha256")
        _check_subject(name, digest, source)
        if name in subjects:
            raise invalid(f"the statement names the subject {name!r} twice", where=source)
        subjects[str(name)] = str(digest)
    if not subjects:
        raise invalid("the statement has no subject", where=source)
    definition = _dig(document, "predicate", "buildDefinition")
    if _dig(definition, "buildType") != BUILD_TYPE:
        raise invalid(
            f"the statement is about a build of type {_dig(definition, 'buildType')!r}, "
            f"not {BUILD_TYPE}",
            where=source,
        )
    return Claims(
        subjects=subjects,
        builder=_text(_dig(document, "predicate", "runDetails", "builder", "id")),
        tool_version=_text(_dig(definition, "internalParameters", "toolVersion")),
    )


def mismatch(claims: Claims, listing: bytes) -> str:
    """Why *claims* are not about the checksums.txt with these bytes, or "" when they are."""
    found = claims.subjects.get(checksums.CHECKSUMS)
    if found is None:
        return f"the attestation is not about {checksums.CHECKSUMS}"
    if set(claims.subjects) != {checksums.CHECKSUMS}:
        return f"the attestation is about more than {checksums.CHECKSUMS}"
    if found == checksums.sha256_hex(listing.replace(b"\r\n", b"\n")) and b"\r\n" in listing:
        return (
            f"the line ends of {checksums.CHECKSUMS} were changed to those of Windows, and the "
            "signature is over its bytes; fetch the bundle again without converting line ends"
        )
    if found != checksums.sha256_hex(listing):
        return f"the attestation is about another {checksums.CHECKSUMS} than the one in the bundle"
    return ""


def _check_subject(name: Any, digest: Any, where: str) -> None:
    problem: AicrError | None = None
    if not isinstance(name, str) or not name:
        problem = invalid("a subject of the statement has no name", where=where)
    elif not isinstance(digest, str) or not digest:
        problem = invalid(f"the subject {name!r} has no sha256 digest", where=where)
    elif not _SHA256.fullmatch(digest):
        problem = invalid(f"the sha256 of the subject {name!r} is not 64 hex digits", where=where)
    if problem is not None:
        raise problem


def _dig(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
