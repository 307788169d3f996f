"""A control plane that a test starts, uses, hurts and stops.

    with ControlPlane(nodes=[Node("n1")]) as plane:
        plane.client().create({"kind": "Job", ...}, "default")

Design: a folder of its own for certificates, data and logs; a network bridge of its own when pods
run; ports that were free a moment ago, with another try when one was taken meanwhile. So planes can
run side by side. Each program is a `Process` that a test may kill, pause and start again; stopping
follows the order that leaves nothing waiting for something that is gone already.

It must not know: the product.
"""

from __future__ import annotations

import http.client
import os
import secrets
import shutil
import ssl
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from tests.controlplane import build, kubeconfig, leftovers, programs
from tests.controlplane.agents import Agents
from tests.controlplane.certificates import Authority, signing_key
from tests.controlplane.client import ApiError, Client
from tests.controlplane.network import Bridge, require_namespaces
from tests.controlplane.nodes import Node
from tests.controlplane.processes import Process, ProcessError, free_ports, wait_until_gone

START_SECONDS: Final = 300.0
DAY: Final = 86400
TRIES: Final = 3
ADMIN: Final = "admin"


class ControlPlane:
    """etcd, API server, controller manager, scheduler, and node agents."""

    def __init__(
        self,
        nodes: Sequence[Node] = (),
        *,
        images: Sequence[Path] = (),
        node_grace: int = DAY,
        jobs_make_gangs: bool = False,
        programs_folder: Path | None = None,
    ) -> None:
        """Describe a plane; nothing runs before `start` or `with`.

        *nodes* are there from the beginning, more can be added later. *images* are files like
        images.yaml, on top of it. *node_grace* is how many seconds a node may be silent before it
        is Unknown: hollow nodes renew their leases only when it is shorter than a day, because ten
        thousand of them would do little else. *jobs_make_gangs* turns WorkloadWithJob on.
        """
        self._first_nodes = list(nodes)
        self._images = list(images)
        self._node_grace = node_grace
        self._jobs_make_gangs = jobs_make_gangs
        self._programs = programs_folder
        self._processes: list[Process] = []
        self._clients: list[Client] = []
        self._bridge: Bridge | None = None
        self._agents: Agents | None = None
        #: Seconds from the first program's start to a plane that takes work.
        self.start_seconds = 0.0
        #: Keep the folder with the logs when the plane stops.
        self.keep = False

    def __enter__(self) -> ControlPlane:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self.keep = True
        self.stop()

    def start(self) -> None:
        """Build the programs if need be, and start everything.

        Raises:
            BuildError, CertificateError, NetworkError, ProcessError: what is missing or has failed.
        """
        folder = self._programs or build.binaries()
        begun = time.monotonic()
        for left in reversed(range(TRIES)):
            self.folder = leftovers.make()
            try:
                self._start(folder)
                break
            except ProcessError as error:
                # A port that was free when we looked may be taken when the program gets there.
                self.keep = not left or "address already in use" not in str(error)
                self.stop()
                if self.keep:
                    raise
            except BaseException:
                self.keep = True
                self.stop()
                raise
        self.start_seconds = time.monotonic() - begun

    def _start(self, folder: Path) -> None:
        self._processes, self._clients = [], []
        # Made before the certificates, which name its addresses.
        if any(not node.hollow for node in self._first_nodes):
            require_namespaces()
        if os.geteuid() == 0:
            self._bridge = Bridge()
        host = self._bridge.gateway if self._bridge else "127.0.0.1"
        store, peer, manager, scheduler = free_ports(4)
        self.port = port = free_ports(1, host)[0]
        self.url = f"https://{host}:{port}"
        self.logs = self.folder / "logs"
        self.logs.mkdir()
        files = self._write_files(host)
        gates = [*programs.GATES, *([programs.JOB_GATE] if self._jobs_make_gangs else [])]
        self.etcd = self._process(
            "etcd", programs.etcd(folder / "etcd", self.folder / "data", store, peer)
        )
        self.apiserver = self._process(
            "kube-apiserver",
            programs.apiserver(folder / "kube-apiserver", files, host, port, store, gates),
        )
        self.controller_manager = self._process(
            "kube-controller-manager",
            programs.controller_manager(
                folder / "kube-controller-manager", files, manager, gates, self._node_grace
            ),
        )
        self.scheduler = self._process(
            "kube-scheduler", programs.scheduler(folder / "kube-scheduler", files, scheduler)
        )
        self._agents = Agents(
            folder=self.folder,
            logs=self.logs,
            url=self.url,
            authority=self.authority,
            token=self._tokens["node-agent"],
            bridge=self._bridge,
            images=self._images,
            node_grace=self._node_grace,
        )
        self.etcd.start()
        self._until("etcd to answer", self.etcd, lambda: _etcd_is_healthy(store))
        self.apiserver.start()
        self.wait_ready()
        self.controller_manager.start()
        self.scheduler.start()
        client = self.client()
        self._until(
            "the first service account",
            self.controller_manager,
            lambda: client.get("ServiceAccount", "default", "default") is not None,
        )
        # One whose port was taken meanwhile has ended by now, and no pod would ever get a node.
        self._until("the scheduler", self.scheduler, lambda: _scheduler_is_ready(scheduler))
        self.add_nodes(self._first_nodes)

    def _process(self, name: str, command: list[str]) -> Process:
        process = Process(name, command, self.logs / f"{name}.log", directory=self.folder)
        self._processes.append(process)
        return process

    def _write_files(self, host: str) -> programs.Files:
        self.authority = Authority(self.folder / "certificates")
        self.ca_file = self.authority.certificate
        users = {
            ADMIN: "system:masters",
            "system:kube-controller-manager": "",
            "system:kube-scheduler": "",
            "node-agent": "system:masters",
        }
        self._tokens = {user: secrets.token_hex(16) for user in users}
        tokens = self.folder / "tokens.csv"
        tokens.touch(mode=0o600)
        tokens.write_text(
            "".join(f'{self._tokens[user]},{user},{user},"{users[user]}"\n' for user in users)
        )

        def config(user: str) -> Path:
            text = kubeconfig.document(self.url, self.ca_file, token=self._tokens[user])
            return kubeconfig.write(self.folder / f"{user.replace(':', '-')}.kubeconfig", text)

        #: Path of a kubeconfig that may do anything.
        self.kubeconfig = config(ADMIN)
        issue = self.authority.issue
        addresses = sorted({"127.0.0.1", host, "10.0.0.1"})
        names = ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"]
        return programs.Files(
            authority=self.ca_file,
            serving=issue("apiserver", common_name="apiserver", addresses=addresses, names=names),
            kubelet_client=issue(
                "kubelet-client", common_name="apiserver", organizations=["system:masters"]
            ),
            front_proxy=issue("front-proxy", common_name="front-proxy"),
            signer=signing_key(self.folder / "certificates", "service-account"),
            tokens=tokens,
            controller_manager=config("system:kube-controller-manager"),
            scheduler=config("system:kube-scheduler"),
        )

    def client(self, token: str | None = None, *, timeout: float = 30.0) -> Client:
        """A client of the tests' own kind; by default one that may do anything.

        The plane closes it when it stops.
        """
        made = Client(self.url, self.ca_file, token=token or self.admin_token, timeout=timeout)
        self._clients.append(made)
        return made

    @property
    def admin_token(self) -> str:
        """A bearer token of the group system:masters."""
        return self._tokens[ADMIN]

    @property
    def host(self) -> str:
        """The address that pods and this machine share; a test's webhook listens here."""
        return self._bridge.gateway if self._bridge else "127.0.0.1"

    @property
    def bridge_name(self) -> str:
        """The plane's bridge; the names of its pods' network namespaces begin with it."""
        return self._bridge.name if self._bridge else ""

    def kubeconfig_for(self, user: str, groups: Sequence[str] = ()) -> Path:
        """A kubeconfig with a client certificate of a user who has only the roles that you bind."""
        name = f"user-{user.replace(':', '-').replace('/', '-')}"
        pair = self.authority.issue(name, common_name=user, organizations=groups)
        config = kubeconfig.document(self.url, self.ca_file, pair=pair)
        return kubeconfig.write(self.folder / f"{name}.kubeconfig", config)

    def add_nodes(self, nodes: Sequence[Node]) -> None:
        """Start agents for more nodes and wait until the scheduler may use them."""
        if not nodes:
            return
        assert self._agents is not None
        if any(not node.hollow for node in nodes):
            require_namespaces()
        agents = self._agents.start(nodes)
        client = self.client(timeout=120)
        names = {node.name for node in nodes}

        def ready() -> bool:
            for agent in agents:
                agent.must_run()
            found = client.list("Node", resourceVersion="0")
            usable = {node["metadata"]["name"] for node in found if _usable(node)}
            return names <= usable

        self._until("nodes to be ready", agents[0], ready)

    def agent(self, node: str) -> Process:
        """The process that runs *node*; killing it is how a node dies."""
        assert self._agents is not None
        return self._agents.by_node[node]

    def wait_ready(self) -> None:
        """Wait until the API server answers that it is ready."""
        client = self.client()
        self._until(
            "the API server to be ready",
            self.apiserver,
            lambda: client.request("GET", "/readyz") == b"ok",
        )

    def _until(self, what: str, process: Process, done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + START_SECONDS
        while True:
            process.must_run()
            asked = time.monotonic()
            try:
                if done():
                    return
            except (ApiError, OSError, http.client.HTTPException):
                pass
            if time.monotonic() > deadline:
                raise ProcessError(
                    f"waited {START_SECONDS:g} s for {what}; the end of {process.log}:\n"
                    f"{process.log_end()}"
                )
            # Not more than half of the time, or looking at many nodes would slow down their coming.
            time.sleep(max(0.05, time.monotonic() - asked))

    @property
    def processes(self) -> list[Process]:
        """Every process that was started, running or not."""
        return [*self._processes, *(self._agents.processes if self._agents else [])]

    def stop(self) -> None:
        """End everything, in this order; the folder stays when `keep` is set, and is named."""
        for client in self._clients:
            client.close()
        pids = [pid for process in self.processes for pid in process.pids]
        if self._agents is not None:
            self._agents.stop()
        names = ("controller_manager", "scheduler", "apiserver", "etcd")
        for process in [getattr(self, name, None) for name in names]:
            if process is not None:
                process.stop()
        if self._bridge is not None:
            self._bridge.remove()
            self._bridge = None
        left = wait_until_gone(pids, 5)
        if self.keep:
            shutil.rmtree(self.folder / "data", ignore_errors=True)
            leftovers.keep(self.folder)
            print(f"controlplane: {self.kept_line()}", file=sys.stderr, flush=True)
        else:
            shutil.rmtree(self.folder, ignore_errors=True)
        if left:
            raise ProcessError(f"processes {left} are still there after the plane was stopped")

    def kept_line(self) -> str:
        """Where the logs are, and how long they stay."""
        return f"logs are kept in {self.folder}, as long as it is of the newest {leftovers.MOST}"

    def memory_table(self) -> str:
        """Resident memory of each process, now and at most, one line each."""
        lines = [f"{'process':<28}{'now':>10}{'peak':>10}"]
        for process in self.processes:
            now, peak = process.memory()
            lines.append(f"{process.name:<28}{now / 1e6:>7.0f} MB{peak / 1e6:>7.0f} MB")
        return "\n".join(lines)


def _etcd_is_healthy(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().read().startswith(b'{"health":"true"')
    finally:
        connection.close()


def _scheduler_is_ready(port: int) -> bool:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # It makes a certificate for itself, which nobody has signed.
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=5, context=tls)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().read() == b"ok"
    finally:
        connection.close()


def _usable(node: dict[str, object]) -> bool:
    """Ready, and without the taint that a node carries until a controller has seen it be so."""
    status, spec = node["status"], node["spec"]
    assert isinstance(status, dict)
    assert isinstance(spec, dict)
    conditions = {one["type"]: one["status"] for one in status.get("conditions", [])}
    taints = {one["key"] for one in spec.get("taints", [])}
    return conditions.get("Ready") == "True" and "node.kubernetes.io/not-ready" not in taints
