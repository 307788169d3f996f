"""One look at the cluster for one operation: fetch, compare, and say what was seen.

A look ends in lines for the report or in an `AicrError` whose code says what kind of failure it is:

| code | meaning |
|---|---|
| NOT_FOUND | the object, or its kind, surely does not exist (or is being removed) |
| INTERNAL | it exists and is not as asserted |
| INVALID_REQUEST | the assertion cannot be evaluated; waiting does not help |
| SERVICE_UNAVAILABLE | nothing is known: an outage, an unreachable API group, a forbidden read |

It knows nothing of retries and budgets.
Source: validators spec 8.5 and 8.7; field cases H1, H7; decision 15.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aicr.assertions.document import Operation
from aicr.assertions.findings import Judgement
from aicr.errors import INTERNAL, NOT_FOUND, SERVICE_UNAVAILABLE, AicrError, not_found
from aicr.kube.port import Cluster, Document


async def look(cluster: Cluster, operation: Operation, namespace: str = "") -> list[str]:
    """Look once; lines of what was seen if the operation holds.

    *namespace* is for operations that name none. Raises AicrError as the module says.
    """
    if operation.kind == "assert":
        if operation.name:
            return await _assert_named(cluster, operation, namespace)
        return await _assert_any(cluster, operation, namespace)
    if operation.name:
        return await _error_named(cluster, operation, namespace)
    return await _error_any(cluster, operation, namespace)


async def compare(cluster: Cluster, operation: Operation, namespace: str = "") -> list[str]:
    """Look once at a raw object (8.6): as a named assert, but objects being removed count."""
    found = await _get(cluster, operation, namespace)
    return _held(operation, found, operation.subject(namespace))


async def _get(cluster: Cluster, operation: Operation, namespace: str) -> Document:
    place = operation.namespace or namespace
    kind = f"{operation.api_version}/{operation.resource_kind}"
    try:
        return await cluster.get(kind, operation.name, namespace=place)
    except AicrError as error:
        if error.code == NOT_FOUND:
            raise
        raise _unknown(error, operation.subject(namespace)) from error


async def _list(cluster: Cluster, operation: Operation, namespace: str) -> list[Document]:
    place = operation.namespace or namespace
    kind = f"{operation.api_version}/{operation.resource_kind}"
    try:
        return await cluster.list(kind, namespace=place, labels=operation.labels or None)
    except AicrError as error:
        if error.code == NOT_FOUND:
            raise
        raise _unknown(error, operation.subject(namespace)) from error


def _unknown(error: AicrError, subject: str) -> AicrError:
    status = error.context.get("status")
    told = f" (HTTP {status})" if status else ""
    return AicrError(
        SERVICE_UNAVAILABLE,
        f"the state of {subject} is not known{told}",
        hint=error.hint or "look at the API server; the component was not judged",
    )


def _metadata(found: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata = found.get("metadata")
    return metadata if isinstance(metadata, Mapping) else {}


def _status(found: Mapping[str, Any]) -> Mapping[str, Any]:
    status = found.get("status")
    return status if isinstance(status, Mapping) else {}


def is_ghost(found: Mapping[str, Any]) -> bool:
    """Whether an object is being removed, or its node is lost: it proves nothing (8.5)."""
    return bool(_metadata(found).get("deletionTimestamp")) or (
        _status(found).get("reason") == "NodeLost"
    )


def _name(operation: Operation, found: Mapping[str, Any]) -> str:
    metadata = _metadata(found)
    namespace = metadata.get("namespace")
    place = f"{namespace}/" if namespace else ""
    return f"{operation.resource_kind} {place}{metadata.get('name', '')}"


def _judge(operation: Operation, found: Document, name: str) -> Judgement:
    try:
        return operation.tree.judge(found)
    except AicrError as error:
        raise AicrError(
            error.code, f"{name}: {error.message}", where=operation.where, hint=error.hint
        ) from None


def _reasons(operation: Operation, judgement: Judgement) -> str:
    if operation.resource_kind == "Secret":
        return "; ".join(finding.without_values for finding in judgement.findings)
    return judgement.text


def _held(operation: Operation, found: Document, name: str) -> list[str]:
    judgement = _judge(operation, found, name)
    if not judgement.passed:
        raise AicrError(
            INTERNAL, f"{name}: {_reasons(operation, judgement)}", where=operation.where
        )
    return [f"{name}: matched", *(f"{name}: {note}" for note in judgement.notes)]


def _gone(operation: Operation, message: str) -> AicrError:
    return AicrError(NOT_FOUND, message, where=operation.where)


async def _assert_named(cluster: Cluster, operation: Operation, namespace: str) -> list[str]:
    found = await _get(cluster, operation, namespace)
    name = operation.subject(namespace)
    if is_ghost(found):
        raise _gone(operation, f"{name} is terminating or lost")
    return _held(operation, found, name)


def _labels(operation: Operation) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted(operation.labels.items()))


async def _assert_any(cluster: Cluster, operation: Operation, namespace: str) -> list[str]:
    found = await _list(cluster, operation, namespace)
    place = operation.namespace or namespace
    kind, labels = operation.resource_kind, _labels(operation)
    if not found:
        message = f'no {kind} in "{place}" exists (labels={labels})'
        raise not_found(message, where=operation.where)
    live = [each for each in found if not is_ghost(each)]
    if not live:
        raise _gone(
            operation,
            f'{kind} in "{place}": no live resources found (labels={labels}; {len(found)} '
            f"terminating or lost)",
        )
    matched, first, last = 0, "", None
    notes: list[str] = []
    for each in live:
        name = _name(operation, each)
        judgement = _judge(operation, each, name)
        if judgement.passed:
            matched += 1
            first = first or name
            notes += [f"{name}: {note}" for note in judgement.notes if matched == 1]
        else:
            last = name, judgement
    if not matched and last is not None:
        reason = f"{last[0]}: {_reasons(operation, last[1])}"
        raise AicrError(
            INTERNAL,
            f'no {kind} in "{place}" matched (last reason: {reason}); {_exist(len(live))}, none '
            f"matched",
            where=operation.where,
        )
    return [f"{first}: matched, {matched} of {len(live)} matched", *notes]


def _exist(count: int) -> str:
    return "1 object exists" if count == 1 else f"{count} objects exist"


async def _error_named(cluster: Cluster, operation: Operation, namespace: str) -> list[str]:
    name = operation.subject(namespace)
    try:
        found = await _get(cluster, operation, namespace)
    except AicrError as error:
        if error.code == NOT_FOUND:
            return [f"{name}: does not exist"]
        raise
    if is_ghost(found):
        return [f"{name}: terminating or lost"]
    if _judge(operation, found, name).passed:
        message = f"{name}: forbidden shape matched{_symptoms(found)}"
        raise AicrError(INTERNAL, message, where=operation.where)
    return [f"{name}: 1 object exists, none matched"]


async def _error_any(cluster: Cluster, operation: Operation, namespace: str) -> list[str]:
    name = operation.subject(namespace)
    try:
        found = await _list(cluster, operation, namespace)
    except AicrError as error:
        if error.code == NOT_FOUND:
            return [f"{name}: the kind is not served"]
        raise
    live = [each for each in found if not is_ghost(each)]
    for each in live:
        item = _name(operation, each)
        if _judge(operation, each, item).passed:
            message = f"{item} matches forbidden shape{_symptoms(each)}"
            raise AicrError(INTERNAL, message, where=operation.where)
    if not live:
        return [f"{name}: none exists"]
    return [f"{name}: {_exist(len(live))}, none matched"]


def _symptoms(found: Mapping[str, Any]) -> str:
    """Phase, first waiting reason and node of a pod, as far as it has them."""
    status, parts = _status(found), []
    if isinstance(status.get("phase"), str):
        parts.append(f"phase={status['phase']}")
    for key in ("containerStatuses", "initContainerStatuses"):
        containers = status.get(key)
        reasons = [
            each["state"]["waiting"].get("reason")
            for each in (containers if isinstance(containers, list) else ())
            if isinstance(each, dict)
            and isinstance(each.get("state"), dict)
            and isinstance(each["state"].get("waiting"), dict)
        ]
        if any(reasons):
            parts.append(f"waiting={next(reason for reason in reasons if reason)}")
            break
    spec = found.get("spec")
    node = spec.get("nodeName") if isinstance(spec, Mapping) else None
    if node:
        parts.append(f"node={node}")
    return f" ({', '.join(parts)})" if parts else ""
