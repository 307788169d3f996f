"""platform-health: the namespaces and the expected resources of every enabled component are healthy.

Everything is looked at before the verdict, so that one failure does not hide another. What could not be
read is listed too; alone it is "could not tell", beside a failure it changes nothing.
Source: validators spec 6.2, 5.4.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

from aicr.catalog.dependencies import is_enabled
from aicr.checks.conformance.required import required
from aicr.checks.sdk import CONFORMANCE, Check, Context, failed, resources
from aicr.checks.sdk.outcome import could_not_tell
from aicr.errors import NOT_FOUND, AicrError, invalid, some_of
from aicr.kube import kinds

#: Reads at the same time.
PARALLEL: Final = 8

Document = Mapping[str, Any]
Expected = tuple[str, str, str]


async def run(context: Context) -> None:
    """Look at all, then judge."""
    refs = [ref for ref in (context.validation or {}).get("componentRefs") or [] if is_enabled(ref)]
    if not refs:
        raise invalid(
            "platform-health needs a recipe with enabled components; there is none to look at",
            hint="run it through aicr validate --recipe FILE",
        )
    namespaces, expected = wanted(refs)
    gate = asyncio.Semaphore(PARALLEL)

    async def one(label: str, kind: str, namespace: str, name: str) -> tuple[str, str | AicrError]:
        async with gate:
            try:
                return label, await _state(context, kind, namespace, name)
            except AicrError as error:
                return label, error

    looks = [one(f"Namespace {name}", "Namespace", "", name) for name in namespaces]
    looks += [one(f"{kind} {place}/{name}", kind, place, name) for kind, place, name in expected]
    bad: list[str] = []
    unread: list[AicrError] = []
    for label, state in await asyncio.gather(*looks):
        if isinstance(state, str):
            context.out(f"  {label}: {state}")
            continue
        context.out(f"  {label}: FAILED: {_said(state)}")
        if could_not_tell(state):
            unread.append(state)
        else:
            bad.append(f"{label}: {state.message}")
    if bad:
        raise failed(
            f"{len(bad)} of {len(looks)} parts of the platform are not healthy: "
            f"{some_of(bad, 5, '; ')}",
            code=NOT_FOUND,
            hint="the evidence lists all of them",
        )
    if unread:
        raise AicrError(
            could_not_tell(unread[0]),
            f"{len(unread)} of {len(looks)} parts of the platform could not be read: {_said(unread[0])}",
            hint=unread[0].hint,
        ) from unread[0]
    context.out(f"{len(namespaces)} namespace(s) and {len(expected)} resource(s) are healthy")


def wanted(refs: Sequence[Document]) -> tuple[list[str], list[Expected]]:
    """The distinct namespaces of components, and their expected resources as (kind, namespace, name)."""
    namespaces = sorted({str(ref["namespace"]) for ref in refs if ref.get("namespace")})
    expected = [
        (
            str(entry.get("kind") or ""),
            str(entry.get("namespace") or ref.get("namespace") or ""),
            str(entry.get("name") or ""),
        )
        for ref in refs
        for entry in ref.get("expectedResources") or []
    ]
    return namespaces, expected


async def _state(context: Context, kind: str, namespace: str, name: str) -> str:
    """The state of one part in a few words; raises when it is not healthy."""
    if kind != "Namespace":
        try:
            return await resources.verify(context, kind, namespace, name)
        except AicrError as error:
            if error.code == NOT_FOUND and not could_not_tell(error):
                raise failed("not found", code=NOT_FOUND) from error
            raise
    found = await required(context, kinds.NAMESPACE, name)
    phase = str((found.get("status") or {}).get("phase") or "Unknown")
    if phase != "Active":
        raise failed(f"is {phase}")
    return phase


def _said(error: AicrError) -> str:
    return ": ".join(link.message for link in error.chain())


CHECK = Check(
    name="platform-health",
    phase=CONFORMANCE,
    summary="namespaces and expected resources of the recipe's components are healthy",
    run=run,
    timeout="5m",
    details="""\
Looks at the namespace of every enabled component, and at every entry of `expectedResources`: Deployments,
DaemonSets and StatefulSets by their ready replicas; Services, ConfigMaps and Secrets by existing.

- Passes when all namespaces are `Active` and all resources healthy.
- Fails (NOT_FOUND, listing them) when one is not. When nothing is known to be unhealthy and something could
  not be read, it fails with that code.
- Never skips; without a recipe there is nothing to look at, which is INVALID_REQUEST.
""",
    reads=("namespaces", "deployments, daemonsets, statefulsets, services, configmaps, secrets"),
)
