"""A cluster on the fake API server in which inference-perf runs from end to end, well or badly.

    scene = PerfScene()
    scene.aiperf = report(throughput=40000)
    error = scene.judge()
    assert scene.seen.lines[-1] == ...

Beside the API server there are: a Job controller (a pod for each Job), the kubelet of the neighbours,
an operator that reports on deployments, and a server that answers chat completions.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any

from aiohttp import web
from tests.checks.contexts import ENOUGH, TIMES, Seen, node, put, validation
from tests.checks_deployment.kubelet import Ends, running
from tests.kube.fakeapi import SERVED, FakeApi, refuse, serving
from tests.kube.loopback import cluster, run

from aicr.checks.conformance.endpoints import ENDPOINT_SLICE
from aicr.checks.performance import inference_aiperf, inference_perf, inference_workload
from aicr.checks.performance.inference_knobs import Settings, resolve
from aicr.checks.performance.inference_namespace import suffix
from aicr.checks.sdk.outcome import skip_in
from aicr.checks.sdk.timeouts import Timeouts
from aicr.errors import AicrError
from aicr.kube import kinds
from aicr.kube.kinds import Resource

Document = dict[str, Any]

DGD = Resource(
    *("nvidia.com", "v1beta1", "dynamographdeployments", "DynamoGraphDeployment", True),
    subresources=("status",),
)
STORAGE_CLASS = Resource("storage.k8s.io", "v1", "storageclasses", "StorageClass", False)
CLAIM = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", True)
GATEWAY = Resource("gateway.networking.k8s.io", "v1", "gateways", "Gateway", True)
ROUTE = Resource("gateway.networking.k8s.io", "v1", "httproutes", "HTTPRoute", True)
SLICE = Resource("resource.k8s.io", "v1", "resourceslices", "ResourceSlice", False)
CLASS = Resource("resource.k8s.io", "v1", "deviceclasses", "DeviceClass", False)
RESOURCE_CLAIM = Resource("resource.k8s.io", "v1", "resourceclaims", "ResourceClaim", True)
CLAIM_TEMPLATE = Resource(
    "resource.k8s.io", "v1", "resourceclaimtemplates", "ResourceClaimTemplate", True
)
KINDS = (DGD, STORAGE_CLASS, CLAIM, GATEWAY, ROUTE, ENDPOINT_SLICE)
DRA = (SLICE, CLASS, RESOURCE_CLAIM, CLAIM_TEMPLATE)

#: The run of every scene, and its namespace.
RUN = "20260101-000000-0123456789abcdef"
HOME = f"aicr-inference-perf-{suffix(RUN)}"
#: Long enough for a busy machine; nothing asserts on them.
SHORT = replace(
    TIMES,
    inference_ready=ENOUGH,
    inference_health=ENOUGH,
    inference_populate=ENOUGH,
    inference_poll=0.02,
    inference_probe=ENOUGH,
    aiperf_pod=ENOUGH,
    aiperf_job=ENOUGH,
    inference_namespace_termination=2.0,
)
#: For waits that are to run out.
IMPATIENT = replace(
    SHORT, inference_ready=0.5, inference_health=0.5, aiperf_pod=0.8, aiperf_job=0.8
)

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


def report(throughput: float = 50000.0, ttft: float = 800.0, **more: Any) -> str:
    """The log of an AIPerf pod that went well, with numbers of the caller's."""
    found = {
        "request_throughput": {"unit": "requests/sec", "avg": 390.6},
        "request_count": {"unit": "requests", "avg": 4096.0},
        "time_to_first_token": {"unit": "ms", "avg": ttft / 2, "p50": ttft / 2, "p99": ttft},
        "output_token_throughput": {"unit": "tokens/sec", "avg": throughput},
        "was_cancelled": False,
        "error_summary": [],
        **more,
    }
    marker = inference_aiperf.MARKER
    return f"AIPerf is warming up\n{marker}\n{json.dumps(found, indent=2)}\n{marker}\n"


def settings(**changed: Any) -> Settings:
    """The default settings with changes."""
    nothing: dict[str, str] = {}
    return replace(resolve(nothing.get, {}, Timeouts()), **changed)


