"""How long a large snapshot takes to take, and to read and fingerprint, and how much memory.

Run: ``python benchmarks/bench_snapshot.py [--nodes 20000] [--runs 5] [--seed 1] [--take-nodes 5000]
[--take-pods 20000]``. The document that is read is made from the seed in a temporary directory; every
measurement is a fresh interpreter, so that imports and peak memory count. Prints one table row for
each form of the same document: our own YAML, YAML with an anchor in it (which needs the full
reader), and JSON.

Then a cluster is measured (extra `cluster`): a server in a process of its own sends nodes and pods of
about 7 kB each over loopback (see bench_kube). *collected* is until all measurements are there,
*staged* until the parts for the agent's ConfigMaps are made as well, *written* until the YAML text is.

Targets: for 20,000 nodes YAML 2.9 s, JSON 0.34 s, read and fingerprinted; 5,000 nodes and 20,000 pods
collected in 10 s and 300 MiB.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from benchmarks import bench_kube

SOURCE: Final = Path(__file__).resolve().parent.parent / "src"
TARGETS: Final = {"yaml": 2.9, "anchor.yaml": 2.9, "json": 0.34}
TAKE_TARGET: Final = 10.0

_CHILD: Final = """
import resource, sys, time
started = time.perf_counter()
sys.path.insert(0, sys.argv[1])
from aicr.snapshot.document import load
from aicr.snapshot.fingerprint import fingerprint
with open(sys.argv[2], encoding="utf-8") as file:
    document, _ = load(file.read(), sys.argv[2])
