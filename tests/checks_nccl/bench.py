"""A cluster on the fake API server for one NCCL check: nodes, Trainer, and a launcher that prints a table.

scene = Bench(NET, stated={"nccl-all-reduce-bw-net": ">= 40"}, criteria=GB200_EKS)
scene.launcher = Launcher(text=whole("45.0", "NCCL INFO Using network AWS Libfabric"))
assert scene.judge() is None
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from aiohttp import web
from tests.checks.contexts import ENOUGH, TIMES, Seen, put
from tests.fabric.tables import Measured, table
from tests.kube.fakeapi import SERVED, FakeApi
from tests.kube.loopback import cluster, run

from aicr.checks.performance import nccl_lock, nccl_templates
from aicr.checks.performance.nccl_execution import JOB_LABEL, JOBSET_LABEL
from aicr.checks.performance.nccl_run import measure
from aicr.checks.performance.nccl_variants import DEFAULT, Variant
from aicr.checks.sdk.timeouts import Timeouts
from aicr.errors import AicrError
from aicr.kube import kinds
from aicr.kube.kinds import Resource

Document = dict[str, Any]

GROUP = "trainer.kubeflow.org"
RUNTIME = Resource(GROUP, "v1alpha1", "trainingruntimes", "TrainingRuntime", True)
CLUSTER_RUNTIME = Resource(
    GROUP, "v1alpha1", "clustertrainingruntimes", "ClusterTrainingRuntime", False
)
TRAIN_JOB = Resource(GROUP, "v1alpha1", "trainjobs", "TrainJob", True)
NETWORK = Resource("networking.gke.io", "v1", "networks", "Network", False)
DOMAIN = Resource("resource.nvidia.com", "v1beta1", "computedomains", "ComputeDomain", True)
SLICE = Resource("resource.k8s.io", "v1", "resourceslices", "ResourceSlice", False)
CLAIM_TEMPLATE = Resource(
    "resource.k8s.io", "v1", "resourceclaimtemplates", "ResourceClaimTemplate", True
)
KINDS = (RUNTIME, CLUSTER_RUNTIME, TRAIN_JOB, NETWORK, DOMAIN, SLICE, CLAIM_TEMPLATE)
RUN_ID = "20260101-000000-0123456789abcdef"
NAMESPACE = "aicr-validation"
#: Short pauses, so that nothing waits; nothing asserts on time.
SHORT = replace(
    TIMES,
    nccl_launcher_pod=ENOUGH,
    nccl_train_job=ENOUGH,
    nccl_log_reread=0.01,
    train_job_admission_retry=ENOUGH,
    train_job_admission_poll=0.01,
    trainer_crd_established=ENOUGH,
    trainer_controller=ENOUGH,
    job_envelope_margin=0.1,
    nccl_lock_stale_age=1200.0,
    nccl_stale_namespace=3600.0,
)
IMPATIENT = replace(SHORT, nccl_launcher_pod=0.3, nccl_train_job=0.3)
NOW = 1_800_000_000.0


def whole(busbw: str = "450.00", *said: str, ranks: int = 16, wrong: int = 0) -> str:
    """What a launcher prints: lines of NCCL, and a table that ends with *busbw* at 16 GiB."""
    rows = (Measured(size=1 << 20, busbw="12.50"), Measured(size=16 << 30, busbw=busbw))
    if wrong:
        rows = (rows[0], replace(rows[1], wrong=str(wrong)))
    return "\n".join(said) + "\n" + table(*rows, gpus=ranks, bounds=wrong)


def cut(text: str) -> str:
    """The same, without its end."""
    return text.partition("# Out of bounds")[0]


def driver(version: str = "580.95.05", parameter: str = "1") -> str:
    """What a probe of the driver prints."""
    return (
        "VERSION\nNVRM version: NVIDIA UNIX Open Kernel Module for aarch64  "
        f"{version}  Release Build\nPARAMS\nEnableMSI: 1\n"
        f"GrdmaPciTopoCheckOverride: {parameter}\nEND"
    )


@dataclass(frozen=True)
class Launcher:
    """What Trainer makes of a TrainJob, and how it ends.

    *later* is the log from the second reading on; None keeps it.
    """

    text: str = field(default_factory=whole)
    phase: str = "Succeeded"
    message: str = ""
    exit_code: int = 1
    worker: Document = field(default_factory=lambda: {"phase": "Running"})
    appears: bool = True
    later: str | None = None


def gpu_node(
    name: str,
    *,
    gpus: int | None = 8,
    ready: bool = True,
    efa: int = 32,
    cordoned: bool = False,
    labels: Mapping[str, str] | None = None,
) -> Document:
    """A GPU node; *gpus* None offers none."""
    amounts = {"vpc.amazonaws.com/efa": str(efa)} if efa else {}
    if gpus is not None:
        amounts["nvidia.com/gpu"] = str(gpus)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"nvidia.com/gpu.present": "true", **(labels or {})}},
        "spec": {"unschedulable": True} if cordoned else {},
        "status": {
            "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        },
    }


def crd(name: str, *, established: bool = True) -> Document:
    """A CustomResourceDefinition."""
    state = "True" if established else "False"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": name},
        "status": {"conditions": [{"type": "Established", "status": state}]},
    }


def controller(*, available: int = 1) -> Document:
    """The Deployment of Trainer's controller."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "kubeflow-trainer-controller-manager", "namespace": "kubeflow"},
        "spec": {"replicas": 1},
        "status": {"availableReplicas": available},
    }


