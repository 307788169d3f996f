"""The agent: a Job that takes the snapshot on a node of the cluster, and is gone afterwards.

    capture: permissions ─► namespace ─► account, roles ─► Job ─► wait ─► ConfigMaps ─► document
                                              └──────────── removed, whatever happens ───────┘

Nothing is made before it is known that all of it may be made and removed again. Every object is of this
run alone, and is deleted by its UID, so that no other run's and nobody else's object goes with it. What
could not be removed is named, with the command that removes it.

A service account that the caller names and that exists is used as it is; then this run grants and revokes
nothing. Source: validators spec 1.1 and 1.3, decisions 13, 14, 41 and 66.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from aicr.assertions.timing import Clock
from aicr.collectors import agent_objects, agent_wait, permissions, projections, staging
from aicr.collectors.agent_options import AgentOptions
from aicr.collectors.permissions import Permission, verbs
from aicr.collectors.readings import Document
from aicr.contract import labels
from aicr.errors import CONFLICT, NOT_FOUND, TIMEOUT, UNAUTHORIZED, AicrError
from aicr.kube import kinds
from aicr.kube.kinds import Resource
from aicr.kube.port import Cluster
from aicr.snapshot.document import validate

#: Lines of the agent's log that an error repeats.
LOG_LINES: Final = 20

_KINDS: Final[dict[str, Resource]] = {
    one.kind: one
    for one in (
        *(kinds.SERVICE_ACCOUNT, kinds.ROLE, kinds.ROLE_BINDING, kinds.CLUSTER_ROLE),
        *(kinds.CLUSTER_ROLE_BINDING, kinds.JOB, kinds.CONFIG_MAP),
    )
}


def _quiet(text: str) -> None:
    """Say nothing."""


@dataclass
class Run:
    """One run: who it talks to, and what it has made so far, in that order."""

    cluster: Cluster
    options: AgentOptions
    id: str
    say: Callable[[str], None] = _quiet
    clock: Clock = field(default_factory=Clock)
    made: list[tuple[str, str, str, str]] = field(default_factory=list)

    async def create(self, document: Document) -> Document:
        """Create an object of this run and remember it, also when the run is interrupted meanwhile."""
        making = asyncio.ensure_future(self.cluster.create(document))
        try:
            return await asyncio.shield(making)
        except asyncio.CancelledError:
            # The server may have made it by now; only its answer says what has to be removed.
            await asyncio.wait({making}, timeout=self.options.times.cleanup)
            raise
        finally:
            if not making.done():
                making.cancel()
            elif not making.cancelled() and making.exception() is None:
                self.remember(making.result(), document["kind"])

    def remember(self, document: Document, kind: str) -> None:
        """Note an object for removal: kind, namespace, name and UID."""
        metadata = document["metadata"]
        entry = (kind, metadata.get("namespace", ""), metadata["name"], metadata["uid"])
        if entry not in self.made:
            self.made.append(entry)


async def capture(
    cluster: Cluster,
    options: AgentOptions,
    *,
    say: Callable[[str], None] = _quiet,
    clock: Clock | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    token: Callable[[], str] = lambda: secrets.token_hex(8),
) -> Document:
    """A snapshot that an agent took on a node of *cluster*, with the caller's provider subtypes in it.

    Args:
        cluster: where the agent runs.
        options: how.
        say: gets lines for people: what is done, what the snapshot lacks, what was left behind.
        clock, now, token: time and chance.

    Raises:
        AicrError: UNAUTHORIZED for missing permissions, before anything is made; TIMEOUT after
            ``options.times.agent`` seconds; SERVICE_UNAVAILABLE if the pod cannot start; the agent's
            own error.
    """
    run = Run(cluster, options, options.run_id or labels.run_id(now(), token()), say)
    if clock is not None:
        run.clock = clock
    account = await _existing_account(run)
    await permissions.demand(
        cluster, required_permissions(options, own_account=not account), what="the agent"
    )
    names = agent_objects.Names.of(options, run.id, existing_account=account)
    say(f"snapshot agent: run {run.id}, namespace {options.namespace}, image {options.image}")
    failure: BaseException | None = None
    try:
        snapshot = await _captured(run, names, own_account=not account)
    except BaseException as error:
        failure = error
        raise
    finally:
        await _clean_up(run, names, failed=failure is not None)
    document = projections.merged(snapshot, list(options.provider))
    for notice in validate(document, f"snapshot of run {run.id}"):
        say(notice)
    return document


def required_permissions(options: AgentOptions, *, own_account: bool) -> list[Permission]:
    """What the caller must be allowed to do; roles only for a run that makes its own account."""
    place = options.namespace
    found = [
        *verbs("create get delete", "jobs", group="batch", namespace=place),
        *verbs("list", "pods", namespace=place),
        *verbs("get", "pods", namespace=place, subresource="log"),
        *verbs("get list delete", "configmaps", namespace=place),
    ]
    if own_account:
        group = "rbac.authorization.k8s.io"
        found += [
            *verbs("create delete", "serviceaccounts", namespace=place),
            *verbs("create delete", "roles", group=group, namespace=place),
            *verbs("create delete", "rolebindings", group=group, namespace=place),
            *verbs("create delete", "clusterroles", group=group),
            *verbs("create delete", "clusterrolebindings", group=group),
        ]
    return found


async def _existing_account(run: Run) -> str:
    """The name of the service account that the caller named, if it exists; never a guess."""
    named = run.options.service_account
    if named is None:
        return ""
    try:
        await run.cluster.get(kinds.SERVICE_ACCOUNT, named, namespace=run.options.namespace)
    except AicrError as error:
        if error.code != NOT_FOUND:
            raise
        return ""
    return named


async def _captured(run: Run, names: agent_objects.Names, *, own_account: bool) -> Document:
    options = run.options
    await _ensure_namespace(run)
    if own_account:
        for document in agent_objects.access(options, names, run.id):
            await run.create(document)
    job = await run.create(agent_objects.job(options, names, run.id))
    try:
        await _wait(run, job)
    except AicrError as error:
        await _show_log(run, job)
        raise error
    return await _fetch(run, names)


async def _ensure_namespace(run: Run) -> None:
    name = run.options.namespace
    try:
        await run.cluster.get(kinds.NAMESPACE, name)
    except AicrError as error:
        if error.code == UNAUTHORIZED:
            # Somebody whose rights end at the namespace; making the first object in it will tell.
            return
        if error.code != NOT_FOUND:
            raise
        try:
            await run.cluster.create(agent_objects.namespace(name))
        except AicrError as second:
            if second.code != CONFLICT:
                raise


async def _wait(run: Run, job: Document) -> None:
    """Until the Job is complete; its failure, or what keeps it from starting, is raised."""
    times, clock = run.options.times, run.clock
    begun = clock.now()
    unplaced_since: float | None = None
    name, place = job["metadata"]["name"], run.options.namespace
    while True:
        current = await run.cluster.get(kinds.JOB, name, namespace=place)
        pods = await _pods(run, job)
        if agent_wait.state(current, pods) == agent_wait.SUCCEEDED:
            return
        cause = agent_wait.unscheduled(pods)
        unplaced_since = (unplaced_since or clock.now()) if cause else None
        if unplaced_since is not None and clock.now() - unplaced_since >= times.unschedulable:
            raise AicrError(
                TIMEOUT,
                f"the agent's pod finds no node: {cause}",
                where=f"Job {name}",
                hint="check --node-selector, --toleration, --requests and --require-gpu",
            )
        if clock.now() - begun >= times.agent:
            raise AicrError(
                TIMEOUT,
                f"the agent was not done within {times.agent:g} s",
                where=f"Job {name}",
                hint="--timeout gives it longer; --no-cleanup leaves the Job to look at",
            )
        await clock.sleep(times.poll)


async def _pods(run: Run, job: Document) -> list[Any]:
    found = await run.cluster.list(
        kinds.POD, namespace=run.options.namespace, labels={labels.RUN_ID: run.id}
    )
    return agent_wait.owned(found, job["metadata"]["uid"])


async def _show_log(run: Run, job: Document) -> None:
    """Say the end of the agent's log; it is help, and that it cannot be had is no other failure."""
    try:
        lines = []
        for pod in await _pods(run, job):
            text = await run.cluster.logs(
                pod["metadata"]["name"],
                namespace=run.options.namespace,
                container=agent_objects.CONTAINER,
                tail=LOG_LINES,
            )
            lines += text.decode("utf-8", "replace").splitlines()
    except AicrError as error:
        run.say(f"the agent's log cannot be read: {error.message}")
        return
    for line in lines[-LOG_LINES:]:
        run.say(f"agent: {line}")


