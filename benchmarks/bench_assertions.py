"""What judging objects costs: evaluations a second, and a check on many pods through the client.

Run: ``python benchmarks/bench_assertions.py [--pods 5000] [--runs 5]``.
Targets: 10,000 evaluations a second of a pod-sized object; 5,000 pods checked in 2 s, with one list a poll.

The second part runs a health check on a client whose transport has the pages of the answer at hand: it
costs what this side costs (decoding, judging), and counts what is asked.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from aicr.assertions import tree
from aicr.assertions.document import read_check
from aicr.assertions.runner import run_check
from aicr.kube.client import Client
from aicr.kube.config import ClusterConfig
from aicr.kube.reader import PAGE
from aicr.kube.request import Request

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


class Pages:
    """A transport that answers lists of pods with prepared pages, and counts lists and requests."""

    def __init__(self, pods: list[dict[str, Any]]) -> None:
        starts = range(0, len(pods), PAGE)
        self._bodies = [
            json.dumps(
                {
                    "kind": "PodList",
                    "apiVersion": "v1",
                    "metadata": {
                        "resourceVersion": "1",
                        "continue": str(number + 1) if number + 1 < len(starts) else "",
                    },
                    "items": pods[start : start + PAGE],
                }
            ).encode()
            for number, start in enumerate(starts)
        ]
        self.lists = self.requests = 0

    async def send(self, request: Request, *, timeout: float | None = None) -> bytes:
        """The page that is asked for."""
        self.requests += 1
        token = dict(request.query).get("continue", "")
        self.lists += not token
        return self._bodies[int(token or 0)]

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"a check must only list, and asked for {name}")


def check_all(pods: list[dict[str, Any]], runs: int) -> None:
    """Check all pods through the client and print what it took."""
    resource = {key: value for key, value in SICK.items() if key != "status"}
    stuck = {**resource, "status": {WAITING: True}}
    test = {
        "apiVersion": "chainsaw.kyverno.io/v1alpha1",
        "kind": "Test",
        "metadata": {"name": "bench"},
        "spec": {"steps": [{"try": [{"error": {"resource": stuck}}]}]},
    }
    seconds, transport = [], Pages(pods)
    for _ in range(runs):
        transport.lists = transport.requests = 0
        client = Client(transport, ClusterConfig("http://bench"))
        start = time.perf_counter()
        check = read_check(json.dumps(test), source="bench", component="bench")
        result = asyncio.run(run_check(client, check))
        seconds.append(time.perf_counter() - start)
        assert result["passed"], result
        assert result["output"][0].endswith(f"{len(pods)} objects exist, none matched")
        assert transport.lists == 1
    print(
        f"check:    {len(pods)} pods in {statistics.median(seconds):.3f} s through the client, "
        f"1 list ({transport.requests} pages) a poll"
    )


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
    check_all(pods, options.runs)


if __name__ == "__main__":
    main()
