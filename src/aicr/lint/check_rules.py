"""Rules about health checks: what the engine refuses, and what passes without proving anything.

A health check is a stream of Chainsaw ``Test`` documents that may only read (validators spec 8.2, 8.3).
Files that are no such stream, raw objects to compare with, have rules of their own there (8.6).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from aicr.assertions import vacuity
from aicr.assertions.document import ALLOWED, FORBIDDEN, GROUP, HANDLERS, NO_OP, is_test
from aicr.contract.documents import type_name
from aicr.errors import nearest
from aicr.lint.findings import ERROR, WARNING, Problem, rule

if TYPE_CHECKING:
    from aicr.lint.ground import Ground
    from aicr.yamlio.positions import Positions

    Path = tuple[str | int, ...]


class Test(NamedTuple):
    """One document of a health check."""

    file: str
    value: Any
    positions: Positions

    def where(self, *path: str | int) -> str:
        """The place of something in the document."""
        return self.positions.where(path)


class Operation(NamedTuple):
    """One assert or error with its resource."""

    test: Test
    path: Path
    kind: str
    resource: dict[str, Any]

    @property
    def where(self) -> str:
        """The place of the operation."""
        return self.test.where(*self.path)


def tests(ground: Ground) -> list[tuple[str, list[Test]]]:
    """Every health check of the tree: its path and the documents in it."""
    found = []
    paths = {path for reading in ground.readings for path in reading.streams}
    for path in sorted(paths):
        for reading in reversed(ground.readings):
            if path in reading.streams:
                place = reading.files.place(path)
                found.append((path, [Test(place, *part) for part in reading.streams[path]]))
                break
    return found


def _is_test(test: Test) -> bool:
    return is_test(test.value)


def _steps(test: Test) -> Iterator[tuple[Path, Any]]:
    """The steps of a document that are maps."""
    spec = test.value.get("spec") if isinstance(test.value, dict) else None
    steps = spec.get("steps") if isinstance(spec, dict) else None
    for index, step in enumerate(steps if isinstance(steps, list) else ()):
        if isinstance(step, dict):
            yield ("spec", "steps", index), step


def _tries(test: Test) -> Iterator[tuple[Path, Any]]:
    """Every entry of every ``try``."""
    for path, step in _steps(test):
        entries = step.get("try")
        for index, entry in enumerate(entries if isinstance(entries, list) else ()):
            yield (*path, "try", index), entry


def operations(test: Test) -> Iterator[Operation]:
    """The asserts and errors of a document, in the order in which they run."""
    for path, entry in _tries(test):
        for kind in ALLOWED:
            block = entry.get(kind) if isinstance(entry, dict) else None
            resource = block.get("resource") if isinstance(block, dict) else None
            if isinstance(resource, dict):
                yield Operation(test, (*path, kind), kind, resource)


@rule(
    "check-document",
    ERROR,
    "Once one document of a health check is a Test, the engine refuses any other beside it.",
)
def check_document(ground: Ground) -> Iterator[Problem]:
    """Documents that are no Chainsaw Test (validators spec 8.3)."""
    for _, found in tests(ground):
        if not any(_is_test(test) for test in found):
            yield from _raw_documents(found)
            continue
        for number, test in enumerate(found):
            if not isinstance(test.value, dict):
                what = type_name(test.value)
                message = f"document {number} is not a Kubernetes-shaped mapping; it is {what}"
                yield Problem(test.where(), message)
            elif test.value.get("kind") != "Test":
                kind = test.value.get("kind")
                said = f'has "{kind}", not kind "Test"' if kind else "has no kind field"
                yield Problem(test.where("kind"), f"document {number} {said}")
            elif not str(test.value.get("apiVersion")).startswith(f"{GROUP}/"):
                yield Problem(
                    test.where("apiVersion"),
                    f'document {number} has apiVersion "{test.value.get("apiVersion")}", which is '
                    f'not in the "chainsaw.kyverno.io" group',
                )


def _raw_documents(found: list[Test]) -> Iterator[Problem]:
    for number, test in enumerate(found):
        value = test.value if isinstance(test.value, dict) else {}
        metadata = value.get("metadata")
        name = metadata.get("name") if isinstance(metadata, dict) else None
        if not (value.get("apiVersion") and value.get("kind") and name):
            yield Problem(
                test.where(),
                f"document {number} is no Chainsaw Test, and no object to compare with either: it "
                f"needs apiVersion, kind and metadata.name",
            )


@rule(
    "check-forbidden",
    ERROR,
    "The engine runs with full rights, so a health check may only assert and error.",
)
def check_forbidden(ground: Ground) -> Iterator[Problem]:
    """Operations and handlers that are not allowed (validators spec 8.2, field case H8)."""
    for _, found in tests(ground):
        for test in filter(_is_test, found):
            yield from _handlers(test)
            for path, entry in _tries(test):
                yield from _operation_problems(test, path, entry)


def _handlers(test: Test) -> Iterator[Problem]:
    spec = test.value.get("spec")
    places: list[tuple[Path, Any]] = [(("spec",), spec), *_steps(test)]
    for path, block in places:
        for name in HANDLERS:
            if isinstance(block, dict) and name in block:
                where = test.positions.key((*path, name))
                yield Problem(where, f"{name} blocks are not allowed", "remove the block")


def _operation_problems(test: Test, path: Path, entry: Any) -> Iterator[Problem]:
    if not isinstance(entry, dict):
        message = f"an operation must be a map, found {type_name(entry)}"
        yield Problem(test.where(*path), message)
        return
    if "assert" in entry and "error" in entry:
        message = "one entry sets both assert and error"
        yield Problem(test.where(*path), message, "make two entries of it")
    named = [key for key in entry if key in FORBIDDEN]
    for key in named:
        hint = "only assert and error are allowed"
        where = test.positions.key((*path, key))
        yield Problem(where, f'operation "{key}" is not allowed', hint)
    if not named and not any(kind in entry for kind in ALLOWED):
        key = next(iter(entry), "")
        near = nearest(key, list(ALLOWED))
        yield Problem(
            test.where(*path),
            f'"{key}" is no operation' if key else "an operation without a name",
            f'did you mean "{near}"?' if near else "only assert and error are allowed",
        )


@rule(
    "check-operation",
    ERROR,
    "An operation without a resource that has apiVersion and kind cannot be looked up.",
)
def check_operation(ground: Ground) -> Iterator[Problem]:
    """Asserts and errors without a usable resource (validators spec 8.3 and 8.5)."""
    for _, found in tests(ground):
        for test in filter(_is_test, found):
            for path, entry in _tries(test):
                for kind in ALLOWED:
                    if isinstance(entry, dict) and kind in entry:
                        yield from _resource_problems(test, (*path, kind), kind, entry[kind])


def _resource_problems(test: Test, path: Path, kind: str, block: Any) -> Iterator[Problem]:
    resource = block.get("resource") if isinstance(block, dict) else None
    if not isinstance(resource, dict):
        hint = "write the object below resource; files are not read"
        yield Problem(test.where(*path), f"{kind}.resource is required", hint)
        return
    for field in ("apiVersion", "kind"):
        if not resource.get(field):
            yield Problem(test.where(*path, "resource"), f"{kind}.resource.{field} is required")


@rule(
    "check-empty",
    ERROR,
    "A health check that checks nothing would always pass, so the engine refuses it.",
)
def check_empty(ground: Ground) -> Iterator[Problem]:
    """Files without documents, Tests without operations (validators spec 8.3 and 8.6)."""
    for path, found in tests(ground):
        if not found:
            where = ground.tree.place(path)
            yield Problem(where, "the health check declares no resources to assert")
        for test in filter(_is_test, found):
            metadata = test.value.get("metadata")
            notes = metadata.get("annotations") if isinstance(metadata, dict) else None
            intended = isinstance(notes, dict) and notes.get(NO_OP) == "true"
            if not intended and not any(True for _ in _tries(test)):
                yield Problem(
                    test.where("spec"),
                    "this Test declares no assert/error operations",
                    f'annotate it with {NO_OP}: "true" if that is intentional',
                )


@rule(
    "check-no-guard",
    WARNING,
    "A check that first looks for failures passes in an empty namespace; first assert what must exist.",
)
def check_no_guard(ground: Ground) -> Iterator[Problem]:
    """An ``error``, or an assertion on pod phases, before anything was asserted (V-384)."""
    for _, found in tests(ground):
        for test in filter(_is_test, found):
            yield from map(_placed, vacuity.no_guard(operations(test)))


def _placed(doubt: vacuity.Doubt[Operation]) -> Problem:
    operation = doubt.operation
    where = operation.where
    if doubt.path:
        where = operation.test.positions.key((*operation.path, "resource", *doubt.path))
    return Problem(where, doubt.message, doubt.hint)


@rule(
    "check-existence-only",
    WARNING,
    "A workload exists long before it works; an assert without any field says nothing about health.",
)
def check_existence_only(ground: Ground) -> Iterator[Problem]:
    """Workloads that are only asserted to exist, in files that assert nothing more of them."""
    for _, found in tests(ground):
        stated = [o for test in filter(_is_test, found) for o in operations(test)]
        yield from map(_placed, vacuity.existence_only(stated))


@rule(
    "check-conditions-list",
    WARNING,
    "Lists compare by position and exact length, so a plain conditions list fails when one is added.",
)
def check_conditions_list(ground: Ground) -> Iterator[Problem]:
    """``conditions:`` written as a list (decision 15)."""
    for _, found in tests(ground):
        for test in filter(_is_test, found):
            for operation in operations(test):
                yield from map(_placed, vacuity.conditions_list(operation))


@rule(
    "check-vacuous-loop",
    WARNING,
    "A loop over an empty list passes; without a length check beside it, it may prove nothing.",
)
def check_vacuous_loop(ground: Ground) -> Iterator[Problem]:
    """Iterators in asserts without a length assertion in the same operation (decision 15)."""
    for _, found in tests(ground):
        for test in filter(_is_test, found):
            for operation in operations(test):
                yield from map(_placed, vacuity.vacuous_loop(operation))
