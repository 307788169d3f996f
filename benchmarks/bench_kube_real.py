"""What large collections of a real API server cost our Kubernetes client: time, CPU and memory.

Run: ``make bench-cluster``, or ``python -m benchmarks.bench_kube_real [--nodes 10000] [--pods 20000]
[--events 1000] [--runs 3]`` from the root of a checkout; it needs what `make test-cluster` needs and
takes minutes, most of them to create the objects. So it is no part of `make bench`, whose
`bench_kube.py` measures the same client against a server that only copies bytes.

The objects are those of `bench_kube.py`, created bare: controllers and scheduler are stopped, so
nobody changes them. A real server adds its own managedFields and encrypts. A client in a pod asks for
lists as they are; one with a kubeconfig has them compressed unless the file says otherwise, and has
the official client's loader in memory. Events come in a stream (a watch that begins with all pods),
and one by one, where most of the cost is waking up.
Every measurement is a fresh interpreter; CPU is user and system time of the client after its imports.
Wall time is mostly the server's, which shares the processors with us.

Targets: 10,000 nodes listed in 0.3 s of client time and 60 MiB; 40 µs a watch event; 20,000 pods
cached in 150 MiB.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from benchmarks import bench_kube
from tests.controlplane.client import MERGE, Client, path_of
from tests.controlplane.fixtures import make_namespace
from tests.controlplane.plane import ControlPlane

#: Namespace of the pods to cache, and the one of the single pod that is watched.
PODS: Final = "bench"
WATCHED: Final = "watched"
WRITERS: Final = 8
#: Objects between two lines of progress.
BATCH: Final = 2000

_CHILD: Final = """
import asyncio, json, os, sys, time
task, settings, namespace, wanted, source = sys.argv[1:6]
sys.path.insert(0, source)
from aicr.kube import connect_to, kinds
from aicr.kube.config import load
from aicr.kube.informer import Informer
from aicr.kube.projection import Node, Pod
from aicr.kube.watching import SYNCED

def peak():
    # Not getrusage: its maximum is inherited from the process that started us.
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024

def clocks():
    return time.perf_counter(), time.process_time()

async def list_nodes(client):
    return len(await client.list(kinds.NODE, into=Node)), None

async def cache(client):
    informer = Informer(client, kinds.POD, Pod, indexes={"node": lambda pod: [pod.spec.node_name]})
    running = asyncio.create_task(informer.run())
    await informer.wait_synced(300)
    running.cancel()
    return len(informer.store), None

async def stream(client):
    count = 0
    machine = client.machine(Pod, initial_events=True)
    async for event in client.follow(machine, kinds.POD, Pod, namespace=namespace):
        if event.type == SYNCED:
            return count, None
        count += 1

async def watch(client):
    count = 0
    async for event in client.watch(kinds.POD, namespace=namespace, into=Pod):
        if event.type == SYNCED:
            print("synced", flush=True)
        elif event.type == "MODIFIED":
            count += 1
            if count == 1:
                began = clocks()
            if count > int(wanted):
                return count - 1, began

async def main():
    if os.path.isdir(settings):
        config = load(environ=os.environ, service_account=settings)
    else:
        config = load(kubeconfig=settings, environ={})
    async with connect_to(config) as client:
        await client.version()
        base = peak()
        started = clocks()
        count, began = await globals()[task](client)
        wall, cpu = (now - then for now, then in zip(clocks(), began or started))
        print(json.dumps({"count": count, "wall": wall, "cpu": cpu, "peak": peak(), "base": base}))

