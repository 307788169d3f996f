"""The catalogue of checks (``validators/catalog.yaml``): which there are, and what each runs as.

The catalogue is the authoritative list. A data directory's file lies over the built-in one: an
entry of a known name replaces the whole entry and keeps its place, a new name comes after the
others. Order is the order of running within a phase.

It must not know recipes or Jobs. Source: validators spec 2.1, 2.3, 2.6.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from aicr.catalog.tree import LayeredTree
from aicr.contract.documents import check_header, type_name
from aicr.errors import AicrError, invalid, nearest
from aicr.validate.phases import ORDER
from aicr.values import durations
from aicr.yamlio import read

if TYPE_CHECKING:
    from aicr.catalog.tree import Tree
    from aicr.yamlio.read import Positions

PATH: Final = "validators/catalog.yaml"
KIND: Final = "ValidatorCatalog"
PREFERRED: Final = "preferred"
REQUIRED: Final = "required"
HOSTNAME: Final = "kubernetes.io/hostname"
#: What an entry without a timeout gets.
DEFAULT_TIMEOUT: Final = 5 * durations.MINUTE

_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_FIELDS: Final = (
    *("name", "phase", "description", "image", "timeout", "args", "env", "resources"),
    "dependencyAffinity",
)
_AFFINITY_FIELDS: Final = ("componentRef", "podLabelSelector", "requirement", "topologyKey")


@dataclass(frozen=True, slots=True)
class Affinity:
    """A wish to run beside the pods of a component."""

    component: str
    labels: Mapping[str, str]
    requirement: str = PREFERRED
    topology_key: str = HOSTNAME


@dataclass(frozen=True, slots=True)
class Entry:
    """One check: `timeout` is in nanoseconds, `resources` as written (checked when planned)."""

    name: str
    phase: str
    image: str
    description: str = ""
    timeout: int = DEFAULT_TIMEOUT
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    resources: Mapping[str, str] | None = None
    affinity: tuple[Affinity, ...] = ()
    #: Where it is written: file, line and column.
    where: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class ValidatorCatalog:
    """All checks, in order, and the catalogue's own name and version."""

    entries: tuple[Entry, ...]
    name: str = ""
    version: str = ""

    def for_phase(self, phase: str) -> list[Entry]:
        """The checks of a phase in order; none for a phase that there is not."""
        return [entry for entry in self.entries if entry.phase == phase]

    def find(self, name: str) -> Entry | None:
        """The check of a name, whatever its phase."""
        return next((entry for entry in self.entries if entry.name == name), None)

    def names(self) -> list[str]:
        """All names, in order."""
        return [entry.name for entry in self.entries]

    def with_images(self, images: Mapping[str, str]) -> ValidatorCatalog:
        """This catalogue with other images, by name of the check."""
        entries = (
            replace(entry, image=images.get(entry.name, entry.image)) for entry in self.entries
        )
        return replace(self, entries=tuple(entries))


def load(tree: Tree) -> ValidatorCatalog:
    """The catalogue of a tree; of trees that lie over each other, merged by name.

    Raises:
        AicrError: NOT_FOUND if there is none; INVALID_REQUEST as `parse`.
    """
    if isinstance(tree, LayeredTree):
        layers = [part for part in (tree.lower, tree.upper) if part.exists(PATH)]
        if len(layers) == 2:
            return merge(load(layers[0]), load(layers[1]))
        if layers:
            return load(layers[0])
    return parse(tree.read_text(PATH), tree.place(PATH))


def merge(lower: ValidatorCatalog, upper: ValidatorCatalog) -> ValidatorCatalog:
    """*upper* over *lower*: known names are replaced in place, new ones appended."""
    theirs = {entry.name: entry for entry in upper.entries}
    kept = [theirs.pop(entry.name, entry) for entry in lower.entries]
    return ValidatorCatalog(
        (*kept, *theirs.values()), lower.name or upper.name, lower.version or upper.version
    )


def parse(text: str, source: str) -> ValidatorCatalog:
    """The catalogue in *text*.

    Raises:
        AicrError: INVALID_REQUEST with file, line and column for text that is no YAML, another
            header, an unknown field, an entry without name or image, a name twice or one that
            cannot be part of a Job's name, another phase, a timeout that is no duration, a wrong
            affinity.
    """
    value, positions = read.load_with_positions(text, source=source)
    check_header(value, KIND, source=source)
    reader = _Reader(positions)
    found = value.get("validators")
    reader.expect(found, list, "a list", ("validators",))
    entries: list[Entry] = []
    first: dict[str, str] = {}
    for number, block in enumerate(found or ()):
        entry = reader.entry(block, ("validators", number))
        if entry.name in first:
            raise invalid(
                f'duplicate check name "{entry.name}"',
                where=entry.where,
                hint=f"the first is at {first[entry.name]}; a name is unique over all phases",
            )
        first[entry.name] = entry.where
        entries.append(entry)
    metadata = value.get("metadata") or {}
    reader.expect(metadata, dict, "a map", ("metadata",))
    said = [metadata.get(key) or "" for key in ("name", "version")]
    for key, text_ in zip(("name", "version"), said, strict=True):
        reader.text(text_, ("metadata", key))
    return ValidatorCatalog(tuple(entries), *said)


