"""One test pod: made from a template, waited for, read, and removed again.

Waiting is a watch that ends at the first thing which cannot get better (decision 14): an image that
cannot be pulled, a configuration that is not there, a container that crashes again and again, a pod
that nobody can schedule for longer than the grace. What the cause is goes into the error, with the
kubelet's own words. A time that ran out says what the pod was last seen doing.

`stuck` and `progress` are pure; `PodLifecycle` does the rest through the port.
Source: validators spec 5.4; decisions 14 and 41; requirements V-136 to V-138.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from aicr.checks.sdk.context import Context
from aicr.checks.sdk.outcome import failed
from aicr.checks.sdk.removal import remove
from aicr.errors import INTERNAL, TIMEOUT, AicrError, invalid
from aicr.kube import kinds
from aicr.kube.watching import DELETED, SYNCED
from aicr.yamlio import read

Document = dict[str, Any]

UNSCHEDULABLE: Final = "Unschedulable"
CRASH_LOOP: Final = "CrashLoopBackOff"
#: Reasons of a waiting container that no waiting mends.
FATAL: Final = frozenset(
    {
        "ErrImagePull",
        "ImagePullBackOff",
        "InvalidImageName",
        "ErrImageNeverPull",
        "CreateContainerConfigError",
        CRASH_LOOP,
    }
)
_HINTS: Final = {
    "ErrImageNeverPull": "the image is side-loaded and not on this node; load it on every node",
    "InvalidImageName": "correct the image reference",
    "CreateContainerConfigError": "a Secret or ConfigMap that the pod names is missing",
    CRASH_LOOP: "kubectl logs --previous shows how it ended",
    UNSCHEDULABLE: "free or uncordon a node that fits, or adjust node selector and tolerations",
}
_PULL_HINT: Final = "check the image name, the registry and the pull secrets, or mirror the image"
_PLACEHOLDER: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


@dataclass(frozen=True, slots=True)
class Stuck:
    """Why a pod will not run."""

    reason: str
    message: str
    #: The container that it is about, "" for the pod as a whole.
    container: str = ""
    image: str = ""


def from_template(text: str, values: Mapping[str, str], source: str) -> Document:
    """The document in *text* with each ``${KEY}`` replaced.

    Raises:
        AicrError: INVALID_REQUEST for a placeholder without a value, and for text that is no YAML map.
    """
    missing = sorted({name for name in _PLACEHOLDER.findall(text) if name not in values})
    if missing:
        raise invalid(f"the template has no value for {', '.join(missing)}", where=source)
    document = read.load(_PLACEHOLDER.sub(lambda found: values[found[1]], text), source=source)
    if not isinstance(document, dict):
        raise invalid("the template is no document", where=source)
    return document


def placed(
    document: Mapping[str, Any],
    context: Context,
    *,
    node_selector: Mapping[str, str] | None = None,
    tolerations: Sequence[Mapping[str, Any]] | None = None,
) -> Document:
    """A pod document with node selector and tolerations: the user's, else the check's defaults given here.

    What is neither given nor asked for stays as the document has it. A pod that is pinned by ``nodeName``
    passes the scheduler by and gets no node selector, which could only keep it from starting
    (requirements V-134, V-135).
    """
    spec = dict(document["spec"])
    selector = node_selector if context.node_selector is None else context.node_selector
    tolerated = tolerations if context.tolerations is None else context.tolerations
    if spec.get("nodeName"):
        spec.pop("nodeSelector", None)
    elif selector is not None:
        spec["nodeSelector"] = dict(selector)
    if tolerated is not None:
        spec["tolerations"] = [dict(each) for each in tolerated]
    return {**document, "spec": spec}


def stuck(pod: Mapping[str, Any]) -> Stuck | None:
    """What keeps *pod* from running for good, or None.

    `UNSCHEDULABLE` may still pass; the caller gives it its grace.
    """
    for status in _statuses(pod):
        waiting = (status.get("state") or {}).get("waiting") or {}
        reason = str(waiting.get("reason") or "")
        if reason in FATAL:
            return Stuck(
                reason,
                str(waiting.get("message") or ""),
                str(status.get("name") or ""),
                str(status.get("image") or ""),
            )
    for condition in (pod.get("status") or {}).get("conditions") or []:
        refused = condition.get("type") == "PodScheduled" and condition.get("status") == "False"
        if refused and condition.get("reason") == UNSCHEDULABLE:
            return Stuck(UNSCHEDULABLE, str(condition.get("message") or ""))
    return None


def stuck_error(name: str, cause: Stuck) -> AicrError:
    """The error for a pod that is stuck.

    A container that keeps crashing is a verdict. The others mean that the test could not be made.
    """
    about = f" (container {cause.container}, image {cause.image})" if cause.container else ""
    said = f": {cause.message}" if cause.message else ""
    message = f"pod {name} cannot run: {cause.reason}{about}{said}"
    hint = _HINTS.get(cause.reason, _PULL_HINT)
    context = {"stuck": cause.reason, "container": cause.container}
    if cause.reason == CRASH_LOOP:
        return failed(message, hint=hint, context=context)
    return AicrError(INTERNAL, message, hint=hint, context=context)


def progress(pod: Mapping[str, Any] | None) -> str:
    """What a pod is doing, in a few words: for the error of a time that ran out."""
    if pod is None:
        return "the pod was never seen"
    phase = str((pod.get("status") or {}).get("phase") or "Unknown")
    cause = stuck(pod)
    if cause is not None:
        return f"{phase}, {cause.reason}: {cause.message}".rstrip(": ")
    for status in _statuses(pod):
        waiting = (status.get("state") or {}).get("waiting") or {}
        if waiting.get("reason"):
            said = f"{waiting['reason']}: {waiting.get('message') or ''}".rstrip(": ")
            return f"{phase}, container {status.get('name')} is waiting: {said}"
    return phase


def ended_badly(name: str, pod: Mapping[str, Any]) -> AicrError:
    """The error for a pod in phase Failed, with how its containers ended."""
    status = pod.get("status") or {}
    ends = []
    for each in _statuses(pod):
        end = (each.get("state") or {}).get("terminated") or {}
        if end.get("exitCode"):
            reason = end.get("reason") or "Error"
            said = f": {end['message'].strip()}" if end.get("message") else ""
            ends.append(
                f"container {each.get('name')} ended with {end['exitCode']} ({reason}){said}"
            )
    why = "; ".join(ends) or f"{status.get('reason') or ''}: {status.get('message') or ''}".strip(
        ": "
    )
    return failed(f"pod {name} failed: {why or 'no reason given'}", context={"phase": "Failed"})


def _statuses(pod: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    status = pod.get("status") or {}
    yield from status.get("initContainerStatuses") or []
    yield from status.get("containerStatuses") or []


@dataclass(frozen=True, slots=True)
class PodLifecycle:
    """A pod in *namespace*, through the context's cluster."""

    context: Context
    namespace: str

    async def create(self, document: Mapping[str, Any]) -> Document:
        """Create a pod; TIMEOUT when the server does not answer in the time for it."""
        limit = self.context.timeout(self.context.timeouts.pod_creation)
        async with _within(limit, f"creating pod {document['metadata'].get('name', '')}"):
            return await self.context.cluster.create(document, namespace=self.namespace)

    async def wait_exists(self, name: str, seconds: float) -> Document:
        """The pod as soon as there is one of that name."""
        return await self._wait(name, seconds, (), "to appear")

    async def wait_running(self, name: str, seconds: float) -> Document:
        """The pod once it runs, or has run and succeeded.

        Raises:
            AicrError: INTERNAL when it failed, cannot run (context ``stuck``) or was deleted, TIMEOUT.
        """
        return await self._wait(name, seconds, ("Running", "Succeeded"), "to run")

    async def wait_succeeded(self, name: str, seconds: float) -> Document:
        """The pod once it has succeeded; errors as `wait_running`."""
        return await self._wait(name, seconds, ("Succeeded",), "to succeed")

    async def logs(self, name: str, container: str = "") -> str:
        """What a container of the pod has written; the first one's by default."""
        data = await self.context.cluster.logs(name, namespace=self.namespace, container=container)
        return data.decode("utf-8", "replace")

    async def remove(self, pod: Mapping[str, Any]) -> bool:
        """Delete exactly this pod; whether it is gone or going (see `removal.remove`)."""
        metadata = pod["metadata"]
        return await remove(
            self.context, kinds.POD, metadata["name"], self.namespace, metadata.get("uid", "")
        )

    async def _wait(
        self, name: str, seconds: float, phases: tuple[str, ...], what: str
    ) -> Document:
        """The pod in one of *phases* (none: as soon as it exists)."""
        loop = asyncio.get_running_loop()
        seconds = self.context.timeout(seconds)
        end = loop.time() + seconds
        grace_over: float | None = None
        last: Document | None = None
        limit = asyncio.timeout_at(end)
        try:
            async with limit, contextlib.aclosing(self._watch(name)) as events:
                async for event in events:
                    if event.type == SYNCED:
                        continue
                    if event.type == DELETED:
                        raise AicrError(INTERNAL, f"pod {name} was deleted while it was waited for")
                    last = event.object
                    assert last is not None
                    if not phases or self._arrived(name, last, phases):
                        return last
                    cause = stuck(last)
                    if cause is None:
                        grace_over = None
                    elif cause.reason != UNSCHEDULABLE:
                        raise stuck_error(name, cause)
                    elif grace_over is None:
                        grace_over = loop.time() + self.context.timeouts.unschedulable_grace
                    limit.reschedule(end if grace_over is None else min(end, grace_over))
        except TimeoutError as error:
            cause = stuck(last) if last is not None else None
            if cause is not None:
                raise stuck_error(name, cause) from error
            raise AicrError(
                TIMEOUT,
                f"waited {seconds:g} s for pod {name} {what}; last seen: {progress(last)}",
                hint=f"kubectl describe pod -n {self.namespace} {name}",
            ) from error
        raise AicrError(INTERNAL, f"the watch of pod {name} ended")

    def _watch(self, name: str) -> Any:
        return self.context.cluster.watch(
            kinds.POD, namespace=self.namespace, fields={"metadata.name": name}
        )

    @staticmethod
    def _arrived(name: str, pod: Document, phases: tuple[str, ...]) -> bool:
        phase = (pod.get("status") or {}).get("phase")
        if phase == "Failed":
            raise ended_badly(name, pod)
        return phase in phases


@contextlib.asynccontextmanager
async def _within(seconds: float, what: str) -> Any:
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError as error:
        raise AicrError(TIMEOUT, f"{what}: no answer within {seconds:g} s") from error
