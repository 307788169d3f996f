"""Gang coordination on the fake API server: pods and groups put there, ConfigMaps read from there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, TypeVar

from tests.kube.fakeapi import SERVED, FakeApi
from tests.kube.loopback import cluster
from tests.preflight_gang.builders import MAP, VOLCANO, pod_document
from tests.preflight_gang.steady import SteadyApi

from aicr.kube.client import Client
from aicr.kube.kinds import CONFIG_MAP, LEASE, Resource
from aicr.kube.lease import Terms
from aicr.preflight.config import Config, parse
from aicr.preflight.controller.judging import PREFLIGHT_CONFIG
from aicr.preflight.controller.service import Gangs
from aicr.preflight.gang import configmap as cm
from aicr.preflight.gang.coordination import Rules
from aicr.preflight.times import Times

Document = dict[str, Any]
T = TypeVar("T")
VOLCANO_GROUP = Resource(
    "scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup", True, "podgroup"
)
NATIVE_GROUP = Resource("scheduling.k8s.io", "v1alpha2", "podgroups", "PodGroup", True, "podgroup")
TIMES = Times(coalesce=0.01, stale_again=0.02, absent=0.05, forming=0.1, longest=0.2)
#: No leader loses its Lease because this machine is busy; one that ends gives it back at once.
TERMS = Terms(duration=60.0, deadline=40.0, retry=0.2)
#: In which a busy machine has put everything there that is to count as one change.
TOGETHER = replace(TIMES, coalesce=1.0)
RULES = Rules(settle=0.0)
CHECKS = [{"name": name, "image": f"test.local/{name}"} for name in ("dcgm", "allreduce")]


def settings(**more: Any) -> Config:
    """A configuration with coordination on and Volcano as default."""
    return parse(
        {
            "initContainers": CHECKS,
            "gangCoordination": {"enabled": True},
            "gangDiscovery": VOLCANO,
            "failurePolicy": "Fail",
            **more,
        }
    )


class World:
    """The server and one replica, or more."""

    def __init__(self, api: FakeApi, client: Client, config: Config) -> None:
        self.api = api
        self.client = client
        self.config = config
        self.replicas: list[Gangs] = []
        self.tasks: list[asyncio.Task[None]] = []

    async def replica(self, identity: str = "one", **options: Any) -> Gangs:
        """Start one more replica."""
        made = Gangs(
            self.client,
            self.config,
            namespace="preflight",
            identity=identity,
            **{"terms": TERMS, "times": TIMES, "rules": RULES, **options},
        )
        await made.start()
        self.replicas.append(made)
        self.tasks.append(asyncio.create_task(made.run()))
        return made

    async def put(self, *documents: Document) -> None:
        """Make objects, or change them, past the API."""
        for document in documents:
            resource = self._resource(document)
            key = (document["metadata"]["namespace"], document["metadata"]["name"])
            there = key in self.api.objects.get(resource.qualified, {})
            await self.api.store("MODIFIED" if there else "ADDED", resource, document)

    async def remove(self, resource: Resource, name: str, namespace: str = "team-a") -> None:
        """Delete an object."""
        table = self.api.objects[resource.qualified]
        await self.api.store("DELETED", resource, table[namespace, name])

    def get(self, name: str = MAP, namespace: str = "team-a") -> Document | None:
        """A ConfigMap as it is on the server."""
        return self.api.objects.get(CONFIG_MAP.qualified, {}).get((namespace, name))

    def state(self, name: str = MAP) -> cm.State:
        """A gang's ConfigMap, read."""
        return cm.read(self.get(name))

    def names(self, name: str = MAP) -> list[str]:
        """The peers, by rank."""
        return [peer.name for peer in self.state(name).peers]

    def writes(self, what: str = "configmaps") -> int:
        """How many times something of a kind was written."""
        methods = ("POST", "PUT", "PATCH", "DELETE")
        return sum(line.startswith(methods) and f"/{what}" in line for line in self.api.seen)

    def asked(self, since: int) -> list[str]:
        """What was asked of the server after so many requests, but for what goes on all the time."""
        lasting = ("watch=", f"/{LEASE.plural}")
        return [line for line in self.api.seen[since:] if not any(word in line for word in lasting)]

    def _resource(self, document: Document) -> Resource:
        for resource in self.api.resources:
            if (resource.api_version, resource.kind) == (
                document["apiVersion"],
                document["kind"],
            ):
                return resource
        raise AssertionError(document["kind"])


@asynccontextmanager
async def world(
    *kinds: Resource, config: Config | None = None, replica: bool = True, **options: Any
) -> AsyncIterator[World]:
    """A server with *kinds* (Volcano's by default), and a replica that runs."""
    gang_kinds = kinds or (VOLCANO_GROUP,)
    api = SteadyApi(resources=[*SERVED, PREFLIGHT_CONFIG, *gang_kinds])
    async with cluster(api) as (_, client):
        made = World(api, client, config or settings())
        try:
            if replica:
                await made.replica(**options)
            yield made
        finally:
            ended = [task for task in made.tasks if task.done() and not task.cancelled()]
            for task in made.tasks:
                task.cancel()
            if made.tasks:
                await asyncio.wait(made.tasks)
            for task in ended:
                # Nothing but cancellation ends a replica.
                task.result()


async def until(ask: Callable[[], T], what: str = "", seconds: float = 60.0) -> T:
    """Wait for an answer that is true."""
    try:
        async with asyncio.timeout(seconds):
            while not (answer := ask()):
                await asyncio.sleep(0.005)
    except TimeoutError as error:
        raise AssertionError(f"still waiting for {what or ask}") from error
    return answer


async def quiet(seconds: float = 0.15) -> None:
    """Let everything happen that is going to."""
    await asyncio.sleep(seconds)


def volcano_group(minimum: Any = 3, name: str = "train", uid: str = "group-1") -> Document:
    """A PodGroup of Volcano."""
    return {
        "apiVersion": VOLCANO_GROUP.api_version,
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "team-a", "uid": uid},
        "spec": {"minMember": minimum},
    }


def members(count: int = 3, *, addresses: bool = True, **fields: Any) -> list[Document]:
    """Pods w-0, w-1, ... of the gang."""
    return [
        pod_document(f"w-{n}", f"10.0.0.{n}" if addresses else "", **fields) for n in range(count)
    ]


async def complete(made: World, count: int = 3) -> None:
    """A gang of w-0, w-1, ... that is complete."""
    await made.put(volcano_group(count), *members(count))
    await until(lambda: made.state().complete, "the gang to be complete")


class Recorded:
    """The metrics port, with everything that it was told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, Any]] = []

    def written(self, result: str) -> None:
        """See `GangMetrics`."""
        self.told.append(("written", result))

    def completed(self, members: int, seconds: float) -> None:
        """See `GangMetrics`."""
        assert seconds >= 0
        self.told.append(("completed", members))

    def leading(self, leads: bool) -> None:
        """See `GangMetrics`."""
        self.told.append(("leading", leads))

    def conflicting(self, namespaces: int) -> None:
        """See `GangMetrics`."""
        self.told.append(("conflicting", namespaces))
