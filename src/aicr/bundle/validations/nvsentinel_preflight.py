"""The DCGM check before a pod starts needs a host engine to talk to (bundler spec 6.4.14)."""

from __future__ import annotations

from aicr.bundle.validations.effective import ABSENT, Finding, look, shown, truth
from aicr.errors import AicrError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from aicr.bundle.validations.effective import Context, Verdict

SWITCH: Final = "global.preflight.enabled"
CONTAINERS: Final = "preflight.initContainers"
DCGM: Final = "dcgm.enabled"

_CONTAINER: Final = "preflight-dcgm-diag"
_VARIABLE: Final = "DCGM_HOSTENGINE_ADDR"
_SERVICE: Final = "nvidia-dcgm"
_PORT: Final = "5555"
_DEFAULT: Final = f"{_SERVICE}.gpu-operator.svc:{_PORT}"


class _UnreadableError(Exception):
    """Why the address cannot be read."""


def dcgm_reachable(context: Context) -> Verdict:
    """The address in ``DCGM_HOSTENGINE_ADDR`` is a Service that this bundle brings up.

    Judged is the GPU operator's own Service: operator in the bundle, in that namespace, with
    ``dcgm.enabled``, port 5555. Any other host is the user's business.

    Remedy: ``--set gpu-operator:dcgm.enabled=true`` and the address
    ``nvidia-dcgm.<namespace>.svc:5555``.
    """
    values = context.values()
    if not truth(look(values, SWITCH)) and not context.is_dynamic(SWITCH):
        return [], []
    late = [
        Finding(
            f"{context.name}: {path} is given at install time, so nobody can say now which DCGM "
            f"the preflight check will ask",
            f"drop --dynamic for it; set it now, in the recipe or with --set-json "
            f"{context.name}:{path}=…",
        )
        for path in (SWITCH, CONTAINERS)
        if context.is_dynamic(path)
    ]
    if late:
        return late, []
    try:
        address = _address(look(values, CONTAINERS))
    except _UnreadableError as problem:
        return [
            Finding(
                f"{context.name}: {problem} ({CONTAINERS})",
                f"give {_CONTAINER} one {_VARIABLE} with a value, for example {_DEFAULT}",
            )
        ], []
    if address is None:
        return [], []
    host, _, port = address.rpartition(":") if ":" in address else (address, "", "")
    namespace = _namespace(host)
    if namespace is None:
        return [], []
    try:
        return _judge(context, address, port, namespace), []
    except AicrError as error:
        return [], [error]


def _judge(context: Context, address: str, port: str, namespace: str) -> list[Finding]:
    operator = context.gpu_operator()
    said = f"{context.name}: the preflight check asks DCGM at {address}, but"
    if not operator:
        return [
            Finding(
                f"{said} the GPU operator, which serves it, is not in the bundle",
                f"keep gpu-operator, or name another host engine in {_VARIABLE}",
            )
        ]
    found = []
    serves = operator_namespace(context, operator)
    wanted = f"set {_VARIABLE} of {_CONTAINER} to {_SERVICE}.{serves}.svc:{_PORT}"
    if port != _PORT:
        found.append(Finding(f"{said} the Service listens on port {_PORT}", wanted))
    if namespace != serves:
        where = f'in namespace "{namespace}"' if namespace else "in the namespace of each pod"
        found.append(Finding(f'{said} that is {where}, and {operator} runs in "{serves}"', wanted))
    if context.is_dynamic(DCGM, operator):
        found.append(
            Finding(
                f"{said} {DCGM} of {operator} is given at install time",
                f"drop --dynamic for it and pass --set {operator}:{DCGM}=true",
            )
        )
    elif look(context.values(operator), DCGM) is not True:
        value = look(context.values(operator), DCGM)
        found.append(
            Finding(
                f"{said} {DCGM} of {operator} is {shown(value)}, so nothing serves it",
                f"pass --set {operator}:{DCGM}=true",
            )
        )
    return found


def operator_namespace(context: Context, operator: str) -> str:
    """The namespace that the operator is, or would be, installed in."""
    component = context.rendered.get(operator)
    if component is not None:
        return component.namespace
    return context.refs[operator].get("namespace") or operator


def _address(containers: Any) -> str | None:
    """The address that the check will use, None when there is no such check.

    Raises:
        _UnreadableError: something on the way to the address is not what a chart expects.
    """
    if containers is ABSENT:
        return _DEFAULT
    container = _single(containers, _CONTAINER, "init container")
    if container is None:
        return None
    if "env" not in container:
        return _DEFAULT
    variable = _single(container["env"], _VARIABLE, f"env of {_CONTAINER}")
    if variable is None:
        return _DEFAULT
    value = variable.get("value")
    if not isinstance(value, str) or not value.strip():
        raise _UnreadableError(f"{_VARIABLE} of {_CONTAINER} has no value")
    return value.strip()


def _single(entries: Any, name: str, what: str) -> dict[str, Any] | None:
    """The one entry of that name, None when there is none."""
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise _UnreadableError(f"{what}: {shown(entries)} is not a list of maps")
    found = [entry for entry in entries if entry.get("name") == name]
    if len(found) > 1:
        raise _UnreadableError(f"{what}: {name} is there {len(found)} times")
    return found[0] if found else None


def _namespace(host: str) -> str | None:
    """The namespace of the operator's Service that a host name means; None for any other host.

    A bare Service name stands in the namespace of whichever pod asks: "".

    >>> [_namespace(host) for host in ("nvidia-dcgm.gpu.svc.cluster.local", "nvidia-dcgm.a.com")]
    ['gpu', None]
    """
    service, *rest = host.lower().rstrip(".").split(".")
    if service != _SERVICE:
        return None
    if not rest:
        return ""
    return rest[0] if len(rest) == 1 or rest[1] == "svc" else None
