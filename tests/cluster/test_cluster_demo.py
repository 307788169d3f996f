"""`aicr cluster demo`: what it starts, what it says, and that nothing is left of it; wrong input too.

Tests without the marker need no control plane: they end before one would start.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from tests.cli.program import ROOT, aicr, environment
from tests.cluster.workloads import container, kubectl, pod
from tests.controlplane import demo, network
from tests.controlplane.processes import alive, wait_until_gone

from aicr.catalog.criteria_values import accelerator_of
from aicr.cli import cluster
from aicr.cli.main import COMMANDS

READY_SECONDS = 120


@pytest.mark.parametrize("words", [[], ["demos"], ["start", "--nodes", "1"]])
def test_a_sub_command_that_is_not_there_is_refused(words: list[str]) -> None:
    """There is one, and the hint names it."""
    aicr("cluster", *words).refused(2, "next: there is one: aicr cluster demo")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--nodes", "-1"], "-1 nodes are not possible"),
        (["--nodes", "2001"], "0 to 2000"),
        (["--nodes", "many"], "a whole number is needed"),
        (["--running", "29"], "0 to 28"),
        (["--accelerator", "h101"], "did you mean h100?"),
        (["--accelerator", "vr200"], "no node labels are known for accelerator 'vr200'"),
        (["--accelerator", ""], "known: a100, b200, "),
        (["--kubeconfig", ""], "a file name is needed"),
        (["--kubeconfig", "{here}/old"], "old exists, and a kubeconfig is never written over"),
        (["--kubeconfig", "{here}/link"], "link exists, and a kubeconfig is never written over"),
        (["--kubeconfig", "{here}/none/new"], "there is no folder {here}/none"),
        (["--nodes", "1", "--nodes", "2"], "can only be specified once"),
        (["--node", "1"], "did you mean --nodes?"),
    ],
)
def test_wrong_flags_are_refused_before_anything_starts(
    words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit 2, with the value and the next step; files stay as they are."""
    # Without programs, a flag that is let through ends as another error and not as a cluster.
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    (tmp_path / "old").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    found = aicr("cluster", "demo", *(word.format(here=tmp_path) for word in words))
    found.refused(2, said.format(here=tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "old"]
    assert (tmp_path / "old").read_text() == "mine"


def test_programs_that_cannot_be_had_are_said_to_be_missing(tmp_path: Path) -> None:
    """An incomplete KUBEBUILDER_ASSETS: exit 6, and where to read on."""
    command = [sys.executable, "-m", "aicr", "cluster", "demo", "--nodes", "0"]
    variables = {**environment(), "KUBEBUILDER_ASSETS": str(tmp_path), "PYTHONPATH": f"{ROOT}/src"}
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (6, "")
    assert "no demo cluster: KUBEBUILDER_ASSETS=" in done.stderr
    assert "next: docs/testing.md says what it needs" in done.stderr


def test_an_installed_package_asks_for_a_source_checkout(tmp_path: Path) -> None:
    """The programs are no part of a wheel: exit 2 and how to get them."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "src" / "aicr", tmp_path / "aicr", ignore=ignored)
    command = [sys.executable, "-P", "-m", "aicr", "cluster", "demo"]
    variables = {**environment(), "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        command, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "needs a source checkout of aicr, and this is an installed package" in done.stderr
    assert "make install" in done.stderr


@pytest.mark.parametrize("command", ["recipe", "query", "bundle", "cluster"])
def test_no_command_imports_the_control_plane_before_it_runs(command: str) -> None:
    """Neither the hot commands nor this one's parser."""
    code = (
        f"import sys; __import__({COMMANDS[command][0]!r}, fromlist=['parser']).parser();"
        "print([name for name in sys.modules if name.split('.')[0] == 'tests'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_the_flags_of_the_parser_have_no_default_of_their_own() -> None:
    """What was not given is told from what was, so that root decides about nodes that run pods."""
    given = vars(cluster.parser().parse(["demo"]))
    assert {key: value for key, value in given.items() if value is not None} == {"word": "demo"}


@pytest.mark.parametrize("name", demo.MACHINES)
def test_a_demo_node_is_recognised_by_its_label(name: str) -> None:
    """The label that each accelerator gets reads back as that accelerator."""
    machine = demo.MACHINES[name]
    assert accelerator_of(machine.product) == name
    node = demo.gpu_node("n", machine, hollow=True).document("10.64.0.1", None)
    labels = node["metadata"]["labels"]
    assert labels["nvidia.com/gpu.product"] == machine.product
    assert labels["nvidia.com/gpu.count"] == node["status"]["capacity"]["nvidia.com/gpu"]
    assert labels["kubernetes.io/arch"] == node["status"]["nodeInfo"]["architecture"]
    # No label value may be longer.
    assert len(machine.product) <= 63


def test_nodes_that_run_pods_have_an_operating_system(tmp_path: Path) -> None:
    """The agent of `aicr snapshot --agent` mounts this file of the node; without it no pod starts."""
    demo.install_system(tmp_path, ["runs-1", "runs-2"])
    for name in ("runs-1", "runs-2"):
        place = tmp_path / "nodes" / name / "disk/etc/os-release"
        assert "ID=ubuntu\n" in place.read_text(encoding="utf-8")


def test_a_kubeconfig_is_whole_in_itself(tmp_path: Path) -> None:
    """The certificate is in it, and its names are not those of other files."""
    (tmp_path / "ca.crt").write_text("certificate")
    source = {
        "clusters": [
            {"name": "test", "cluster": {"certificate-authority": str(tmp_path / "ca.crt")}}
        ],
        "users": [{"name": "test", "user": {"token": "t"}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        "current-context": "test",
    }
    made = json.loads(demo.self_contained(json.dumps(source)))
    assert made["clusters"] == [
        {"name": "aicr-demo", "cluster": {"certificate-authority-data": "Y2VydGlmaWNhdGU="}}
    ]
    assert made["users"] == [{"name": "aicr-demo", "user": {"token": "t"}}]
    assert made["contexts"][0] == {
        "name": "aicr-demo",
        "context": {"cluster": "aicr-demo", "user": "aicr-demo"},
    }
    assert made["current-context"] == "aicr-demo"


class Run:
    """The command as a process of its own, in a folder for its temporary files."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        self.kubeconfig = folder / "demo.kubeconfig"
        command = [sys.executable, "-m", "aicr", "cluster", "demo"]
        # A shell's job in the background ignores Ctrl-C, and so would every child of it.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            self.child = subprocess.Popen(
                [*command, "--kubeconfig", str(self.kubeconfig), *words],
                env={**os.environ, "PYTHONPATH": f"{ROOT}/src", "TMPDIR": str(self.temporary)},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        finally:
            signal.signal(signal.SIGINT, before)

    def ready(self) -> str:
        """The line on stdout, which comes when the cluster can be used."""
        assert self.child.stdout is not None
        return self.child.stdout.readline()

    def pids(self) -> list[int]:
        """Its children now: programs and agents."""
        path = Path(f"/proc/{self.child.pid}/task/{self.child.pid}/children")
        return [int(word) for word in path.read_text().split()]

    def end(self, numbers: Sequence[int]) -> tuple[int, str]:
        """Send signals, and return the exit status and what was said."""
        for number in numbers:
            self.child.send_signal(number)
            time.sleep(0.05)
        _, said = self.child.communicate(timeout=READY_SECONDS)
        return self.child.returncode, said

    def left(self) -> list[str]:
        """Folders and bridges that are still there."""
        bridges = [
            path.parent.name
            for path in Path("/sys/class/net").glob(f"{network.PREFIX}*/ifalias")
            if path.read_text().startswith(f"{self.child.pid}-")
        ]
        files = [path.name for path in self.temporary.iterdir()]
        return bridges + files + [self.kubeconfig.name] * self.kubeconfig.exists()


@pytest.fixture
def started(tmp_path: Path) -> Iterator[list[Run]]:
    """Runs that are killed when a test has not ended them."""
    runs: list[Run] = []
    yield runs
    for run in runs:
        if run.child.poll() is None:
            run.child.kill()
        run.child.communicate()


@pytest.mark.cluster
def test_a_demo_has_gpu_nodes_runs_pods_and_leaves_nothing_after_ctrl_c(
    tmp_path: Path, started: list[Run]
) -> None:
    """Two hollow nodes and one that runs pods, seen by kubectl; a second Ctrl-C disturbs nothing."""
    run = Run(tmp_path, "--nodes", "2", "--running", "1", "--accelerator", "gb200")
    started.append(run)
    assert run.ready() == f"export KUBECONFIG={run.kubeconfig}\n"
    assert run.kubeconfig.stat().st_mode & 0o777 == 0o600
    shown = kubectl(run.kubeconfig, "get", "nodes", "-o", "json")
    nodes = {node["metadata"]["name"]: node for node in json.loads(shown.stdout)["items"]}
    assert sorted(nodes) == ["gpu-1", "gpu-2", "runs-1"]
    for node in nodes.values():
        assert node["status"]["allocatable"]["nvidia.com/gpu"] == "4"
        assert node["metadata"]["labels"]["nvidia.com/gpu.product"] == "NVIDIA-GB200"
    assert nodes["gpu-1"]["metadata"]["labels"]["kubernetes.io/arch"] == "arm64"
    assert nodes["runs-1"]["metadata"]["labels"]["kubernetes.io/arch"] == "amd64"
    made = kubectl(
        run.kubeconfig, "apply", "-f", "-", entry=json.dumps(pod("p", container("exit")))
    )
    assert made.returncode == 0, made.stderr
    waited = ("--for=jsonpath={.status.phase}=Succeeded", "pod/p", "--timeout=60s")
    assert kubectl(run.kubeconfig, "wait", *waited).returncode == 0
    # What docs/snapshot.md shows first works here too: the node's disk has an operating system.
    files = str(tmp_path / "snapshot.yaml")
    agent = ("snapshot", "--agent", "--kubeconfig", str(run.kubeconfig), "-o", files)
    taken = subprocess.run(
        [sys.executable, "-m", "aicr", *agent, "--timeout", "60s"],
        env={**environment(), "PYTHONPATH": f"{ROOT}/src"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert taken.returncode == 0, taken.stderr
    assert "VERSION_ID" in Path(files).read_text(encoding="utf-8")
    pids = run.pids()
    # Four programs, one agent for the hollow nodes and one for the other.
    assert len(pids) == 6
    status, said = run.end([signal.SIGINT, signal.SIGINT, signal.SIGTERM])
    assert status == 130, said
    assert said.splitlines()[-2:] == ["stopping", "ended; nothing is left"]
    assert "error" not in said
    assert wait_until_gone(pids, 5) == []
    assert run.left() == []


@pytest.mark.cluster
def test_a_demo_that_is_told_to_end_while_it_starts_leaves_nothing(
    tmp_path: Path, started: list[Run]
) -> None:
    """SIGTERM as soon as its first program runs: exit 143, and no logs are kept."""
    run = Run(tmp_path, "--nodes", "1", "--running", "0")
    started.append(run)
    # The store comes first, and its data folder with it.
    deadline = time.monotonic() + READY_SECONDS
    while not list(run.temporary.glob("aicr-plane-*/data")):
        assert run.child.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    pids = run.pids()
    status, said = run.end([signal.SIGTERM])
    assert status == 143, said
    assert "logs are kept" not in said
    assert wait_until_gone(pids, 5) == []
    assert run.left() == []


@pytest.mark.cluster
def test_a_demo_whose_program_dies_says_so_and_keeps_its_logs(
    tmp_path: Path, started: list[Run]
) -> None:
    """A cluster without its API server is not kept as if nothing had happened."""
    run = Run(tmp_path, "--nodes", "0", "--running", "0")
    started.append(run)
    assert run.ready()
    pids = run.pids()
    server = next(
        pid for pid in pids if b"kube-apiserver" in Path(f"/proc/{pid}/cmdline").read_bytes()
    )
    os.kill(server, signal.SIGKILL)
    _, said = run.child.communicate(timeout=READY_SECONDS)
    assert run.child.returncode == 6
    assert "no demo cluster: kube-apiserver ended with -9" in said
    assert "logs are kept in" in said
    assert [pid for pid in pids if alive(pid)] == []
    assert not run.kubeconfig.exists()
