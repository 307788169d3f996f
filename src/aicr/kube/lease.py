"""One leader among replicas, by a Lease: as controller-runtime elects, so that both can share one.

`decide` is pure: from the Lease as read, what this replica last saw of it and the time, it says
what to write. Other replicas' clocks are never trusted: a lease has run out when it was not renewed
for its duration *as seen from here*. `Elector` reads, writes and waits. It must not know what
leaders do.

Source: client-go tools/leaderelection; defaults of controller-runtime (15 s, 10 s, 2 s).
"""

from __future__ import annotations

import asyncio
import logging
import math
import random as random_module
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from aicr.errors import CONFLICT, NOT_FOUND, TIMEOUT, AicrError, invalid
from aicr.kube.kinds import LEASE
from aicr.kube.port import Cluster, Document

LOG = logging.getLogger(__name__)

#: What a leader that steps down leaves as duration, so that the next one need not wait.
RELEASED_SECONDS: Final = 1


@dataclass(frozen=True, slots=True)
class Terms:
    """Times of an election, in seconds.

    `duration`: how long others wait after the last renewal. `deadline`: how long a leader tries to
    renew before it steps down; shorter, so that it has stopped before another starts. `retry`:
    between attempts.
    """

    duration: float = 15.0
    deadline: float = 10.0
    retry: float = 2.0

    def __post_init__(self) -> None:
        if not self.duration > self.deadline > self.retry * 1.2 > 0:
            raise invalid(
                f"leader election needs duration > deadline > 1.2 x retry > 0, not {self.duration:g} > "
                f"{self.deadline:g} > {self.retry:g}"
            )


