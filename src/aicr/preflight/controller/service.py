"""Gang coordination as one thing to build, start and run: `GangService` of the admission port.

```
start: default discoverer, or the process ends                        (preflight spec 1.1)
run:   caches + PreflightConfigs on every replica; gangs on the leader, by a Lease (decision 23)
```

A replica that loses the Lease stops reconciling and stands for election again; it goes on answering
admissions, which need no leader. It must not know HTTP or the admission decision.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from aicr.errors import INTERNAL, TIMEOUT, AicrError
from aicr.kube.client import Client
from aicr.kube.lease import Elector, Terms
from aicr.preflight.admission.gang_port import Membership
from aicr.preflight.admission.selection import known_part
from aicr.preflight.config import Config
from aicr.preflight.controller.caches import Caches
from aicr.preflight.controller.configs import ConfigController
from aicr.preflight.controller.gangs import GangController
from aicr.preflight.controller.judging import PREFLIGHT_CONFIG
from aicr.preflight.controller.metrics import NO_METRICS, GangMetrics
from aicr.preflight.gang import resolver as resolving
from aicr.preflight.gang.coordination import Rules
from aicr.preflight.gang.pods import GangPod
from aicr.preflight.gang.registration import Registration
from aicr.preflight.names import CHECKS_ANNOTATION
from aicr.preflight.times import Times

LOG = logging.getLogger(__name__)

LEASE: Final = "aicr-preflight-controllers"
#: Seconds for which a cache may be without its server before the replica is not ready.


class Gangs:
    """See the module.

    Args:
        client: the cluster.
        config: the webhook's configuration; coordination must be on.
        namespace: of the Lease; the client's own if not given.
        identity: unique to this process.
        ancestors: composite groups come into native gang ids (decision 25).
        metrics, terms, times, rules: figures and waiting times.
        clock, now, sleep: time.
    """

    def __init__(
        self,
        client: Client,
        config: Config,
        *,
        namespace: str = "",
        identity: str = "",
        ancestors: bool = False,
        metrics: GangMetrics = NO_METRICS,
        terms: Terms | None = None,
        times: Times | None = None,
        rules: Rules | None = None,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._client = client
        self._config = config
        self._namespace = namespace or client.config.namespace
        self._identity = identity or _identity(os.environ)
        self._ancestors = ancestors
        self._metrics = metrics
        self._terms = terms
        self._times = times or Times()
        self._rules = rules
        self._clock, self._now, self._sleep = clock, now, sleep
        self._elector: Elector | None = None
        self._parts: _Parts | None = None
        self._running = False

    @property
    def leads(self) -> bool:
        """Whether this replica leads, as far as it knows."""
        return self._elector is not None and self._elector.is_leader

    async def start(self) -> None:
        """As `GangService.start`."""
        resolver = await resolving.build_default(
            self._client, self._config.gang_discovery, ancestors=self._ancestors
        )
        served = PREFLIGHT_CONFIG.api_version in (await self._client.discovery.catalogue()).served
        if not served:
            LOG.warning(
                "the CRD of %s is not installed: every namespace uses the default gang discovery",
                PREFLIGHT_CONFIG.qualified,
            )
        self._parts = _Parts(self, resolver, configs_served=served)
        LOG.info("gang discovery %s is the default", resolver.default.name)

    async def identify(self, pod: Mapping[str, Any], namespace: str) -> Membership | None:
        """As `GangLookup.identify`."""
        return await self._started().registration.identify(pod, namespace)

    async def register(
        self,
        membership: Membership,
        pod: Mapping[str, Any],
        checks: Sequence[str],
        dry_run: bool,
    ) -> None:
        """As `GangLookup.register`."""
        await self._started().registration.register(membership, pod, checks, dry_run)

    async def run(self) -> None:
        """As `GangService.run`."""
        parts = self._started()
        self._running = True
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(parts.caches.pods.run())
                tasks.create_task(parts.caches.maps.run())
                tasks.create_task(parts.configs.informer.run())
                tasks.create_task(parts.configs.run())
                tasks.create_task(self._lead())
        except* AicrError as errors:
            first = _first(errors)
            raise AicrError(first.code, "the gang controllers ended", hint=first.hint) from first
        except* Exception as errors:
            raise AicrError(INTERNAL, f"the gang controllers ended: {errors!r}") from errors
        finally:
            self._running = False

    def unready(self) -> str:
        """As `GangService.unready`."""
        if self._parts is None:
            return "gang discovery has not been validated yet"
        if not self._running:
            return "the gang controllers do not run"
        for informer in (self._parts.caches.pods, self._parts.caches.maps):
            try:
                informer.require_fresh(self._times.stale_unready)
            except AicrError as error:
                return error.message
        return self._parts.unready_configs()

    async def _lead(self) -> None:
        """Stand for election, again and again; the gangs are looked after while elected."""
        parts = self._started()
        elector = Elector(
            self._client,
            LEASE,
            self._namespace,
            self._identity,
            terms=self._terms,
            clock=self._clock,
            now=self._now,
            sleep=self._sleep,
        )
        self._elector = elector

        async def elected() -> None:
            self._metrics.leading(True)
            parts.configs.look_again()
            try:
                await parts.gangs.run()
            finally:
                self._metrics.leading(False)

        while True:
            try:
                await elector.lead(elected)
            except AicrError as error:
                if error.code != TIMEOUT:
                    raise
                LOG.warning("no longer the leader: %s", resolving.said(error))

    def _started(self) -> _Parts:
        if self._parts is None:
            raise AicrError(INTERNAL, "gang coordination was used before it was started")
        return self._parts


class _Parts:
    """What needs the resolver, and so exists only after `Gangs.start`."""

    def __init__(self, owner: Gangs, resolver: resolving.Resolver, *, configs_served: bool) -> None:
        client, config, times = owner._client, owner._config, owner._times
        self._configs_served = configs_served

        def checks_of(pod: GangPod) -> str:
            return ",".join(known_part(pod.annotations.get(CHECKS_ANNOTATION), config.checks))

        self.caches = Caches(client, resolver)
        self.gangs = GangController(
            client,
            resolver,
            self.caches,
            master_port=config.gangs.master_port,
            checks_of=checks_of,
            clock=owner._clock,
            now=owner._now,
            sleep=owner._sleep,
            metrics=owner._metrics,
            times=times,
            rules=owner._rules,
        )
        self.configs = ConfigController(
            client,
            client,
            resolver,
            lambda settings: resolving.build(
                client, settings, ancestors=owner._ancestors, max_age=times.stale
            ),
            leads=lambda: owner.leads,
            changed=self.gangs.enqueue_namespace,
            now=owner._now,
            metrics=owner._metrics,
            stale=times.stale,
            again=times.invalid,
        )
        self.registration = Registration(
            client,
            resolver,
            config.gangs,
            members=self.caches.live_members,
            checks_of=checks_of,
            clock=owner._clock,
            now=owner._now,
            times=times,
        )

    def unready_configs(self) -> str:
        """Why overrides may be missing; a cluster without the CRD has none to miss."""
        state = self.configs.informer.freshness()
        if not state.synced:
            return f"PreflightConfigs: {state.reason}" if self._configs_served else ""
        return "PreflightConfigs have not been applied yet" if self.configs.unjudged() else ""


def build(client: Client, config: Config, **options: Any) -> Gangs:
    """Gang coordination for *config*, which must have it switched on; *options* as of `Gangs`."""
    return Gangs(client, config, **options)


def _first(errors: BaseExceptionGroup[AicrError]) -> AicrError:
    found: BaseException = errors
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    assert isinstance(found, AicrError)
    return found


def _identity(environ: Mapping[str, str]) -> str:
    """Unique to this process, and says to a person which pod it is."""
    return f"{environ.get('HOSTNAME') or 'preflight'}_{secrets.token_hex(4)}"
