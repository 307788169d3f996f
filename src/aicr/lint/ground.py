"""Everything the rules look at: one or two readings, put together as the loader would.

With a data directory there are two, the built-in tree below and the directory above; the rules look at
the combination, and the runner keeps what concerns the directory. The ground also holds a catalogue of
the sound sources, for trial compositions, and a place for facts that several rules need.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aicr.catalog.catalog import Catalog
from aicr.catalog.load import REGISTRY_PATH, taught_values
from aicr.catalog.registry import Registry
from aicr.catalog.tree import LayeredTree
from aicr.lint.findings import Problem
from aicr.lint.reading import Reading, Source

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aicr.catalog.tree import Tree
    from aicr.catalog.types import RegistryEntry
    from aicr.yamlio.positions import Positions

DUPLICATE = "duplicate-name"
NO_BASE = "base-missing"


class EntryAt:
    """A registry entry with its place."""

    def __init__(self, entry: RegistryEntry, index: int, reading: Reading) -> None:
        self.entry: Any = entry
        self.name = entry.get("name") or ""
        self.index = index
        self.reading = reading
        document, self.positions = reading.documents[REGISTRY_PATH]
        self.raw: Any = document["components"][index]

    def where(self, *path: str | int) -> str:
        """``file:line:column`` of something in the entry."""
        return self.positions.where(("components", self.index, *path))

    def key(self, *path: str | int) -> str:
        """``file:line:column`` of the key that ends a path of the entry."""
        return self.positions.key(("components", self.index, *path))


class Ground:
    """A tree, or two, ready to be judged.

    Args:
        readings: the lower reading first.

    Attributes:
        overlays, mixins: sources by name, ``base`` among the overlays.
        listed: registry entries in force, those without a name or with a repeated one as well.
        entries: those that a name leads to.
        catalog: of the sound sources; None when the base is missing or not sound.
        facts: what rules have worked out and other rules may use.
    """

    def __init__(self, *readings: Reading) -> None:
        self.readings = readings
        self.noted: list[tuple[str, Problem]] = []
        for reading in readings:
            self.noted += reading.noted
        self.overlays: dict[str, Source] = {}
        self.mixins: dict[str, Source] = {}
        self.listed: list[EntryAt] = []
        self.facts: dict[str, Any] = {}
        top = readings[-1].files
        self.tree: Tree = LayeredTree(readings[0].files, top) if len(readings) > 1 else top
        for reading in readings:
            for sources, found in (
                (reading.overlays, self.overlays),
                (reading.mixins, self.mixins),
            ):
                self._add(reading, sources, found)
            own = [EntryAt(entry, index, reading) for index, entry in enumerate(reading.entries)]
            names = {entry.name for entry in own}
            self.listed = [entry for entry in self.listed if entry.name not in names] + own
        self.entries = {entry.name: entry for entry in self.listed if entry.name}
        self.catalog = self._catalog()

    def _add(self, reading: Reading, sources: list[Source], found: dict[str, Source]) -> None:
        for source in sources:
            if any(later.files.exists(source.path) for later in self._above(reading)):
                continue
            earlier = found.get(source.name)
            if earlier is None:
                found[source.name] = source
                continue
            kind = "mixin" if source.is_mixin else "overlay"
            first = earlier.where("metadata", "name")
            self.note(
                DUPLICATE,
                source.where("metadata", "name"),
                f'duplicate mixin name "{source.name}" in {source.path}'
                if source.is_mixin
                else f'overlay name "{source.name}" is declared twice: in {earlier.path} and '
                f"{source.path}",
                f"rename one of them; the first is at {first}"
                if earlier.files is source.files
                else f"to replace a built-in {kind}, put the file at the same relative path",
            )

    def _above(self, reading: Reading) -> Iterator[Reading]:
        return iter(self.readings[self.readings.index(reading) + 1 :])

    def note(self, rule: str, where: str, message: str, hint: str = "") -> None:
        """Remember a problem for the rule of that id to report."""
        self.noted.append((rule, Problem(where, message, hint)))

    def of(self, rule: str) -> Iterator[Problem]:
        """The problems that reading noted for a rule."""
        return (problem for noted, problem in self.noted if noted == rule)

    def open(self, path: str) -> tuple[Any, Positions] | None:
        """A document of the uppermost tree that has it; None when it is absent or unreadable.

        A file that is no YAML is noted for the rule that reports those.
        """
        for reading in reversed(self.readings):
            if reading.files.exists(path):
                before = len(reading.noted)
                found = reading.open(path)
                self.noted += reading.noted[before:]
                return found
        return None

    def sources(self) -> Iterator[Source]:
        """All overlays and mixins, by name."""
        for found in (self.overlays, self.mixins):
            for name in sorted(found):
                yield found[name]

    def chain(self, name: str) -> list[Source] | None:
        """An overlay and its ancestors, root first, without the base; None when the chain breaks."""
        trail: list[Source] = []
        current = name
        while current and current != "base":
            source = self.overlays.get(current)
            if source is None or source in trail:
                return None
            trail.append(source)
            current = source.spec.get("base") or ""
        return trail[::-1]

    def sound_chain(self, name: str) -> list[Source] | None:
        """As :meth:`chain`, and None as well when a member of it is not sound."""
        found = self.chain(name)
        return None if found is None or not all(source.sound for source in found) else found

    def _catalog(self) -> Catalog | None:
        base = self.overlays.get("base")
        if base is None:
            files = self.readings[-1].files
            hint = "a catalogue needs overlays/base.yaml with metadata.name: base"
            self.note(NO_BASE, files.place("overlays/base.yaml"), "base.yaml not found", hint)
            return None
        if not base.sound:
            return None
        sound = [
            source.document
            for name, source in sorted(self.overlays.items(), key=lambda item: item[1].path)
            if name != "base" and self.sound_chain(name) is not None
        ]
        registry = Registry([])
        for reading in self.readings:
            registry = registry.merged([e for e in reading.entries if e.get("name")])
        return Catalog(
            base=base.document,
            overlays={overlay["name"]: overlay for overlay in sound},
            mixins={name: m.document for name, m in self.mixins.items() if m.sound},
            registry=registry,
            tree=self.tree,
            taught=taught_values([base.document, *sound]),
        )