@dataclass(frozen=True, slots=True)
class Seen:
    """The Lease's record as last seen to change, and when that was on our clock."""

    record: Mapping[str, Any]
    at: float


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do: write `document` (None: only wait), and what we have now seen."""

    document: Document | None
    seen: Seen | None
    holder: str


def decide(
    lease: Mapping[str, Any] | None,
    *,
    identity: str,
    name: str,
    namespace: str,
    terms: Terms,
    seen: Seen | None,
    clock: float,
    now: datetime,
) -> Decision:
    """Whether to take, renew or leave the lease.

    *clock* is monotonic seconds, on which waiting is measured; *now* is written into the Lease for
    people. *lease* None means that there is none. The document keeps resourceVersion, so that only
    one of two replicas can write.
    """
    if lease is None:
        made: Document = {
            "apiVersion": LEASE.api_version,
            "kind": LEASE.kind,
            "metadata": {"name": name, "namespace": namespace},
            "spec": _spec(identity, terms, now, acquired=_stamp(now), transitions=0),
        }
        return Decision(made, None, "")
    record = dict(lease.get("spec") or {})
    if seen is None or seen.record != record:
        seen = Seen(record, clock)
    holder = str(record.get("holderIdentity") or "")
    lasting = float(record.get("leaseDurationSeconds") or terms.duration)
    if holder and holder != identity and clock < seen.at + lasting:
        return Decision(None, seen, holder)
    transitions = int(record.get("leaseTransitions") or 0)
    acquired = str(record.get("acquireTime") or "")
    if holder != identity:
        transitions, acquired = transitions + 1, _stamp(now)
    spec = {**record, **_spec(identity, terms, now, acquired=acquired, transitions=transitions)}
    return Decision({**lease, "spec": spec}, seen, holder)


def release(lease: Mapping[str, Any], identity: str, now: datetime) -> Document | None:
    """The Lease given back, or None if it is not ours to give."""
    record = dict(lease.get("spec") or {})
    if record.get("holderIdentity") != identity:
        return None
    spec = {
        **record,
        "holderIdentity": "",
        "leaseDurationSeconds": RELEASED_SECONDS,
        "renewTime": _stamp(now),
        "acquireTime": _stamp(now),
    }
    return {**lease, "spec": spec}


def _spec(
    identity: str, terms: Terms, now: datetime, *, acquired: str, transitions: int
) -> dict[str, Any]:
    return {
        "holderIdentity": identity,
        # Rounded up: with less, another could start while we still try to renew.
        "leaseDurationSeconds": math.ceil(terms.duration),
        "acquireTime": acquired or _stamp(now),
        "renewTime": _stamp(now),
        "leaseTransitions": transitions,
    }


def _stamp(now: datetime) -> str:
    """A MicroTime."""
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Elector:
    """Takes part in one election.

    Args:
        cluster: the port; ``get``, ``create`` and ``update`` on leases are needed.
        name, namespace: of the Lease.
        identity: unique to this process, for example pod name and a random part.
        terms: times.
        clock, now, sleep, random: time and chance.
    """

    def __init__(
        self,
        cluster: Cluster,
        name: str,
        namespace: str,
        identity: str,
        *,
        terms: Terms | None = None,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        random: Callable[[], float] = random_module.random,
    ) -> None:
        if not identity:
            raise invalid("a leader election needs an identity")
        self._cluster = cluster
        self._name = name
        self._namespace = namespace
        self._identity = identity
        self._terms = terms or Terms()
        self._clock = clock
        self._now = now
        self._sleep = sleep
        self._random = random
        self._seen: Seen | None = None
        #: When the attempt began that last wrote the lease: others count from when they see what was
        #: written, which is later, however long the answer took to reach us.
        self._renewed_at = 0.0
        #: Who leads as far as is known, "" for nobody.
        self.holder = ""

    @property
    def is_leader(self) -> bool:
        """Whether this process leads as far as it knows."""
        return self.holder == self._identity

    async def lead(self, work: Callable[[], Awaitable[None]]) -> None:
        """Wait for the lease, run *work* while it is held, give it back.

        Returns when *work* does. When the lease cannot be renewed, *work* is cancelled and TIMEOUT
        raised: the process should end and start anew, as controller-runtime's does. An error of
        *work* is passed on.
        """
        await self.acquire()
        LOG.info("%s leads %s/%s", self._identity, self._namespace, self._name)
        working = asyncio.ensure_future(work())
        renewing = asyncio.ensure_future(self._renew())
        try:
            done, _ = await asyncio.wait({working, renewing}, return_when=asyncio.FIRST_COMPLETED)
            if renewing in done:
                # Work first: nothing may go on that is done only by leaders.
                await _stop(working)
                renewing.result()
            else:
                working.result()
        finally:
            await _stop(working)
            await _stop(renewing)
            await self._give_back()

    async def acquire(self) -> None:
        """Try until the lease is ours; errors are logged and tried again.

        An attempt that takes longer than the time that a leader has for renewing does not count: by
        the time its answer is here another may be about to start.
        """
        while not await self._try_for(self._terms.deadline):
            # Jittered, so that replicas that started together do not ask together for ever.
            await self._sleep(self._terms.retry * (1.0 + 0.2 * self._random()))

    async def _renew(self) -> None:
        while True:
            await self._sleep(self._terms.retry)
            remaining = self._renewed_at + self._terms.deadline - self._clock()
            if remaining > 0 and await self._try_for(remaining):
                continue
            late = self._renewed_at + self._terms.deadline <= self._clock()
            if late or not self.is_leader:
                self.holder = "" if self.is_leader else self.holder
                raise AicrError(
                    TIMEOUT,
                    f"the lease {self._namespace}/{self._name} could not be renewed within "
                    f"{self._terms.deadline:g} s",
                    hint="another replica takes over; this one stops",
                )

    async def _try_for(self, seconds: float) -> bool:
        """One attempt that has *seconds*; False as well if the answer came later."""
        began_at = self._clock()
        try:
            async with asyncio.timeout(seconds):
                if not await self._try_once():
                    return False
        except TimeoutError:
            LOG.warning("leader election: no answer within %.3g s", seconds)
            return False
        self._renewed_at = began_at
        return True

    async def _try_once(self) -> bool:
        """Read, decide, write. False if somebody else holds the lease, was faster, or nobody
        answers.
        """
        try:
            lease = await self._read()
            decision = decide(
                lease,
                identity=self._identity,
                name=self._name,
                namespace=self._namespace,
                terms=self._terms,
                seen=self._seen,
                clock=self._clock(),
                now=self._now(),
            )
            self._seen, self.holder = decision.seen, decision.holder
            if decision.document is None:
                return False
            if lease is None:
                await self._cluster.create(decision.document)
            else:
                await self._cluster.update(decision.document)
        except AicrError as error:
            level = logging.DEBUG if error.code == CONFLICT else logging.WARNING
            LOG.log(level, "leader election: %s", error)
            return False
        self.holder = self._identity
        return True

    async def _read(self) -> Document | None:
        try:
            return await self._cluster.get(LEASE, self._name, namespace=self._namespace)
        except AicrError as error:
            if error.code == NOT_FOUND:
                return None
            raise

    async def _give_back(self) -> None:
        """Shortens the wait of the next leader; if it fails, the lease runs out by itself."""
        try:
            async with asyncio.timeout(self._terms.retry):
                lease = await self._read()
                given = release(lease, self._identity, self._now()) if lease else None
                if given is not None:
                    await self._cluster.update(given)
        except (AicrError, TimeoutError) as error:
            LOG.debug("leader election: not given back: %s", error)
        self.holder = ""


async def _stop(task: asyncio.Future[Any]) -> None:
    """Cancel and wait; what the task raises is dealt with elsewhere, or is no news any more."""
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled():
        task.exception()
