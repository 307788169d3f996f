"""The network of one test control plane: a bridge for node and pod addresses.

Design: the kernel is the registry. A bridge is named after a slot, making it is atomic, and so
planes that start at the same time get different slots and with them different address ranges. Its
alias names the owner's pid: a bridge whose owner is dead was left by a killed run, and the next
plane sweeps it with everything that still runs in its pods' namespaces. Network namespaces are named
after the bridge, so what belongs to a plane is found without any file.

The addresses come from 198.18.0.0/15, the range set apart for tests of networks.

It must not know: Kubernetes.
"""

from __future__ import annotations

import contextlib
import hashlib
import ipaddress
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

PREFIX: Final = "aicrcp"
RANGE: Final = ipaddress.ip_network("198.18.0.0/15")
#: Slots of 2,048 addresses: gateway and nodes in the first 256, then 64 pods for each node.
SLOT_SIZE: Final = 2048
SLOTS: Final = RANGE.num_addresses // SLOT_SIZE
NODES: Final = 28
PODS_PER_NODE: Final = 64
NAMESPACES: Final = Path("/run/netns")
#: Variable by which processes of a pod on the host's network are found; it begins with the bridge.
MARK: Final = "AICR_TEST_POD"
START_TIME: Final = 21  # field of /proc/PID/stat, counted from 0


class NetworkError(Exception):
    """The kernel or the machine does not let us make a network, and what to do about it."""


class NodeNetwork(NamedTuple):
    """What a node agent needs to know about the network."""

    bridge: str
    gateway: str
    prefix: int
    address: str
    pods: str


class Bridge:
    """One plane's bridge; made on construction."""

    def __init__(self) -> None:
        """Take a free slot.

        Raises:
            NetworkError: not root, no `ip` program, or no slot is free.
        """
        sweep()
        for slot in range(SLOTS):
            name = f"{PREFIX}{slot}"
            if _made(name):
                break
        else:
            raise NetworkError(f"all {SLOTS} bridges {PREFIX}* are taken")
        self.name = name
        first = int(RANGE.network_address) + slot * SLOT_SIZE
        self._first = first
        self.gateway = str(ipaddress.ip_address(first + 1))
        self.prefix = RANGE.max_prefixlen - (SLOT_SIZE - 1).bit_length()
        ip(
            f"link set dev {name} alias {owner_tag(os.getpid())}",
            f"addr add {self.gateway}/{self.prefix} dev {name}",
            f"link set dev {name} up",
        )

    def node(self, number: int) -> NodeNetwork:
        """Give node *number* (0 to 27) its address, and say which are for its pods."""
        if number not in range(NODES):
            raise NetworkError(f"node {number}: a plane has room for {NODES} nodes that run pods")
        address = str(ipaddress.ip_address(self._first + 2 + number))
        ip(f"addr replace {address}/{self.prefix} dev {self.name}")
        pods = ipaddress.ip_network((self._first + 256 + number * PODS_PER_NODE, 26))
        return NodeNetwork(self.name, self.gateway, self.prefix, address, str(pods))

    def node_addresses(self) -> list[str]:
        """Every address that a node of this plane can have, for a certificate."""
        return [str(ipaddress.ip_address(self._first + 2 + number)) for number in range(NODES)]

    def remove(self) -> None:
        """End what still runs in the pods' namespaces; remove them and the bridge."""
        _remove(self.name)


