"""Images of checks where validation has something to say about them: whose they are, what is missing,
what evidence may name. The rules on references themselves are in `aicr.contract.images`.

Source: validators spec 9.6; decision 41.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from aicr.contract.container import IMAGE_REGISTRY, IMAGE_TAG
from aicr.contract.images import is_mutable
from aicr.errors import AicrError, invalid
from aicr.values import references


def is_ours(image: str) -> bool:
    """Whether an image is one of this product's check images, whatever registry it is in."""
    return references.last_segment(image)[0].startswith("aicr-checks-")


def mutable(images: Iterable[str]) -> list[str]:
    """Those of some images that an attestation could not name for good, each once."""
    return sorted({image for image in images if is_mutable(image)})


def refuse_mutable(images: Iterable[str], tag: str = "") -> None:
    """Refuse images that an attestation could not name for good.

    Args:
        images: as they would be used.
        tag: what ``AICR_VALIDATOR_IMAGE_TAG`` says, "" if it is not set.

    Raises:
        AicrError: INVALID_REQUEST that lists them.
    """
    found = mutable(images)
    if found:
        if tag:
            way = (
                f"{IMAGE_TAG} asks for {tag}: unset it, or set it to a tag that stays, such as "
                "sha-<commit>"
            )
        else:
            # Only a release or a build from a commit knows which images are its own.
            way = (
                f"give the images a tag that stays, such as sha-<commit>, and name it in {IMAGE_TAG}; "
                "a released aicr asks for its own version"
            )
        raise invalid(
            "evidence records validator images by their tag, and these tags can move: "
            + ", ".join(found),
            where="--emit-attestation",
            hint=f"{way}; for evidence that is thrown away: --allow-mutable-validator-tags",
        )


def not_on_node(image: str, node: str) -> str:
    """What to say when a node lacks an image that it must not pull."""
    on = f"node {node}" if node else "the node"
    return (
        f"image {image} is not on {on}, and images of {image.partition('/')[0]} are never pulled: "
        f"build it (docs/validate.md, section Images) and load it on every node (kind load docker-image "
        f"{image}, or ctr -n k8s.io images import), or push it and set {IMAGE_REGISTRY}"
    )


def check_reference(name: str, value: str) -> str:
    """A tag or registry from the environment, trimmed.

    Raises:
        AicrError: INVALID_REQUEST for characters that no reference has.
    """
    text = value.strip()
    if text and not re.fullmatch(r"[0-9A-Za-z._:/\-\[\]]+", text):
        raise _odd(name, value)
    return text


def _odd(name: str, value: str) -> AicrError:
    return invalid(f"{value!r} cannot be part of an image reference", where=name)
