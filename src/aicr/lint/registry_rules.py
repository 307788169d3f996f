"""Rules about the component registry (recipe spec 3)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from aicr.bundle.validations.table import FUNCTIONS
from aicr.catalog.load import REGISTRY_PATH
from aicr.catalog.registry import check_entries
from aicr.errors import AicrError, nearest
from aicr.lint.findings import ERROR, WARNING, Problem, rule
from aicr.values import paths as value_paths

if TYPE_CHECKING:
    from aicr.lint.ground import EntryAt, Ground
    from aicr.lint.reading import Path, Reading

SEVERITIES = ("error", "warning", "info")
CONDITION_FIELDS = ("service", "accelerator", "intent", "os", "platform")

#: A word in a message of the registry's checks -> the field of the entry to point at.
_POINTERS = (
    ("nodeSelectorPaths entry", "nodeScheduling"),
    ("nodeScheduling", "nodeScheduling"),
    ("manifestFiles", "manifestFiles"),
    ("helm and kustomize", "kustomize"),
    ("override key", "valueOverrideKeys"),
    ("valueOverrideKey", "valueOverrideKeys"),
)


@rule(
    "registry-entry",
    ERROR,
    "An entry without its required fields, or one that contradicts another, is refused with the tree.",
)
def registry_entry(ground: Ground) -> Iterator[Problem]:
    """What the loader says about entries, each at its entry (recipe spec 3.2 and 3.4)."""
    for reading in ground.readings:
        yield from _entry_problems(reading)


def _entry_problems(reading: Reading) -> Iterator[Problem]:
    if REGISTRY_PATH not in reading.documents:
        return
    positions = reading.documents[REGISTRY_PATH][1]
    known: set[str] = set()
    for index in range(len(reading.entries)):
        # What a longer list says and a shorter one did not is about the entry that was added.
        try:
            check_entries(reading.entries[: index + 1], positions.source)
        except AicrError as error:
            place: Path = ("components", index)
            for message in error.context["problems"]:
                if message not in known:
                    known.add(message)
                    field = next((to for word, to in _POINTERS if word in message), "")
                    where = positions.where((*place, field) if field else place)
                    yield Problem(where, message)


@rule(
    "registry-value-path",
    ERROR,
    "A value path that cannot be read stops the bundler when it writes there.",
)
def registry_value_path(ground: Ground) -> Iterator[Problem]:
    """Paths of scheduling, storage and mixin fields that are no value paths."""
    for entry in ground.listed:
        for path, text in value_paths_of(entry.entry):
            try:
                value_paths.split(text)
            except AicrError as error:
                yield Problem(entry.where(*path), error.message, error.hint)


def value_paths_of(entry: Any) -> Iterator[tuple[Path, str]]:
    """Every value path that an entry names, with where it stands in the entry."""
    scheduling = entry.get("nodeScheduling") or {}
    groups: list[tuple[Path, Any]] = [
        (("nodeScheduling", tier, field), (scheduling.get(tier) or {}).get(field))
        for tier in ("system", "accelerated")
        for field in ("nodeSelectorPaths", "tolerationPaths", "taintPaths", "taintStrPaths")
    ]
    groups.append((("nodeScheduling", "nodeCountPaths"), scheduling.get("nodeCountPaths")))
    workload = (entry.get("podScheduling") or {}).get("workload") or {}
    field = "workloadSelectorPaths"
    groups.append((("podScheduling", "workload", field), workload.get(field)))
    for field in ("storageClassPaths", "sharedStorageClassPaths", "mixinSafeOverridePaths"):
        groups.append(((field,), entry.get(field)))
    for place, found in groups:
        for index, text in enumerate(found or ()):
            if isinstance(text, str):
                yield (*place, index), text


@rule(
    "validation-function",
    ERROR,
    "A validation that names an unknown function stops every bundle with the component.",
)
def validation_function(ground: Ground) -> Iterator[Problem]:
    """Functions that do not ship (recipe spec 3.7)."""
    for entry, index, block in _validations(ground):
        function = block.get("function")
        if function and function not in FUNCTIONS:
            near = nearest(str(function), list(FUNCTIONS))
            yield Problem(
                entry.where("validations", index, "function"),
                f'unknown validation function "{function}"',
                f'did you mean "{near}"?' if near else f"functions: {', '.join(FUNCTIONS)}",
            )


@rule(
    "validation-terms",
    WARNING,
    "An unknown or missing severity counts as warning; a condition on an unknown field is left out.",
)
def validation_terms(ground: Ground) -> Iterator[Problem]:
    """Severities and condition fields outside what there is (recipe spec 3.7)."""
    for entry, index, block in _validations(ground):
        severity = block.get("severity")
        if severity in (None, ""):
            yield Problem(
                entry.where("validations", index),
                f"validations[{index}] states no severity, which is read as warning",
                f"severities: {', '.join(SEVERITIES)}",
            )
        elif isinstance(severity, str) and severity.lower() not in SEVERITIES:
            near = nearest(severity.lower(), list(SEVERITIES))
            yield Problem(
                entry.where("validations", index, "severity"),
                f'severity "{severity}" is read as warning',
                f'did you mean "{near}"?' if near else f"severities: {', '.join(SEVERITIES)}",
            )
        conditions = block.get("conditions")
        for field in conditions if isinstance(conditions, dict) else ():
            if field not in CONDITION_FIELDS:
                near = nearest(field, list(CONDITION_FIELDS))
                yield Problem(
                    entry.key("validations", index, "conditions", field),
                    f'condition on "{field}", which is no criteria field, is left out of account',
                    f'did you mean "{near}"?' if near else f"fields: {', '.join(CONDITION_FIELDS)}",
                )


def _validations(ground: Ground) -> Iterator[tuple[EntryAt, int, Any]]:
    for entry in ground.listed:
        blocks = entry.raw.get("validations") if isinstance(entry.raw, dict) else None
        for index, block in enumerate(blocks if isinstance(blocks, list) else ()):
            if isinstance(block, dict):
                yield entry, index, block


@rule(
    "component-without-check",
    WARNING,
    "Nothing can tell whether a component without a health check works once it is deployed.",
)
def component_without_check(ground: Ground) -> Iterator[Problem]:
    """Entries without ``healthCheck.assertFile`` (recipe spec 3.8)."""
    for entry in ground.entries.values():
        if not (entry.entry.get("healthCheck") or {}).get("assertFile"):
            yield Problem(
                entry.where(),
                f'component "{entry.name}" has no health check',
                f"add healthCheck: {{assertFile: checks/{entry.name}/health-check.yaml}}",
            )


@rule(
    "component-unused",
    WARNING,
    "A component that no overlay and no mixin names is in no recipe, whatever is asked for.",
)
def component_unused(ground: Ground) -> Iterator[Problem]:
    """Entries that nothing refers to."""
    used = {name for source in ground.sources() for name in source.refs}
    for name, entry in ground.entries.items():
        if name not in used:
            hint = "name it in componentRefs of an overlay or mixin, or remove the entry"
            yield Problem(entry.where(), f'component "{name}" is in no overlay or mixin', hint)


@rule(
    "component-unregistered",
    WARNING,
    "A component that the registry lacks gets no chart, no namespace and no placement from it.",
)
def component_unregistered(ground: Ground) -> Iterator[Problem]:
    """Refs whose component has no registry entry; a misspelt name looks like that."""
    known = sorted(ground.entries)
    for source in ground.sources():
        for name in source.refs:
            if name not in ground.entries:
                near = nearest(name, known)
                yield Problem(
                    source.ref_where(name, "name"),
                    f'component "{name}" is not in the registry',
                    f'did you mean "{near}"?' if near else "add an entry to registry.yaml",
                )


@rule(
    "entry-replaced",
    WARNING,
    "An entry in a data directory replaces the built-in one as a whole; what it leaves out is gone.",
)
def entry_replaced(ground: Ground) -> Iterator[Problem]:
    """Fields of a built-in entry that its replacement does not have (recipe spec 2.3)."""
    if len(ground.readings) < 2:
        return
    below = {entry.get("name"): entry for entry in ground.readings[0].entries}
    for name, entry in ground.entries.items():
        if entry.reading is not ground.readings[-1] or name not in below:
            continue
        lost = [field for field in below[name] if field not in entry.entry]
        if lost:
            yield Problem(
                entry.where(),
                f'this entry replaces the built-in "{name}" and drops its {", ".join(lost)}',
                "copy the fields that should stay; nothing is merged",
            )
