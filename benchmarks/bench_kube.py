"""What large collections cost our Kubernetes client: time, CPU and memory.

Run: ``python benchmarks/bench_kube.py [--nodes 10000] [--pods 20000] [--events 20000] [--runs 5]``.
Needs the extra `cluster`. A server in a process of its own sends objects made from a seed, of the
size that real ones have (about 7 kB), over loopback; it only copies bytes, so what is measured is
the client. Every measurement is a fresh interpreter, so that imports and peak memory count; CPU is
user and system time of the client after its imports.

Targets: 10,000 nodes listed in 0.3 s of client time and 60 MiB; 40 µs a watch event; 20,000 pods
cached in 150 MiB.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import random
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

SOURCE: Final = Path(__file__).resolve().parent.parent / "src"
PAGE: Final = 500

_CHILD: Final = """
import asyncio, json, resource, sys, time
task, server, source = sys.argv[1:4]
sys.path.insert(0, source)
from aicr.kube import connect_to, kinds
from aicr.kube.config import ClusterConfig
from aicr.kube.informer import Informer
from aicr.kube.projection import Node, Pod
from aicr.kube.watching import SYNCED

async def list_nodes(client):
    return len(await client.list(kinds.NODE, into=Node)), None

async def list_documents(client):
    return len(await client.list(kinds.NODE)), None

async def watch(client):
    count = 0
    async for event in client.watch(kinds.POD, namespace="bench", into=Pod):
        if event.type == SYNCED:
            clocks = time.perf_counter(), time.process_time()
        elif event.type == "MODIFIED":
            count += 1
        elif event.type == "DELETED":
            return count, clocks

async def cache(client):
    informer = Informer(client, kinds.POD, Pod, indexes={"node": lambda pod: [pod.spec.node_name]})
    running = asyncio.create_task(informer.run())
    await informer.wait_synced(120)
    running.cancel()
    return len(informer.store), None

async def main():
    import aicr.kube.http
    async with connect_to(ClusterConfig(server)) as client:
        await client.version()
        base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        started = time.perf_counter(), time.process_time()
        count, clocks = await globals()[task](client)
        wall, cpu = (now - then for now, then in zip(
            (time.perf_counter(), time.process_time()), clocks or started))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"count": count, "wall": wall, "cpu": cpu, "peak": peak, "base": base}))

