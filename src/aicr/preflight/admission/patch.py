"""The JSON patch: only ``add``, only what is new, on the pod as it was sent.

Nothing that the pod has is named in the patch, so nothing of it can be lost. `apply` does what the API
server does with it, for offline use and for checking ourselves. Source: preflight spec 2.7.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aicr.errors import INTERNAL, AicrError
from aicr.preflight.admission.pod import Pod

Operation = dict[str, Any]


def operations(
    pod: Pod,
    containers: Sequence[Mapping[str, Any]],
    position: int,
    volumes: Sequence[Mapping[str, Any]],
    secrets: Sequence[str],
) -> list[Operation]:
    """The patch that puts *containers* before init container *position* and adds the rest at the end."""
    found: list[Operation] = []
    if not pod.init_containers:
        found.append(_add("/spec/initContainers", list(containers)))
    elif position >= len(pod.init_containers):
        found += [_add("/spec/initContainers/-", container) for container in containers]
    else:
        found += [
            _add(f"/spec/initContainers/{position + index}", container)
            for index, container in enumerate(containers)
        ]
    found += _appended("/spec/volumes", bool(pod.volumes), volumes)
    existing = pod.spec.get("imagePullSecrets") or []
    present = {secret.get("name") for secret in existing if type(secret) is dict}
    wanted = [{"name": name} for name in dict.fromkeys(secrets) if name not in present]
    found += _appended("/spec/imagePullSecrets", bool(existing), wanted)
    return found


def _appended(path: str, present: bool, values: Sequence[Mapping[str, Any]]) -> list[Operation]:
    if present:
        return [_add(f"{path}/-", value) for value in values]
    return [_add(path, list(values))] if values else []


def _add(path: str, value: Any) -> Operation:
    return {"op": "add", "path": path, "value": value}


def apply(document: Any, patch: Sequence[Mapping[str, Any]]) -> Any:
    """*document* with *patch*; the document itself and what is not touched stay shared and unchanged.

    Raises:
        AicrError: INTERNAL when a parent is missing or an index is out of range, which for a patch of
            ours on the pod it was made for would be a bug.
    """
    for operation in patch:
        steps = [
            step.replace("~1", "/").replace("~0", "~") for step in operation["path"].split("/")[1:]
        ]
        document = _added(document, steps, operation)
    return document


def _added(node: Any, steps: list[str], operation: Mapping[str, Any]) -> Any:
    step, *rest = steps
    if isinstance(node, dict):
        if rest and step not in node:
            raise _impossible(operation)
        return {**node, step: _added(node[step], rest, operation) if rest else operation["value"]}
    if not isinstance(node, list):
        raise _impossible(operation)
    index = len(node) if step == "-" else int(step)
    if index > len(node) or (rest and index == len(node)):
        raise _impossible(operation)
    if rest:
        return [*node[:index], _added(node[index], rest, operation), *node[index + 1 :]]
    return [*node[:index], operation["value"], *node[index:]]


def _impossible(operation: Mapping[str, Any]) -> AicrError:
    return AicrError(INTERNAL, f"patch {operation['op']} {operation['path']} has no place to go")
