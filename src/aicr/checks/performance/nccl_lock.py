"""One NCCL run at a time in a cluster, and a namespace that is provably this run's.

Two benchmarks on the same links measure each other. So a run holds a Lease, renews it while it works,
and takes it over only when nobody has renewed it for longer than any run may take without doing so;
every write is pinned to the version that was read. Whoever loses the Lease leaves the cluster alone:
what is there by then may be somebody else's.

The namespace's name follows from the run's id. One that is there already is only replaced when its
labels say that it is this run's and nothing in it lives. Leftovers of other runs are named with the
command that removes them, never removed (decision 66). `decide` and `claim` are pure.
Source: validators spec 7.2 "Execution"; requirement V-298.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from aicr.checks.sdk import Context
from aicr.checks.sdk.cluster_reads import find
from aicr.checks.sdk.namespaces import is_ours, wait_gone
from aicr.checks.sdk.removal import command, remove
from aicr.contract import labels
from aicr.errors import CONFLICT, INTERNAL, NOT_FOUND, TIMEOUT, AicrError
from aicr.kube import kinds

LOCK: Final = "aicr-nccl-run-lock"
PREFIX: Final = "aicr-nccl-perf"
COMPONENT: Final = "nccl-perf"
#: What tells every namespace of an NCCL run.
OWNERSHIP: Final[Mapping[str, str]] = {
    labels.MANAGED_BY: labels.VALIDATOR_PRODUCT,
    labels.COMPONENT: COMPONENT,
}
_TERMINAL: Final = frozenset({"Succeeded", "Failed"})
#: How often the Lease is renewed within the time after which it is stale.
_RENEWALS: Final = 10

Document = dict[str, Any]


@dataclass
class Lock:
    """The Lease as we last wrote it, and whether it is still ours."""

    holder: str
    lease: Document
    lost: bool = False


@dataclass
class Namespace:
    """The namespace of the run.

    Attributes:
        name, uid: of it.
        token: in its annotation.
        problem: after the block: why it is not gone; None when it is, or was left alone on purpose.
    """

    name: str
    token: str
    uid: str = ""
    problem: AicrError | None = field(default=None)


def decide(
    lease: Mapping[str, Any] | None, holder: str, namespace: str, now: float, stale: float
) -> Document:
    """The Lease to write in order to hold it.

    Args:
        lease: as read, None when there is none.
        holder: who we are.
        namespace: of the Lease.
        now: seconds since 1970.
        stale: seconds without renewal after which a Lease is nobody's.

    Raises:
        AicrError: CONFLICT when somebody else holds it.
    """
    spec = {
        "holderIdentity": holder,
        "leaseDurationSeconds": max(1, round(stale)),
        "acquireTime": _stamp(now),
        "renewTime": _stamp(now),
    }
    if lease is None:
        return {
            "apiVersion": kinds.LEASE.api_version,
            "kind": kinds.LEASE.kind,
            "metadata": {"name": LOCK, "namespace": namespace, "labels": dict(OWNERSHIP)},
            "spec": spec,
        }
    record = dict(lease.get("spec") or {})
    other = str(record.get("holderIdentity") or "")
    age = now - _moment(record.get("renewTime") or record.get("acquireTime"))
    if other and other != holder and age <= stale:
        raise AicrError(
            CONFLICT,
            f"another NCCL run holds the lock: {other}, renewed {max(0, age):.0f} s ago",
            hint=f"wait for it; if it has died: {command(kinds.LEASE, LOCK, namespace)}",
        )
    if other == holder:
        spec["acquireTime"] = record.get("acquireTime") or spec["acquireTime"]
    return {**lease, "spec": {**record, **spec}}


@contextlib.asynccontextmanager
async def held(context: Context) -> AsyncIterator[Lock]:
    """Hold the Lease for the length of a block, renewing it.

    Raises:
        AicrError: CONFLICT when another run holds it or was faster.
    """
    lock = await _acquire(context)
    renewing = asyncio.create_task(_renew(context, lock))
    try:
        yield lock
    finally:
        renewing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await renewing
        if not await lost(context, lock):
            metadata = lock.lease["metadata"]
            await remove(
                context, kinds.LEASE, LOCK, context.namespace, str(metadata.get("uid") or "")
            )


async def lost(context: Context, lock: Lock) -> bool:
    """Whether somebody else holds the Lease by now. What cannot be read counts as lost."""
    if lock.lost:
        return True
    try:
        async with asyncio.timeout(context.timeouts.cleanup):
            found = await find(context, kinds.LEASE, LOCK, context.namespace)
    except (AicrError, TimeoutError) as error:
        context.log.warning("cannot tell who holds %s: %s", LOCK, error)
        return True
    spec = (found or {}).get("spec") or {}
    lock.lost = spec.get("holderIdentity") != lock.holder
    return lock.lost


def name_of(word: str, run_id: str) -> str:
    """The namespace of a run; *word* is the variant, or "default"."""
    return f"{PREFIX}-{word}-{hashlib.sha256(run_id.encode()).hexdigest()[:8]}"


def claim(
    found: Mapping[str, Any], pods: Sequence[Mapping[str, Any]], run_id: str
) -> AicrError | None:
    """Why a namespace that is there already may not be replaced; None if it may."""
    metadata = found["metadata"]
    has = metadata.get("labels") or {}
    name = metadata["name"]
    wanted = {**OWNERSHIP, labels.RUN_ID: run_id}
    if any(has.get(key) != value for key, value in wanted.items()):
        return AicrError(
            CONFLICT,
            f"namespace {name} is there and is not this run's",
            hint="it has the name of this run's namespace without its labels; rename or remove it",
        )
    alive = [
        str(pod["metadata"]["name"])
        for pod in pods
        if (pod.get("status") or {}).get("phase") not in _TERMINAL
    ]
    if alive:
        return AicrError(CONFLICT, f"namespace {name} has live pods: {', '.join(alive[:5])}")
    return None


@contextlib.asynccontextmanager
async def namespace(context: Context, lock: Lock, word: str) -> AsyncIterator[Namespace]:
    """The run's namespace for the length of a block.

    After the block it is deleted, with everything in it, and awaited; `Namespace.problem` says when it
    stays. With the lock lost it is left alone.

    Raises:
        AicrError: CONFLICT when a namespace of that name is somebody else's or has live pods.
    """
    for line in await leftovers(context):
        context.log.warning("%s", line)
    mine = Namespace(name_of(word, context.run_id), secrets.token_hex(16))
    await _make_room(context, mine.name)
    passed = False
    try:
        created = await context.cluster.create(document(context, mine))
        mine.uid = created["metadata"]["uid"]
        yield mine
        passed = True
    finally:
        if await lost(context, lock):
            context.log.warning(
                "the lock is lost; left alone: %s", command(kinds.NAMESPACE, mine.name)
            )
        else:
            mine.problem = await _take_away(context, mine, passed)


def document(context: Context, mine: Namespace) -> Document:
    """The namespace as it is created."""
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": mine.name,
            "labels": {
                **labels.check_labels(context.run_id, context.name),
                **OWNERSHIP,
                # Workers mount devices and directories of the host.
                "pod-security.kubernetes.io/enforce": "privileged",
            },
            "annotations": {labels.OWNER_TOKEN: mine.token},
        },
    }


async def others(context: Context, mine: str) -> list[str]:
    """Namespaces of other NCCL runs."""
    found = await context.cluster.list(kinds.NAMESPACE, labels=dict(OWNERSHIP))
    return sorted(each["metadata"]["name"] for each in found if each["metadata"]["name"] != mine)


async def leftovers(context: Context) -> list[str]:
    """A line for each namespace that is older than any run takes, with how to remove it."""
    try:
        found = await context.cluster.list(kinds.NAMESPACE, labels=dict(OWNERSHIP))
    except AicrError as error:
        return [f"cannot tell whether other runs left namespaces: {error}"]
    oldest = context.wall() - context.timeouts.nccl_stale_namespace
    return [
        f"namespace {name} is left from run {run}; remove it with: {command(kinds.NAMESPACE, name)}"
        for each in found
        if (run := (each["metadata"].get("labels") or {}).get(labels.RUN_ID)) != context.run_id
        and _moment(each["metadata"].get("creationTimestamp")) <= oldest
        and (name := each["metadata"]["name"])
    ]


async def _acquire(context: Context) -> Lock:
    holder = f"{context.run_id}/{context.name}/{secrets.token_hex(4)}"
    found = await find(context, kinds.LEASE, LOCK, context.namespace)
    stale = context.timeouts.nccl_lock_stale_age
    wanted = decide(found, holder, context.namespace, context.wall(), stale)
    try:
        if found is None:
            return Lock(holder, await context.cluster.create(wanted, namespace=context.namespace))
        context.log.warning("taking over a stale lock of %s", found["spec"].get("holderIdentity"))
        return Lock(holder, await context.cluster.update(wanted, namespace=context.namespace))
    except AicrError as error:
        if error.code == CONFLICT:
            raise AicrError(
                CONFLICT, "another NCCL run was faster to take the lock", hint="wait for it"
            ) from error
        raise


async def _renew(context: Context, lock: Lock) -> None:
    stale = context.timeouts.nccl_lock_stale_age
    while not lock.lost:
        await asyncio.sleep(stale / _RENEWALS)
        try:
            wanted = decide(lock.lease, lock.holder, context.namespace, context.wall(), stale)
            lock.lease = await context.cluster.update(wanted, namespace=context.namespace)
        except AicrError as error:
            # A write that was refused means that somebody else wrote; anything else may pass.
            lock.lost = error.code in (CONFLICT, NOT_FOUND)
            context.log.warning("cannot renew %s: %s", LOCK, error)


async def _make_room(context: Context, name: str) -> None:
    found = await find(context, kinds.NAMESPACE, name)
    if found is None:
        return
    pods = await context.cluster.list(kinds.POD, namespace=name)
    problem = claim(found, pods, context.run_id)
    if problem is not None:
        raise problem
    uid = str(found["metadata"]["uid"])
    await remove(context, kinds.NAMESPACE, name, uid=uid)
    if not await wait_gone(context, name, uid, context.timeouts.namespace_termination):
        raise _stuck(context, name)


async def _take_away(context: Context, mine: Namespace, passed: bool) -> AicrError | None:
    """Delete the namespace and wait; why it stays, or None.

    After a failure the wait is short: the verdict stands, and the time may be nearly over.
    """
    seconds = context.timeouts.namespace_termination
    if not passed:
        seconds = min(seconds, context.timeouts.pod_termination)
    try:
        async with asyncio.timeout(seconds + context.timeouts.cleanup):
            found = await find(context, kinds.NAMESPACE, mine.name)
            if found is None:
                return None
            uid = str(found["metadata"]["uid"])
            if not is_ours(found, mine.token) or (mine.uid and uid != mine.uid):
                context.log.warning("namespace %s is not ours any more; left alone", mine.name)
                return None
            if not await remove(context, kinds.NAMESPACE, mine.name, uid=uid):
                return AicrError(
                    INTERNAL,
                    f"namespace {mine.name} could not be removed",
                    hint=command(kinds.NAMESPACE, mine.name),
                )
            if not await wait_gone(context, mine.name, uid, seconds):
                return _stuck(context, mine.name)
    except AicrError as error:
        return error
    except TimeoutError:
        return _stuck(context, mine.name)
    return None


def _stuck(context: Context, name: str) -> AicrError:
    seconds = context.timeouts.namespace_termination
    return AicrError(
        TIMEOUT,
        f"namespace {name} was not gone after {seconds:g} s",
        hint=f"kubectl get namespace {name} -o yaml shows what keeps it",
    )


def _stamp(now: float) -> str:
    """A MicroTime."""
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _moment(text: Any) -> float:
    """Seconds since 1970 of a timestamp; 0, long ago, for what is none."""
    try:
        return datetime.fromisoformat(str(text)).timestamp()
    except ValueError:
        return 0.0
