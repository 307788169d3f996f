"""What a health check says that proves little or nothing: doubts for its author, one rule each.

These files are accepted and run; each doubt names a way in which they pass on a sick cluster, or fail on
a healthy one. The rules look at asserts and errors as they are written, so they serve a file that was read
(`warnings`) as well as ``aicr lint``, which also reads what the engine refuses and places each doubt.

It must not know files and their lines. Source: decision 15; requirement V-384.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

from aicr.assertions.document import HealthCheck
from aicr.assertions.tree import ITERATOR

NO_GUARD: Final = "check-no-guard"
EXISTENCE_ONLY: Final = "check-existence-only"
CONDITIONS_LIST: Final = "check-conditions-list"
VACUOUS_LOOP: Final = "check-vacuous-loop"

#: Kinds of which existence alone says nothing: they exist long before they work.
WORKLOADS: Final = frozenset(("Deployment", "DaemonSet", "StatefulSet", "ReplicaSet", "Job", "Pod"))

Path = tuple[str | int, ...]


class Stated(Protocol):
    """One ``assert`` or ``error`` with its resource, as written."""

    @property
    def kind(self) -> str:
        """``assert`` or ``error``."""

    @property
    def resource(self) -> dict[str, Any]:
        """The resource, which may hold anything."""


Op = TypeVar("Op", bound=Stated)


class Doubt(NamedTuple, Generic[Op]):
    """One thing that proves little.

    Attributes:
        operation: where it is.
        path: the key in its resource that it is about; () for the operation itself.
    """

    rule: str
    operation: Op
    path: Path
    message: str
    hint: str


def warnings(check: HealthCheck) -> list[dict[str, str]]:
    """Each doubt about a file as ``rule``, ``where``, ``message`` and ``hint``."""
    tests = [test.operations for test in check.tests]
    operations = [operation for test in tests for operation in test]
    doubts = [
        *(doubt for test in tests for doubt in no_guard(test)),
        *existence_only(operations),
        *(doubt for operation in operations for doubt in conditions_list(operation)),
        *(doubt for operation in operations for doubt in vacuous_loop(operation)),
    ]
    return [
        {
            "rule": doubt.rule,
            "where": doubt.operation.where,
            "message": doubt.message,
            "hint": doubt.hint,
        }
        for doubt in doubts
    ]


def no_guard(test: Iterable[Op]) -> Iterator[Doubt[Op]]:
    """An ``error``, or an assertion on pod phases, before anything of a document was asserted."""
    first = next(iter(test), None)
    if first is not None and (first.kind == "error" or _looks_at_phases(first.resource)):
        what = "error" if first.kind == "error" else "look at pod phases"
        yield Doubt(
            NO_GUARD,
            first,
            (),
            f"the first thing this check does is to {what}: where nothing is deployed, that proves "
            f"nothing",
            "assert first that the workload exists and is available",
        )


def existence_only(operations: Iterable[Op]) -> Iterator[Doubt[Op]]:
    """Workloads of a file that are only asserted to exist, of which it asserts nothing more."""
    asserts = [
        operation
        for operation in operations
        if operation.kind == "assert" and str(operation.resource.get("kind")) in WORKLOADS
    ]
    checked = {_identity(one.resource) for one in asserts if _has_fields(one.resource)}
    for operation in asserts:
        resource = operation.resource
        if not _has_fields(resource) and _identity(resource) not in checked:
            yield Doubt(
                EXISTENCE_ONLY,
                operation,
                (),
                f"this assert is met as soon as the {resource['kind']} exists",
                "assert on its status, for example (availableReplicas >= `1`): true",
            )


def conditions_list(operation: Op) -> Iterator[Doubt[Op]]:
    """``conditions:`` written as a list."""
    for path, node in maps_of(operation.resource):
        if isinstance(node.get("conditions"), list):
            yield Doubt(
                CONDITIONS_LIST,
                operation,
                (*path, "conditions"),
                "conditions compares with the whole list, by position and length",
                "filter it: (conditions[?type == 'Ready']): [{status: \"True\"}]",
            )


def vacuous_loop(operation: Op) -> Iterator[Doubt[Op]]:
    """Loops of an assert that has no assertion on a length."""
    if operation.kind != "assert" or "length(" in repr(operation.resource):
        return
    for path, node in maps_of(operation.resource):
        for key in node:
            if ITERATOR.match(key):
                yield Doubt(
                    VACUOUS_LOOP,
                    operation,
                    (*path, key),
                    f'the loop "{key}" passes when there is nothing to loop over',
                    "add an assertion such as (length(items) > `0`): true",
                )


def maps_of(value: Any, path: Path = ()) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Every map of a tree with its path."""
    if isinstance(value, dict):
        yield path, value
        for key, item in value.items():
            yield from maps_of(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from maps_of(item, (*path, index))


def _looks_at_phases(resource: Mapping[str, Any]) -> bool:
    status = resource.get("status")
    return resource.get("kind") == "Pod" and isinstance(status, dict) and "phase" in status


def _has_fields(resource: Mapping[str, Any]) -> bool:
    return any(key not in ("apiVersion", "kind", "metadata") for key in resource)


def _identity(resource: Mapping[str, Any]) -> tuple[str, str, str]:
    metadata = resource.get("metadata")
    found = metadata if isinstance(metadata, dict) else {}
    return str(resource.get("kind")), str(found.get("namespace")), str(found.get("name"))
