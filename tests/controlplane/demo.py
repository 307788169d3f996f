"""A control plane with GPU nodes that is kept until somebody ends it: the work of `aicr cluster demo`.

Design: the plane of the tests, started in steps that a person can follow, and a kubeconfig that is
whole in itself, so that it can be copied anywhere on the machine. Being told to end is the ordinary
end and not a failure: no logs are kept, and the clean-up is not interrupted by a second Ctrl-C.

The caller turns SIGINT into KeyboardInterrupt and SIGTERM into SystemExit, as the command line does.
It must not know: the product.
"""

from __future__ import annotations

import base64
import json
import os
import shlex
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Final, NamedTuple, NoReturn

from tests.controlplane import build
from tests.controlplane.certificates import CertificateError
from tests.controlplane.network import NODES, NetworkError
from tests.controlplane.nodes import Node
from tests.controlplane.plane import ControlPlane
from tests.controlplane.processes import ProcessError

#: More would not be usable within the time that a plane waits for its nodes.
MOST_HOLLOW: Final = 2000
#: How many nodes that run pods the network has room for.
MOST_RUNNING: Final = NODES
NAME: Final = "aicr-demo"
CHECK_SECONDS: Final = 1.0
#: What a node that runs pods says of its system: `aicr snapshot --agent` mounts this file from the node's
#: disk, which is an empty folder of the plane's.
SYSTEM: Final = 'ID=ubuntu\nVERSION_ID="24.04"\nPRETTY_NAME="Ubuntu 24.04 LTS"\n'
ENDINGS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

Say = Callable[[str], None]


class DemoError(Exception):
    """Why there is no demo cluster, or why it ended, in words for the person at the terminal."""


class KubeconfigFileError(DemoError):
    """The kubeconfig cannot be written where it was asked for."""


class Machine(NamedTuple):
    """A GPU node: the product as its label says it, how many GPUs, and the processor."""

    product: str
    gpus: int = 8
    architecture: str = "amd64"


#: Accelerator → what a node with it looks like.
MACHINES: Final[Mapping[str, Machine]] = {
    "a100": Machine("NVIDIA-A100-SXM4-80GB"),
    "b200": Machine("NVIDIA-B200"),
    "gb200": Machine("NVIDIA-GB200", 4, "arm64"),
    "gb300": Machine("NVIDIA-GB300", 4, "arm64"),
    "h100": Machine("NVIDIA-H100-80GB-HBM3"),
    "h200": Machine("NVIDIA-H200"),
    "l40": Machine("NVIDIA-L40"),
    "l40s": Machine("NVIDIA-L40S"),
    "rtx-pro-6000": Machine("NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition"),
}


def gpu_node(name: str, machine: Machine, *, hollow: bool) -> Node:
    """A node with the labels that GPU feature discovery gives.

    One that runs pods does so on this machine, so it keeps this machine's processor.
    """
    labels = {
        "feature.node.kubernetes.io/pci-10de.present": "true",
        "nvidia.com/gpu.count": str(machine.gpus),
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.product": machine.product,
    }
    info = {}
    if hollow:
        labels["kubernetes.io/arch"] = info["architecture"] = machine.architecture
    return Node(name, labels=labels, gpus=machine.gpus, hollow=hollow, info=info)


def install_system(plane_folder: Path, names: Iterable[str]) -> None:
    """Give nodes that run pods the file that says which system they have."""
    for name in names:
        place = plane_folder / "nodes" / name / "disk/etc/os-release"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(SYSTEM, encoding="utf-8")


def self_contained(text: str) -> str:
    """A kubeconfig of ours with the certificate in it instead of its path, and names of its own.

    Several files in KUBECONFIG are merged by name, so "test" would hide somebody else's.
    """
    document: dict[str, Any] = json.loads(text)
    cluster = document["clusters"][0]["cluster"]
    authority = Path(cluster.pop("certificate-authority")).read_bytes()
    cluster["certificate-authority-data"] = base64.b64encode(authority).decode("ascii")
    for part in ("clusters", "users", "contexts"):
        document[part][0]["name"] = NAME
    document["contexts"][0]["context"] |= {"cluster": NAME, "user": NAME}
    document["current-context"] = NAME
    return json.dumps(document, indent=2) + "\n"


