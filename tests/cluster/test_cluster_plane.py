"""The control plane itself: what it is, that planes keep apart, and that nothing is left of one."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cluster.workloads import container, kubectl, pod, pod_becomes
from tests.controlplane import build, network
from tests.controlplane.agent.sandbox import Addresses, Sandbox
from tests.controlplane.agent.settings import Network
from tests.controlplane.client import ApiError, Client, Document, eventually
from tests.controlplane.fixtures import make_namespace
from tests.controlplane.network import pids_in
from tests.controlplane.nodes import Node
from tests.controlplane.plane import ControlPlane
from tests.controlplane.processes import Process, ProcessError, alive, wait_until_gone

pytestmark = pytest.mark.cluster

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module", autouse=True)
def running_before(plane: ControlPlane) -> list[Process]:
    """What of the shared plane runs when this file begins: tests of other files restart parts of it."""
    return [process for process in plane.processes if process.running()]


def test_the_version_is_the_pinned_release(api: Client) -> None:
    """Without the stamp it would be v0.0.0-master and mean nothing."""
    version = api.call("GET", "/version")
    assert version["gitVersion"] == build.kubernetes_version()
    assert (version["major"], version["minor"]) == ("1", "36")


@pytest.mark.parametrize(
    "path",
    ["/apis/scheduling.k8s.io/v1alpha2", "/apis/resource.k8s.io/v1", "/apis/batch/v1"],
)
def test_the_kinds_that_the_product_needs_are_served(path: str, api: Client) -> None:
    """Gangs and devices among them."""
    assert api.call("GET", path)["resources"]


def test_roles_are_checked(plane: ControlPlane, api: Client, namespace: str) -> None:
    """A user who has no role may do nothing; one who was given a role may do that."""
    config = plane.kubeconfig_for("somebody")
    refused = kubectl(config, "get", "pods", "-n", namespace)
    assert refused.returncode != 0
    assert 'User "somebody" cannot list resource "pods"' in refused.stderr
    binding = ("--user=somebody", "--clusterrole=view", "-n", namespace)
    made = kubectl(plane.kubeconfig, "create", "rolebinding", "sees", *binding)
    assert made.returncode == 0, made.stderr
    allowed = eventually(
        "the binding to hold",
        lambda: (
            None if (done := kubectl(config, "get", "pods", "-n", namespace)).returncode else done
        ),
    )
    assert "No resources found" in allowed.stderr


BUSY = """
import hashlib, threading
data = bytes(1 << 20)
def work():
    while True:
        hashlib.sha256(data).digest()
for _ in range(7):
    threading.Thread(target=work).start()
print("ready", flush=True)
work()
"""


def states(pid: int) -> set[str]:
    """How the kernel calls what the threads of a process do: R runs, T stopped."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return {(task / "stat").read_text().rpartition(")")[2].split()[0] for task in tasks}


def test_a_paused_program_has_stopped_with_all_its_threads(tmp_path: Path) -> None:
    """A server of many threads that was only asked to stop still answers on a busy machine."""
    log = tmp_path / "log"
    program = Process("busy", [sys.executable, "-c", BUSY], log)
    program.start()
    try:
        eventually("its threads", lambda: "ready" in log.read_text())
        for _ in range(20):
            program.pause()
            assert states(program.pid) == {"T"}
            program.resume()
            eventually("it to go on", lambda: "R" in states(program.pid))
    finally:
        program.stop()


def test_what_does_not_run_cannot_be_paused(tmp_path: Path) -> None:
    """A test that believes in a hung server would else pass on a dead one."""
    program = Process("gone", [sys.executable, "-c", "raise SystemExit('no')"], tmp_path / "log")
    program.start()
    eventually("its end", lambda: not program.running())
    with pytest.raises(ProcessError, match="gone ended with 1"):
        program.pause()


def namespaced_pids(plane: ControlPlane) -> list[int]:
    """Processes of pods of a plane."""
    bridge = plane.bridge_name
    return [pid for name in network.namespaces(f"{bridge}-") for pid in pids_in(name)]


def lasting_pod(name: str) -> Document:
    """A pod with a child that does not listen to TERM."""
    return pod(name, container("(trap '' TERM; setsid sleep 1000) & exec sleep 1000"))


def test_planes_side_by_side_do_not_touch_each_other_and_leave_nothing(
    plane: ControlPlane, api: Client, namespace: str
) -> None:
    """Their own ports, addresses, stores and node names; after the stop no process of one is left."""
    api.create(lasting_pod("stays"), namespace)
    pod_becomes(api, namespace, "stays", "Running")
    with ControlPlane([Node("runs-1")]) as other:
        theirs = other.client()
        assert [one["metadata"]["name"] for one in theirs.list("Node")] == ["runs-1"]
        make_namespace(theirs, namespace)
        assert theirs.list("Pod", namespace) == []
        theirs.create(lasting_pod("goes"), namespace)
        address = pod_becomes(theirs, namespace, "goes", "Running")["status"]["podIP"]
        ours = api.get("Pod", "stays", namespace)["status"]["podIP"]
        assert address != ours
        pids = [pid for process in other.processes for pid in process.pids]
        # Running is said of the shell, which has yet to start its child.
        pods = eventually(
            "both processes", lambda: found if len(found := namespaced_pids(other)) >= 2 else None
        )
        bridge, folder = other.bridge_name, other.folder
    assert wait_until_gone(pids + pods, 30) == []
    assert network.namespaces(f"{bridge}-") == []
    assert not Path(f"/sys/class/net/{bridge}").exists()
    assert not folder.exists()
    assert api.get("Pod", "stays", namespace)["status"]["phase"] == "Running"