def crd(*versions: str, established: bool = True) -> Document:
    """The CRD of DynamoGraphDeployments that serves *versions*."""
    status = "True" if established else "False"
    return {
        "metadata": {"name": inference_perf.CRD},
        "spec": {"versions": [{"name": name, "served": True} for name in versions]},
        "status": {"conditions": [{"type": "Established", "status": status}]},
    }


def storage_class(name: str, *, default: bool = False, **more: Any) -> Document:
    """A StorageClass."""
    marked = {"storageclass.kubernetes.io/is-default-class": "true"} if default else {}
    return {"metadata": {"name": name, "annotations": marked}, "provisioner": "test", **more}


def holder(name: str, on: str, gpus: int, phase: str = "Running") -> Document:
    """A bound pod that asks for GPUs."""
    container = {"name": "main", "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}
    return {
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
        "spec": {"nodeName": on, "containers": [container]},
        "status": {"phase": phase},
    }


def said(content: object = "Hello!") -> Document:
    """A chat completion."""
    return {"choices": [{"message": {"role": "assistant", "content": content}}]}


@dataclass
class PerfScene:
    """See the module.

    Attributes:
        constraints: of the performance phase.
        components: that the recipe declares.
        aiperf: how the pod of the load generator ends.
        populate: how the pod that fills the cache ends.
        answer: what the served model answers.
        state, ready: what the operator reports: its state, and the share of replicas that are ready.
        frontend: whether it makes the Service.
        stuck_namespace: whether the run's namespace has a finalizer that nobody clears.
        cancel_after: cancel the check once the pod of the load generator is there.
    """

    constraints: dict[str, str] = field(
        default_factory=lambda: {
            "inference-throughput": ">= 50000",
            "inference-ttft-p99": "<= 2000",
        }
    )
    components: tuple[str, ...] = ("dynamo-platform",)
    environ: dict[str, str] = field(default_factory=dict)
    policy: str = "unspecified"
    timeouts: Timeouts = SHORT
    aiperf: str | Ends | None = field(default_factory=report)
    populate: Ends | None = field(default_factory=Ends)
    answer: Answer | Document = field(default_factory=said)
    state: str = "successful"
    ready: bool = True
    frontend: bool = True
    served: tuple[Resource, ...] = KINDS
    settings: Document = field(default_factory=dict)
    objects: list[tuple[Resource, Document]] = field(default_factory=list)
    faults: list[tuple[str, web.Response]] = field(default_factory=list)
    bare: bool = False
    stuck_namespace: bool = False
    cancel_after: bool = False
    seen: Seen = field(default_factory=Seen)
    api: FakeApi = field(default_factory=FakeApi)
    #: Every object that was ever created, by kind.
    made: dict[str, list[Document]] = field(default_factory=dict)
    task: asyncio.Future[None] | None = None
    questions: list[tuple[Document, dict[str, str]]] = field(default_factory=list)

    def put(self, resource: Resource, *documents: Document) -> PerfScene:
        """Have objects there."""
        self.objects += [(resource, document) for document in documents]
        return self

    def fault(self, pattern: str, code: int, reason: str) -> PerfScene:
        """Answer requests that match with an error, as long as the check asks."""
        self.faults.append((pattern, refuse(code, reason, f"{reason} by the test")))
        return self

    def judge(self) -> AicrError | None:
        """Run the check; what it raised."""
        return run(self._judged())

    def one(self, kind: str) -> Document:
        """The only object of a kind that was created."""
        (found,) = self.made[kind]
        return found

    @property
    def left(self) -> list[str]:
        """Namespaces that are there afterwards."""
        return [name for _, name in self.api.objects.get("namespaces", {})]

    async def _judged(self) -> AicrError | None:
        self.api = api = FakeApi(resources=[*SERVED, *self.served])
        if not self.bare:
            self.put(kinds.CUSTOM_RESOURCE_DEFINITION, crd("v1alpha1", "v1beta1"))
            self.put(kinds.NODE, node("gpu-1", gpus=8))
            self.put(STORAGE_CLASS, storage_class("standard", default=True))
        async with contextlib.AsyncExitStack() as stack:
            _, client = await stack.enter_async_context(cluster(api))
            model = await stack.enter_async_context(serving(self._completion))
            for resource, document in self.objects:
                await put(api, resource, document)
            for pattern, answer in self.faults:
                api.next(pattern, answer, times=50)
            await stack.enter_async_context(running(api, self._behave))
            await stack.enter_async_context(self._controllers(api, model.removeprefix("http://")))
            stated = validation(*self.components, performance=self.constraints)
            context = self.seen.context(
                client,
                name="inference-perf",
                run_id=RUN,
                phase="performance",
                environ=self.environ,
                timeouts=self.timeouts,
                **{"validation": {**stated, "gpuAllocationPolicy": self.policy}, **self.settings},
            )
            try:
                self.task = asyncio.ensure_future(inference_perf.CHECK.run(context))
                await self.task
            except AicrError as error:
                return error
            return None

    async def _completion(self, request: web.Request) -> web.StreamResponse:
        self.questions.append((await request.json(), dict(request.headers)))
        if isinstance(self.answer, dict):
            return web.json_response(self.answer)
        return await self.answer(request)

    def _behave(self, pod: Document) -> Ends | None:
        name = pod["metadata"]["name"]
        if name.startswith("aicr-model-cache"):
            return self.populate
        if name.startswith("aicr-aiperf"):
            if isinstance(self.aiperf, str):
                return Ends("Succeeded", {"aiperf": self.aiperf})
            return self.aiperf
        return None

    @contextlib.asynccontextmanager
    async def _controllers(self, api: FakeApi, model: str) -> AsyncIterator[None]:
        known: set[str] = set()

        async def work() -> None:
            while True:
                for table in list(api.objects.values()):
                    for document in list(table.values()):
                        await self._react(api, document, model, known)
                version = api.version

                def moved(since: int = version) -> bool:
                    return api.version != since

                async with api.changed:
                    await api.changed.wait_for(moved)

        task = asyncio.create_task(work())
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _react(self, api: FakeApi, found: Document, model: str, known: set[str]) -> None:
        uid, kind = found["metadata"].get("uid", ""), found.get("kind", "")
        if uid in known or uid.startswith("uid-"):
            return
        known.add(uid)
        self.made.setdefault(kind, []).append(found)
        if kind == "Job":
            await put(api, kinds.POD, pod_of(found))
            if self.cancel_after and "aiperf" in found["metadata"]["name"] and self.task:
                self.task.cancel()
        elif kind == "Namespace" and self.stuck_namespace:
            metadata = {**found["metadata"], "finalizers": ["test/never"]}
            await api.store("MODIFIED", kinds.NAMESPACE, {**found, "metadata": metadata})
        elif kind == "DynamoGraphDeployment":
            await self._operate(api, found, model)

    async def _operate(self, api: FakeApi, found: Document, model: str) -> None:
        reported = {
            each["name"]: {"readyReplicas": each["replicas"] if self.ready else 0}
            for each in found["spec"]["components"]
        }
        status = {"state": self.state, "components": reported}
        await api.store("MODIFIED", DGD, {**found, "status": status})
        if self.frontend:
            namespace = found["metadata"]["namespace"]
            name = f"{inference_workload.NAME}-frontend"
            await put_service(api, name, namespace, model)


async def put_service(api: FakeApi, name: str, namespace: str, address: str) -> None:
    """A Service whose one endpoint is a server of the test's."""
    service = {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"ports": [{"name": "http", "port": 8000}]},
    }
    await put(api, kinds.SERVICE, service)
    await put(api, ENDPOINT_SLICE, endpoint_slice(name, namespace, address))


def endpoint_slice(name: str, namespace: str, address: str) -> Document:
    """The endpoints of a Service: one, at ``host:port``."""
    host, _, port = address.rpartition(":")
    return {
        "metadata": {
            "name": f"{name}-1",
            "namespace": namespace,
            "labels": {"kubernetes.io/service-name": name},
        },
        "ports": [{"name": "http", "port": int(port)}],
        "endpoints": [{"addresses": [host], "conditions": {"ready": True}}],
    }


def pod_of(job: Document) -> Document:
    """The pod that the Job controller makes."""
    name = job["metadata"]["name"]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{name}-x",
            "namespace": job["metadata"]["namespace"],
            "uid": f"uid-{name}",
            "labels": {"batch.kubernetes.io/job-name": name},
        },
        "spec": job["spec"]["template"]["spec"],
        "status": {"phase": "Pending"},
    }


def failing(scene: PerfScene) -> AicrError:
    """What the check raised, which must be a failure."""
    error = scene.judge()
    assert error is not None
    assert skip_in(error) is None
    return error
