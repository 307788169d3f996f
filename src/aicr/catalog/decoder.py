"""The parts that documents of a catalogue are made of: shapes checked, with file, line and column.

A `Decoder` reads one parsed document part by part: texts, lists and maps, and what is made of them, such
as constraints and component refs. String slots refuse what YAML read as something else, and unquoted
words that readers disagree on (decision 43). Which parts a kind of document has is in `decode`.
Source: recipe spec 2.2, 4.1, 4.5.
"""

from __future__ import annotations

from aicr.catalog.fields import (
    CONSTRAINT_KEYS,
    CRITERIA_STRINGS,
    NODE_SELECTION_KEYS,
    PHASE_KEYS,
    REF_BOOLS,
    REF_LISTS,
    REF_ORDER,
    REF_STRINGS,
)
from aicr.catalog.tree import check_relative
from aicr.contract.documents import type_name
from aicr.errors import AicrError, invalid, nearest
from aicr.values import durations
from aicr.yamlio import read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Final

    from aicr.catalog.types import ComponentRef, Constraint, Phase

    Path = tuple[str | int, ...]


#: Largest node count that is taken, as for the flag --nodes: more is a slip of the finger.
MAX_NODES: Final = 999_999_999


class Decoder:
    """Reads one parsed document; *strict* refuses unknown keys."""

    def __init__(
        self, value: Any, positions: read.Positions, *, strict: bool, require_quotes: bool = True
    ) -> None:
        self.value = value
        self.positions = positions
        self.strict = strict
        self.require_quotes = require_quotes

    def where(self, path: Path) -> str:
        """``file:line:column`` of a path."""
        return self.positions.where(path)

    def as_map(self, value: Any, path: Path, field: str) -> dict[str, Any]:
        """A map; absent is empty."""
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise invalid(
                f"{field} must be a map, found {type_name(value)}",
                where=self.where(path),
                hint="write keys with values below it, or leave it out",
            )
        return value

    def as_list(self, value: Any, path: Path, field: str) -> list[Any]:
        """A list; absent is empty."""
        if value is None:
            return []
        if not isinstance(value, list):
            raise invalid(
                f"{field} must be a list, found {type_name(value)}",
                where=self.where(path),
                hint='write entries that start with "- " below it, or leave it out',
            )
        return value

    def as_text(self, value: Any, path: Path, field: str) -> str:
        """A text; absent is empty."""
        if value is None:
            return ""
        if not self.require_quotes and isinstance(value, str):
            return value
        return read.require_string(value, self.positions, path, field)

    def as_bool(self, value: Any, path: Path, field: str) -> bool:
        """A boolean; absent is false."""
        if value is None:
            return False
        if not isinstance(value, bool):
            raise invalid(
                f"{field} must be true or false, found {type_name(value)}",
                where=self.where(path),
                hint="write true or false, without quotes",
            )
        return value

    def as_count(self, value: Any, path: Path, field: str) -> int:
        """A whole number from nought on, as 64 bits hold it."""
        if type(value) is int and 0 <= value < 1 << 63:
            return value
        shown = f"{value}" if type(value) in (int, float) else type_name(value)
        raise invalid(
            f"{field} must be a whole number from 0, found {shown[:40]}",
            where=self.where(path),
            hint=f"for example {field}: 8",
        )

    def as_texts(self, value: Any, path: Path, field: str) -> list[str]:
        """A list of texts."""
        return [
            self.as_text(item, (*path, index), f"{field}[{index}]")
            for index, item in enumerate(self.as_list(value, path, field))
        ]

    def known_keys(self, value: dict[str, Any], known: tuple[str, ...], path: Path) -> None:
        """Refuse unknown keys when strict."""
        if not self.strict:
            return
        for key in value:
            if key not in known:
                near = nearest(key, list(known))
                raise invalid(
                    f'unknown field "{key}"',
                    where=self.where((*path, key)),
                    hint=f'did you mean "{near}"?' if near else f"known: {', '.join(known)}",
                )

    def constraints(self, value: Any, path: Path, field: str) -> list[Constraint]:
        """A list of constraints; name and value are required texts."""
        found: list[Constraint] = []
        for index, item in enumerate(self.as_list(value, path, field)):
            place = (*path, index)
            entry = self.as_map(item, place, f"{field}[{index}]")
            self.known_keys(entry, CONSTRAINT_KEYS, place)
            constraint: Any = {}
            for key in CONSTRAINT_KEYS:
                text = self.as_text(entry.get(key), (*place, key), f"{field}[{index}].{key}")
                if text or key in ("name", "value"):
                    constraint[key] = text
            if not constraint["name"]:
                raise invalid(
                    f"{field}[{index}]: name is required",
                    where=self.where(place),
                    hint="name the reading, for example K8s.server.version",
                )
            found.append(constraint)
        return found

    def refs(self, value: Any, path: Path, *, kind: str) -> list[ComponentRef]:
        """A list of component refs."""
        found: list[ComponentRef] = []
        seen: dict[str, int] = {}
        for index, item in enumerate(self.as_list(value, path, "componentRefs")):
            place = (*path, index)
            entry = self.as_map(item, place, f"componentRefs[{index}]")
            ref = self.ref(entry, place)
            name = ref.get("name", "")
            if not name:
                raise invalid(
                    f"componentRefs[{index}]: name is required",
                    where=self.where(place),
                    hint="name the component as registry.yaml does",
                )
            if name in seen:
                raise invalid(
                    f'mixin "{kind}" declares component "{name}" more than once in its own '
                    f"componentRefs list"
                    if self.strict and kind
                    else f'component "{name}" is listed twice (entries {seen[name]} and {index})',
                    where=self.where(place),
                    hint="keep one entry",
                )
            seen[name] = index
            found.append(ref)
        return found

    def ref(self, entry: dict[str, Any], place: Path) -> ComponentRef:
        """One component ref: only the keys that are present."""
        self.known_keys(entry, REF_ORDER, place)
        ref: Any = {}
        for key in REF_ORDER:
            if entry.get(key) is None:
                continue
            here = (*place, key)
            if key in REF_STRINGS:
                ref[key] = self.as_text(entry[key], here, key)
            elif key in REF_LISTS:
                ref[key] = self.as_texts(entry[key], here, key)
            elif key in REF_BOOLS:
                ref[key] = self.as_bool(entry[key], here, key)
            elif key == "overrides":
                ref[key] = self.as_map(entry[key], here, key)
            else:
                ref[key] = [
                    self.expected_resource(item, (*here, index), f"{key}[{index}]")
                    for index, item in enumerate(self.as_list(entry[key], here, key))
                ]
        for key in ("manifestFiles", "preManifestFiles"):
            self.check_local(ref.get(key, ()), (*place, key))
        self.check_local_file(ref.get("valuesFile"), (*place, "valuesFile"))
        return ref  # type: ignore[no-any-return]

    def expected_resource(self, value: Any, place: Path, field: str) -> dict[str, str]:
        """One entry of ``expectedResources``."""
        entry = self.as_map(value, place, field)
        self.known_keys(entry, ("kind", "name", "namespace"), place)
        return {key: self.as_text(item, (*place, key), key) for key, item in entry.items()}

    def check_local(self, files: Sequence[str], place: Path) -> None:
        """Refuse file paths that could leave the tree."""
        for index, file in enumerate(files):
            self._check_path(file, (*place, index))

    def check_local_file(self, file: str | None, place: Path) -> None:
        """Refuse a file path that could leave the tree; none at all names no file."""
        if file:
            self._check_path(file, place)

    def _check_path(self, file: str, place: Path) -> None:
        try:
            check_relative(file)
        except AicrError as error:
            raise invalid(error.message, where=self.where(place), hint=error.hint) from None

    def phase(self, value: Any, path: Path) -> Phase:
        """One validation phase; a present empty list is kept, because it clears (spec 4.5)."""
        entry = self.as_map(value, path, str(path[-1]))
        self.known_keys(entry, PHASE_KEYS, path)
        phase: Phase = {}
        if entry.get("timeout") is not None:
            here = (*path, "timeout")
            text = phase["timeout"] = self.as_text(entry["timeout"], here, "timeout")
            try:
                durations.parse(text or "0")
            except AicrError as error:
                where = self.where(here)
                raise invalid(f'invalid timeout "{text}"', where=where, hint=error.hint) from error
        if entry.get("constraints") is not None:
            here = (*path, "constraints")
            phase["constraints"] = self.constraints(entry["constraints"], here, "constraints")
        if entry.get("checks") is not None:
            phase["checks"] = self.as_texts(entry["checks"], (*path, "checks"), "checks")
        if entry.get("nodeSelection") is not None:
            here = (*path, "nodeSelection")
            phase["nodeSelection"] = self.node_selection(entry["nodeSelection"], here)
        if entry.get("infrastructure") is not None:
            here = (*path, "infrastructure")
            phase["infrastructure"] = self.as_text(entry["infrastructure"], here, "infrastructure")
        return phase

    def node_selection(self, value: Any, path: Path) -> dict[str, Any]:
        """Which nodes a phase is for: labels, a largest number, and names (recipe spec 4.1)."""
        entry = self.as_map(value, path, "nodeSelection")
        self.known_keys(entry, NODE_SELECTION_KEYS, path)
        found = dict(entry)
        if entry.get("selector") is not None:
            here = (*path, "selector")
            labels = self.as_map(entry["selector"], here, "selector")
            found["selector"] = {
                key: self.as_text(label, (*here, key), f"selector.{key}")
                for key, label in labels.items()
            }
        if entry.get("maxNodes") is not None:
            found["maxNodes"] = self.as_count(entry["maxNodes"], (*path, "maxNodes"), "maxNodes")
        if entry.get("excludeNodes") is not None:
            found["excludeNodes"] = self.as_texts(
                entry["excludeNodes"], (*path, "excludeNodes"), "excludeNodes"
            )
        return found

    def criteria(self, value: Any, path: Path) -> dict[str, Any]:
        """Criteria as written: texts trimmed and lower-cased, nodes an integer."""
        entry = self.as_map(value, path, "criteria")
        self.known_keys(entry, (*CRITERIA_STRINGS, "nodes"), path)
        found: dict[str, Any] = {}
        for key in CRITERIA_STRINGS:
            if entry.get(key) is not None:
                found[key] = self.as_text(entry[key], (*path, key), key).strip().lower()
        nodes = entry.get("nodes")
        if nodes is not None:
            if type(nodes) is not int or not 0 <= nodes <= MAX_NODES:
                shown = str(nodes).lower() if isinstance(nodes, bool) else str(nodes)
                raise invalid(
                    f"invalid nodes count: {shown[:40]} (must be >= 0)",
                    where=self.where((*path, "nodes")),
                    hint=f"write a whole number from 0 to {MAX_NODES}, without quotes",
                )
            found["nodes"] = nodes
        return found