def test_an_address_that_is_given_again_leads_to_its_new_pod() -> None:
    """What the machine has learnt of the pod before leads nowhere, for up to half a minute."""
    bridge, learnt = network.Bridge(), "02:00:00:00:00:01"
    try:
        settings = Network(**bridge.node(0)._asdict())
        address = Addresses(settings.pods).take()
        network.ip(f"neigh replace {address} lladdr {learnt} dev {bridge.name} nud stale")
        assert learnt in neighbours(bridge.name)
        sandbox = Sandbox(settings, Addresses(address), "n", "uid")
        try:
            assert sandbox.address == address
            assert learnt not in neighbours(bridge.name)
        finally:
            sandbox.remove()
    finally:
        bridge.remove()


def neighbours(bridge: str) -> str:
    """Which hardware address the kernel has learnt for which address."""
    command = [network.program("ip"), "neigh", "show", "dev", bridge]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_a_dead_node_is_noticed_and_its_orphans_end_with_the_plane() -> None:
    """kill -9 of an agent: the pod's processes live on, the node becomes Unknown, the stop ends all."""
    with ControlPlane([Node("dies")], node_grace=4) as own:
        api = own.client()
        api.create(lasting_pod("orphan"), "default")
        pod_becomes(api, "default", "orphan", "Running")
        own.agent("dies").kill()
        pods = namespaced_pids(own)
        assert pods
        assert all(alive(pid) for pid in pods)

        def unknown() -> bool:
            status = api.get("Node", "dies")["status"]
            ready = next(one for one in status["conditions"] if one["type"] == "Ready")
            return bool(ready["status"] == "Unknown")

        eventually("the node to be Unknown", unknown)
        own.agent("dies").start()
        eventually("the node to be back", lambda: not unknown())
        # The new agent cannot watch the old processes, so it ends them and says so.
        pod_becomes(api, "default", "orphan", "Failed")
        assert wait_until_gone(pods, 30) == []


def test_the_api_server_comes_back_after_a_crash_with_everything_it_had() -> None:
    """Killed by pid and started again on the same port and store."""
    with ControlPlane() as own:
        api = own.client()
        make_namespace(api, "kept")
        own.apiserver.kill()
        with pytest.raises(OSError, match="refused"):
            api.get("Namespace", "kept")
        own.apiserver.start()
        own.wait_ready()
        assert api.get("Namespace", "kept")["status"]["phase"] == "Active"


def test_what_a_killed_run_has_left_is_swept_by_the_next_plane() -> None:
    """Its programs end with it; its pods and bridge go when another plane starts."""
    text = (
        "import time\n"
        "from tests.controlplane.nodes import Node\n"
        "from tests.controlplane.plane import ControlPlane\n"
        "from tests.cluster.test_cluster_plane import lasting_pod, namespaced_pids\n"
        "plane = ControlPlane([Node('n')])\n"
        "plane.start()\n"
        "plane.client().create(lasting_pod('p'), 'default')\n"
        "while len(pods := namespaced_pids(plane)) < 2: time.sleep(0.1)\n"
        "pids = [pid for process in plane.processes for pid in process.pids]\n"
        "print(plane.bridge_name, plane.folder, *pids, *pods, flush=True)\n"
        "time.sleep(1000)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", text], stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as run:
        assert run.stdout is not None
        bridge, folder, *words = run.stdout.readline().split()
        run.send_signal(signal.SIGKILL)
    pids = [int(word) for word in words]
    network.sweep()
    assert wait_until_gone(pids, 20) == []
    assert not Path(f"/sys/class/net/{bridge}").exists()
    subprocess.run(["rm", "-rf", folder], check=True)


def test_a_user_without_a_token_is_nobody(plane: ControlPlane) -> None:
    """Anonymous requests reach health and version, nothing else."""
    stranger = plane.client(token="wrong")
    with pytest.raises(ApiError) as caught:
        stranger.list("Pod")
    assert caught.value.status == 401


@pytest.mark.parametrize("count", [200])
def test_hollow_nodes_come_by_the_hundreds(count: int) -> None:
    """One process serves them all."""
    with ControlPlane() as own:
        own.add_nodes([Node(f"many-{number}", gpus=8, hollow=True) for number in range(count)])
        assert len(own.client().list("Node")) == count
        assert len({own.agent(f"many-{number}").pid for number in range(count)}) == 1


def test_the_shared_plane_is_whole_after_tests_that_hurt_their_own(
    running_before: list[Process],
) -> None:
    """No process of it has been touched since the first test of this file."""
    assert running_before
    assert all(process.running() for process in running_before)
