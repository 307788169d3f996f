"""Nodewright: every node change that the recipe makes is complete, and the start-up taint is gone.

The objects are called NodeWright since operator 0.18 and Skyhook before. Which of the two a cluster must
have is decided by the recipe's own pin of the operator together with what the server lists: an old pin (or
none that can be read) on a cluster that serves only Skyhook is a legacy cluster, where each Skyhook is
looked at by name. A new pin on a cluster without NodeWright is a broken installation, and a Skyhook that is
left over must not stand in for it. What is served is asked again at every look.

Source: validators spec 6.1 step 4; requirements V-415 to V-425.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from aicr.checks.deployment.stable import final
from aicr.checks.deployment.value_gates import NODEWRIGHT_GROUP, OPERATOR, SKYHOOK_GROUP
from aicr.checks.sdk import Context, failed
from aicr.checks.sdk.nodes import find_gpu_nodes
from aicr.errors import CONFLICT, INTERNAL, NOT_FOUND, AicrError
from aicr.kube import kinds
from aicr.values import versions

#: What the server lists, as ``resource.version.group``.
NODEWRIGHTS: Final = f"nodewrights.v1alpha1.{NODEWRIGHT_GROUP}"
SKYHOOKS: Final = f"skyhooks.v1alpha1.{SKYHOOK_GROUP}"
#: The first operator that serves NodeWright.
_FIRST: Final = "0.18.0"
#: The operator's Deployment, whatever it is called.
OPERATOR_LABELS: Final = {
    "app.kubernetes.io/component": "manager",
    "control-plane": "controller-manager",
}
TAINT_VARIABLE: Final = "RUNTIME_REQUIRED_TAINT"
DEFAULT_TAINT: Final = f"{NODEWRIGHT_GROUP}=runtime-required:NoSchedule"
LEGACY_TAINT: Final = f"{SKYHOOK_GROUP}=runtime-required:NoSchedule"
COMPLETE: Final = "complete"

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Served:
    """The Nodewright objects of a cluster; None for a resource that the server does not list."""

    nodewrights: list[Document] | None
    skyhooks: list[Document] | None


def pin_of(context: Context) -> str:
    """The recipe's version of the operator, "" without one."""
    ref = context.component(OPERATOR)
    return str((ref or {}).get("version") or "")


def is_old(pin: str) -> bool:
    """Whether an operator pin is below 0.18.0, absent, or cannot be read."""
    try:
        found = versions.parse(pin)
    except AicrError:
        return True
    return versions.compare(found, versions.parse(_FIRST)) < 0


async def served(context: Context) -> Served:
    """What the server lists now.

    Raises:
        AicrError: whatever a list ends with but NOT_FOUND; that a group cannot be reached is no absence.
    """
    return Served(await _list(context, NODEWRIGHTS), await _list(context, SKYHOOKS))


async def _list(context: Context, resource: str) -> list[Document] | None:
    try:
        return await context.cluster.list(resource)
    except AicrError as error:
        if error.code == NOT_FOUND:
            return None
        raise


def is_legacy(pin: str, found: Served) -> bool:
    """Whether the cluster rightly predates NodeWright: an old pin, and only Skyhook is served."""
    return is_old(pin) and found.nodewrights is None and found.skyhooks is not None


def objects(pin: str, found: Served) -> tuple[str, list[Document]]:
    """The kind that counts on this cluster, and its objects.

    Raises:
        AicrError: NOT_FOUND when the kind that must be there is not served (yet).
    """
    if found.nodewrights is not None:
        return "NodeWright", found.nodewrights
    if is_legacy(pin, found):
        return "Skyhook", found.skyhooks or []
    if found.skyhooks is not None:
        raise failed(
            f"operator {pin} must serve {NODEWRIGHT_GROUP}, and the cluster serves only {SKYHOOK_GROUP}",
            code=NOT_FOUND,
            hint="the operator's installation is broken or half upgraded; an old Skyhook does not count",
        )
    raise failed(
        f"the cluster serves neither {NODEWRIGHT_GROUP} nor {SKYHOOK_GROUP}",
        code=NOT_FOUND,
        hint="look at the installation of nodewright-operator",
    )


def check_complete(kind: str, names: Sequence[str], found: Iterable[Mapping[str, Any]]) -> None:
    """Every expected object exists, is not going away, and is complete.

    Raises:
        AicrError: NOT_FOUND or INTERNAL naming all that are not.
    """
    by_name = {str(each["metadata"].get("name")): each for each in found}
    problems = []
    absent = False
    for name in names:
        one = by_name.get(name)
        if one is None:
            absent = True
            problems.append(f"{kind} {name} does not exist")
        elif one["metadata"].get("deletionTimestamp"):
            absent = True
            problems.append(f"{kind} {name} is being removed")
        else:
            state = (one.get("status") or {}).get("status")
            if state != COMPLETE:
                problems.append(f"{kind} {name} is {state or 'without a status'}, not {COMPLETE}")
    if problems:
        raise failed(
            "; ".join(problems),
            code=NOT_FOUND if absent else INTERNAL,
            hint=f"kubectl describe {kind.lower()} says how far each node is",
        )


async def taints(context: Context, namespace: str) -> list[str]:
    """The start-up taints that must be gone, each as ``key=value:Effect``.

    Args:
        context: for the cluster.
        namespace: of the operator.

    Raises:
        AicrError: CONFLICT (final) when several Deployments could be the operator's.
    """
    found = await context.cluster.list(
        kinds.DEPLOYMENT, namespace=namespace, labels=OPERATOR_LABELS
    )
    if len(found) > 1:
        names = ", ".join(sorted(each["metadata"]["name"] for each in found))
        raise final(
            failed(
                f"{len(found)} Deployments could be the Nodewright operator: {names}",
                code=CONFLICT,
                hint="one cluster has one operator; remove the other",
            )
        )
    stated = next((text for each in found if (text := taint_of(each))), "")
    return list(dict.fromkeys((stated or DEFAULT_TAINT, LEGACY_TAINT)))


def taint_of(deployment: Mapping[str, Any]) -> str:
    """The taint that the operator is told to remove, "" if it is told none."""
    spec = (deployment.get("spec") or {}).get("template", {}).get("spec") or {}
    for container in spec.get("containers") or ():
        for variable in container.get("env") or ():
            if variable.get("name") == TAINT_VARIABLE and variable.get("value"):
                return str(variable["value"])
    return ""


def tainted(node: Mapping[str, Any], wanted: Iterable[str]) -> list[str]:
    """Those of the taints *wanted* that a node carries."""
    present = {
        (taint.get("key") or "", taint.get("value") or "", taint.get("effect") or "")
        for taint in (node.get("spec") or {}).get("taints") or ()
    }
    return [text for text in wanted if _parts(text) in present]


def _parts(text: str) -> tuple[str, str, str]:
    what, _, effect = text.rpartition(":")
    key, _, value = what.partition("=")
    return key, value, effect


async def sample(context: Context, names: Sequence[str], namespace: str) -> None:
    """One look: all objects complete, and no GPU node held back by the start-up taint.

    Raises:
        AicrError: what is not so, or why it could not be told.
    """
    kind, found = objects(pin_of(context), await served(context))
    check_complete(kind, names, found)
    wanted = await taints(context, namespace)
    held = [
        f"{node.name} ({', '.join(found_taints)})"
        for node in await find_gpu_nodes(context)
        if (found_taints := tainted(node.document, wanted))
    ]
    if held:
        raise failed(
            f"GPU nodes still carry the start-up taint: {', '.join(held)}",
            hint="the operator removes it once a node is done; look at its log",
        )
