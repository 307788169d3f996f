"""Waits for one Job: until its container or it has ended, hope is gone, or its time is up.

It looks at what the run's `Observer` has seen and is woken by every change. The end of the
check's container is the end of the wait, whatever else the pod holds: a sidecar that somebody's
webhook has put there may never end. It must not know what the end means.

Source: validators spec 3.6; decision 14.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from aicr.errors import INTERNAL, TIMEOUT, AicrError
from aicr.kube import kinds
from aicr.kube.port import Cluster
from aicr.validate import pods
from aicr.validate.observer import Observer
from aicr.validate.plan import JobPlan
from aicr.validate.timing import Timing

Follow = Callable[[str], asyncio.Task[None]]


class Waiter:
    """See the module.

    Attributes:
        log: what follows the container's log, once it has started.
    """

    def __init__(
        self,
        cluster: Cluster,
        observer: Observer,
        planned: JobPlan,
        uid: str,
        timing: Timing,
        *,
        say: Callable[[str], None] = lambda text: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cluster, self._observer, self._planned = cluster, observer, planned
        self._uid, self._timing, self._clock = uid, timing, clock
        self._patience = pods.Patience(timing)
        self._refused = ""
        self._say, self._said = say, ""
        self.log: asyncio.Task[None] | None = None

    async def wait(self, follow: Follow) -> AicrError | pods.Hopeless | None:
        """Wait; *follow* is called with the pod's name once its container has started.

        Returns:
            None when the check has ended; else what ended the wait: TIMEOUT ``validator wait
            timeout``, INTERNAL ``Job was deleted externally``, an error of the watch, or a
            hopeless pod.
        """
        deadline = self._clock() + self._timing.wait_seconds(self._planned.timeout)
        try:
            while True:
                now = self._clock()
                pod = pods.choose(self._observer.job_pods(self._uid))
                if pod is not None and self.log is None and pods.has_started(pod):
                    self.log = follow(str(pod["metadata"]["name"]))
                if self._has_ended(pod):
                    return None
                self._tell(pod)
                problem = self._problem(pod, now, deadline)
                if problem is not None:
                    return problem
                if pod is None and self._patience.without_pod(now):
                    self._refused = await self._why_no_pod()
                await self._observer.changed(min(self._timing.poll, deadline - now))
        except BaseException:
            if self.log is not None:
                self.log.cancel()
            raise

    def _tell(self, pod: pods.Document | None) -> None:
        """Say what keeps the check from starting, once for each cause."""
        found = pods.remarkable(pod) if pod is not None else ""
        if found and found != self._said:
            self._say(f"waiting: {found}")
        self._said = found

    def _has_ended(self, pod: pods.Document | None) -> bool:
        if pod is not None and pods.terminated(pod):
            return True
        found = self._observer.jobs.get(self._planned.job_name)
        return found is not None and pods.ended(found) is not None

    def _problem(
        self, pod: pods.Document | None, now: float, deadline: float
    ) -> AicrError | pods.Hopeless | None:
        if self._observer.failure is not None:
            return self._observer.failure
        if self._uid in self._observer.deleted_jobs:
            return AicrError(INTERNAL, "Job was deleted externally")
        lost = self._patience.judge(pod, now, self._refused)
        if lost is None and now >= deadline:
            return AicrError(TIMEOUT, "validator wait timeout")
        return lost

    async def _why_no_pod(self) -> str:
        """What the Job's events say of a pod that does not come."""
        try:
            events = await self._cluster.list(
                kinds.EVENT,
                namespace=self._planned.namespace,
                fields={"involvedObject.uid": self._uid},
            )
        except AicrError:
            # Not knowing why changes nothing: the wait goes on until its deadline.
            return ""
        return pods.refusal(events)
