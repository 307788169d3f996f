"""What a large gang costs on a real API server with the real scheduler.

    python -m benchmarks.bench_gang_real [--pods 1024] [--writers 8]

Run from the root of a checkout as root; it needs what `make test-cluster` needs. The pods ask for a GPU
each, go through the real admission in one replica (with the chart's rights), are created by so many
writers at once, scheduled as one native gang (PodGroup with minCount of all), and said to run by hollow
nodes. The control plane shares the processors with the replica, so times are mostly its own.
`bench_gang.py` measures the same against the fake API server.

Targets: no pod without checks; complete within 10 s of the last address; fewer than 40 writes of the
ConfigMap.
"""

from __future__ import annotations

import argparse
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any, Final

from tests.cluster.gang_replicas import Replica, grant, state
from tests.cluster.workloads import container, pod
from tests.controlplane.client import Client, eventually
from tests.controlplane.fixtures import make_namespace
from tests.controlplane.nodes import HOLLOW, Node
from tests.controlplane.plane import ControlPlane

from aicr.preflight import names
from aicr.preflight.gang.naming import config_map_name

NAMESPACE: Final = "bench"
PER_NODE: Final = 128
MOST_WRITES: Final = 40
LONGEST: Final = 10.0


def member(number: int) -> dict[str, Any]:
    """A pod of the gang, for hollow nodes."""
    gpu = {"limits": {"nvidia.com/gpu": "1"}}
    return pod(
        f"train-{number}",
        container("true", resources=gpu),
        schedulingGroup={"podGroupName": "train"},
        tolerations=[{"key": HOLLOW, "operator": "Exists"}],
    )


def unchecked(document: dict[str, Any], config_map: str) -> bool:
    """Whether a pod was admitted without its check or its gang's ConfigMap."""
    volumes = document["spec"].get("volumes") or []
    mounted = [one["configMap"]["name"] for one in volumes if one["name"] == names.GANG_VOLUME]
    return not document["spec"].get("initContainers") or mounted != [config_map]


def create(api: Client, replica: Replica, number: int) -> float:
    """Admit and create one pod; seconds of the admission."""
    began = time.perf_counter()
    admitted = replica.admit(member(number), NAMESPACE)
    took = time.perf_counter() - began
    api.create(admitted, NAMESPACE)
    return took


def measure(plane: ControlPlane, pods: int, writers: int) -> bool:
    """One gang; prints its figures and says whether the targets were met."""
    api = plane.client()
    make_namespace(api, NAMESPACE)
    name = config_map_name(f"kubernetes-{NAMESPACE}-train")
    group = {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "train"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": pods}}},
    }
    with Replica(grant(api, plane, NAMESPACE), NAMESPACE) as replica:
        api.create(group, NAMESPACE)
        began = time.perf_counter()
        with ThreadPoolExecutor(writers) as pool:
            took = list(pool.map(lambda number: create(api, replica, number), range(pods)))
        created = time.perf_counter() - began

        def complete() -> bool:
            return state(api, NAMESPACE, name).complete

        eventually("the gang to be complete", complete, 400, pause=0.05)
        done = time.perf_counter() - began
        found = api.list("Pod", NAMESPACE)
        without = sum(unchecked(one, name) for one in found)
        written = api.get("ConfigMap", name, NAMESPACE)
    last = max(
        datetime.fromisoformat(one["status"]["startTime"]).timestamp()
        for one in found
        if one["status"].get("startTime")
    )
    stamps = [
        datetime.fromisoformat(entry["time"]).timestamp()
        for entry in written["metadata"].get("managedFields", [])
    ]
    after = max(0.0, max(stamps) - last)
    print(
        f"{pods} pods: created in {created:.1f} s, slowest admission {max(took) * 1000:.0f} ms, "
        f"{without} unchecked; complete {done:.1f} s after the first, {after:.0f} s (whole seconds) "
        f"after the last address; {replica.writes()} writes of the ConfigMap"
    )
    return without == 0 and after <= LONGEST and replica.writes() < MOST_WRITES


def main() -> None:
    """Measure and print; exit 1 if a target was missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=1024)
    parser.add_argument("--writers", type=int, default=8)
    arguments = parser.parse_args()
    count = -(-arguments.pods // PER_NODE)
    nodes = [
        Node(f"hollow-{n}", pods=2 * PER_NODE, gpus=PER_NODE, cpu="256", hollow=True)
        for n in range(count)
    ]
    with ControlPlane(nodes) as plane:
        met = measure(plane, arguments.pods, arguments.writers)
    print("targets met" if met else "a target was missed")
    raise SystemExit(0 if met else 1)


if __name__ == "__main__":
    main()