found = fingerprint(document)
elapsed = time.perf_counter() - started
assert found["nodes"] == int(sys.argv[3]), found
assert found["accelerator"] == "h100", found
print(elapsed, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


_TAKER: Final = """
import asyncio, json, resource, sys, time
started = time.perf_counter()
server, source = sys.argv[1:3]
sys.path.insert(0, source)
from datetime import UTC, datetime
from aicr.collectors import staging, taking
from aicr.kube import connect_to
from aicr.kube.config import ClusterConfig
from aicr.yamlio.write import dump

async def main():
    async with connect_to(ClusterConfig(server)) as client:
        plan = taking.Plan(machine=None, cluster=client, required=taking.REQUIRED_OF_CLUSTER)
        return await taking.take(plan, now=lambda: datetime.now(UTC))

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

times = {}
taken = asyncio.run(main())
assert not taken.missing, taken.missing
times["collected"] = (time.perf_counter() - started, peak(), 0)
parts = staging.pack(taken.document)
times["staged"] = (time.perf_counter() - started, peak(), sum(map(len, parts)))
text = dump(taken.document)
times["written"] = (time.perf_counter() - started, peak(), len(text))
summary = taken.document["measurements"][-1]["subtypes"][-2]["data"]
print(json.dumps({"nodes": summary["node-count"], "times": times}))
"""


def make_snapshot(nodes: int, seed: int) -> dict[str, Any]:
    """A snapshot of a GKE-like cluster: labels and taints in both encodings."""
    chance = random.Random(seed)
    names = [f"gke-pool-{chance.randrange(16**8):08x}-{index:05d}" for index in range(nodes)]
    gpu = [name for index, name in enumerate(names) if index % 10]
    readings: dict[str, dict[str, list[str]]] = {
        "kubernetes.io/hostname": {name: [name] for name in names},
        "kubernetes.io/arch": {"amd64": names},
        "kubernetes.io/os": {"linux": names},
        "topology.kubernetes.io/region": {"us-central1": names},
        "cloud.google.com/gke-accelerator": {"nvidia-h100-80gb": gpu},
        "nvidia.com/gpu.product": {"NVIDIA-H100-80GB-HBM3": gpu},
        "nvidia.com/gpu.count": {"8": gpu},
        "nvidia.com/gpu.present": {"true": gpu},
    }
    for label, values in (
        ("topology.kubernetes.io/zone", 4),
        ("node.kubernetes.io/instance-type", 6),
        ("cloud.google.com/gke-nodepool", 40),
        ("topology.gke.io/block", 400),
    ):
        spread: dict[str, list[str]] = {}
        for name in names:
            spread.setdefault(f"v{chance.randrange(values)}", []).append(name)
        readings[label] = spread
    measurements = [
        _measurement("K8s", server={"version": "v1.34.3-gke.1318000"}, node={"provider": "gke"}),
        _measurement("OS", release={"ID": "cos", "VERSION_ID": "121"}),
        _measurement("GPU", hardware={"gpu-present": True, "gpu-count": 8}),
        _measurement("NodeTopology", summary={"node-count": nodes, "label-count": len(readings)}),
    ]
    taints = {"nvidia.com/gpu": {"present": gpu}}
    measurements[-1]["subtypes"] += [
        {"subtype": "label", "data": _legacy(readings), "items": _items(readings, "")},
        {
            "subtype": "taint",
            "data": {"nvidia.com/gpu": f"NoSchedule|present|{','.join(gpu)}"},
            "items": _items(taints, "NoSchedule"),
        },
    ]
    return {
        "kind": "Snapshot",
        "apiVersion": "aicr.run/v1",
        "metadata": {"timestamp": "2026-01-01T00:00:00Z", "source-node": names[0]},
        "measurements": measurements,
    }


def _measurement(type_: str, **subtypes: dict[str, Any]) -> dict[str, Any]:
    entries = [{"subtype": name, "data": data} for name, data in subtypes.items()]
    return {"type": type_, "subtypes": entries}


def _legacy(readings: dict[str, dict[str, list[str]]]) -> dict[str, str]:
    return {
        (key if len(values) == 1 else f"{key}.{value}"): f"{value}|{','.join(nodes)}"
        for key, values in readings.items()
        for value, nodes in values.items()
    }


def _items(readings: dict[str, dict[str, list[str]]], effect: str) -> list[dict[str, Any]]:
    return [
        {
            "context": {"key": key, "value": value} | ({"effect": effect} if effect else {}),
            "data": {
                "node-count": len(nodes),
                "node-list": ",".join(nodes),
                "truncated": False,
            },
        }
        for key, values in readings.items()
        for value, nodes in values.items()
    ]


def _write(document: dict[str, Any], folder: Path) -> dict[str, Path]:
    sys.path.insert(0, str(SOURCE))
    from aicr.yamlio.write import dump

    files = {name: folder / f"snapshot.{name}" for name in TARGETS}
    files["yaml"].write_text(dump(document), encoding="utf-8")
    flow = json.dumps(document["metadata"])
    rest = {key: value for key, value in document.items() if key != "metadata"}
    files["anchor.yaml"].write_text(f"{dump(rest)}metadata: &m {flow}\n", encoding="utf-8")
    files["json"].write_text(json.dumps(document, indent=2), encoding="utf-8")
    return files


def _measure(path: Path, nodes: int) -> tuple[float, float]:
    command = [sys.executable, "-I", "-c", _CHILD, str(SOURCE), str(path), str(nodes)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, peak = done.stdout.split()
    return float(seconds), float(peak)


def serve(nodes: int, pods: int) -> None:
    """The cluster: prepares everything, prints its port, then copies bytes until it is ended."""
    import asyncio

    from aiohttp import web

    chance = random.Random(1)
    made = [bench_kube.compact(bench_kube.node(number, chance)) for number in range(nodes)]
    answers = {"/api/v1/nodes": bench_kube.pages("Node", made)}
    made = [bench_kube.compact(bench_kube.pod(number, chance, number)) for number in range(pods)]
    answers["/api/v1/pods"] = bench_kube.pages("Pod", made)
    del made
    storage = {
        "resource": "storageclasses",
        "responseKind": {"kind": "StorageClass"},
        "scope": "Cluster",
        "verbs": ["list"],
    }
    version = {"version": "v1", "freshness": "Current", "resources": [storage]}
    groups = [{"metadata": {"name": "storage.k8s.io"}, "versions": [version]}]
    discovery = {"kind": "APIGroupDiscoveryList", "items": groups}
    plain = {
        "/version": {"gitVersion": "v1.36.2", "platform": "linux/amd64"},
        "/api": {"kind": "APIGroupDiscoveryList", "items": []},
        "/apis": discovery,
    }

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        pages = answers.get(request.path) or [bench_kube.compact(plain.get(request.path, {}))]
        page = int(request.query.get("continue") or 0)
        return web.Response(body=pages[page], content_type="application/json")

    async def run() -> None:
        runner = web.ServerRunner(web.Server(handle))
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        print(runner.addresses[0][1], flush=True)
        await asyncio.Event().wait()

    asyncio.run(run())


def measure_taking(nodes: int, pods: int, runs: int) -> None:
    """Measure a cluster and print a row for each stage."""
    command = [sys.executable, __file__, "--serve", f"--take-nodes={nodes}", f"--take-pods={pods}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        address = f"http://127.0.0.1:{server.stdout.readline().strip()}"
        try:
            results = [_take(address, nodes) for _ in range(runs)]
        finally:
            server.terminate()
    for stage in ("collected", "staged", "written"):
        seconds = [found[stage][0] for found in results]
        peak = max(found[stage][1] for found in results)
        print(
            f"{f'take {nodes}+{pods} {stage}':<28}{statistics.median(seconds):>10.3f}"
            f"{min(seconds):>10.3f}{TAKE_TARGET if stage == 'collected' else 0:>10.2f}{peak:>10.0f}"
            f"{results[0][stage][2] / 1e6:>10.1f}"
        )


def _take(address: str, nodes: int) -> dict[str, list[float]]:
    command = [sys.executable, "-c", _TAKER, address, str(SOURCE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"bench_snapshot: {done.stderr}")
    result = json.loads(done.stdout)
    assert result["nodes"] == nodes, result
    times: dict[str, list[float]] = result["times"]
    return times


def main() -> None:
    """Make the document, measure each format and the taking of one, print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--take-nodes", type=int, default=5_000)
    parser.add_argument("--take-pods", type=int, default=20_000)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve(arguments.take_nodes, arguments.take_pods)
        return
    columns = ("median s", "min s", "target s", "peak MiB", "size MB")
    print(f"{'name':<28}" + "".join(f"{column:>10}" for column in columns))
    with tempfile.TemporaryDirectory() as folder:
        files = _write(make_snapshot(arguments.nodes, arguments.seed), Path(folder))
        for name, path in files.items():
            runs = [_measure(path, arguments.nodes) for _ in range(arguments.runs)]
            seconds = [run[0] for run in runs]
            print(
                f"{f'snapshot {name} {arguments.nodes}':<28}{statistics.median(seconds):>10.3f}"
                f"{min(seconds):>10.3f}{TARGETS[name]:>10.2f}{max(run[1] for run in runs):>10.0f}"
                f"{path.stat().st_size / 1e6:>10.1f}"
            )
    if importlib.util.find_spec("aiohttp") is None:
        print('taking a snapshot is not measured: it needs pip install "aicr[cluster]"')
        return
    measure_taking(arguments.take_nodes, arguments.take_pods, arguments.runs)


if __name__ == "__main__":
    main()
