"""Rules about values: what is written and what is read, and whether versions stay what they are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from aicr.lint.findings import WARNING, Problem, rule
from aicr.yamlio.scalars import misread

if TYPE_CHECKING:
    from aicr.lint.ground import Ground
    from aicr.yamlio.positions import Positions

    Path = tuple[str | int, ...]

_CANONICAL = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]*[1-9])?")
_EXACT_WORDS = frozenset(("true", "false", "null", "~", ""))
#: Beyond this a number does not survive Helm, which reads numbers as JSON does.
_LARGEST = 2**53 - 1
_EXACT_VERSION = re.compile(r"v?\d+\.\d+\.\d+(\.\d+)*([-+][0-9A-Za-z.+_-]+)?")
#: Tags that name whatever was pushed last.
_MOVING = frozenset(
    ("latest", "main", "master", "head", "edge", "nightly", "dev", "devel", "stable", "canary")
)
_IMAGE_LINE = re.compile(r"^\s*(?:- )?image:\s*[\"']?([^\s\"'{}#]+)[\"']?\s*(?:#.*)?$")
_VERSION_KEY = re.compile(r"[ -]*(version|tag|digest):")


def scalars(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every scalar of a document with its path."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from scalars(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from scalars(item, (*path, index))
    else:
        yield path, value


def value_trees(ground: Ground) -> Iterator[tuple[Any, Positions, Path]]:
    """Everything that ends up as chart values: values files, and overrides of refs."""
    for reading in ground.readings:
        for path in reading.values:
            if path in reading.documents:
                yield *reading.documents[path], ()
    for source in ground.sources():
        for name, place in source.refs.items():
            overrides = (source.ref(name) or {}).get("overrides")
            if overrides:
                yield overrides, source.positions, (*place, "overrides")


@rule(
    "value-misread",
    WARNING,
    "An unquoted yes, 0755, 1e3 or 24.10 means one thing to Helm and another to the next reader.",
)
def value_misread(ground: Ground) -> Iterator[Problem]:
    """Unquoted scalars whose spelling does not survive (field cases A8 and C1)."""
    for value, positions, start in value_trees(ground):
        for path, item in scalars(value):
            written = positions.plain((*start, *path))
            if written is None or written.lower() in _EXACT_WORDS or not misread(written):
                continue
            if _CANONICAL.fullmatch(written) and not _too_large(item):
                continue
            read = "text" if isinstance(item, str) else _shown(item)
            other = " to Helm, and something else to other readers" if read == "text" else ""
            yield Problem(
                positions.where((*start, *path)),
                f"unquoted {written} is {read}{other}",
                f'quote it if text is meant: "{written}"; otherwise write it plainly',
            )


def _too_large(item: Any) -> bool:
    return isinstance(item, int) and abs(item) > _LARGEST


def _shown(item: Any) -> str:
    if isinstance(item, bool):
        return f"the boolean {str(item).lower()}"
    if isinstance(item, float):
        return f"the number {item:g}"
    return (
        f"a number that Helm rounds to {float(item):g}"
        if _too_large(item)
        else f"the number {item}"
    )


@rule(
    "unpinned-version",
    WARNING,
    "A chart or kustomization without one exact version is another one tomorrow.",
)
def unpinned_version(ground: Ground) -> Iterator[Problem]:
    """Sources without a pin, ranges, partial versions and moving references."""
    for entry in ground.listed:
        helm, kustomize = (entry.entry.get(key) or {} for key in ("helm", "kustomize"))
        if helm.get("defaultRepository") and not helm.get("defaultVersion"):
            hint = "add defaultVersion, quoted"
            yield Problem(entry.where("helm"), f'component "{entry.name}" pins no version', hint)
        if kustomize.get("defaultSource") and not kustomize.get("defaultTag"):
            source = kustomize["defaultSource"]
            if "?ref=" not in source and "@sha256:" not in source:
                yield Problem(
                    entry.where("kustomize"),
                    f'component "{entry.name}" pins no tag of its source',
                    "add defaultTag with a tag or commit",
                )
        yield from _floating(helm.get("defaultVersion"), entry.where("helm", "defaultVersion"))
        yield from _moving(kustomize.get("defaultTag"), entry.where("kustomize", "defaultTag"))
    for origin in ground.sources():
        for name in origin.refs:
            ref = origin.ref(name) or {}
            yield from _floating(ref.get("version"), origin.ref_where(name, "version"))
            yield from _moving(ref.get("tag"), origin.ref_where(name, "tag"))


def _floating(version: Any, where: str) -> Iterator[Problem]:
    if version and not _EXACT_VERSION.fullmatch(str(version)):
        yield Problem(
            where,
            f'version "{version}" is not one exact chart version',
            "write all three numbers, for example 1.4.2",
        )


def _moving(tag: Any, where: str) -> Iterator[Problem]:
    if tag and str(tag).lower() in _MOVING:
        yield Problem(where, f'"{tag}" moves with every push', "name a tag or a commit")


@rule(
    "unpinned-image",
    WARNING,
    "An image called latest is whatever was pushed last, on each node at another time.",
)
def unpinned_image(ground: Ground) -> Iterator[Problem]:
    """Moving tags of images in values, and in manifests (where no tag means latest)."""
    for value, positions, start in value_trees(ground):
        for path, item in scalars(value):
            if isinstance(item, str) and path and _is_moving(str(path[-1]), item):
                yield Problem(
                    positions.where((*start, *path)),
                    f'{path[-1]} "{item}" moves with every push',
                    "pin a version or a digest",
                )
    for file in ground.tree.paths():
        if "/manifests/" in file and file.endswith(".yaml"):
            lines = ground.tree.read_text(file).split("\n")
            for number, line in enumerate(lines, 1):
                match = _IMAGE_LINE.match(line)
                if match and _image_moves(match[1], bare=not _has_version(lines, number - 1)):
                    column = match.start(1) + 1
                    yield Problem(
                        f"{ground.tree.place(file)}:{number}:{column}",
                        f'image "{match[1]}" names no fixed version',
                        "pin a version or a digest",
                    )


def _has_version(lines: list[str], at: int) -> bool:
    """Whether the map with the line *at* also has a version, as custom resources often do."""
    column = _column(lines[at])
    above, below = lines[:at][::-1], lines[at + 1 :]
    if lines[at].lstrip().startswith("- "):
        above = []
    for beside in (above, below):
        for line in beside:
            if not line.strip() or line.lstrip().startswith(("{{", "#")):
                continue
            starts_item = line.lstrip().startswith("- ") and _column(line) <= column
            if _column(line) < column or (starts_item and beside is below):
                break
            if _column(line) == column and _VERSION_KEY.match(line):
                return True
            if starts_item:
                break
    return False


def _column(line: str) -> int:
    """Where the first key of a line starts."""
    return len(line) - len(line.lstrip(" -"))


def _is_moving(key: str, text: str) -> bool:
    if key.lower() == "tag" or key.endswith("Tag"):
        return text.lower() in _MOVING
    return key.lower() == "image" and _image_moves(text, bare=False)


def _image_moves(image: str, *, bare: bool) -> bool:
    """Whether an image reference has a moving tag, or none where *bare* references count."""
    if "@" in image:
        return False
    _, colon, tag = image.rpartition("/")[2].partition(":")
    return tag.lower() in _MOVING if colon else bare
