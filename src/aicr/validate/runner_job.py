"""Runs checks as Kubernetes Jobs: apply, watch, follow the log, read the verdict, remove.

```
check ─► apply ─► wait (Job or container ended | hopeless | deadline) ─► verdict ─► delete, pod gone
                    └─ follow the log from the container's start ──────────┘
```

The decisions are in `pods` and `extraction`; here is only what touches the cluster. A failure to
run one check is a result of that check. Reading the verdict and cleaning up have time of their
own, so that they work after the wait has used up its own.

Source: validators spec 3.6, 3.7, 3.9; decisions 13, 14, 63; V-086.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from aicr.contract import container, labels
from aicr.errors import INTERNAL, NOT_FOUND, AicrError
from aicr.kube import kinds
from aicr.kube.port import Cluster
from aicr.validate import extraction, objects, pods, results
from aicr.validate.cluster_setup import NOT_REVOKED, Setup
from aicr.validate.extraction import Verdict
from aicr.validate.observer import Observer
from aicr.validate.output import Collected
from aicr.validate.persistence import gone, insist
from aicr.validate.plan import JOB_TYPE, JobPlan, Place, job
from aicr.validate.pods import Document
from aicr.validate.progress import Progress
from aicr.validate.timing import Timing
from aicr.validate.waiting import Waiter

FOREGROUND: Final = "Foreground"


class JobRunner:
    """Runs checks in a cluster; see `runner.Runner` for what each method promises."""

    def __init__(
        self,
        cluster: Cluster,
        place: Place,
        timing: Timing,
        progress: Progress,
        *,
        cleanup: bool = True,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._cluster, self._place, self._timing = cluster, place, timing
        self._wall = wall
        self._progress, self._cleanup, self._clock = progress, cleanup, clock
        self._setup = Setup(cluster, place, timing)
        self._observer = Observer(cluster, place.namespace, place.run_id)
        self._prepared = False
        self._following = False

    async def prepare(self, snapshot: str, validation: str) -> None:
        """Make the shared objects and begin to watch."""
        # Set first: an interruption in the middle leaves what `close` has to remove.
        self._prepared = True
        try:
            await self._setup.prepare(snapshot, validation)
        except AicrError:
            self._prepared = False
            raise
        await self._observer.__aenter__()
        self._following = True
        for line in await self._setup.leftovers(self._wall()):
            self._progress.warn(line)

    async def store_report(self, phase: str, report: Mapping[str, Any]) -> None:
        """Keep a phase's report in the cluster; that it cannot be kept is a warning."""
        try:
            await self._setup.store_report(phase, report)
        except AicrError as error:
            self._progress.warn(f"the report of phase {phase} is not kept in the cluster: {error}")

    async def check(self, planned: JobPlan) -> results.CheckResult:
        """Run one check."""
        collected = Collected()
        log: asyncio.Task[None] | None = None
        try:
            applied = await insist(
                lambda: self._cluster.apply(
                    job(planned), field_manager=labels.FIELD_MANAGER, force=True
                ),
                self._timing.create,
            )
        except AicrError as error:
            return results.CheckResult(planned.name, planned.phase, extraction.not_deployed(error))
        uid = str(applied["metadata"]["uid"])
        try:
            waiter = Waiter(
                *(self._cluster, self._observer, planned, uid, self._timing),
                say=lambda text: self._progress.log(planned.name, text),
                clock=self._clock,
            )
            cause = await waiter.wait(lambda pod: self._follow(planned, pod, collected))
            log = waiter.log
            verdict = await self._verdict(planned, uid, cause)
            await self._finish_log(planned, uid, collected, log)
        finally:
            if log is not None:
                log.cancel()
        output = collected.parsed()
        for warning in output.warnings:
            self._progress.warn(f"{planned.name}: {warning}")
        if collected.lost:
            self._progress.warn(f"{planned.name}: {collected.lost} lines were too much to keep")
        if self._cleanup:
            await self._remove(planned, uid)
        return results.CheckResult(planned.name, planned.phase, verdict, output)

    async def close(self, failed: bool) -> None:
        """Remove everything of this run.

        Args:
            failed: whether the run ends with an error already, which is then not replaced.

        Raises:
            AicrError: INTERNAL ``failed to revoke privileged RBAC``.
        """
        if not self._prepared:
            return
        try:
            if self._cleanup:
                await self._remove_all(failed)
        finally:
            if self._following:
                self._following = False
                await self._observer.__aexit__()

    # -- the verdict -----------------------------------------------------------------------------

    async def _verdict(
        self, planned: JobPlan, uid: str, cause: AicrError | pods.Hopeless | None
    ) -> Verdict:
        """Read what came of a check; with time of its own."""
        pod, problem = await self._pod(planned, uid)
        if isinstance(cause, pods.Hopeless):
            return extraction.hopeless(cause, pod)
        if cause is not None:
            trouble = await self._trouble(pod) if pod is not None else ""
            return extraction.after_error(pod, cause, planned.timeout_text, trouble=trouble)
        try:
            found: Document | None = await insist(
                lambda: self._cluster.get(kinds.JOB, planned.job_name, namespace=planned.namespace),
                self._timing.cleanup,
            )
        except AicrError as error:
            found = self._observer.jobs.get(planned.job_name)
            problem = problem if pod is not None or problem is not None else error
        return extraction.after_wait(found, pod, problem, name=planned.job_name)

    async def _pod(self, planned: JobPlan, uid: str) -> tuple[Document | None, AicrError | None]:
        """The pod of a Job, or why there is none: NOT_FOUND only when a whole list says so."""
        try:
            listed = await insist(
                lambda: self._cluster.list(
                    kinds.POD,
                    namespace=planned.namespace,
                    labels={labels.RUN_ID: planned.run_id, labels.VALIDATOR: planned.name},
                ),
                self._timing.cleanup,
            )
        except AicrError as error:
            problem, found = error, []
        else:
            problem = AicrError(NOT_FOUND, f"no pod of Job {planned.job_name} is left")
            found = pods.of_job(listed, uid)
        # A container that was seen to end has ended, even if its pod was removed before we asked.
        seen = [pod for pod in self._observer.last_pods(uid) if pods.terminated(pod)]
        pod = pods.choose([*found, *seen])
        return pod, None if pod is not None else problem

    async def _trouble(self, pod: Document) -> str:
        """What may have kept a pod from its end: its node, or what was last warned about it."""
        found = await self._node_trouble(pod)
        if found or pods.has_started(pod):
            return found
        try:
            events = await self._cluster.list(
                kinds.EVENT,
                namespace=self._place.namespace,
                fields={"involvedObject.uid": str(pod["metadata"]["uid"])},
            )
        except AicrError:
            # The verdict stands without it.
            return ""
        return pods.last_warning(events)

    async def _node_trouble(self, pod: Document) -> str:
        name = (pod.get("spec") or {}).get("nodeName")
        if not name:
            return ""
        try:
            node = await insist(
                lambda: self._cluster.get(kinds.NODE, str(name)), self._timing.cleanup
            )
        except AicrError as error:
            return f"node {name} is gone" if error.code == NOT_FOUND else ""
        said = pods.node_trouble(node)
        return f"node {name} is {said}" if said else ""

    # -- the log ---------------------------------------------------------------------------------

    def _follow(self, planned: JobPlan, pod: str, collected: Collected) -> asyncio.Task[None]:
        """Begin to follow the log of a container that has started."""

        async def stream() -> None:
            lines = self._cluster.follow_logs(
                pod, namespace=planned.namespace, container=container.CONTAINER
            )
            async for line in lines:
                self._take(planned, line.decode("utf-8", "replace"), collected)

        task = asyncio.create_task(stream(), name=f"log {planned.name}")
        # Of an interrupted run nobody asks what became of it.
        task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        return task

    def _take(self, planned: JobPlan, line: str, collected: Collected) -> None:
        said = collected.mixed(line)
        if said:
            self._progress.log(planned.name, said)

    async def _finish_log(
        self, planned: JobPlan, uid: str, collected: Collected, log: asyncio.Task[None] | None
    ) -> None:
        """Wait for the rest of a followed log; read it as a whole where following did not work."""
        problem: Exception | None = None
        if log is not None:
            try:
                async with asyncio.timeout(self._timing.log):
                    await asyncio.shield(log)
                return
            except (AicrError, TimeoutError) as error:
                problem = error
                log.cancel()
        pod = pods.choose([*self._observer.job_pods(uid), *self._observer.last_pods(uid)])
        if pod is None or not pods.has_started(pod):
            return
        name = str(pod["metadata"]["name"])
        try:
            async with asyncio.timeout(self._timing.log):
                text = await self._cluster.logs(
                    name, namespace=planned.namespace, container=container.CONTAINER
                )
        except (AicrError, TimeoutError) as error:
            said = error if isinstance(error, AicrError) else problem or "no answer in time"
            self._progress.warn(f"{planned.name}: its log cannot be read to the end: {said}")
            return
        collected.restart()
        for line in text.decode("utf-8", "replace").splitlines():
            collected.mixed(line)

    # -- removing --------------------------------------------------------------------------------

    async def _remove(self, planned: JobPlan, uid: str) -> None:
        """Remove a Job, and wait until its pods are gone; that they stay is a warning."""
        try:
            await self._delete_job(planned.job_name, uid)
        except AicrError as error:
            self._progress.warn(f"Job {planned.job_name} cannot be removed: {error}")
            return
        await self._pods_gone(lambda: self._observer.job_pods(uid))

    async def _delete_job(self, name: str, uid: str) -> None:
        await gone(
            lambda: self._cluster.delete(
                kinds.JOB,
                name,
                namespace=self._place.namespace,
                uid=uid,
                propagation=FOREGROUND,
            ),
            self._timing.cleanup,
        )

    async def _pods_gone(self, left: Callable[[], list[Document]]) -> None:
        deadline = self._clock() + self._timing.pod_gone
        forced: set[str] = set()
        while pods_left := left():
            if self._clock() >= deadline or self._observer.failure is not None:
                names = ", ".join(str(pod["metadata"]["name"]) for pod in pods_left)
                self._progress.warn(
                    f"pods are still there after {self._timing.pod_gone:g}s: {names} "
                    f"(kubectl delete pod -n {self._place.namespace} --force {names})"
                )
                return
            for pod in pods_left:
                if pod["metadata"]["name"] not in forced and await self._is_lost(pod):
                    forced.add(pod["metadata"]["name"])
                    await self._force(pod)
            await self._observer.changed(min(self._timing.poll, self._timing.pod_gone))

    async def _is_lost(self, pod: Document) -> bool:
        """Whether a pod is to end on a node that cannot end it."""
        if not (pod.get("metadata") or {}).get("deletionTimestamp"):
            return False
        return bool(await self._node_trouble(pod))

    async def _force(self, pod: Document) -> None:
        metadata = pod["metadata"]
        self._progress.warn(
            f"pod {metadata['name']} is removed although its node cannot say that it has ended"
        )
        with contextlib.suppress(AicrError):
            # What stays is said by the caller when its time is up.
            await self._cluster.delete(
                kinds.POD,
                metadata["name"],
                namespace=self._place.namespace,
                uid=str(metadata["uid"]),
                grace_seconds=0,
            )

    async def _remove_jobs(self) -> bool:
        """Remove the Jobs of this run, and wait for their pods; whether there were any."""
        selector = {labels.RUN_ID: self._place.run_id, labels.JOB_TYPE: JOB_TYPE}
        found = await insist(
            lambda: self._cluster.list(kinds.JOB, namespace=self._place.namespace, labels=selector),
            self._timing.cleanup,
        )
        uids = [str(one["metadata"]["uid"]) for one in found]
        for one, uid in zip(found, uids, strict=True):
            await self._delete_job(str(one["metadata"]["name"]), uid)
        if found:
            await self._pods_gone(
                lambda: [pod for uid in uids for pod in self._observer.job_pods(uid)]
            )
        return bool(found)

    async def _remove_all(self, failed: bool) -> None:
        try:
            # A Job whose request was on its way when the run was interrupted comes after the first look.
            for _ in range(3):
                if not await self._remove_jobs():
                    break
        except AicrError as error:
            self._progress.warn(f"Jobs of this run cannot be removed: {error}")
        for problem in await self._setup.remove_maps():
            self._progress.warn(f"a ConfigMap of this run cannot be removed: {problem}")
        try:
            await self._setup.revoke()
        except AicrError as error:
            hint = f"kubectl delete clusterrolebinding -l {objects.RBAC_SELECTOR}"
            if failed:
                self._progress.warn(f"{NOT_REVOKED}: {error}; {hint}")
                return
            raise AicrError(INTERNAL, NOT_REVOKED, hint=hint) from error
