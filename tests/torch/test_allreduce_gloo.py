"""preflight-nccl-allreduce with torch itself: gangs of gloo processes through mounted ConfigMaps.

`make test-torch` runs these in an environment that sees Debian's python3-torch; elsewhere they are skipped.
Thresholds are far from what any machine gives, so that a busy one changes nothing.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.preflight_allreduce.mounted import Mounted, formed, names_of, with_port
from tests.preflight_health.receiver import receiving

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None,
    reason="torch is not installed here: make test-torch",
)
ROOT = Path(__file__).resolve().parents[2]
#: Passes on any machine: a MiB may take seconds.
EASY = "0.0001"
#: Missed only by a node that is held up by most of a second.
BETWEEN = "0.006"
HELD_UP = "0.8"


@dataclass
class Gang:
    """Processes of a gang, one a node."""

    mounted: Mounted
    port: int
    socket: str
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    logs: list[Path] = field(default_factory=list)

    def start(self, number: int, **variables: str) -> None:
        """Start a check on each node; `{node}` and `{next}` stand for its number."""
        for node, name in enumerate(names_of(number)):
            environ = {
                "PATH": os.environ["PATH"],
                "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
                "HOME": os.environ.get("HOME", "/"),
                "OMP_NUM_THREADS": "1",
                "GLOO_SOCKET_IFNAME": "lo",
                "POD_NAME": name,
                "POD_UID": f"uid-of-{name}",
                "NODE_NAME": f"node-{node}",
                "GANG_CONFIG_DIR": str(self.mounted.path),
                "GANG_TIMEOUT_SECONDS": "120",
                "AICR_LOG_FORMAT": "text",
                "NPROCS_PER_NODE": "1",
                "ALLREDUCE_BACKEND": "gloo",
                "MESSAGE_SIZES": "1M",
                "BENCHMARK_ITERS": "2",
                "WARMUP_ITERS": "1",
                "BW_THRESHOLD_GBPS": EASY,
                "PLATFORM_CONNECTOR_SOCKET": self.socket,
                **{key: value.format(node=node, next=node + 1) for key, value in variables.items()},
            }
            log = self.mounted.path.parent / f"log-{name}"
            self.logs.append(log)
            with log.open("wb") as file:
                argv = [sys.executable, "-m", "tests.torch.slowed_check"]
                self.processes.append(
                    subprocess.Popen(argv, cwd=ROOT, env=environ, stderr=file, stdout=file)
                )

    def codes(self) -> list[int]:
        """Exit codes of all."""
        return [process.wait(timeout=240) for process in self.processes]

    def log(self, node: int) -> str:
        """What a node logged."""
        return self.logs[node].read_text(errors="replace")

    def until(self, node: int, text: str) -> None:
        """Wait until a node's log holds a text."""
        deadline = time.monotonic() + 120
        while text not in self.log(node):
            assert time.monotonic() < deadline, self.log(node)
            time.sleep(0.1)


