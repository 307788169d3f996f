"""A cluster on the fake API server for one check, with a container in which commands are answered.

bench = Bench(CHECK, validation=declared("slinky-slurm"), answer=lambda argv: Answer(0, "ok"))
bench.put(kinds.POD, pod)
error = bench.judge()
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from aiohttp import web
from tests.checks.contexts import ENOUGH, TIMES, Seen, put
from tests.kube.fakeapi import SERVED, FakeApi
from tests.kube.loopback import cluster, run

from aicr.checks.conformance.endpoints import ENDPOINT_SLICE
from aicr.checks.conformance.hpa import EXTERNAL_METRIC, HPA
from aicr.checks.sdk.check import Check
from aicr.checks.sdk.timeouts import Timeouts
from aicr.errors import AicrError
from aicr.kube import kinds
from aicr.kube.kinds import Resource
from aicr.kube.port import Cluster, ExecResult

Document = dict[str, Any]

#: Short pauses; a test of a wait that runs out shortens that one.
SHORT = replace(
    TIMES,
    hpa_scale=ENOUGH,
    hpa_poll=0.02,
    deployment_scale=ENOUGH,
    metrics_api_warmup=ENOUGH,
    karpenter_node=ENOUGH,
    karpenter_poll=0.02,
    slurm_accounting_record=ENOUGH,
    slurm_accounting_poll=0.02,
    co_schedule_window=2.0,
)
CUSTOM_ANY = Resource("custom.metrics.k8s.io", "v1beta1", "pods", "MetricValueList", True)


@dataclass(frozen=True)
class Answer:
    """How a command ends."""

    status: int = 0
    stdout: str = ""
    stderr: str = ""


class WithCommands:
    """A cluster whose exec is answered by a function; everything else is the real client."""

    def __init__(
        self, real: Cluster, answer: Callable[[Sequence[str]], Answer | AicrError], ran: list[str]
    ) -> None:
        self._real, self._answer, self._ran = real, answer, ran

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    async def exec(self, name: str, command: Sequence[str], **where: Any) -> ExecResult:
        """Answer the command."""
        self._ran.append(f"{where['namespace']}/{name}/{where['container']}: {' '.join(command)}")
        await asyncio.sleep(0)
        found = self._answer(command)
        if isinstance(found, AicrError):
            raise found
        return ExecResult(found.status, found.stdout.encode(), found.stderr.encode())


@dataclass
class Bench:
    """See the module.

    Attributes:
        check: what is judged.
        validation: the validation input; None is a standalone run.
        served: kinds beyond the usual ones.
        answer: what commands in containers answer.
        beside: acts on the objects once after every change; a stand-in for controllers.
        settings: more of the context.
    """

    check: Check
    validation: Document | None = None
    served: tuple[Resource, ...] = ()
    answer: Callable[[Sequence[str]], Answer | AicrError] = lambda _: Answer()
    beside: Callable[[FakeApi], Awaitable[None]] | None = None
    settings: Document = field(default_factory=dict)
    timeouts: Timeouts = SHORT
    objects: list[tuple[Resource, Document]] = field(default_factory=list)
    faults: list[tuple[str, web.Response, int]] = field(default_factory=list)
    stale: set[str] = field(default_factory=set)
    seen: Seen = field(default_factory=Seen)
    ran: list[str] = field(default_factory=list)
    api: FakeApi = field(default_factory=FakeApi)

    def put(self, resource: Resource, *documents: Document) -> Bench:
        """Have objects there."""
        self.objects += [(resource, document) for document in documents]
        return self

    def fault(self, pattern: str, answer: web.Response, times: int = 60) -> Bench:
        """Answer requests that match like that; by default as long as the check asks."""
        self.faults.append((pattern, answer, times))
        return self

    def judge(self) -> AicrError | None:
        """Run the check; what it raised."""

        async def scenario() -> AicrError | None:
            self.api = FakeApi(
                resources=[*SERVED, ENDPOINT_SLICE, HPA, *self.served], stale=self.stale
            )
            async with contextlib.AsyncExitStack() as stack:
                _, client = await stack.enter_async_context(cluster(self.api))
                for resource, document in self.objects:
                    await put(self.api, resource, document)
                for pattern, answer, times in self.faults:
                    self.api.next(pattern, answer, times=times)
                if self.beside is not None:
                    await stack.enter_async_context(_working(self.api, self.beside))
                context = self.seen.context(
                    cast("Cluster", WithCommands(client, self.answer, self.ran)),
                    name=self.check.name,
                    phase="conformance",
                    validation=self.validation,
                    timeouts=self.timeouts,
                    **self.settings,
                )
                try:
                    await self.check.run(context)
                except AicrError as error:
                    return error
                return None

        return run(scenario())

    @property
    def left(self) -> list[str]:
        """Namespaces that are there afterwards."""
        return [name for _, name in self.api.objects.get("namespaces", {})]

    def stored(self, resource: Resource) -> list[Document]:
        """Objects that are there afterwards."""
        return list(self.api.objects.get(resource.qualified, {}).values())


@contextlib.asynccontextmanager
async def _working(api: FakeApi, act: Callable[[FakeApi], Awaitable[None]]) -> AsyncIterator[None]:
    async def work() -> None:
        while True:
            version = api.version
            await act(api)
            if api.version != version:
                continue
            async with api.changed:
                await api.changed.wait_for(functools.partial(_moved, api, version))

    task = asyncio.create_task(work())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def _moved(api: FakeApi, version: int) -> bool:
    return api.version != version


def declared(*names: str, criteria: Document | None = None, **refs: Document) -> Document:
    """A validation input with components; *refs* gives more of a ref, with _ for -."""
    found = [
        {"name": name, "namespace": name, **refs.get(name.replace("-", "_"), {})} for name in names
    ]
    return {
        "componentRefs": found,
        "gpuAllocationPolicy": "unspecified",
        "criteria": criteria or {},
        "config": {},
    }


def external_values(*values: str) -> list[Document]:
    """Items of the external metric in namespace default."""
    return [
        {"metadata": {"name": f"gpu-{number}", "namespace": "default"}, "value": value}
        for number, value in enumerate(values)
    ]


async def autoscaler(api: FakeApi, wanted: int = 3, *, pods: int | None = None) -> None:
    """What the real controllers do with the objects of a check: want more pods, and make them."""
    for document in list(api.objects.get(HPA.qualified, {}).values()):
        if (document.get("status") or {}).get("desiredReplicas") != wanted:
            status = {"currentReplicas": 1, "desiredReplicas": wanted}
            await api.store("MODIFIED", HPA, {**document, "status": status})
    have = wanted if pods is None else pods
    for document in list(api.objects.get(kinds.DEPLOYMENT.qualified, {}).values()):
        name = document["metadata"]["name"]
        scaled = (name in _hpas(api)) and (document.get("status") or {}).get("replicas") != have
        if scaled:
            await api.store(
                "MODIFIED", kinds.DEPLOYMENT, {**document, "status": {"replicas": have}}
            )


def _hpas(api: FakeApi) -> set[str]:
    return {name for _, name in api.objects.get(HPA.qualified, {})}


METRICS = (EXTERNAL_METRIC, CUSTOM_ANY)
