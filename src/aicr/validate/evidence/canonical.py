"""The one form of a document that digests are taken of.

YAML without comments, keys sorted by code point at every depth, two blanks of indent. A recipe loses
``metadata.version`` as well: which release wrote it does not change what is deployed, so two releases
give one subject. Evidence of versions 1 and 2 kept that key. Pure. Source: validators spec 9.3, §10
case 87.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from aicr.artifacts import checksums
from aicr.errors import invalid
from aicr.yamlio import write

#: Criteria that name a recipe, in that order.
_NAMED_BY: Final = ("accelerator", "service", "os", "intent", "platform")
_ANY: Final = "any"
NAMELESS: Final = "recipe"


def text(document: Any) -> bytes:
    """*document* in canonical form."""
    return write.dump(document, sort_keys=True).encode()


def recipe(document: Mapping[str, Any], *, keep_version: bool = False) -> bytes:
    """A recipe in canonical form, the bytes whose sha256 is the subject of its evidence.

    Args:
        keep_version: the form of evidence versions 1 and 2.

    Raises:
        AicrError: INVALID_REQUEST for an empty document.
    """
    if not document:
        raise invalid("the recipe is empty", hint="aicr recipe makes one")
    made = dict(document)
    metadata = made.get("metadata")
    if isinstance(metadata, Mapping) and not keep_version:
        made["metadata"] = {key: value for key, value in metadata.items() if key != "version"}
    return text(made)


def digest(data: bytes) -> str:
    """The sha256 of *data*, 64 lower-case hex digits."""
    return checksums.sha256_hex(data)


def recipe_name(document: Mapping[str, Any]) -> str:
    """What the recipe's evidence is called: its criteria joined by hyphens; ``recipe`` when all are
    open.

    Raises:
        AicrError: INVALID_REQUEST ``recipe has no resolvable name`` without criteria, or when a
            criterion cannot be part of a file name.
    """
    criteria = document.get("criteria")
    if not isinstance(criteria, Mapping):
        raise invalid(
            "recipe has no resolvable name", where="criteria", hint="a recipe states its criteria"
        )
    parts = [str(criteria.get(key) or "") for key in _NAMED_BY]
    name = "-".join(part for part in parts if part and part != _ANY) or NAMELESS
    if not is_segment(name):
        raise invalid(f"recipe has no resolvable name: {name!r} is no file name", where="criteria")
    return name


def is_segment(name: str) -> bool:
    """Whether *name* is one plain segment of a path on every system."""
    return (
        name not in ("", ".", "..")
        and not checksums.path_problem(name)
        and "/" not in name
        and name.isascii()
        and not name.startswith("-")
    )