def ip(*lines: str, namespace: str | None = None) -> None:
    """Run lines of `ip` commands, all in one process.

    Raises:
        NetworkError: one of them was refused.
    """
    command = [program("ip"), *(["-n", namespace] if namespace else []), "-batch", "-"]
    done = subprocess.run(
        command, input="\n".join([*lines, ""]), capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise NetworkError(f"ip: {done.stderr.strip()} (in: {'; '.join(lines)})")


def program(name: str) -> str:
    """Path of a program of the operating system.

    Raises:
        NetworkError: it is not installed.
    """
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if found is None:
        raise NetworkError(f"there is no {name}; install the packages iproute2 and util-linux")
    return found


def require_namespaces() -> None:
    """Make sure that this machine lets us isolate a pod.

    Raises:
        NetworkError: it does not, and a pod without isolation would be a lie.
    """
    # Mounting shows more than unshare alone: some sandboxes allow the one and refuse the other.
    done = subprocess.run(
        [
            *(program("unshare"), "--mount", "--net", "--uts", "--propagation", "private", "--"),
            *("/bin/sh", "-c", "mount -t tmpfs none /mnt"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise NetworkError(
            "this machine refuses mount or network namespaces, which every test pod gets: "
            f"{done.stderr.strip()}; run as root outside a restricted container, or start the "
            "plane with no nodes or hollow ones only"
        )


def pids_in(namespace: str) -> list[int]:
    """Processes that are in the named network namespace."""
    done = subprocess.run(
        [program("ip"), "netns", "pids", namespace], capture_output=True, text=True, check=False
    )
    return [int(word) for word in done.stdout.split()]


def namespaces(prefix: str) -> list[str]:
    """Names of network namespaces that begin with *prefix*."""
    try:
        return sorted(name for name in os.listdir(NAMESPACES) if name.startswith(prefix))
    except FileNotFoundError:
        return []


def pids_marked(prefix: str) -> list[int]:
    """Processes whose variable `MARK` begins with *prefix*."""
    wanted = f"{MARK}={prefix}".encode()
    found = []
    for entry in os.listdir("/proc"):
        with contextlib.suppress(OSError, ValueError):
            variables = Path(f"/proc/{int(entry)}/environ").read_bytes().split(b"\0")
            if any(one.startswith(wanted) for one in variables):
                found.append(int(entry))
    return found


def drop_namespace(name: str) -> None:
    """End every process in a network namespace, then remove it."""
    _kill_all(lambda: pids_in(name))
    with contextlib.suppress(NetworkError):
        ip(f"netns del {name}")


def _kill_all(find: Callable[[], list[int]]) -> None:
    # More than once, because a process may make another while we look.
    for _ in range(20):
        left = find()
        if not left:
            return
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def sweep() -> list[str]:
    """Remove what killed runs have left; returns the names of the bridges that were removed."""
    gone = []
    for name, alias in _bridges():
        if not owner_lives(alias):
            _remove(name)
            gone.append(name)
    return gone


def owner_tag(pid: int) -> str:
    """Names a process so that another one that gets its pid later is not taken for it."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return f"{pid}-{fields[START_TIME - 2]}"


def owner_lives(alias: str) -> bool:
    """Whether the process that `owner_tag` named still runs."""
    # No alias yet: its owner is between making the bridge and naming itself.
    if not alias:
        return True
    try:
        return owner_tag(int(alias.partition("-")[0])) == alias
    except (OSError, ValueError, IndexError):
        return False


def _bridges() -> Iterator[tuple[str, str]]:
    root = Path("/sys/class/net")
    for name in sorted(os.listdir(root)):
        if name.startswith(PREFIX):
            with contextlib.suppress(OSError):
                yield name, (root / name / "ifalias").read_text().strip()


def _made(name: str) -> bool:
    try:
        # A bridge without an address of its own takes that of whichever pod came first and changes it
        # when that pod goes; what the others had learnt then leads nowhere for half a minute.
        digest = hashlib.sha256(name.encode()).hexdigest()
        address = ":".join(["02", "ac", *(digest[at : at + 2] for at in (0, 2, 4, 6))])
        ip(f"link add name {name} address {address} type bridge")
    except NetworkError as error:
        if "exists" in str(error):
            return False
        raise NetworkError(
            f"cannot make a network bridge: {error}; pods need root and the bridge module"
        ) from error
    return True


def _remove(name: str) -> None:
    for namespace in namespaces(f"{name}-"):
        drop_namespace(namespace)
    _kill_all(lambda: pids_marked(f"{name}-"))
    with contextlib.suppress(NetworkError):
        ip(f"link del dev {name}")
