"""CPU and memory of an injected container, fitted to the pod it comes into.

A check must not cost a pod its class of service, and must not be throttled into measuring a slow fabric:

- in a Guaranteed pod a check asks for exactly what it may use, so that the pod stays Guaranteed;
- where every container of the workload is limited, a check is limited as well, as quotas ask for, to what
  the largest of them may use; so neither the pod's reservation nor a limit range is exceeded;
- elsewhere it asks for little and is not limited.

What the operator has set for a check stands. Source: preflight spec 2.5 step 1, decision 24.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from aicr.preflight import names
from aicr.preflight.admission.amounts import Number, canonical, is_binary, number
from aicr.preflight.admission.pod import Pod

DEFAULTS: Final = {"cpu": names.DEFAULT_CPU, "memory": names.DEFAULT_MEMORY}


class Sizes(NamedTuple):
    """What a pod allows its checks."""

    guaranteed: bool
    cpu: str | None
    """The largest CPU limit of a container; None unless all are limited."""
    memory: str | None
    """The same of memory."""


def sizes(pod: Pod) -> Sizes:
    """What the workload's containers say about CPU and memory.

    Raises:
        AicrError: INVALID_REQUEST with `pod.NOT_A_POD` for a quantity that is none.
    """
    cpu, memory = (_largest(pod, resource) for resource in DEFAULTS)
    guaranteed = cpu is not None and memory is not None
    if guaranteed:
        guaranteed = all(
            _same(container, resource)
            for container in (*pod.containers, *pod.init_containers)
            for resource in DEFAULTS
        )
    return Sizes(guaranteed, cpu, memory)


def _largest(pod: Pod, resource: str) -> str | None:
    """The largest limit; None unless every container has one."""
    best: tuple[Number, str] | None = None
    for container in pod.containers:
        text = _stated(container, "limits", resource)
        if text is None:
            return None
        value = number(text, f"limits.{resource}")
        if best is None or value > best[0]:
            best = value, text
    return None if best is None else canonical(best[0], binary=is_binary(best[1]))


def fit(limits: dict[str, str], requests: dict[str, str], found: Sizes) -> None:
    """Complete the *limits* and *requests* of one check, which hold what the operator has set."""
    for resource, default in DEFAULTS.items():
        limit, request = limits.get(resource), requests.get(resource)
        ceiling = found.cpu if resource == "cpu" else found.memory
        if limit is None:
            if found.guaranteed:
                limit = request or ceiling
            elif ceiling is not None:
                limit = ceiling if request is None else _larger(ceiling, request)
            if limit is not None:
                limits[resource] = limit
            if request is None:
                request = default if limit is None else _smaller(default, limit)
        elif request is None:
            request = limit
        requests[resource] = limit if found.guaranteed and limit is not None else request


def _stated(container: Mapping[str, Any], kind: str, resource: str) -> Any:
    return ((container.get("resources") or {}).get(kind) or {}).get(resource)


def _same(container: Mapping[str, Any], resource: str) -> bool:
    limit = _stated(container, "limits", resource)
    if limit is None:
        return False
    request = _stated(container, "requests", resource)
    # Kubernetes fills in a request that is not stated, from the limit.
    return request is None or request == limit or number(request, "") == number(limit, "")


def _larger(a: str, b: str) -> str:
    return a if number(a, "") >= number(b, "") else b


def _smaller(a: str, b: str) -> str:
    return a if number(a, "") <= number(b, "") else b
