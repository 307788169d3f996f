"""What a health check says that proves little or nothing: warnings for its author.

These files are accepted and run; each warning names a way in which they pass on a sick cluster, or
fail on a healthy one. The rules are those that ``aicr lint`` applies to a catalogue, by the same names.
Source: decision 15; requirement V-384.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from aicr.assertions.document import HealthCheck, Operation
from aicr.assertions.tree import ITERATOR

#: Kinds that exist long before they work.
WORKLOADS: Final = frozenset(("Deployment", "DaemonSet", "StatefulSet", "ReplicaSet", "Job", "Pod"))


def warnings(check: HealthCheck) -> list[dict[str, str]]:
    """Each warning as ``rule``, ``where``, ``message`` and ``hint``."""
    return [*_no_guard(check), *_existence_only(check), *_lists_and_loops(check)]


def _warning(rule: str, operation: Operation, message: str, hint: str) -> dict[str, str]:
    return {"rule": rule, "where": operation.where, "message": message, "hint": hint}


def _no_guard(check: HealthCheck) -> Iterator[dict[str, str]]:
    for test in check.tests:
        first = next(iter(test.operations), None)
        if first is not None and (first.kind == "error" or _looks_at_phase(first)):
            what = "error" if first.kind == "error" else "look at pod phases"
            yield _warning(
                "check-no-guard",
                first,
                f"the check begins with {what}, which an empty namespace satisfies as well",
                "assert first that the workload exists and is available",
            )


def _looks_at_phase(operation: Operation) -> bool:
    status = operation.resource.get("status")
    return operation.resource_kind == "Pod" and isinstance(status, dict) and "phase" in status


def _existence_only(check: HealthCheck) -> Iterator[dict[str, str]]:
    asserts = [
        operation
        for test in check.tests
        for operation in test.operations
        if operation.kind == "assert" and operation.resource_kind in WORKLOADS
    ]
    checked = {_identity(operation) for operation in asserts if _has_fields(operation)}
    for operation in asserts:
        if not _has_fields(operation) and _identity(operation) not in checked:
            yield _warning(
                "check-existence-only",
                operation,
                f"the assert is met as soon as the {operation.resource_kind} exists",
                "assert on its status, for example (availableReplicas >= `1`): true",
            )


def _has_fields(operation: Operation) -> bool:
    return any(key not in ("apiVersion", "kind", "metadata") for key in operation.resource)


def _identity(operation: Operation) -> tuple[str, str, str]:
    return operation.resource_kind, operation.namespace, operation.name


def _lists_and_loops(check: HealthCheck) -> Iterator[dict[str, str]]:
    for test in check.tests:
        for operation in test.operations:
            sized = "length(" in repr(operation.resource)
            for node in _maps(operation.resource):
                if isinstance(node.get("conditions"), list):
                    yield _warning(
                        "check-conditions-list",
                        operation,
                        "conditions is compared as a whole list, by position and length",
                        "filter it: (conditions[?type == 'Ready']): [{status: \"True\"}]",
                    )
                for key in node if operation.kind == "assert" and not sized else ():
                    if isinstance(key, str) and ITERATOR.match(key):
                        yield _warning(
                            "check-vacuous-loop",
                            operation,
                            f'the loop "{key}" passes when there is nothing to loop over',
                            "add an assertion such as (length(items) > `0`): true",
                        )


def _maps(value: Any) -> Iterator[dict[Any, Any]]:
    if isinstance(value, dict):
        yield value
    items = value.values() if isinstance(value, dict) else value
    for item in items if isinstance(value, (dict, list)) else ():
        yield from _maps(item)