@contextmanager
def gang(tmp_path: Path) -> Iterator[tuple[Gang, list[Any]]]:
    """A gang and what its connector receives; every process is ended."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with receiving() as receiver:
        made = Gang(Mounted(tmp_path / "mounted"), port, receiver.path)
        try:
            yield made, receiver.events
        finally:
            for process in made.processes:
                if process.poll() is None:
                    process.kill()
                process.wait()


def ready(made: Gang, number: int) -> None:
    """The ConfigMap of a complete gang."""
    made.mounted.write(with_port(formed(number, ip="127.0.0.1"), made.port))


def shown(event: Any) -> tuple[str, bool, bool, list[str]]:
    """What decides about a node."""
    return event.nodeName, event.isHealthy, event.isFatal, list(event.errorCode)


@pytest.mark.covers("P-072", "P-192", "P-132")
@pytest.mark.parametrize("number", [2, 4, 8])
def test_a_sound_gang_passes(tmp_path: Path, number: int) -> None:
    """All exit 0; rank 0 alone tells it."""
    with gang(tmp_path) as (made, events):
        ready(made, number)
        made.start(number)
        assert made.codes() == [0] * number, made.log(0)
    (event,) = events
    assert shown(event) == ("node-0", True, False, [])
    assert event.message.startswith("NCCL all-reduce bus bandwidth ")
    assert event.message.endswith(" GB/s meets threshold 0.00 GB/s")
    assert (event.agent, event.componentClass) == ("preflight-nccl-allreduce", "Node")


def test_several_workers_on_each_node_are_one_benchmark(tmp_path: Path) -> None:
    """Nodes may have different numbers of them."""
    with gang(tmp_path) as (made, events):
        ready(made, 2)
        made.start(2, NPROCS_PER_NODE="{next}", MESSAGE_SIZES="1M,2M", NCCL_REDUCE_OP="max")
        assert made.codes() == [0, 0], made.log(0)
        assert "nodes=2 workers=3" in made.log(1)
    assert len(events) == 1


@pytest.mark.parametrize("operation", ["prod", "min", "SUM"])
def test_every_reduction_is_proven(tmp_path: Path, operation: str) -> None:
    """The values of a known sum, product or extreme arrive."""
    with gang(tmp_path) as (made, _):
        ready(made, 2)
        made.start(2, NCCL_REDUCE_OP=operation)
        assert made.codes() == [0, 0], made.log(0)


@pytest.mark.covers("P11-118", "P-193")
@pytest.mark.parametrize(("number", "slow"), [(4, 2), (8, 5)])
def test_a_slow_node_is_named_and_tells_it_itself(tmp_path: Path, number: int, slow: int) -> None:
    """All pods are held back; one fatal event, from the node that is slow."""
    with gang(tmp_path) as (made, events):
        ready(made, number)
        made.start(number, SLOWED=f"{slow}={HELD_UP}", BW_THRESHOLD_GBPS=BETWEEN)
        assert made.codes() == [1] * number, made.log(0)
        assert f"isolated: w-{slow} on node-{slow}" in made.log(0)
    (event,) = events
    assert shown(event) == (f"node-{slow}", False, True, ["NCCL_ALLREDUCE_BW_DEGRADED"])
    assert "is below threshold 0.01 GB/s; this node is the cause" in event.message


def test_a_node_with_wrong_values_is_named(tmp_path: Path) -> None:
    """Data that arrives changed is a finding whatever the bandwidth is."""
    with gang(tmp_path) as (made, events):
        ready(made, 4)
        made.start(4, SPOILS="1")
        assert made.codes() == [1] * 4, made.log(0)
    (event,) = events
    assert shown(event) == ("node-1", False, True, ["NCCL_ALLREDUCE_WRONG_RESULT"])


@pytest.mark.parametrize("number", [2, 4])
def test_without_localisation_nobody_is_blamed(tmp_path: Path, number: int) -> None:
    """One event about the gang, not fatal; also where two nodes cannot be told from their link."""
    with gang(tmp_path) as (made, events):
        ready(made, number)
        localize = "true" if number == 2 else "false"
        made.start(number, SLOWED=f"1={HELD_UP}", BW_THRESHOLD_GBPS=BETWEEN, LOCALIZE=localize)
        assert made.codes() == [1] * number
    (event,) = events
    assert shown(event) == ("node-0", False, False, ["NCCL_ALLREDUCE_BW_DEGRADED"])


@pytest.mark.covers("P-202", "K9")
def test_store_only_lets_a_slow_gang_start_and_records_it(tmp_path: Path) -> None:
    """The same event with the strategy in it, and exit 0."""
    with gang(tmp_path) as (made, events):
        ready(made, 4)
        made.start(
            4,
            SLOWED=f"0={HELD_UP}",
            BW_THRESHOLD_GBPS=BETWEEN,
            PROCESSING_STRATEGY="STORE_ONLY",
        )
        assert made.codes() == [0] * 4
        assert all("Check failed (STORE_ONLY — not blocking pod)" in made.log(n) for n in range(4))
    (event,) = events
    assert shown(event) == ("node-0", False, True, ["NCCL_ALLREDUCE_BW_DEGRADED"])
    assert event.processingStrategy == 2


@pytest.mark.covers("P-195", "P-200", "P-203", "J14")
@pytest.mark.parametrize("strategy", ["EXECUTE_REMEDIATION", "STORE_ONLY"])
def test_a_missing_member_is_a_gang_timeout_that_names_it(tmp_path: Path, strategy: str) -> None:
    """Exit 3, never masked, and no node is blamed."""
    with gang(tmp_path) as (made, events):
        made.mounted.write(with_port(formed(3, present=2, ip="127.0.0.1"), made.port))
        made.start(2, GANG_TIMEOUT_SECONDS="1", PROCESSING_STRATEGY=strategy)
        assert made.codes() == [3, 3]
    assert [shown(event)[1:] for event in events] == [(False, False, ["NCCL_GANG_TIMEOUT"])] * 2
    assert "missing: w-2" in events[0].message


@pytest.mark.covers("P-043", "P-194")
def test_members_with_other_checks_stop_at_once(tmp_path: Path) -> None:
    """Exit 2 before anything is launched, naming both lists."""
    with gang(tmp_path) as (made, events):
        data = formed(2, ip="127.0.0.1", checks={"w-0": "a", "w-1": "b"})
        made.mounted.write(with_port(data, made.port))
        made.start(2)
        assert made.codes() == [2, 2]
    assert {event.message for event in events} == {
        "Check name mismatch across gang: w-0=[a]; w-1=[b]"
    }
    assert all(shown(event)[2:] == (False, ["NCCL_GANG_CONFIG_ERROR"]) for event in events)


@pytest.mark.parametrize("dies", [0, 2])
def test_a_worker_that_is_killed_is_named_and_blames_nobody(tmp_path: Path, dies: int) -> None:
    """Rank 0's program tells it, also when the worker was its own."""
    with gang(tmp_path) as (made, events):
        ready(made, 3)
        made.start(3, DIES=str(dies))
        assert made.codes() == [1, 1, 1], made.log(0)
    (event,) = events
    assert shown(event) == ("node-0", False, False, ["NCCL_ALLREDUCE_TIMEOUT"])
    assert f"killed by SIGKILL (w-{dies} on node-{dies})" in event.message