asyncio.run(main())
"""


def say(line: str) -> None:
    """Progress, apart from the table."""
    print(f"bench_kube_real: {line}", file=sys.stderr, flush=True)


def in_parallel(count: int, what: str, one: Callable[[int], object]) -> None:
    """Call *one* with every number below *count*, by several threads; say how far it is."""
    begun = time.monotonic()
    with ThreadPoolExecutor(WRITERS) as pool:
        for first in range(0, count, BATCH):
            numbers = range(first, min(first + BATCH, count))
            for _ in pool.map(one, numbers):
                pass
            say(f"{numbers.stop} of {count} {what} after {time.monotonic() - begun:.0f} s")


def create(api: Client, document: dict[str, Any], *, status_apart: bool) -> None:
    """Create an object as it is; where the server drops the status at first, write it afterwards."""
    metadata = document["metadata"]
    for field in ("uid", "resourceVersion", "creationTimestamp", "managedFields"):
        metadata.pop(field, None)
    namespace = metadata.get("namespace")
    api.create(document, namespace)
    if status_apart:
        path = f"{path_of(document['kind'], namespace, metadata['name'])}/status"
        api.call("PATCH", path, {"status": document["status"]}, content_type=MERGE)


def fill(api: Client, nodes: int, pods: int) -> None:
    """Create all objects."""

    def one_node(number: int) -> None:
        node = bench_kube.node(number, random.Random(number))
        taints = [{**taint, "effect": "NoSchedule"} for taint in node["spec"]["taints"]]
        node |= {"apiVersion": "v1", "kind": "Node", "spec": {**node["spec"], "taints": taints}}
        create(api, node, status_apart=False)

    def one_pod(number: int) -> None:
        create(api, pod_document(number, PODS), status_apart=True)

    in_parallel(nodes, "nodes", one_node)
    in_parallel(pods, "pods", one_pod)
    create(api, pod_document(0, WATCHED), status_apart=True)


def pod_document(number: int, namespace: str) -> dict[str, Any]:
    """A pod of `bench_kube` that a real server takes."""
    pod = bench_kube.pod(number, random.Random(number), 1)
    pod["metadata"]["namespace"] = namespace
    for container in pod["spec"]["containers"]:
        container["resources"] = {"limits": {"nvidia.com/gpu": "8"}}
    for status in pod["status"]["containerStatuses"]:
        status |= {"image": "registry.test/team/train:1.2.3", "imageID": ""}
    return {"apiVersion": "v1", "kind": "Pod", **pod}


class Clients:
    """Starts clients of one plane, each as it would be set up in production."""

    def __init__(self, plane: ControlPlane, runs: int) -> None:
        self._plane, self._runs = plane, runs
        address = urlsplit(plane.url)
        self._environment = {
            "PATH": os.environ.get("PATH", ""),
            "KUBERNETES_SERVICE_HOST": str(address.hostname),
            "KUBERNETES_SERVICE_PORT": str(address.port),
        }
        #: What a pod finds as its service account.
        self.pod = plane.folder / "service-account"
        self.pod.mkdir(mode=0o700)
        (self.pod / "token").write_text(plane.admin_token, encoding="utf-8")
        (self.pod / "ca.crt").write_bytes(plane.ca_file.read_bytes())

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start one client with the words that `_CHILD` takes."""
        return subprocess.Popen(
            [sys.executable, "-c", _CHILD, *words, str(bench_kube.SOURCE)],
            stdout=subprocess.PIPE,
            env=self._environment,
            text=True,
        )

    def measure(self, task: str, settings: Path, namespace: str = "") -> dict[str, float]:
        """The medians of fresh clients."""
        results = []
        for _ in range(self._runs):
            with self.start(task, str(settings), namespace, "0") as child:
                results.append(read_result(child))
        return medians(results)

    def measure_watch(self, events: int) -> dict[str, float]:
        """The medians of clients that watch one pod while it is written to, *events* times."""
        api = self._plane.client()
        path = path_of("Pod", WATCHED, api.list("Pod", WATCHED)[0]["metadata"]["name"])
        results = []
        for run in range(self._runs):
            with self.start("watch", str(self.pod), WATCHED, str(events)) as child:
                assert child.stdout is not None
                if child.stdout.readline() != "synced\n":
                    raise SystemExit("bench_kube_real: the watching client did not start")
                for number in range(events + 1):
                    change = {"metadata": {"annotations": {"beat": f"{run}-{number}"}}}
                    api.request("PATCH", path, change, content_type=MERGE)
                results.append(read_result(child))
        return medians(results)


def read_result(child: subprocess.Popen[str]) -> dict[str, float]:
    """What a client has printed at its end."""
    assert child.stdout is not None
    line = child.stdout.readline()
    if not line:
        raise SystemExit("bench_kube_real: a client failed")
    result: dict[str, float] = json.loads(line)
    return result


def medians(results: list[dict[str, float]]) -> dict[str, float]:
    """The median of each figure."""
    return {key: statistics.median(found[key] for found in results) for key in results[0]}


def report(plane: ControlPlane, options: argparse.Namespace) -> None:
    """Every row of the table."""
    api = plane.client()
    listed = api.request("GET", path_of("Node"), query={"limit": "100"})
    size = len(listed) // max(1, min(100, options.nodes))
    event = len(api.request("GET", path_of("Pod", WATCHED)))
    print(f"a node {size} bytes, a watch event {event} bytes; medians of {options.runs} runs")
    print("| what | wall | CPU | peak memory | of that before | target |")
    print("|---|---|---|---|---|---|")
    clients = Clients(plane, options.runs)
    for task, what, target in (
        ("list_nodes", f"list {options.nodes} nodes as projections", "0.3 s, 60 MiB"),
        ("cache", f"cache {options.pods} pods", "150 MiB"),
    ):
        for settings, where in ((clients.pod, "in a pod"), (plane.kubeconfig, "with a kubeconfig")):
            found = clients.measure(task, settings)
            row(f"{what}, {where}", found, 1, "s", target)
    found = clients.measure("stream", clients.pod, PODS)
    row(
        f"one of {found['count']:.0f} watch events in a stream",
        found,
        found["count"],
        "µs",
        "40 µs",
    )
    found = clients.measure_watch(options.events)
    row(f"one of {found['count']:.0f} that come one by one", found, found["count"], "µs", "none")


def row(what: str, found: dict[str, float], parts: float, unit: str, target: str) -> None:
    """Print a row; times are divided by *parts* and shown in *unit*."""
    wall, cpu = (
        f"{found[key] / max(1, parts) * 1e6:.1f} µs" if unit == "µs" else f"{found[key]:.2f} s"
        for key in ("wall", "cpu")
    )
    memory = f"{found['peak']:.0f} MiB | {found['base']:.0f} MiB"
    print(f"| {what} | {wall} | {cpu} | {memory} | {target} |", flush=True)


def main() -> None:
    """Start a control plane, fill it, measure, and print the table."""
    parser = argparse.ArgumentParser(description="cost of large collections of a real API server")
    parser.add_argument("--nodes", type=int, default=10_000)
    parser.add_argument("--pods", type=int, default=20_000)
    parser.add_argument("--events", type=int, default=1_000)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    with ControlPlane() as plane:
        api = plane.client()
        for namespace in (PODS, WATCHED):
            make_namespace(api, namespace)
        # From here on nobody but us writes: the objects stay as they were created.
        plane.controller_manager.stop()
        plane.scheduler.stop()
        fill(api, options.nodes, options.pods)
        report(plane, options)
        say(f"memory of the control plane\n{plane.memory_table()}")


if __name__ == "__main__":
    main()
