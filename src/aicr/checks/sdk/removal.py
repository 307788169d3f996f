"""Taking back what a check created: this object and no other, also after the check was cancelled.

The UID guards a deletion: an object of the same name that somebody else made in the meantime stays.
Removal has its own time, not what is left of the check's budget, which may be nothing. It never raises:
a verdict is not changed by what is left over, but what is left over is named, with the command that
removes it. Source: validators spec 5.4; requirements V-138, V-242; decision 66.
"""

from __future__ import annotations

import asyncio

from aicr.checks.sdk.context import Context
from aicr.errors import CONFLICT, NOT_FOUND, AicrError
from aicr.kube.kinds import Resource
from aicr.kube.port import Kind


async def remove(
    context: Context,
    kind: Kind,
    name: str,
    namespace: str = "",
    uid: str = "",
    *,
    propagation: str = "Background",
) -> bool:
    """Delete the object with this UID.

    Returns:
        Whether it is gone or going. False: it is still there; a warning with the command was logged.
    """
    try:
        async with asyncio.timeout(context.timeouts.cleanup):
            await context.cluster.delete(
                kind, name, namespace=namespace, uid=uid, propagation=propagation
            )
    except AicrError as error:
        if error.code == NOT_FOUND:
            return True
        if error.code == CONFLICT and uid:
            context.log.warning("%s %s is another object by now; left alone", _word(kind), name)
            return True
        context.log.warning("%s; remove it with: %s", error, command(kind, name, namespace))
        return False
    except TimeoutError:
        context.log.warning(
            "no answer in time; remove what is left with: %s", command(kind, name, namespace)
        )
        return False
    return True


def command(kind: Kind, name: str, namespace: str = "") -> str:
    """The kubectl line that removes an object."""
    place = f" -n {namespace}" if namespace else ""
    return f"kubectl delete {_word(kind)}{place} {name}"


def _word(kind: Kind) -> str:
    return kind.qualified if isinstance(kind, Resource) else kind
