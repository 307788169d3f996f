"""How long a large snapshot takes to read and fingerprint, and how much memory.

Run: ``python benchmarks/bench_snapshot.py [--nodes 20000] [--runs 5] [--seed 1]``. The document is
made from the seed in a temporary directory; every measurement is a fresh interpreter, so that
imports and peak memory count. Prints one table row for each form of the same document: our own
YAML, YAML with an anchor in it (which needs the full reader), and JSON.

Targets (for 20,000 nodes): YAML 2.9 s, JSON 0.34 s, read and fingerprinted.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

SOURCE: Final = Path(__file__).resolve().parent.parent / "src"
TARGETS: Final = {"yaml": 2.9, "anchor.yaml": 2.9, "json": 0.34}

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


def main() -> None:
    """Make the document, measure each format, print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
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


if __name__ == "__main__":
    main()
