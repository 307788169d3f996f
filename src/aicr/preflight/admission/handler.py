"""One admission from request to reply: asks what is to be asked, decides, tells who is to be told.

```
read ─► view, devices ─► claims? ─► gang? ─► decide ─► register ─► answer
                         (await)    (await)             (await)
```

A pod without GPUs, and any pod when coordination and DRA are off, passes without a single wait. All
dependencies come in: gangs, claims, events and meters are ports. Source: preflight spec 2.3 to 2.6, 2.9;
decisions 21, 26, 73, 74.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Final, Protocol

from aicr.errors import AicrError
from aicr.preflight.admission import claims as claim_facts
from aicr.preflight.admission.claims import ClaimLookup
from aicr.preflight.admission.decision import (
    ERROR,
    INJECTED,
    NO_CHECKS,
    Decision,
    decide,
    needs_claims,
    refused,
)
from aicr.preflight.admission.devices import Devices, devices
from aicr.preflight.admission.gang_port import GangLookup, Membership, is_refusal
from aicr.preflight.admission.pod import Pod, view
from aicr.preflight.admission.prepared import Prepared
from aicr.preflight.admission.review import Request, answer, read

LOG: Final = logging.getLogger("aicr.preflight.admission")


class Meter(Protocol):
    """Takes what is to be counted."""

    def decided(self, outcome: str, seconds: float) -> None:
        """One admission has been answered."""

    def failed(self, what: str) -> None:
        """A look-up or a registration has failed; *what* is ``claims``, ``gang`` or ``register``."""


class EventSink(Protocol):
    """Takes decisions that are worth an Event."""

    def offer(self, pod: Pod, decision: Decision) -> None:
        """Note *decision*; returns at once."""


class Admission:
    """Answers AdmissionReviews with one configuration."""

    def __init__(
        self,
        prepared: Prepared,
        *,
        meter: Meter,
        gangs: GangLookup | None = None,
        claims: ClaimLookup | None = None,
        events: EventSink | None = None,
        backed: Callable[[], Mapping[str, str]] = dict,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """*backed* gives the extended resources that are served by claim; see `claims.Facts`."""
        self._prepared = prepared
        self._meter = meter
        self._gangs = gangs
        self._claims = claims
        self._events = events
        self._backed = backed
        self._clock = clock

    async def review(self, body: bytes) -> bytes:
        """The reply to *body*.

        Raises:
            AicrError: INVALID_REQUEST when *body* is no AdmissionReview.
        """
        start = self._clock()
        try:
            request = read(body)
        except AicrError:
            self._meter.decided(ERROR, self._clock() - start)
            raise
        decision = await self._decide(request)
        reply = answer(request.uid, decision)
        self._meter.decided(decision.outcome, self._clock() - start)
        return reply

    async def _decide(self, request: Request) -> Decision:
        if request.excuse:
            return Decision(NO_CHECKS, request.excuse)
        try:
            pod = view(request.pod, request.namespace)
            found = devices(pod, self._prepared.resources)
            facts = await self._facts(pod, found)
        except AicrError as error:
            return refused(error)
        membership, note = await self._membership(pod, found, facts)
        decision = decide(pod, found, self._prepared, membership, facts)
        if note:
            decision.warnings.append(note)
        if decision.register and membership is not None:
            decision = await self._register(pod, membership, decision, request.dry_run)
        if decision.outcome == INJECTED:
            LOG.info(
                "Mutating pod",
                extra={
                    "namespace": pod.namespace,
                    "pod": pod.name,
                    "patchOps": len(decision.patch),
                },
            )
        elif decision.message:
            LOG.warning(
                "Refused pod",
                extra={"namespace": pod.namespace, "pod": pod.name, "reason": decision.message},
            )
        if self._events is not None and not request.dry_run:
            self._events.offer(pod, decision)
        return decision

    async def _facts(self, pod: Pod, found: Devices) -> claim_facts.Facts:
        if not needs_claims(pod, found, self._prepared):
            backed = self._backed()
            return claim_facts.Facts(backed=backed) if backed else claim_facts.NONE
        if self._claims is None:
            return claim_facts.Facts(problem="there is no access to the API server")
        facts = await self._claims.find(pod)
        if facts.problem:
            self._meter.failed("claims")
            LOG.warning(
                "Failed to look up resource claims",
                extra={"namespace": pod.namespace, "pod": pod.name, "error": facts.problem},
            )
        return facts

    async def _membership(
        self, pod: Pod, found: Devices, facts: claim_facts.Facts
    ) -> tuple[Membership | None, str]:
        """The pod's gang, and what to warn of when it could not be found out."""
        gpus = found.has(self._prepared.gpu_resources) or facts.gpu_claims
        if self._gangs is None or not gpus:
            return None, ""
        if not pod.namespace:
            LOG.warning("Pod has no namespace, so it is treated as no member of a gang")
            return None, ""
        try:
            membership = await self._gangs.identify(pod.document, pod.namespace)
        except AicrError as error:
            self._meter.failed("gang")
            LOG.error(
                "Failed to identify gang",
                extra={"namespace": pod.namespace, "pod": pod.name, "error": str(error)},
            )
            return None, "the pod's gang could not be found out, so it is treated as a single pod"
        if membership is None or not membership.gang_id:
            return None, ""
        LOG.info(
            "Pod is part of a gang",
            extra={"namespace": pod.namespace, "pod": pod.name, "gang": membership.gang_id},
        )
        return membership, ""

    async def _register(
        self, pod: Pod, membership: Membership, decision: Decision, dry_run: bool
    ) -> Decision:
        assert self._gangs is not None
        fields = {"namespace": pod.namespace, "pod": pod.name, "gang": membership.gang_id}
        LOG.info("Registering pod with gang", extra={**fields, "dryRun": dry_run})
        try:
            await self._gangs.register(membership, pod.document, decision.checks, dry_run)
        except AicrError as error:
            if is_refusal(error):
                return refused(error, decision.warnings)
            self._meter.failed("register")
            LOG.error("Failed to ensure gang ConfigMap", extra={**fields, "error": str(error)})
        return decision
