"""Rules about the catalogue of checks, and about overlays that declare them (validators spec 2)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from aicr.contract.documents import check_header
from aicr.errors import AicrError, nearest
from aicr.lint.findings import ERROR, WARNING, Problem, rule
from aicr.lint.reading import VALIDATORS_PATH
from aicr.values import durations

if TYPE_CHECKING:
    from aicr.lint.ground import Ground
    from aicr.yamlio.positions import Positions

PHASES = ("deployment", "conformance", "performance")
_REQUIREMENTS = ("preferred", "required")
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


class Entry(NamedTuple):
    """One validator of the catalogue."""

    value: Any
    number: int
    positions: Positions

    def where(self, *path: str | int) -> str:
        """The place of something in the entry."""
        return self.positions.where(("validators", self.number, *path))

    def text(self, field: str) -> str:
        """A text field; empty when it is absent or no text."""
        found = self.value.get(field)
        return found if isinstance(found, str) else ""


def _entries(ground: Ground) -> Iterator[Entry]:
    """All entries, of both trees."""
    for reading in ground.readings:
        value, positions = reading.documents.get(VALIDATORS_PATH, (None, None))
        found = value.get("validators") if isinstance(value, dict) else None
        for index, entry in enumerate(found if isinstance(found, list) else ()):
            if isinstance(entry, dict) and positions is not None:
                yield Entry(entry, index, positions)


def _phases(ground: Ground) -> dict[str, str]:
    """Phase of each check; a data directory replaces entries by name."""
    return {entry.text("name"): entry.text("phase") for entry in _entries(ground)}


@rule(
    "validator-document",
    ERROR,
    "A catalogue of checks with another header, or without a list of them, cannot be loaded.",
)
def validator_document(ground: Ground) -> Iterator[Problem]:
    """Header and frame of ``validators/catalog.yaml`` (validators spec 2.1)."""
    for reading in ground.readings:
        if VALIDATORS_PATH not in reading.documents:
            continue
        value, positions = reading.documents[VALIDATORS_PATH]
        try:
            check_header(value, "ValidatorCatalog", source=positions.source)
        except AicrError as error:
            yield Problem(positions.where(("apiVersion",)), error.message, error.hint)
            continue
        found = value.get("validators")
        if not isinstance(found, list) or not all(isinstance(entry, dict) for entry in found):
            yield Problem(positions.where(("validators",)), "validators must be a list of maps")


@rule(
    "validator-entry",
    ERROR,
    "A check without name, phase or image, or with a budget that is none, stops every validation.",
)
def validator_entry(ground: Ground) -> Iterator[Problem]:
    """Fields of single entries (validators spec 2.1 and 2.3)."""
    for entry in _entries(ground):
        name = entry.text("name")
        if not name:
            yield Problem(entry.where(), f"validators[{entry.number}]: name is required")
        elif not _LABEL.fullmatch(name):
            hint = (
                "lower-case letters, digits and dashes, at most 63: it becomes part of a Job name"
            )
            yield Problem(entry.where("name"), f'"{name}" is no DNS label', hint)
        if entry.value.get("phase") not in PHASES:
            near = nearest(entry.text("phase"), list(PHASES))
            yield Problem(
                entry.where("phase"),
                f'unknown phase "{entry.value.get("phase", "")}" of check "{name}"',
                f'did you mean "{near}"?' if near else f"phases: {', '.join(PHASES)}",
            )
        if not entry.text("image"):
            yield Problem(entry.where("image"), f'check "{name}" has no image')
        yield from _budget(entry, name)
        yield from _resources(entry, name)
        yield from _affinity(entry, name)


def _budget(entry: Entry, name: str) -> Iterator[Problem]:
    timeout = entry.value.get("timeout")
    if timeout is None:
        return
    try:
        durations.parse(str(timeout))
    except AicrError as error:
        where = entry.where("timeout")
        yield Problem(where, f'check "{name}" has invalid timeout "{timeout}"', error.hint)


def _resources(entry: Entry, name: str) -> Iterator[Problem]:
    resources = entry.value.get("resources")
    if isinstance(resources, dict) and bool(resources.get("cpu")) != bool(resources.get("memory")):
        where = entry.where("resources")
        yield Problem(where, f'check "{name}" sets only one of cpu and memory', "set both or none")


def _affinity(entry: Entry, name: str) -> Iterator[Problem]:
    found = entry.value.get("dependencyAffinity")
    for index, item in enumerate(found if isinstance(found, list) else ()):
        block = item if isinstance(item, dict) else {}
        where = entry.where("dependencyAffinity", index)
        for field in ("componentRef", "podLabelSelector"):
            if not block.get(field):
                yield Problem(where, f'dependencyAffinity of "{name}": {field} is required')
        requirement = block.get("requirement", "preferred")
        if requirement not in _REQUIREMENTS:
            message = f'dependencyAffinity of "{name}": invalid requirement "{requirement}"'
            yield Problem(where, message, f"one of {', '.join(_REQUIREMENTS)}")


@rule(
    "validator-duplicate",
    ERROR,
    "A check's name is unique in the catalogue, not only in its phase.",
)
def validator_duplicate(ground: Ground) -> Iterator[Problem]:
    """The same name twice in one file."""
    seen: dict[tuple[str, str], Entry] = {}
    for entry in _entries(ground):
        key = (entry.positions.source, entry.text("name"))
        if key[1] and key in seen:
            first = seen[key].where("name")
            message = f'duplicate check name "{key[1]}"'
            yield Problem(entry.where("name"), message, f"the first is at {first}")
        seen.setdefault(key, entry)


@rule(
    "declared-check",
    ERROR,
    "A recipe that declares a check which the catalogue lacks in that phase cannot be validated.",
)
def declared_check(ground: Ground) -> Iterator[Problem]:
    """``validation.<phase>.checks`` against the catalogue (recipe spec 2.4)."""
    phases = _phases(ground)
    if not any(VALIDATORS_PATH in reading.documents for reading in ground.readings):
        return
    for source in ground.overlays.values():
        for phase, block in (source.spec.get("validation") or {}).items():
            seen: set[str] = set()
            for index, check in enumerate(block.get("checks") or ()):
                where = source.where("spec", "validation", phase, "checks", index)
                if check not in phases:
                    near = nearest(check, sorted(phases))
                    hint = f'did you mean "{near}"?' if near else f"add it to {VALIDATORS_PATH}"
                    yield Problem(where, f'check "{check}" is not in the catalogue', hint)
                elif phases[check] != phase:
                    message = f'check "{check}" belongs to phase {phases[check]}, not {phase}'
                    yield Problem(where, message, f"declare it under {phases[check]}")
                if check in seen:
                    message = f'check "{check}" is declared twice in phase {phase}'
                    yield Problem(where, message, "keep one")
                seen.add(check)


@rule(
    "unknown-component-name",
    WARNING,
    "A phase or check that waits for a component which does not exist waits for nothing.",
)
def unknown_component_name(ground: Ground) -> Iterator[Problem]:
    """``infrastructure`` of phases and ``componentRef`` of affinities that no component has."""
    known = {*ground.entries, *(name for source in ground.sources() for name in source.refs)}
    named: list[tuple[str, str]] = []
    for source in ground.overlays.values():
        for phase, block in (source.spec.get("validation") or {}).items():
            where = source.where("spec", "validation", phase, "infrastructure")
            named.append((block.get("infrastructure") or "", where))
    for entry in _entries(ground):
        found = entry.value.get("dependencyAffinity")
        for index, item in enumerate(found if isinstance(found, list) else ()):
            component = item.get("componentRef") if isinstance(item, dict) else ""
            where = entry.where("dependencyAffinity", index, "componentRef")
            named.append((str(component or ""), where))
    for component, where in named:
        if component and component not in known:
            near = nearest(component, sorted(known))
            hint = f'did you mean "{near}"?' if near else "name a component of the registry"
            yield Problem(where, f'there is no component "{component}"', hint)
