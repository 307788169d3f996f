"""Image references of checks, and of what checks start: which one is used, and when a node pulls it.

The catalogue names every image with ``:latest``; the tag becomes that of the program that runs, so
that checks and program belong together. Two variables override it. The outer Job and the workloads
that a check starts use these same functions, so the two cannot drift (V-116). Pure text in, text
out; this module must not know the catalogue or Jobs.

Source: validators spec 2.4, 2.5, 9.6; decision 41.
"""

from __future__ import annotations

import re
from typing import Final

from aicr.values import references

NEVER: Final = "Never"
ALWAYS: Final = "Always"
IF_NOT_PRESENT: Final = "IfNotPresent"
#: Registries that exist only on the nodes themselves; ours first.
OUR_PREFIX: Final = "aicr.local/"
SIDE_LOADED: Final = (OUR_PREFIX, "ko.local/", "kind.local/")

_LATEST: Final = ":latest"
_RELEASE: Final = re.compile(r"v?(\d+\.\d+\.\d+(?:-[0-9A-Za-z.]+)?)")
_COMMIT: Final = re.compile(r"[0-9A-Fa-f]{7,40}")
_IMMUTABLE_TAG: Final = re.compile(
    r"v\d+\.\d+\.\d+(-[0-9A-Za-z.]+)?|sha-[0-9a-f]{7,40}|uat-[0-9A-Za-z]+"
)


def resolve(
    image: str, *, version: str = "", commit: str = "", tag: str = "", registry: str = ""
) -> str:
    """The reference that is really used.

    Args:
        image: as the catalogue has it.
        version, commit: of the running program; a commit that is none is passed over.
        tag: replaces every tag, unless the image is pinned by digest.
        registry: replaces the registry, of digests too.
    """
    return _with_registry(_with_tag(_stamped(image, version, commit), tag), registry)


def is_release(version: str) -> bool:
    """Whether *version* names a release, or a pre-release that was published."""
    return bool(_RELEASE.fullmatch(version)) and not version.endswith("-next")


def _stamped(image: str, version: str, commit: str) -> str:
    if not image.endswith(_LATEST):
        return image
    bare = image.removesuffix(_LATEST)
    if is_release(version):
        return f"{bare}:v{version.removeprefix('v')}"
    if _COMMIT.fullmatch(commit):
        return f"{bare}:sha-{commit.lower()}"
    return image


def _with_tag(image: str, tag: str) -> str:
    if not tag or "@" in image:
        return image
    return f"{image.removesuffix(f':{tag_of(image)}') if tag_of(image) else image}:{tag}"


def _with_registry(image: str, registry: str) -> str:
    parts = image.split("/", 2)
    if not registry or len(parts) == 1:
        return image
    return f"{registry.rstrip('/')}/{parts[-1]}"


def tag_of(image: str) -> str:
    """The tag of a reference, "" if it has none: a colon before the last slash is a port."""
    return references.last_segment(image)[1] or ""


def pull_policy(image: str, tag_override: str = "") -> str:
    """When a node pulls *image*: ``Never``, ``IfNotPresent`` or ``Always``.

    Args:
        image: the resolved reference.
        tag_override: the value of ``AICR_VALIDATOR_IMAGE_TAG``, "" if unset.
    """
    if image.startswith(SIDE_LOADED):
        return NEVER
    if "@" in image:
        return IF_NOT_PRESENT
    if tag_override or image.endswith(_LATEST):
        return ALWAYS
    return IF_NOT_PRESENT


def is_mutable(image: str) -> bool:
    """Whether the image behind a reference can change without the reference changing."""
    return "@" not in image and not _IMMUTABLE_TAG.fullmatch(tag_of(image))
