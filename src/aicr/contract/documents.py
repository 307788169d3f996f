"""Kinds and apiVersions of every AICR document, and the one check of a document's header.

Three tracks exist (recipe spec section 0): stable ``aicr.run/v1`` for produced documents, authoring
``aicr.run/v1beta1``, and ``aicr.run/v1beta2`` for documents that carry a profile or a typed
configuration. What v0.11.1 wrote (group ``aicr.nvidia.com``, or no apiVersion) is still read, with one
deprecation line (decisions 1 and 48); the two retired alphas are refused by name.
"""

from __future__ import annotations

from aicr.errors import invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

V1: Final = "aicr.run/v1"
V1BETA1: Final = "aicr.run/v1beta1"
V1BETA2: Final = "aicr.run/v1beta2"
VALIDATOR_CATALOG_API: Final = "validator.nvidia.com/v1alpha1"

#: What v0.11.1 wrote; accepted for every kind and converted in memory.
LEGACY: Final = ("aicr.nvidia.com/v1alpha1", "aicr.nvidia.com/v1")
RETIRED: Final = ("aicr.run/v1alpha2", "aicr.run/v1alpha3")

#: Accepted apiVersions of each kind, the one that is written first.
ACCEPTED: Final[dict[str, tuple[str, ...]]] = {
    "Snapshot": (V1,),
    "RecipeResult": (V1, V1BETA2),
    "RecipeCriteria": (V1,),
    "BundleProvenance": (V1,),
    "BundleInfo": (V1,),
    "AICRConfig": (V1BETA1,),
    "RecipeMetadata": (V1BETA1, V1BETA2),
    "RecipeMixin": (V1BETA1,),
    "ComponentRegistry": (V1BETA1,),
    "ComponentUpgrades": (V1BETA1,),
    "ValidatorCatalog": (VALIDATOR_CATALOG_API,),
}


#: Where a document of a kind comes from, for who passes another one.
_MADE_BY: Final[dict[str, str]] = {
    "Snapshot": "aicr snapshot makes one",
    "RecipeResult": "aicr recipe makes one",
    "RecipeCriteria": "a criteria file has kind: RecipeCriteria and its words under spec",
    "BundleInfo": "name the bundle-info.yaml of a bundle",
}


def is_legacy(api_version: object) -> bool:
    """Whether this apiVersion is one that v0.11.1 wrote (or left out)."""
    return api_version is None or api_version == "" or api_version in LEGACY


def legacy_notice(kind: str, api_version: object, source: str) -> str:
    """The one deprecation line for a document that v0.11.1 wrote."""
    said = f'apiVersion "{api_version}"' if api_version else "no apiVersion"
    return (
        f'{source}: {kind} has {said}, read as "{ACCEPTED[kind][0]}"; rewrite it with aicr migrate'
    )


def check_header(document: Any, kind: str, *, source: str, where: str = "") -> str:
    """Check ``kind`` and ``apiVersion`` of a document that must be of one kind.

    Returns the deprecation line for a legacy header, else "".

    Raises:
        AicrError: INVALID_REQUEST for another kind or apiVersion (recipe spec 0.3, 0.4, 1.8).
    """
    place = where or source
    if not isinstance(document, dict):
        raise invalid(
            f"expected {_a(kind)} document, found {type_name(document)}",
            where=place,
            hint=f"start the document with: kind: {kind}, apiVersion: {ACCEPTED[kind][0]}",
        )
    found = document.get("kind")
    if found != kind and found not in (None, ""):
        raise invalid(
            f'invalid kind "{found}", expected "{kind}"',
            where=place,
            hint=_MADE_BY.get(kind, f"write kind: {kind}, or name another file"),
        )
    api_version = document.get("apiVersion")
    if not found and api_version:
        raise invalid(
            f'invalid kind "", expected "{kind}"', where=place, hint=f"add the line kind: {kind}"
        )
    if is_legacy(api_version):
        return legacy_notice(kind, api_version, source)
    accepted = ACCEPTED[kind]
    if api_version not in accepted:
        expected = " or ".join(f'"{a}"' for a in accepted)
        retired = f" ({api_version} was retired in v1.0.0)" if api_version in RETIRED else ""
        raise invalid(
            f'invalid apiVersion "{api_version}", expected {expected}{retired}',
            where=place,
            hint=f"write apiVersion: {accepted[0]}",
        )
    return ""


def _a(kind: str) -> str:
    return f"an {kind}" if kind.startswith("A") else f"a {kind}"


def type_name(value: object) -> str:
    """What a YAML value is, in words for a message: a map, a list, text, nothing …"""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, dict):
        return "a map"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, str):
        return "text"
    return "a number"