async def _fetch(run: Run, names: agent_objects.Names) -> Document:
    place = run.options.namespace
    first = await run.cluster.get(kinds.CONFIG_MAP, names.staging, namespace=place)
    run.remember(first, "ConfigMap")
    parts = [first]
    for number in range(1, staging.count_of(first)):
        name = staging.part_name(names.staging, number)
        part = await run.cluster.get(kinds.CONFIG_MAP, name, namespace=place)
        run.remember(part, "ConfigMap")
        parts.append(part)
    return staging.unpack(parts)


async def _clean_up(run: Run, names: agent_objects.Names, *, failed: bool) -> None:
    """Remove what the run made, last first; what stays is said."""
    if not run.options.cleanup:
        run.say(
            f"left in place as asked: Job {names.job}, and what has the label {labels.RUN_ID}={run.id}; "
            f"the agent's role stays granted until you run: {removal(run)}"
        )
        return
    left: list[str] = []
    try:
        async with asyncio.timeout(run.options.times.cleanup):
            await _remove(run, left)
            if failed:
                # Only now, because until its account was gone the pod could still write.
                await _remember_staged(run)
                await _remove(run, left)
    except TimeoutError:
        left.append("not everything in time")
    if left:
        run.say(f"could not remove {'; '.join(left)}; remove it with: {removal(run)}")


async def _remove(run: Run, left: list[str]) -> None:
    """Remove what is remembered, last first, and forget it; *left* gets what would not go."""
    while run.made:
        kind, place, name, uid = run.made.pop()
        try:
            await run.cluster.delete(
                *(_KINDS[kind], name), namespace=place, uid=uid, propagation="Background"
            )
        except AicrError as error:
            # Gone already, or another object of that name, which is not ours to remove.
            if error.code not in (NOT_FOUND, CONFLICT):
                left.append(f"{kind} {name} ({error.message})")


async def _remember_staged(run: Run) -> None:
    """Parts that an agent wrote before its run failed."""
    try:
        found = await run.cluster.list(
            kinds.CONFIG_MAP, namespace=run.options.namespace, labels={labels.RUN_ID: run.id}
        )
    except AicrError as error:
        run.say(f"could not look for ConfigMaps of the run: {error.message}")
        return
    for one in found:
        run.remember(one, "ConfigMap")


def removal(run: Run) -> str:
    """The command that removes what a run left."""
    mark = f"{labels.RUN_ID}={run.id}"
    return (
        f"kubectl delete job,configmap,serviceaccount,role,rolebinding -n {run.options.namespace} "
        f"-l {mark} && kubectl delete clusterrole,clusterrolebinding -l {mark}"
    )