def validation(
    stated: Mapping[str, str], service: str = "eks", accelerator: str = "h100", **trainer: Any
) -> Document:
    """A validation input; *trainer* are fields of the kubeflow-trainer ref, none if empty."""
    refs = [{"name": "kubeflow-trainer", "namespace": "kubeflow", **trainer}] if trainer else []
    return {
        "criteria": {"service": service, "accelerator": accelerator},
        "componentRefs": refs,
        "config": {
            "performance": {
                "constraints": [{"name": key, "value": text} for key, text in stated.items()]
            }
        },
    }


@dataclass
class Bench:
    """See the module."""

    variant: Variant = DEFAULT
    input: Document | None = field(
        default_factory=lambda: validation({"nccl-all-reduce-bw": ">= 450"})
    )
    nodes: list[Document] = field(default_factory=lambda: [gpu_node("n1"), gpu_node("n2")])
    launcher: Launcher = field(default_factory=Launcher)
    settings: Document = field(default_factory=dict)
    timeouts: Timeouts = SHORT
    trainer: bool = True
    driver: str = field(default_factory=lambda: driver())
    objects: list[tuple[Resource, Document]] = field(default_factory=list)
    faults: list[tuple[str, Any, int]] = field(default_factory=list)
    beside: Callable[[FakeApi, str, Document], Any] | None = None
    seen: Seen = field(default_factory=Seen)
    made: dict[str, list[Document]] = field(default_factory=dict)
    api: FakeApi | None = None

    def put(self, resource: Resource, *documents: Document) -> Bench:
        """Have objects there."""
        self.objects += [(resource, document) for document in documents]
        return self

    def fault(self, pattern: str, answer: Any, times: int = 50) -> Bench:
        """Answer requests that match like that."""
        self.faults.append((pattern, answer, times))
        return self

    def judge(self) -> AicrError | None:
        """Run the check; what it raised."""

        async def scenario() -> AicrError | None:
            api = self.api = FakeApi(resources=[*SERVED, *KINDS])
            async with contextlib.AsyncExitStack() as stack:
                _, client = await stack.enter_async_context(cluster(api))
                await put(api, kinds.NODE, *self.nodes)
                if self.trainer:
                    await put(api, kinds.CUSTOM_RESOURCE_DEFINITION, *map(crd, CRDS))
                    await put(api, kinds.DEPLOYMENT, controller())
                for resource, document in self.objects:
                    await put(api, resource, document)
                for pattern, answer, times in self.faults:
                    api.next(pattern, answer, times=times)
                await stack.enter_async_context(self._standin(api))
                context = self.seen.context(
                    client,
                    name=self.variant.check,
                    phase="performance",
                    run_id=RUN_ID,
                    namespace=NAMESPACE,
                    validation=self.input,
                    timeouts=self.timeouts,
                    wall=lambda: NOW,
                    **self.settings,
                )
                try:
                    await measure(context, self.variant)
                except AicrError as error:
                    return error
                return None

        return run(scenario())

    @property
    def left(self) -> list[str]:
        """Namespaces, Leases and Trainer objects that are there afterwards."""
        assert self.api is not None
        names = [name for _, name in self.api.objects.get("namespaces", {})]
        return sorted(
            names + [n for _, n in self.api.objects.get("leases.coordination.k8s.io", {})]
        )

    @property
    def runtime(self) -> Document:
        """The TrainingRuntime as it was created."""
        (found,) = self.made["trainingruntimes.trainer.kubeflow.org"]
        return found

    @property
    def writes(self) -> list[str]:
        """Every request that created something."""
        assert self.api is not None
        return [line for line in self.api.seen if line.startswith("POST ")]

    @contextlib.asynccontextmanager
    async def _standin(self, api: FakeApi) -> AsyncIterator[None]:
        """Trainer, the compute-domain driver, and whatever else a test has run beside."""

        async def work() -> None:
            position = 0
            while True:
                while position < len(api.history):
                    _, type_, qualified, document = api.history[position]
                    position += 1
                    if type_ != "ADDED":
                        continue
                    self.made.setdefault(qualified, []).append(document)
                    if qualified == TRAIN_JOB.qualified and self.launcher.appears:
                        await self._train(api, document["metadata"]["namespace"])
                    if qualified == DOMAIN.qualified:
                        await self._claim_template(api, document)
                    if qualified == "pods" and "probe" in document["metadata"]["name"]:
                        api.logs[document["metadata"]["name"]] = stamped(self.driver)
                        ended = {**document, "status": {"phase": "Succeeded"}}
                        await api.store("MODIFIED", kinds.POD, ended)
                    if self.beside is not None:
                        await self.beside(api, qualified, document)
                async with api.changed:
                    await api.changed.wait_for(functools.partial(_longer, api, position))

        task = asyncio.create_task(work())
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _claim_template(self, api: FakeApi, domain: Document) -> None:
        name = domain["spec"]["channel"]["resourceClaimTemplate"]["name"]
        place = domain["metadata"]["namespace"]
        document = {"metadata": {"name": name, "namespace": place, "uid": "t"}, "spec": {}}
        await api.store("ADDED", CLAIM_TEMPLATE, document)

    async def _train(self, api: FakeApi, namespace: str) -> None:
        end = self.launcher
        for job, status in (("node", end.worker), ("launcher", {"phase": "Running"})):
            await api.store("ADDED", kinds.POD, trained(job, namespace, status))
        name = trained("launcher", namespace, {})["metadata"]["name"]
        api.logs[name] = stamped(end.text)
        api.logs[trained("node", namespace, {})["metadata"]["name"]] = stamped("a worker's words")
        if end.later is not None:
            first = web.Response(text=end.text)
            api.next(f"GET .*/pods/{name}/log", first)
            api.logs[name] = stamped(end.later)
        ended_as: Document = {"phase": end.phase}
        if end.phase in ("Succeeded", "Failed"):
            code = 0 if end.phase == "Succeeded" else end.exit_code
            ended = {"exitCode": code, "reason": "Error" if code else "Completed"}
            if end.message:
                ended["message"] = end.message
            ended_as["containerStatuses"] = [{"name": "node", "state": {"terminated": ended}}]
        await api.store("MODIFIED", kinds.POD, trained("launcher", namespace, ended_as))


def _longer(api: FakeApi, position: int) -> bool:
    return len(api.history) > position


CRDS = ("trainjobs.trainer.kubeflow.org", "trainingruntimes.trainer.kubeflow.org")


def trained(job: str, namespace: str, status: Document) -> Document:
    """A pod as JobSet makes it."""
    name = f"{nccl_templates.TRAIN_JOB}-{job}-0-0-abcde"
    has = {JOBSET_LABEL: nccl_templates.TRAIN_JOB, JOB_LABEL: job}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{job}", "labels": has},
        "spec": {"nodeName": "n1", "containers": [{"name": "node", "image": "x"}]},
        "status": status,
    }


def stamped(text: str) -> list[bytes]:
    """Lines as the fake API server keeps logs."""
    return [f"2026-11-30T00:00:00Z {line}".encode() for line in text.splitlines()]


def lease(holder: str, *, age: float, uid: str = "uid-lease") -> Document:
    """The lock, renewed *age* seconds ago."""
    made = nccl_lock.decide(None, holder, NAMESPACE, NOW - age, 1200.0)
    made["metadata"]["uid"] = uid
    return made
