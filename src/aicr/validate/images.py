"""Images of checks where validation has something to say about them: whose they are, what is missing,
what evidence may name. The rules on references themselves are in `aicr.contract.images`.

Source: validators spec 9.6; decision 41.
"""

from __future__ import annotations

import re

from aicr.contract.container import IMAGE_REGISTRY, IMAGE_TAG
from aicr.contract.images import is_mutable
from aicr.errors import AicrError, invalid


def is_ours(image: str) -> bool:
    """Whether an image is one of this product's check images, whatever registry it is in."""
    name = image.partition("@")[0].rpartition("/")[2].partition(":")[0]
    return name.startswith("aicr-checks-")


def refuse_mutable(images: list[str]) -> None:
    """Refuse images that an attestation could not name for good.

    Raises:
        AicrError: INVALID_REQUEST that lists them.
    """
    found = sorted({image for image in images if is_mutable(image)})
    if found:
        raise invalid(
            "evidence records validator images by their tag, and these tags can move: "
            + ", ".join(found),
            where="--emit-attestation",
            hint=f"drop {IMAGE_TAG} or set it to sha-<commit>; for evidence that is thrown away: "
            "--allow-mutable-validator-tags",
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
