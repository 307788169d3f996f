"""What judging objects costs: evaluations a second, and a list of many pods.

Run: ``python benchmarks/bench_assertions.py [--pods 5000] [--runs 5]``.
Targets: 10,000 evaluations a second of a pod-sized object; 5,000 pods judged in 2 s.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from aicr.assertions import tree

WAITING = (
    "((containerStatuses || `[]`)[?state.waiting.reason == 'CrashLoopBackOff' || "
    "state.waiting.reason == 'ImagePullBackOff'] | length(@) > `0`)"
)
ASSERTION: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"namespace": "ns"},
    "status": {"phase": "Running", WAITING: False},
}
SICK: dict[str, Any] = {**ASSERTION, "status": {"phase": "Pending", WAITING: True}}


def pod(number: int) -> dict[str, Any]:
    """A pod of the size that real ones have: three containers, mounts, variables, conditions."""
    containers = [
        {
            "name": f"c{index}",
            "image": f"registry.example.com/team/image-{index}:1.{number}",
            "env": [{"name": f"V{item}", "value": "x" * 20} for item in range(10)],
            "volumeMounts": [{"name": f"v{item}", "mountPath": f"/m/{item}"} for item in range(5)],
            "resources": {"limits": {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "8"}},
        }
        for index in range(3)
    ]
    statuses = [
        {"name": f"c{index}", "ready": True, "restartCount": 0, "state": {"running": {}}}
        for index in range(3)
    ]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"pod-{number}", "namespace": "ns", "labels": {"app": "x"}},
        "spec": {"nodeName": f"node-{number % 100}", "containers": containers},
        "status": {"phase": "Running", "containerStatuses": statuses},
    }


def main() -> None:
    """Measure and print medians."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--pods", type=int, default=5000)
    arguments.add_argument("--runs", type=int, default=5)
    options = arguments.parse_args()
    pods = [pod(number) for number in range(options.pods)]
    for name, assertion, passes in (("matching", ASSERTION, True), ("failing", SICK, False)):
        seconds = []
        for _ in range(options.runs):
            start = time.perf_counter()
            parsed = tree.parse(assertion)
            verdicts = {parsed.judge(each).passed for each in pods}
            seconds.append(time.perf_counter() - start)
            assert verdicts == {passes}
        median = statistics.median(seconds)
        rate = options.pods / median
        print(f"{name}: {options.pods} pods in {median:.3f} s, {rate:,.0f} evaluations a second")


if __name__ == "__main__":
    main()
