"""Writes a bill of materials as CycloneDX 1.6 JSON.

```
name, version, parts --document--> plain CycloneDX document
```
The parts of the format that are used are few, so it is written here, and tests hold the result
against the published schema. The serial number is derived from the content and there is no time, so
equal parts give equal bytes (decision 3). With the extra ``bom``, ``validate`` holds a document
against the schema that comes with the CycloneDX library.

It must not know where parts come from. Source: bundler spec 8.2.
"""

from __future__ import annotations

import dataclasses
import json
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Final

from aicr.artifacts.signing import missing_extra
from aicr.errors import INTERNAL, AicrError

SPEC_VERSION: Final = "1.6"
APPLICATION: Final = "application"
CONTAINER: Final = "container"

_SERIALS: Final = uuid.uuid5(uuid.NAMESPACE_URL, "https://aicr.run/bom")


@dataclasses.dataclass(frozen=True, slots=True)
class Part:
    """One component of the bill.

    Attributes:
        kind: ``APPLICATION`` or ``CONTAINER``.
        ref: its id in this document.
        name: what it is called.
        version: its version, or "".
        purl: its package URL, or "".
        properties: name -> value; a value may hold several lines of one property.
        depends: ids of the parts that it consists of.
    """

    kind: str
    ref: str
    name: str
    version: str = ""
    purl: str = ""
    properties: Mapping[str, str | Sequence[str]] = dataclasses.field(default_factory=dict)
    depends: Sequence[str] = ()


def document(name: str, version: str, parts: Sequence[Part]) -> dict[str, Any]:
    """The bill of *parts*, which are in the order they shall have.

    Args:
        name: what the bill is of.
        version: its version.
        parts: the components; each id once.
    """
    root = f"{name}@{version}"
    body = {
        "metadata": {
            "component": {"type": APPLICATION, "bom-ref": root, "name": name, "version": version}
        },
        "components": [_component(part) for part in parts],
        "dependencies": [
            {
                "ref": root,
                "dependsOn": [part.ref for part in parts if part.kind == APPLICATION],
            },
            *(
                {"ref": p.ref, "dependsOn": sorted(p.depends)}
                for p in parts
                if p.kind == APPLICATION
            ),
            *({"ref": part.ref} for part in parts if part.kind != APPLICATION),
        ],
    }
    serial = uuid.uuid5(_SERIALS, json.dumps(body, sort_keys=True))
    return {
        "$schema": f"http://cyclonedx.org/schema/bom-{SPEC_VERSION}.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": SPEC_VERSION,
        "serialNumber": f"urn:uuid:{serial}",
        "version": 1,
        **body,
    }


def _component(part: Part) -> dict[str, Any]:
    made: dict[str, Any] = {"type": part.kind, "bom-ref": part.ref, "name": part.name}
    if part.version:
        made["version"] = part.version
    if part.purl:
        made["purl"] = part.purl
    properties = []
    for name in sorted(part.properties):
        value = part.properties[name]
        properties += [
            {"name": name, "value": each} for each in ([value] if isinstance(value, str) else value)
        ]
    if properties:
        made["properties"] = properties
    return made


def validate(text: str) -> None:
    """Hold a CycloneDX text against the published schema.

    Raises:
        AicrError: INVALID_REQUEST without the extra ``bom``; INTERNAL when it does not fit.
    """
    try:
        from cyclonedx.schema import SchemaVersion  # type: ignore[import-not-found,unused-ignore]
        from cyclonedx.validation.json import JsonStrictValidator  # type: ignore[import-not-found,unused-ignore]

        problem = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    except ImportError as error:
        raise missing_extra("bom", "checking a CycloneDX document", error) from None
    except Exception as error:
        if type(error).__name__ != "MissingOptionalDependencyException":
            raise
        raise missing_extra(
            "bom", "checking a CycloneDX document", ImportError(str(error))
        ) from None
    if problem is not None:
        raise AicrError(
            INTERNAL,
            f"the document does not fit the CycloneDX {SPEC_VERSION} schema: {problem}",
            hint="this is a bug in aicr; please report it",
        )
