"""What the webhook adds to the creation of a pod on a real API server.

    python -m benchmarks.bench_admission_real [--pods 100] [--rounds 6]

Run from the root of a checkout as root; it needs what `make test-cluster` needs. Pods of 8 KB are created
one after the other by one client, in turns in a namespace that has not opted in, in one that has, and as
members of one gang in that one, so that other work on the machine hits all three alike. The webhook is
`aicr preflight serve` with three checks; API server, etcd, webhook and client share the processors. The API
server's own histogram says how long it waited for the webhook.
"""

from __future__ import annotations

import argparse
import itertools
import re
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from benchmarks.bench_admission import percentile, pod
from tests.cluster.preflight_release import native_group
from tests.cluster.test_preflight_webhook import installed
from tests.controlplane.client import Client
from tests.controlplane.fixtures import make_namespace
from tests.controlplane.plane import ControlPlane

PLAIN, TEAM = "plain", "team"
NAMES: Final[Iterator[int]] = itertools.count()
FIGURE = "apiserver_admission_webhook_admission_duration_seconds"


def document(gang: bool) -> dict[str, Any]:
    """A pod that nobody schedules."""
    made = pod()
    made["metadata"] = {"name": f"bench-{next(NAMES)}", "labels": {"app": "train"}}
    made["spec"]["schedulerName"] = "nobody"
    if gang:
        made["spec"]["schedulingGroup"] = {"podGroupName": "train"}
    return made


def created(api: Client, namespace: str, gang: bool, checks: int) -> float:
    """Create a pod; the seconds that it took."""
    made = document(gang)
    began = time.perf_counter()
    stored = api.create(made, namespace)
    took = time.perf_counter() - began
    if len(stored["spec"].get("initContainers") or []) != checks:
        raise SystemExit(f"{namespace}: not {checks} checks")
    return took


def waited(api: Client) -> tuple[float, int]:
    """Seconds and times that the API server has waited for the webhook."""
    text = api.request("GET", "/metrics").decode()
    found = [0.0, 0.0]
    for index, part in enumerate(("sum", "count")):
        for line in re.findall(rf"^{FIGURE}_{part}\{{.*\}} .*$", text, re.MULTILINE):
            if 'name="preflight.nvsentinel.nvidia.com"' in line:
                found[index] += float(line.rpartition(" ")[2])
    return found[0], int(found[1])


def deciding(text: str) -> float:
    """Seconds from a request's last byte to the reply, on average, as the webhook counts them."""
    found = dict(re.findall(r"^preflight_webhook_latency_seconds_(sum|count) (.*)$", text, re.M))
    return float(found["sum"]) / float(found["count"])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=6)
    arguments = parser.parse_args()
    kinds = [
        ("not opted in", PLAIN, False, 0),
        ("opted in", TEAM, False, 3),
        ("opted in, a gang", TEAM, True, 3),
    ]
    times: dict[str, list[float]] = {kind[0]: [] for kind in kinds}
    more: dict[str, Any] = {"gangDiscovery": {}, "gangCoordination": {"enabled": True}}
    with ControlPlane() as plane, tempfile.TemporaryDirectory() as folder:
        api = plane.client()
        for name in (PLAIN, TEAM):
            make_namespace(api, name)
        native_group(api, TEAM, arguments.pods)
        kubeconfig = plane.kubeconfig_for("preflight-webhook", ["system:masters"])
        flags = ("--kubeconfig", str(kubeconfig))
        with installed(api, Path(folder), TEAM, *flags, gpuDraEnabled=True, **more) as webhook:
            while webhook.ask("/readyz") != (200, b"ok"):
                time.sleep(0.05)
            for _, namespace, gang, checks in kinds:
                for _ in range(10):
                    created(api, namespace, gang, checks)
            before = waited(api)
            for _ in range(arguments.rounds):
                for name, namespace, gang, checks in kinds:
                    times[name] += [
                        created(api, namespace, gang, checks) for _ in range(arguments.pods)
                    ]
            after = waited(api)
            inside = deciding(webhook.metrics())
    base = percentile(times[kinds[0][0]], 0.5)
    print(
        f"creation of a pod of 8 KB, {len(times[kinds[0][0]])} of each kind, one at a time, in ms"
    )
    print(f"{'':<18}{'p10':>8}{'p50':>8}{'p90':>8}{'p99':>8}{'added at p50':>14}")
    for name, found in times.items():
        parts = [percentile(found, part) for part in (0.1, 0.5, 0.9, 0.99)]
        print(f"{name:<18}" + "".join(f"{one:8.2f}" for one in parts) + f"{parts[1] - base:14.2f}")
    count = after[1] - before[1]
    mean = (after[0] - before[0]) / count * 1000
    print(
        f"the API server waited for the webhook {count} times, {mean:.2f} ms on average; the webhook "
        f"itself took {inside * 1000:.2f} ms, the rest is TLS, HTTP and waiting for a processor"
    )


if __name__ == "__main__":
    main()
