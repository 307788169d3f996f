"""Looking resource claims up on the API server, and which extended resources are DRA in disguise.

Nothing is cached of claims: a pod is often created right after its template. All look-ups of one pod share
a budget, because the API server waits for the webhook. Device classes change rarely and only cause a
warning, so they are read in the background. Source: decision 73, preflight spec Appendix A1; field cases
I1 and I4.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection
from typing import Final

from aicr.errors import NOT_FOUND, AicrError
from aicr.kube.port import Cluster
from aicr.preflight.admission.claims import (
    CLAIM,
    Facts,
    Source,
    asks_for_gpus,
    backed_resources,
    sources,
    spec_of,
    used_requests,
)
from aicr.preflight.admission.pod import Pod
from aicr.preflight.times import ServerTimes

LOG: Final = logging.getLogger("aicr.preflight.admission")
_TIMES: Final = ServerTimes()
_CLASSES: Final = "deviceclasses.resource.k8s.io"

_KINDS: Final = {
    CLAIM: "resourceclaims.resource.k8s.io",
    "ResourceClaimTemplate": "resourceclaimtemplates.resource.k8s.io",
}


class DeviceClasses:
    """Which extended resources the cluster serves by claim, read again every so often.

    Attributes:
        backed: resource → device class; empty while it is not known.
    """

    def __init__(self, cluster: Cluster, *, interval: float = _TIMES.classes) -> None:
        self._cluster = cluster
        self._interval = interval
        self._complained = False
        self.backed: dict[str, str] = {}

    async def run(self) -> None:
        """Read until cancelled."""
        while True:
            await self.refresh()
            await asyncio.sleep(self._interval)

    async def refresh(self) -> None:
        """Read once; what cannot be read is said once, and costs a warning and nothing else."""
        try:
            self.backed = backed_resources(await self._cluster.list(_CLASSES))
            self._complained = False
        except AicrError as error:
            if not self._complained:
                LOG.info("Device classes cannot be read", extra={"error": error.message})
            self._complained = True


class ClusterClaims:
    """`claims.ClaimLookup` on a cluster."""

    def __init__(
        self, cluster: Cluster, classes: Collection[str], *, budget: float = _TIMES.claims
    ) -> None:
        self._cluster = cluster
        self._classes = frozenset(classes)
        self._budget = budget

    async def find(self, pod: Pod) -> Facts:
        """What *pod*'s claims ask for; the first failure makes the whole unknown."""
        wanted = list(sources(pod))
        if not wanted:
            return Facts()
        try:
            async with asyncio.timeout(self._budget):
                answers = await asyncio.gather(
                    *(self._asks(source, pod) for source in wanted), return_exceptions=True
                )
        except TimeoutError:
            return Facts(
                problem=f"no answer within {self._budget:g} s",
                hint="try again",
            )
        gpus = tuple(
            source.claim for source, found in zip(wanted, answers, strict=True) if found is True
        )
        if gpus:
            # One claim of GPUs decides, whatever became of the others.
            return Facts(gpu_claims=gpus)
        for source, found in zip(wanted, answers, strict=True):
            if isinstance(found, AicrError):
                return self._problem(source, pod.namespace, found)
            if isinstance(found, BaseException):
                raise found
        return Facts()

    async def _asks(self, source: Source, pod: Pod) -> bool:
        document = await self._cluster.get(
            _KINDS[source.kind], source.name, namespace=pod.namespace
        )
        spec = spec_of(document, source.kind)
        return asks_for_gpus(spec, used_requests(pod, source.claim), self._classes)

    def _problem(self, source: Source, namespace: str, error: AicrError) -> Facts:
        place = f"{source.kind} {namespace}/{source.name}"
        if error.code == NOT_FOUND:
            return Facts(problem=f"{place} does not exist", hint="create it, then retry")
        return Facts(problem=f"{place}: {error.message}", hint=error.hint)