class DemoPlane(ControlPlane):
    """A plane whose end is ordinary when a person asks for it."""

    def stop(self) -> None:
        """End everything, whatever else the person presses meanwhile."""
        if isinstance(sys.exception(), (KeyboardInterrupt, SystemExit)):
            self.keep = False
        with undisturbed():
            super().stop()


@contextmanager
def undisturbed() -> Iterator[None]:
    """Hold signals that would end us back, also from the programs that we start meanwhile.

    A terminal sends Ctrl-C to all of them, and an `ip` that dies of it leaves its bridge behind.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDINGS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def keep(
    *, nodes: int, running: int, accelerator: str, kubeconfig: Path | None, say: Say, show: Say
) -> NoReturn:
    """Start a cluster of *nodes* hollow and *running* real GPU nodes, and keep it.

    *say* gets lines of progress, *show* the one line that sets KUBECONFIG. The file *kubeconfig*
    must not exist; it goes when the cluster goes.

    Raises:
        KubeconfigFileError: *kubeconfig* exists or cannot be made.
        DemoError: the machine lacks something, or a program of the cluster ended by itself.
        KeyboardInterrupt, SystemExit: the caller's, once everything has been cleaned up.
    """
    machine = MACHINES[accelerator]
    if kubeconfig is not None:
        _refuse_existing(kubeconfig)
    _end_with_the_terminal()
    written: Path | None = None
    text = ""
    plane: DemoPlane | None = None
    try:
        plane = DemoPlane(programs_folder=build.binaries(say=say))
        say(f"starting the control plane of Kubernetes {build.kubernetes_version()}")
        begun = time.monotonic()
        plane.start()
        for count, prefix, what in (
            (running, "runs", "run pods"),
            (nodes, "gpu", "are hollow: their pods only seem to run"),
        ):
            if count:
                say(
                    f"adding {accelerator} nodes: {count}, with {machine.gpus} GPUs each; they {what}"
                )
                hollow = prefix == "gpu"
                names = [f"{prefix}-{number}" for number in range(1, count + 1)]
                if not hollow:
                    install_system(plane.folder, names)
                plane.add_nodes([gpu_node(name, machine, hollow=hollow) for name in names])
        text = self_contained(plane.kubeconfig.read_text(encoding="utf-8"))
        place = kubeconfig or plane.folder / "demo.kubeconfig"
        _write_new(place, text)
        written = place
        say(f"ready after {time.monotonic() - begun:.1f} s; Ctrl-C ends it")
        show(f"export KUBECONFIG={shlex.quote(str(written))}")
        while True:
            for process in plane.processes:
                process.must_run()
            time.sleep(CHECK_SECONDS)
    except (build.BuildError, CertificateError, NetworkError, ProcessError) as error:
        if plane is not None:
            plane.keep = True
        raise DemoError(str(error)) from error
    finally:
        # A start that failed or was interrupted has cleaned up already.
        if plane is not None and any(process.running() for process in plane.processes):
            say("stopping")
            plane.stop()
        if written is not None:
            _remove_ours(written, text)


def _end_with_the_terminal() -> None:
    """Clean up as well when the terminal goes away, unless that was switched off (nohup)."""

    def end(number: int, frame: FrameType | None) -> NoReturn:
        del frame
        signal.signal(number, lambda *_: None)
        raise SystemExit(128 + number)

    if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:
        signal.signal(signal.SIGHUP, end)


def _refuse_existing(path: Path) -> None:
    if path.exists() or path.is_symlink():
        raise KubeconfigFileError(f"{path} exists, and a kubeconfig is never written over")
    if not path.parent.is_dir():
        raise KubeconfigFileError(f"there is no folder {path.parent} for the kubeconfig")


def _write_new(path: Path, text: str) -> None:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise KubeconfigFileError(
            f"cannot write the kubeconfig {path}: {error.strerror}"
        ) from error
    with open(descriptor, "w", encoding="utf-8") as stream:
        stream.write(text)


def _remove_ours(path: Path, text: str) -> None:
    """Remove the kubeconfig, but not what somebody has put in its place."""
    try:
        if path.read_text(encoding="utf-8") == text:
            path.unlink()
    except OSError:
        # It is gone already, with the plane's folder or by somebody's hand.
        pass
