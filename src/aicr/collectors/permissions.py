"""Asking the API server what a caller may do, before doing it.

All that is refused is found in one go, so that somebody with a narrow account needs one run to learn what
to ask for. The questions are access reviews, which change nothing. "May not ask" is an error and no yes.

It must not know which command asks. Source: decision 33; Kubernetes API, SelfSubjectAccessReview.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from aicr.errors import UNAUTHORIZED, AicrError
from aicr.kube.port import Cluster

#: Questions at once; an API server answers each in about a millisecond.
_AT_ONCE: Final = 8


@dataclass(frozen=True, slots=True)
class Permission:
    """One verb on one kind, in one namespace or ("") in the cluster."""

    verb: str
    group: str
    resource: str
    namespace: str = ""
    subresource: str = ""

    def __str__(self) -> str:
        kind = self.resource + (f"/{self.subresource}" if self.subresource else "")
        kind += f".{self.group}" if self.group and self.group != "*" else ""
        place = f"namespace {self.namespace}" if self.namespace else "the whole cluster"
        return f"{self.verb} {kind} in {place}"

    def review(self) -> dict[str, Any]:
        """The SelfSubjectAccessReview that asks for it."""
        attributes = {
            "verb": self.verb,
            "group": self.group,
            "resource": self.resource,
            "subresource": self.subresource,
            "namespace": self.namespace,
        }
        return {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {key: text for key, text in attributes.items() if text}},
        }


def verbs(
    names: str, resource: str, *, group: str = "", namespace: str = "", subresource: str = ""
) -> list[Permission]:
    """A permission for each of *names*, verbs with blanks in between."""
    return [Permission(verb, group, resource, namespace, subresource) for verb in names.split()]


async def refused(cluster: Cluster, permissions: Iterable[Permission]) -> list[Permission]:
    """Those of *permissions* that the caller does not have, in their order.

    Raises:
        AicrError: what asking raises; nothing is known then.
    """
    asked = list(dict.fromkeys(permissions))
    turns = asyncio.Semaphore(_AT_ONCE)

    async def allowed(permission: Permission) -> bool:
        async with turns:
            answer = await cluster.create(permission.review())
        return (answer.get("status") or {}).get("allowed") is True

    try:
        # A group, so that after a failure no question is still on its way when the client closes.
        async with asyncio.TaskGroup() as group:
            answers = [group.create_task(allowed(permission)) for permission in asked]
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [permission for permission, yes in zip(asked, answers, strict=True) if not yes.result()]


async def demand(cluster: Cluster, permissions: Sequence[Permission], *, what: str) -> None:
    """Refuse to go on without *permissions*.

    Raises:
        AicrError: UNAUTHORIZED with all that is missing.
    """
    missing = await refused(cluster, permissions)
    if missing:
        raise AicrError(
            UNAUTHORIZED,
            f"{what} needs permissions that you do not have: {'; '.join(map(str, missing))}",
            hint="ask an administrator for them, or use an account that has them",
            context={"missing": [str(permission) for permission in missing]},
        )
