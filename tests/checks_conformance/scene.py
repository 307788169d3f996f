"""A cluster on the fake API server for one conformance check, and what the check said about it.

scene = Scene(CHECK, validation=validation("gpu-operator"))
scene.put(kinds.SERVICE, service)
error = scene.judge()
assert scene.seen.lines == [...]
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any

from aiohttp import web
from tests.checks.contexts import ENOUGH, TIMES, Seen, put
from tests.checks_deployment.kubelet import Ends, running
from tests.kube.fakeapi import SERVED, FakeApi
from tests.kube.loopback import cluster, run

from aicr.checks.conformance.endpoints import ENDPOINT_SLICE
from aicr.checks.sdk.check import Check
from aicr.checks.sdk.timeouts import Timeouts
from aicr.errors import AicrError
from aicr.kube.kinds import Resource

Document = dict[str, Any]

#: Short waits only where one look decides; nothing asserts on them.
SHORT = replace(
    TIMES,
    dra_test_pod=ENOUGH,
    gang_test_pod=ENOUGH,
    ai_service_metrics=0.2,
    ai_service_metrics_poll=0.05,
    co_schedule_window=30.0,
)
#: For tests of what happens when a pod does not come to an end.
IMPATIENT = replace(SHORT, dra_test_pod=0.3, gang_test_pod=0.3, pod_termination=0.2, diagnostic=0.2)
SLICE = Resource("resource.k8s.io", "v1", "resourceslices", "ResourceSlice", False)
CLASS = Resource("resource.k8s.io", "v1", "deviceclasses", "DeviceClass", False)
CLAIM = Resource("resource.k8s.io", "v1", "resourceclaims", "ResourceClaim", True)
CLAIM_TEMPLATE = Resource(
    "resource.k8s.io", "v1", "resourceclaimtemplates", "ResourceClaimTemplate", True
)
DRA = (SLICE, CLASS, CLAIM, CLAIM_TEMPLATE)


@dataclass
class Scene:
    """See the module.

    Attributes:
        check: what is judged.
        validation: the validation input; None is a standalone run.
        served: kinds beyond the usual ones.
        behave: how pods end; None leaves them Pending.
        settings: more of the context, such as ``deadline``.
    """

    check: Check
    validation: Document | None = None
    served: tuple[Resource, ...] = ()
    behave: Callable[[Document], Ends | None] = lambda _: None
    settings: Document = field(default_factory=dict)
    timeouts: Timeouts = SHORT
    objects: list[tuple[Resource, Document]] = field(default_factory=list)
    faults: list[tuple[str, web.Response]] = field(default_factory=list)
    beside: Callable[[FakeApi], contextlib.AbstractAsyncContextManager[None]] | None = None
    seen: Seen = field(default_factory=Seen)
    api: FakeApi | None = None

    def put(self, resource: Resource, *documents: Document) -> Scene:
        """Have objects there."""
        self.objects += [(resource, document) for document in documents]
        return self

    def fault(self, pattern: str, answer: web.Response) -> Scene:
        """Answer requests that match like that, as long as the check asks."""
        self.faults.append((pattern, answer))
        return self

    def judge(self) -> AicrError | None:
        """Run the check; what it raised."""

        async def scenario() -> AicrError | None:
            api = FakeApi(resources=[*SERVED, ENDPOINT_SLICE, *self.served])
            self.api = api
            async with contextlib.AsyncExitStack() as stack:
                _, client = await stack.enter_async_context(cluster(api))
                for resource, document in self.objects:
                    await put(api, resource, document)
                for pattern, answer in self.faults:
                    api.next(pattern, answer, times=30)
                await stack.enter_async_context(running(api, self.behave))
                if self.beside is not None:
                    await stack.enter_async_context(self.beside(api))
                context = self.seen.context(
                    client,
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
        assert self.api is not None
        return [name for _, name in self.api.objects.get("namespaces", {})]


def workload(kind: str, name: str, namespace: str, *, ready: int = 1, want: int = 1) -> Document:
    """A Deployment or DaemonSet with *ready* of *want*."""
    if kind == "DaemonSet":
        spec: Document = {}
        status = {"desiredNumberScheduled": want, "numberReady": ready}
    else:
        spec, status = {"replicas": want}, {"availableReplicas": ready}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
        "status": status,
    }


def service(name: str, namespace: str, port: int, **labels: str) -> Document:
    """A Service with one port."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {"ports": [{"name": "http", "port": port}]},
    }


def endpoints(name: str, namespace: str, address: str, *, ready: bool = True) -> Document:
    """The endpoints of a Service: one, at ``host:port``."""
    host, _, port = address.rpartition(":")
    return {
        "metadata": {
            "name": f"{name}-1",
            "namespace": namespace,
            "labels": {"kubernetes.io/service-name": name},
        },
        "ports": [{"name": "http", "port": int(port)}],
        "endpoints": [{"addresses": [host], "conditions": {"ready": ready}}],
    }


@contextlib.asynccontextmanager
async def nothing() -> Any:
    """Beside the cluster there is nothing."""
    yield


Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]
