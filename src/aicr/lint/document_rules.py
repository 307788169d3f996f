"""Rules about single documents: can they be read, are they what they say, is every key known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from aicr.catalog.load import REGISTRY_PATH
from aicr.errors import nearest
from aicr.lint import decoder, ground, reading
from aicr.lint.findings import ERROR, WARNING, Problem, rule
from aicr.lint.schema_files import unknown_keys

if TYPE_CHECKING:
    from aicr.lint.ground import Ground
    from aicr.yamlio.positions import Positions


def _reported(id: str, severity: str, why: str) -> None:
    """Register a rule whose problems were noted while the tree was read or composed."""

    def find(ground: Ground) -> Iterator[Problem]:
        return ground.of(id)

    rule(id, severity, why)(find)


_reported(reading.FILE, ERROR, "Links, oversized files and files that are not UTF-8 are refused.")
_reported(
    reading.YAML,
    ERROR,
    "A file that is not YAML to every reader (duplicate keys, tabs, tags, an unquoted `>=`) is refused.",
)
_reported(
    reading.HEADER,
    ERROR,
    "A document of another kind or apiVersion than its place asks is refused.",
)
_reported(
    reading.LEGACY, WARNING, "What v0.11.1 wrote is still read, but will stop being read one day."
)
_reported(
    reading.IGNORED,
    WARNING,
    "A file among the overlays or mixins that is not read as one has no effect, without a word.",
)
_reported(
    decoder.SHAPE,
    ERROR,
    "A field of the wrong type, a missing name or a value out of range is refused.",
)
_reported(
    decoder.UNQUOTED,
    ERROR,
    "An unquoted value in a text field has lost its spelling: 24.10 is the number 24.1.",
)
_reported(
    decoder.UNKNOWN_STRICT,
    ERROR,
    "Mixins and overlays with a profile are read strictly; a key they do not know is refused.",
)
_reported(reading.NO_MAP, ERROR, "A values file that is no map cannot be merged with anything.")
_reported(
    decoder.PROFILE,
    ERROR,
    "A profile must be a complete choice: every value sets the same paths, and the default is one.",
)
_reported(
    ground.DUPLICATE,
    ERROR,
    "Of two overlays or mixins of one name only one could win, so neither does.",
)
_reported(ground.NO_BASE, ERROR, "Every recipe starts from the overlay called base.")


@rule(
    "unknown-field",
    WARNING,
    "A key that the loader does not know is ignored, so a misspelt one does nothing.",
)
def unknown_field(ground: Ground) -> Iterator[Problem]:
    """Unknown keys of overlays, registries and validator catalogues, by the shipped schemas."""
    for source in ground.sources():
        if not source.is_mixin:
            yield from _unknown("RecipeMetadata", source.raw, source.positions)
    for kind, path in (
        ("ComponentRegistry", REGISTRY_PATH),
        ("ValidatorCatalog", reading.VALIDATORS_PATH),
    ):
        for read in ground.readings:
            found = read.documents.get(path)
            if found is not None and isinstance(found[0], dict):
                yield from _unknown(kind, *found)


def _unknown(kind: str, value: Any, positions: Positions) -> Iterator[Problem]:
    for path, known in unknown_keys(kind, value):
        key = str(path[-1])
        near = nearest(key, known)
        hint = f'did you mean "{near}"?' if near else f"known here: {', '.join(known)}"
        yield Problem(positions.key(path), f'unknown field "{key}" is ignored', hint)