def test_a_pod_that_never_starts_its_check_is_named(tmp_path: Path) -> None:
    """NCCL cannot start on any rank: could not test, one event, not fatal."""
    with gang(tmp_path) as (made, events):
        ready(made, 3)
        made.start(2, GANG_TIMEOUT_SECONDS="6")
        assert made.codes() == [1, 1], made.log(0)
    (event,) = events
    assert shown(event) == ("node-0", False, False, ["NCCL_ALLREDUCE_INIT_FAILED"])
    assert event.message.startswith("Failed to initialize NCCL: w-2 did not come to rank 0")


def test_when_rank_0_is_killed_the_others_end_and_say_so(tmp_path: Path) -> None:
    """Not after the time limit, and without blaming anybody."""
    with gang(tmp_path) as (made, events):
        ready(made, 3)
        made.start(3, SLOWED="0=30")
        made.until(0, "Gang has met")
        time.sleep(3)
        made.processes[0].kill()
        codes = made.codes()
        assert codes == [-signal.SIGKILL, 1, 1]
    assert {event.nodeName for event in events} == {"node-1", "node-2"}
    assert not any(event.isFatal or event.isHealthy for event in events)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_workers_and_no_event_is_sent(tmp_path: Path, number: int) -> None:
    """128 and its number; nothing of the gang stays behind."""
    with gang(tmp_path) as (made, events):
        ready(made, 2)
        made.start(2, SLOWED="0=30,1=30")
        made.until(0, "Gang has met")
        made.until(1, "Gang has met")
        for process in made.processes:
            process.send_signal(number)
        assert made.codes() == [128 + number] * 2
    assert events == []


@pytest.mark.covers("P-196", "P11-119")
def test_an_event_that_cannot_be_sent_is_4(tmp_path: Path) -> None:
    """On the container itself, which torchrun would hide; the other node passes."""
    token = tmp_path / "token"
    token.touch()
    with gang(tmp_path) as (made, events):
        ready(made, 2)
        made.start(2, PLATFORM_CONNECTOR_TOKEN_PATH=str(token))
        assert made.codes() == [4, 0]
    assert events == []


def test_a_restarted_gang_meets_again_at_the_same_port(tmp_path: Path) -> None:
    """A container that comes back early does not take the board of the run before for its own."""
    with gang(tmp_path) as (made, events):
        ready(made, 2)
        made.start(2)
        assert made.codes() == [0, 0]
        made.processes.clear()
        made.start(2)
        assert made.codes() == [0, 0]
    assert len(events) == 2
