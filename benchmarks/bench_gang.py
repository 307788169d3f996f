"""What a large gang costs: admissions, ConfigMap writes, and the time from the last address to complete.

    python -m benchmarks.bench_gang [--pods 1024] [--spread 5] [--replicas 2] [--runs 3]

Run from the root of a checkout; needs the extras `cluster` and `webhook`. Pods are admitted by the real
admission (AdmissionReview in, patch applied), stored on the fake API server of the tests, and get their
addresses in random order over so many seconds, as from kubelets. Replicas share one server, and server,
kubelets and replicas share one event loop, so times are upper bounds. Nothing throttles the client.

Targets: none of the pods without checks, complete within 10 s of the last address, fewer than 40 writes of
the ConfigMap, each admission far below the 10 s of the webhook.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

from tests.kube.fakeapi import SERVED
from tests.kube.loopback import cluster
from tests.preflight_gang.admitting import Silent, patched, review
from tests.preflight_gang.builders import VOLCANO, VOLCANO_KEY
from tests.preflight_gang.steady import SteadyApi
from tests.preflight_gang.world import VOLCANO_GROUP, volcano_group

from aicr.kube.client import Client
from aicr.kube.kinds import CONFIG_MAP, POD
from aicr.kube.lease import Terms
from aicr.kube.timeouts import Timeouts
from aicr.preflight.admission.handler import Admission
from aicr.preflight.admission.prepared import prepare
from aicr.preflight.config import Config, parse
from aicr.preflight.controller.judging import PREFLIGHT_CONFIG
from aicr.preflight.controller.service import Gangs
from aicr.preflight.gang import configmap as cm

MAP: Final = "preflight-volcano-team-a-train"
MOST_WRITES: Final = 40
LONGEST: Final = 10.0
#: Admissions in flight at once, as an API server with many writers has them.
WRITERS: Final = 64
TERMS: Final = Terms(duration=15.0, deadline=10.0, retry=2.0)
CHECKS: Final = ("preflight-dcgm-diag", "preflight-nccl-loopback", "preflight-nccl-allreduce")


@dataclass
class Figures:
    """What one run took."""

    admitting: float
    slowest: float
    unchecked: int
    complete_after: float
    writes: int
    requests: int
    cpu: float

    def line(self) -> str:
        """For people."""
        return (
            f"admitted in {self.admitting:5.2f} s (slowest {self.slowest * 1000:4.0f} ms), "
            f"{self.unchecked} unchecked; complete {self.complete_after:5.2f} s after the last "
            f"address; {self.writes} writes of the ConfigMap, {self.requests} requests of ours; "
            f"{self.cpu:.2f} s of CPU, the server's included"
        )

    def met(self) -> bool:
        """Whether the targets were."""
        return (
            self.unchecked == 0
            and self.complete_after <= LONGEST
            and self.writes < MOST_WRITES
            and self.slowest < LONGEST
        )


def configuration() -> Config:
    """Three checks, Volcano, coordination on."""
    entries = [{"name": name, "image": f"test.local/{name}"} for name in CHECKS]
    return parse(
        {
            "initContainers": entries,
            "gangCoordination": {"enabled": True},
            "gangDiscovery": VOLCANO,
        }
    )


def pod(number: int) -> dict[str, Any]:
    """A member, as a Job controller creates it."""
    gpus = {"nvidia.com/gpu": "8"}
    container = {"name": "main", "image": "x", "resources": {"limits": gpus, "requests": gpus}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"train-{number}", "annotations": {VOLCANO_KEY: "train"}},
        "spec": {"containers": [container]},
    }


async def admit(admission: Admission, api: SteadyApi, number: int) -> tuple[float, bool]:
    """Admit and store one pod: (seconds, whether it has its checks and the gang's ConfigMap)."""
    document = pod(number)
    began = time.perf_counter()
    reply = json.loads(await admission.review(review(document, "team-a")))["response"]
    took = time.perf_counter() - began
    if not reply["allowed"]:
        raise SystemExit(f"refused: {reply}")
    patch = json.loads(base64.b64decode(reply.get("patch", base64.b64encode(b"[]"))))
    stored = patched(document, patch)
    injected = [one["name"] for one in stored["spec"].get("initContainers", [])]
    volumes = [one.get("configMap", {}).get("name") for one in stored["spec"].get("volumes", [])]
    stored["metadata"] |= {
        "namespace": "team-a",
        "uid": f"00000000-0000-4000-8000-{number:012d}",
        "creationTimestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }
    await api.store("ADDED", POD, stored)
    return took, tuple(injected) == CHECKS and MAP in volumes


@asynccontextmanager
async def replicas(client: Client, count: int) -> AsyncIterator[list[Gangs]]:
    """So many replicas, ready and with a leader."""
    made = [
        Gangs(client, configuration(), namespace="preflight", identity=f"r{n}", terms=TERMS)
        for n in range(count)
    ]
    tasks = []
    try:
        for gangs in made:
            await gangs.start()
            tasks.append(asyncio.create_task(gangs.run()))
        while not (any(gangs.leads for gangs in made) and not any(g.unready() for g in made)):
            await asyncio.sleep(0.01)
        yield made
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def measure(pods: int, spread: float, count: int) -> Figures:
    """One gang from its first admission to its complete membership."""
    api = SteadyApi(resources=[*SERVED, PREFLIGHT_CONFIG, VOLCANO_GROUP])
    await api.store("ADDED", VOLCANO_GROUP, volcano_group(pods))
    times = replace(Timeouts(), backoff=0.1)
    async with cluster(api, timeouts=times) as (_, client), replicas(client, count) as made:
        meter = Silent()
        prepared = prepare(configuration())
        doors = [Admission(prepared, meter=meter, gangs=gangs) for gangs in made]
        seen = len(api.seen)
        cpu, began = time.process_time(), time.perf_counter()
        gate = asyncio.Semaphore(WRITERS)

        async def one(number: int) -> tuple[float, bool]:
            async with gate:
                return await admit(doors[number % len(doors)], api, number)

        answers = await asyncio.gather(*(one(number) for number in range(pods)))
        admitting = time.perf_counter() - began
        order = list(range(pods))
        random.Random(1).shuffle(order)
        for place, number in enumerate(order):
            document = api.objects[POD.qualified]["team-a", f"train-{number}"]
            ip = f"10.{number // 65536}.{number // 256 % 256}.{number % 256}"
            status = {"phase": "Pending", "podIP": ip, "podIPs": [{"ip": ip}]}
            await api.store("MODIFIED", POD, {**document, "status": status})
            due = began + admitting + spread * (place + 1) / pods
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
        last = time.perf_counter()
        while True:
            state = cm.read(api.objects[CONFIG_MAP.qualified].get(("team-a", MAP)))
            if state.complete:
                break
            if time.perf_counter() - last > 120:
                raise SystemExit(f"not complete: {len(state.members)} of {state.expected}")
            await asyncio.sleep(0.005)
        after = time.perf_counter() - last
        assert state.expected == len(state.members) == pods
        ours = [line for line in api.seen[seen:] if "watch=true" not in line]
        writes = [line for line in ours if "/configmaps" in line and not line.startswith("GET")]
        return Figures(
            admitting,
            max(took for took, _ in answers),
            sum(not checked for _, checked in answers) + meter.failures,
            after,
            len(writes),
            len(ours),
            time.process_time() - cpu,
        )


def main() -> None:
    """Measure and print; exit 1 if a target was missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=1024)
    parser.add_argument("--spread", type=float, default=5.0)
    parser.add_argument("--replicas", type=int, default=2)
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    print(
        f"{arguments.pods} pods, {arguments.replicas} replicas, addresses in {arguments.spread:g} s"
    )
    met = True
    for _ in range(arguments.runs):
        figures = asyncio.run(measure(arguments.pods, arguments.spread, arguments.replicas))
        met = met and figures.met()
        print(figures.line())
    print("targets met" if met else "a target was missed")
    raise SystemExit(0 if met else 1)


if __name__ == "__main__":
    main()