asyncio.run(main())
"""


def managed(fields: int) -> list[dict[str, Any]]:
    """managedFields, of which a good part of every real object consists."""
    owned: dict[str, Any] = {
        f"f:field-{number}": {f"f:part-{part}": {} for part in range(6)} for number in range(fields)
    }
    entry = {
        "manager": "kubelet",
        "operation": "Update",
        "apiVersion": "v1",
        "time": "2026-11-30T10:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:status": owned},
    }
    return [entry, {**entry, "manager": "kube-controller-manager", "subresource": "status"}]


def node(number: int, chance: random.Random) -> dict[str, Any]:
    """A GPU node of a cloud."""
    name = f"gke-gpu-pool-{number % 40:02d}-{chance.randrange(16**8):08x}-{number:05d}"
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/arch": "amd64",
        "topology.kubernetes.io/zone": f"us-central1-{'abcd'[number % 4]}",
        "node.kubernetes.io/instance-type": "a3-megagpu-8g",
        "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
        **{f"feature.node.kubernetes.io/cpu-cpuid.FEATURE{n}": "true" for n in range(24)},
    }
    resources = {"cpu": "207", "memory": "1898Gi", "pods": "110", "nvidia.com/gpu": "8"}
    conditions = [
        {
            "type": kind,
            "status": "True" if kind == "Ready" else "False",
            "lastHeartbeatTime": "2026-11-30T10:00:00Z",
            "lastTransitionTime": "2026-11-29T10:00:00Z",
            "reason": f"Kubelet{kind}",
            "message": f"kubelet has reported on {kind}",
        }
        for kind in ("MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable", "Ready")
    ]
    images = [
        {"names": [f"registry.test/team/image-{n}@sha256:{'ab' * 32}"], "sizeBytes": 10**8 + n}
        for n in range(16)
    ]
    return {
        "metadata": {
            "name": name,
            "uid": f"{chance.randrange(16**32):032x}",
            "resourceVersion": str(number + 1),
            "creationTimestamp": "2026-11-01T10:00:00Z",
            "labels": labels,
            "annotations": {"node.alpha.kubernetes.io/ttl": "0"},
            "managedFields": managed(6),
        },
        "spec": {"providerID": f"gce://p/z/{name}", "taints": [{"key": "nvidia.com/gpu"}]},
        "status": {
            "capacity": resources,
            "allocatable": resources,
            "conditions": conditions,
            "addresses": [
                {"type": "InternalIP", "address": f"10.{number >> 8 & 255}.{number & 255}.7"}
            ],
            "nodeInfo": {
                "kubeletVersion": "v1.36.2",
                "kernelVersion": "6.8.0",
                "osImage": "Ubuntu",
            },
            "images": images,
        },
    }


def pod(number: int, chance: random.Random, version: int) -> dict[str, Any]:
    """A training pod."""
    env = [{"name": f"SETTING_{n}", "value": f"value-{n}"} for n in range(30)]
    mounts = [{"name": f"v{n}", "mountPath": f"/mnt/data/volume-{n}"} for n in range(10)]
    container = {
        "name": "worker",
        "image": "registry.test/team/train:1.2.3",
        "env": env,
        "volumeMounts": mounts,
        "resources": {"limits": {"nvidia.com/gpu": "8"}, "requests": {"nvidia.com/gpu": "8"}},
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 10},
    }
    conditions = [
        {"type": kind, "status": "True", "lastTransitionTime": "2026-11-30T10:00:00Z"}
        for kind in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
    ]
    state = {"running": {"startedAt": "2026-11-30T10:00:00Z"}}
    address = f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
    return {
        "metadata": {
            "name": f"train-{number // 8:05d}-worker-{number % 8}-{chance.randrange(16**5):05x}",
            "namespace": "bench",
            "uid": f"{chance.randrange(16**32):032x}",
            "resourceVersion": str(version),
            "creationTimestamp": "2026-11-30T10:00:00Z",
            "labels": {"app": "train", "job-name": f"train-{number // 8:05d}", "team": "research"},
            "annotations": {"example.test/checks": '[{"name":"dcgm"},{"name":"nccl"}]'},
            "ownerReferences": [
                {
                    "apiVersion": "batch/v1",
                    "kind": "Job",
                    "name": "train",
                    "uid": "u",
                    "controller": True,
                }
            ],
            "managedFields": managed(10),
        },
        "spec": {
            "nodeName": f"node-{number // 8:05d}",
            "schedulerName": "default-scheduler",
            "restartPolicy": "Never",
            "containers": [container],
            "volumes": [{"name": f"v{n}", "emptyDir": {}} for n in range(10)],
            "tolerations": [{"key": f"k{n}", "operator": "Exists"} for n in range(4)],
        },
        "status": {
            "phase": "Running",
            "podIP": address,
            "podIPs": [{"ip": address}],
            "conditions": conditions,
            "containerStatuses": [
                {"name": "worker", "ready": True, "state": state, "restartCount": 0}
            ],
        },
    }


def compact(document: object) -> bytes:
    """JSON as the API server writes it."""
    return json.dumps(document, separators=(",", ":")).encode()


def pages(kind: str, objects: list[bytes]) -> list[bytes]:
    """The pages of a list."""
    made = []
    for start in range(0, len(objects), PAGE):
        following = start + PAGE
        metadata = {"resourceVersion": "1000000"}
        if following < len(objects):
            metadata["continue"] = str(following // PAGE)
        head = compact({"kind": f"{kind}List", "apiVersion": "v1", "metadata": metadata})
        items = b",".join(objects[start:following])
        made.append(head[:-1] + b',"items":[' + items + b"]}\n")
    return made or [compact({"metadata": {"resourceVersion": "1000000"}, "items": []})]


def serve(nodes: int, pods: int, events: int) -> None:
    """The server: prepares everything, prints its address, then copies bytes until it is ended."""
    import asyncio

    from aiohttp import web

    chance = random.Random(1)
    node_pages = pages("Node", [compact(node(number, chance)) for number in range(nodes)])
    pod_objects = [pod(number, chance, number + 1) for number in range(pods)]
    pod_pages = pages("Pod", [compact(found) for found in pod_objects])
    watched = pod(0, chance, 1)
    lines = []
    for number in range(events):
        watched["metadata"]["resourceVersion"] = str(2_000_000 + number)
        lines.append(compact({"type": "MODIFIED", "object": watched}))
    lines.append(compact({"type": "DELETED", "object": watched}) + b"\n")
    sizes = [len(b"".join(node_pages)) // max(1, nodes), len(lines[0])]
    stream = b"\n".join(lines)
    del pod_objects, lines
    first = pages("Pod", [compact(watched)])[0].replace(b'"2', b'"1', 1)

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        if request.query.get("watch"):
            response = web.StreamResponse(headers={"Content-Type": "application/json"})
            try:
                await response.prepare(request)
            except ConnectionError:
                return response  # the client had what it wanted
            if "bench" in request.path:
                for start in range(0, len(stream), 1 << 18):
                    await response.write(stream[start : start + (1 << 18)])
            await asyncio.sleep(60)
            return response
        page = int(request.query.get("continue") or 0)
        body = b'{"minor":"36"}'
        if request.path.endswith("nodes"):
            body = node_pages[page]
        elif request.path.endswith("namespaces/bench/pods"):
            body = first
        elif request.path.endswith("pods"):
            body = pod_pages[page]
        return web.Response(body=body, content_type="application/json")

    async def main() -> None:
        runner = web.ServerRunner(web.Server(handle))
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        print(json.dumps({"port": runner.addresses[0][1], "sizes": sizes}), flush=True)
        await asyncio.Event().wait()

    asyncio.run(main())


def measure(task: str, server: str, runs: int) -> dict[str, float]:
    """The medians of *runs* fresh clients."""
    results = []
    for _ in range(runs):
        command = [sys.executable, "-c", _CHILD, task, server, str(SOURCE)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        results.append(json.loads(done.stdout))
    return {key: statistics.median(found[key] for found in results) for key in results[0]}


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description="cost of large collections")
    parser.add_argument("--nodes", type=int, default=10_000)
    parser.add_argument("--pods", type=int, default=20_000)
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if importlib.util.find_spec("aiohttp") is None:
        sys.exit('bench_kube: needs aiohttp: pip install "aicr[cluster]"')
    sys.path.insert(0, str(SOURCE))
    if options.serve:
        serve(options.nodes, options.pods, options.events)
        return
    command = [sys.executable, __file__, "--serve"]
    for name in ("nodes", "pods", "events"):
        command += [f"--{name}", str(getattr(options, name))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        started = json.loads(server.stdout.readline())
        try:
            report(options, f"http://127.0.0.1:{started['port']}", started["sizes"])
        finally:
            server.terminate()


def report(options: argparse.Namespace, server: str, sizes: list[int]) -> None:
    """Every row of the table."""
    print(
        f"a node {sizes[0]} bytes, a watch event {sizes[1]} bytes; medians of {options.runs} runs"
    )
    print("| what | wall | CPU | peak memory | of that before | target |")
    print("|---|---|---|---|---|---|")
    tasks = {
        "list_nodes": (f"list {options.nodes} nodes as projections", "0.3 s, 60 MiB"),
        "list_documents": (f"list {options.nodes} nodes as documents", "none"),
        "cache": (f"cache {options.pods} pods", "150 MiB"),
    }
    for task, (what, target) in tasks.items():
        found = measure(task, server, options.runs)
        print(
            f"| {what} | {found['wall']:.2f} s | {found['cpu']:.2f} s | {found['peak']:.0f} MiB "
            f"| {found['base']:.0f} MiB | {target} |"
        )
    found = measure("watch", server, options.runs)
    each = 1e6 / max(1, found["count"])
    print(
        f"| one of {found['count']:.0f} watch events | {found['wall'] * each:.1f} µs "
        f"| {found['cpu'] * each:.1f} µs | {found['peak']:.0f} MiB | {found['base']:.0f} MiB | 40 µs |"
    )


if __name__ == "__main__":
    main()
