"""Events that say why pods were or were not given checks (decision 26).

A pod has no identity yet when it is admitted, so the Event is about its controller, or else its
namespace. A thousand pods of one job say the same, so an Event is sent once in a while for each subject
and text; and since nobody may wait for it, a full queue drops. `make` is pure, `Events` sends.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from aicr.errors import AicrError
from aicr.kube.port import Cluster
from aicr.preflight.admission.decision import ERROR, INJECTED, NO_GPU, REJECTED, Decision
from aicr.preflight.admission.pod import Pod

LOG: Final = logging.getLogger("aicr.preflight.admission")
COMPONENT: Final = "preflight"
#: Seconds in which the same Event is not sent again.
QUIET: Final = 300.0
WAITING: Final = 1000
#: What the API server accepts as the message of an Event.
LONGEST: Final = 1024

_REASONS: Final = {
    INJECTED: ("Normal", "PreflightInjected"),
    REJECTED: ("Warning", "PreflightRejected"),
    ERROR: ("Warning", "PreflightFailed"),
}


def make(pod: Pod, decision: Decision, now: datetime) -> dict[str, Any] | None:
    """The Event for *decision*; None when it is not worth one: a pod without GPUs."""
    if decision.outcome == NO_GPU or not pod.namespace:
        return None
    kind, reason = _REASONS.get(decision.outcome, ("Normal", "PreflightSkipped"))
    subject = _subject(pod)
    moment = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"generateName": "preflight-", "namespace": pod.namespace},
        "involvedObject": subject,
        "type": kind,
        "reason": reason,
        "message": _message(decision)[:LONGEST],
        "source": {"component": COMPONENT},
        "firstTimestamp": moment,
        "lastTimestamp": moment,
        "count": 1,
    }


def _message(decision: Decision) -> str:
    if decision.message:
        text = decision.message
    elif decision.outcome == INJECTED:
        text = f"{decision.reason}; checks: {', '.join(decision.checks)}"
    else:
        text = decision.reason
    return "; ".join([text, *decision.warnings])


def _subject(pod: Pod) -> dict[str, Any]:
    metadata = pod.document.get("metadata") or {}
    for owner in metadata.get("ownerReferences") or ():
        if isinstance(owner, Mapping) and owner.get("controller") is True:
            found = {key: owner.get(key) for key in ("apiVersion", "kind", "name", "uid")}
            return {**found, "namespace": pod.namespace}
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "name": pod.namespace,
        "namespace": pod.namespace,
    }


class Events:
    """Sends Events in the background; give `run` a task of its own."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        failed: Callable[[], None] = lambda: None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        quiet: float = QUIET,
        waiting: int = WAITING,
    ) -> None:
        """*failed* is told of each Event that was dropped or refused."""
        self._cluster = cluster
        self._failed = failed
        self._now = now
        self._quiet = quiet
        self._queue: asyncio.Queue[dict[str, Any]] = asyncio.Queue(waiting)
        self._sent: dict[tuple[str, ...], float] = {}

    def offer(self, pod: Pod, decision: Decision) -> None:
        """Have the Event for *decision* sent, unless it was lately."""
        now = self._now()
        event = make(pod, decision, now)
        if event is None:
            return
        subject = event["involvedObject"]
        key = (pod.namespace, str(subject["kind"]), str(subject["name"]), event["message"])
        moment = now.timestamp()
        last = self._sent.get(key)
        if last is not None and moment - last < self._quiet:
            return
        try:
            self._queue.put_nowait(event)
        except asyncio.QueueFull:
            self._failed()
            return
        if len(self._sent) >= 4 * self._queue.maxsize:
            self._forget(moment)
        self._sent[key] = moment

    def _forget(self, moment: float) -> None:
        """Keep the memory of what was sent bounded, however many subjects there are."""
        self._sent = {k: t for k, t in self._sent.items() if moment - t < self._quiet}
        if len(self._sent) >= 4 * self._queue.maxsize:
            self._sent.clear()

    async def run(self) -> None:
        """Send until cancelled; an Event that the API server refuses is logged and forgotten."""
        while True:
            event = await self._queue.get()
            try:
                await self._cluster.create(event, namespace=event["metadata"]["namespace"])
            except AicrError as error:
                self._failed()
                LOG.warning("Failed to send event", extra={"error": str(error)})