class _Reader:
    """Reads entries; every refusal has a place."""

    def __init__(self, positions: Positions) -> None:
        self._positions = positions

    def entry(self, block: Any, path: tuple[str | int, ...]) -> Entry:
        where = self._positions.where(path)
        self.expect(block, dict, "a map", path)
        block = block or {}
        self.known(block, _FIELDS, path)
        name = self.text(block.get("name"), (*path, "name"))
        if not name:
            raise invalid("a check needs a name", where=where)
        if not _NAME.fullmatch(name):
            raise invalid(
                f'"{name}" is no DNS label',
                where=where,
                hint="lower-case letters, digits and dashes, at most 63: it becomes part of a Job name",
            )
        phase = self.text(block.get("phase"), (*path, "phase"))
        if phase not in ORDER:
            near = nearest(phase, list(ORDER))
            raise invalid(
                f'unknown phase "{phase}" of check "{name}"',
                where=self._positions.where((*path, "phase")),
                hint=f'did you mean "{near}"?' if near else f"phases: {', '.join(ORDER)}",
            )
        image = self.text(block.get("image"), (*path, "image"))
        if not image:
            raise invalid(f'check "{name}" has no image', where=where)
        return Entry(
            name=name,
            phase=phase,
            image=image,
            description=self.text(block.get("description"), (*path, "description")),
            timeout=self.timeout(block.get("timeout"), name, (*path, "timeout")),
            args=tuple(self.texts(block.get("args"), (*path, "args"))),
            env=tuple(self.variables(block.get("env"), (*path, "env"))),
            resources=self.resources(block.get("resources"), (*path, "resources")),
            affinity=tuple(
                self.affinities(block.get("dependencyAffinity"), (*path, "dependencyAffinity"))
            ),
            where=where,
        )

    def timeout(self, value: Any, name: str, path: tuple[str | int, ...]) -> int:
        if value is None or value == 0:
            return DEFAULT_TIMEOUT
        text = self.text(value, path)
        try:
            found = durations.parse(text) or DEFAULT_TIMEOUT
        except AicrError as error:
            raise invalid(
                f'check "{name}" has invalid timeout "{text}"',
                where=self._positions.where(path),
                hint=error.hint,
            ) from error
        if found < durations.SECOND:
            raise invalid(
                f'check "{name}" has timeout {text}, less than a second',
                where=self._positions.where(path),
                hint="give the check time to run, or leave the timeout out for 5m",
            )
        return found

    def variables(self, value: Any, path: tuple[str | int, ...]) -> Iterator[tuple[str, str]]:
        self.expect(value, list, "a list", path)
        for number, one in enumerate(value or ()):
            here = (*path, number)
            self.expect(one, dict, "a map of name and value", here)
            self.known(one or {}, ("name", "value"), here)
            name = self.text((one or {}).get("name"), (*here, "name"))
            if not name:
                raise invalid("a variable needs a name", where=self._positions.where(here))
            yield name, self.text(one.get("value"), (*here, "value"))

    def resources(self, value: Any, path: tuple[str | int, ...]) -> dict[str, str] | None:
        if value is None:
            return None
        self.expect(value, dict, "a map", path)
        self.known(value, ("cpu", "memory"), path)
        return {key: self.text(value.get(key), (*path, key)) for key in value}

    def affinities(self, value: Any, path: tuple[str | int, ...]) -> Iterator[Affinity]:
        self.expect(value, list, "a list", path)
        for number, one in enumerate(value or ()):
            here = (*path, number)
            where = self._positions.where(here)
            self.expect(one, dict, "a map", here)
            block = one or {}
            self.known(block, _AFFINITY_FIELDS, here)
            component = self.text(block.get("componentRef"), (*here, "componentRef"))
            labels = block.get("podLabelSelector")
            self.expect(labels, dict, "a map", (*here, "podLabelSelector"))
            for key, required in (("componentRef", component), ("podLabelSelector", labels)):
                if not required:
                    raise invalid(f"dependencyAffinity: {key} is required", where=where)
            requirement = self.text(block.get("requirement"), here) or PREFERRED
            if requirement not in (PREFERRED, REQUIRED):
                raise invalid(
                    f'dependencyAffinity: invalid requirement "{requirement}"',
                    where=where,
                    hint=f"one of {PREFERRED}, {REQUIRED}",
                )
            yield Affinity(
                component,
                {
                    str(key): self.text(text, (*here, "podLabelSelector", key))
                    for key, text in (labels or {}).items()
                },
                requirement,
                self.text(block.get("topologyKey"), here) or HOSTNAME,
            )

    def texts(self, value: Any, path: tuple[str | int, ...]) -> list[str]:
        self.expect(value, list, "a list", path)
        return [self.text(one, (*path, number)) for number, one in enumerate(value or ())]

    def text(self, value: Any, path: tuple[str | int, ...]) -> str:
        if value is None:
            return ""
        if isinstance(value, str):
            return value
        shown = str(value).lower() if isinstance(value, bool) else value
        raise invalid(
            f"{path[-1]} must be text, found {type_name(value)}",
            where=self._positions.where(path),
            hint="" if isinstance(value, dict | list) else f'quote it: "{shown}"',
        )

    def known(self, block: Mapping[str, Any], fields: tuple[str, ...], path: Any) -> None:
        for key in block:
            if key not in fields:
                near = nearest(str(key), list(fields))
                raise invalid(
                    f'unknown field "{key}"',
                    where=self._positions.where((*path, key)),
                    hint=f'did you mean "{near}"?' if near else f"known: {', '.join(fields)}",
                )

    def expect(self, value: Any, kind: type, words: str, path: tuple[str | int, ...]) -> None:
        if value is not None and not isinstance(value, kind):
            raise invalid(
                f"{path[-1]} must be {words}, found {type_name(value)}",
                where=self._positions.where(path),
            )
