"""The bill of materials of an evidence bundle: CycloneDX 1.6, handed in or made from what is known.

Made here, it has the enabled components of the recipe, one part ``validators`` with the images of the
checks, and one part ``observed-images`` with what ran in the cluster, as ``name:tag`` without registry.
What ran there is partly the customer's own: a redacted bundle names only images that the catalogue
knows, with tags that look like releases, and counts the rest. (The original names them all.) Pure.
Source: validators spec 9.3; docs/evidence.md, section Differences.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from aicr.artifacts import cyclonedx, images
from aicr.catalog.dependencies import is_enabled
from aicr.constraints import paths
from aicr.errors import AicrError, invalid
from aicr.validate.evidence import inventory

FORMAT: Final = "CycloneDX"
NAME: Final = "recipe-evidence"
VALIDATORS: Final = "validators"
OBSERVED: Final = "observed-images"
#: A bill that somebody made before.
MAX_BYTES: Final = 64 * 1024 * 1024
FLAG: Final = "--bom"

#: A release: up to three numbers. A fourth would make it an address.
_RELEASE: Final = re.compile(r"v?[0-9]{1,6}(\.[0-9]{1,6}){0,2}")

_REF_KEYS: Final = ("type", "source", "chart", "namespace")


def made(
    recipe: Mapping[str, Any],
    validators: Sequence[str],
    snapshot: Mapping[str, Any],
    *,
    version: str,
    known: Collection[str] | None,
) -> bytes:
    """The bill of a recipe, the checks' images, and what was observed.

    Args:
        recipe: the recipe document.
        validators: images of the checks.
        snapshot: the raw snapshot.
        version: of this program.
        known: names of images that may be published; None to publish all.
    """
    parts = [_component(ref) for ref in recipe.get("componentRefs") or () if is_enabled(ref)]
    checks = sorted(set(validators))
    parts.append(
        cyclonedx.Part(
            cyclonedx.APPLICATION,
            f"{NAME}/{VALIDATORS}",
            VALIDATORS,
            depends=[f"img:{image}" for image in checks],
        )
    )
    seen, withheld = observed(snapshot, known)
    properties = {"aicr:observed:count": str(len(seen) + withheld)}
    if withheld:
        properties["aicr:observed:withheld"] = str(withheld)
    parts.append(
        cyclonedx.Part(
            cyclonedx.APPLICATION,
            f"{NAME}/{OBSERVED}",
            OBSERVED,
            properties=properties,
            depends=[f"observed:{image}" for image in seen],
        )
    )
    parts += [_validator(image) for image in checks]
    for image in seen:
        name, _, tag = image.partition(":")
        parts.append(cyclonedx.Part(cyclonedx.CONTAINER, f"observed:{image}", name, version=tag))
    return inventory.dump(cyclonedx.document(NAME, version, parts))


def observed(snapshot: Mapping[str, Any], known: Collection[str] | None) -> tuple[list[str], int]:
    """(``name:tag`` of the images of a snapshot, sorted; how many are not named)."""
    subtype = paths.find_subtype(snapshot, "K8s", "image") or {}
    found: set[str] = set()
    withheld = 0
    for name, tag in (subtype.get("data") or {}).items():
        if known is None:
            found.add(f"{name}:{tag}" if tag not in (None, "") else str(name))
        elif name not in known:
            withheld += 1
        else:
            said = isinstance(tag, str) and _RELEASE.fullmatch(tag)
            found.add(f"{name}:{tag}" if said else name)
    return sorted(found), withheld


def names_of(references: Sequence[images.Reference]) -> frozenset[str]:
    """Names as a snapshot has them: the last segment of each repository."""
    return frozenset(each.repository.rpartition("/")[2] for each in references)


def check(data: bytes, source: str) -> dict[str, Any]:
    """A bill that somebody made before, if it is one.

    Raises:
        AicrError: INVALID_REQUEST when it is too large, no JSON, or not CycloneDX 1.6.
    """
    if len(data) > MAX_BYTES:
        raise invalid(f"{source} is larger than {MAX_BYTES} bytes", where=FLAG)
    document = inventory.load(data, source)
    fields = document if isinstance(document, dict) else {}
    said = (fields.get("bomFormat"), fields.get("specVersion"))
    if said != (FORMAT, cyclonedx.SPEC_VERSION):
        raise invalid(
            f"{source} is not a {FORMAT} {cyclonedx.SPEC_VERSION} document in JSON",
            where=FLAG,
            hint="aicr bom makes one",
        )
    if not isinstance(fields.get("components", []), list):
        raise invalid(f"{source}: components must be a list", where=FLAG)
    return fields


def summary(data: bytes, source: str, digest: str) -> dict[str, Any]:
    """What a predicate says about the bill: format, version, digest, and how many images.

    Raises:
        AicrError: as `check`.
    """
    components = check(data, source).get("components") or ()
    return {
        "format": FORMAT,
        "version": cyclonedx.SPEC_VERSION,
        "digest": digest,
        "imageCount": sum(
            isinstance(part, dict) and part.get("type") == cyclonedx.CONTAINER
            for part in components
        ),
    }


def _component(ref: Mapping[str, Any]) -> cyclonedx.Part:
    name, version = str(ref.get("name")), str(ref.get("version") or "")
    properties = {f"aicr:component:{key}": str(ref[key]) for key in _REF_KEYS if ref.get(key)}
    properties["aicr:version:pinned"] = "true" if version else "false"
    return cyclonedx.Part(
        cyclonedx.APPLICATION, f"{NAME}/{name}", name, version=version, properties=properties
    )


def _validator(image: str) -> cyclonedx.Part:
    try:
        reference = images.parse(image)
    except AicrError:
        # The reference of a local build need not be one that a registry takes.
        return cyclonedx.Part(cyclonedx.CONTAINER, f"img:{image}", image)
    return cyclonedx.Part(
        cyclonedx.CONTAINER,
        f"img:{image}",
        f"{reference.registry}/{reference.repository}",
        version=reference.digest or reference.tag,
        purl=reference.purl,
    )
