"""One pod: a thread that makes its surroundings, runs its containers in order, and ends it.

Design: everything that happens (a process ended, a probe changed its mind, the API server sent a new
version, time passed) is a function put into the pod's queue. The thread takes one, then `_advance`
looks at the whole state and does what is due, then `_publish` sends the status if it has changed.
So there is one place that decides, and it does not matter in which order news arrives.
"""

from __future__ import annotations

import http.client
import os
import queue
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from tests.controlplane.agent import claims, environment, status
from tests.controlplane.agent.container import Container
from tests.controlplane.agent.environment import ConfigError
from tests.controlplane.agent.handlers import Place
from tests.controlplane.agent.launch import Launch, Mount
from tests.controlplane.agent.logs import LogClock
from tests.controlplane.agent.registration import now, say
from tests.controlplane.agent.sandbox import Sandbox
from tests.controlplane.agent.services import Services
from tests.controlplane.agent.settings import Image
from tests.controlplane.agent.volumes import Volumes
from tests.controlplane.client import STRATEGIC, ApiError, Document, path_of
from tests.controlplane.network import MARK, NetworkError

PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
RETRY_SECONDS: Final = 0.5
#: How often files from the API are looked at again; a minute in production.
REFRESH_SECONDS: Final = 5.0
GRACE_SECONDS: Final = 30


class PodWorker:
    """See the module."""

    def __init__(self, services: Services, pod: Document) -> None:
        self._services, self.pod = services, pod
        meta, spec = pod["metadata"], pod["spec"]
        self.uid, self.name, self.namespace = meta["uid"], meta["name"], meta["namespace"]
        self.key = (self.namespace, self.name)
        self._folder: Path = services.settings.state / "pods" / self.uid
        shutil.rmtree(self._folder, ignore_errors=True)
        (self._folder / "shm").mkdir(parents=True)
        restart = spec.get("restartPolicy", "Always")

        def made(one: Document, kind: str) -> Container:
            return Container(one, kind, self, self._folder / "containers" / one["name"], restart)

        self.inits = [made(one, "init") for one in spec.get("initContainers", [])]
        self.mains = [made(one, "main") for one in spec["containers"]]
        self._volumes = Volumes(
            self._folder / "volumes",
            services.settings.state / "disk",
            services.settings.document,
            lambda kind, name: services.lookup(kind, self.namespace, name),
            lambda audience, seconds: services.token(self.pod, audience, seconds),
        )
        self._queue: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._sandbox: Sandbox | None = None
        self._devices: dict[tuple[str, str], list[str]] = {}
        self._prepared = False
        self._began = 0.0
        self._start_time = pod["status"].get("startTime") or now()
        self._retry_at = 0.0
        self._refresh_at = 0.0
        self._stopping = False
        self._stopped = False
        self._over = False
        self._failure: Document = {}
        self._published: Document = {}
        self._said: set[tuple[str, str]] = set()
        self._note_lost_runs()
        self._thread = threading.Thread(target=self._run, name=self.name, daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def update(self, pod: Document) -> None:
        """Take a newer version of the pod from the API."""

        def take() -> None:
            # What the scheduler and others wrote is theirs; our part of the status is not read back.
            self.pod = {**pod, "status": {**pod["status"], **self._own_addresses()}}
            if pod["spec"].get("ephemeralContainers"):
                text = "the test node agent runs no ephemeral containers"
                self.event("Warning", "Failed", text)

        self.post(take)

    def gone(self) -> None:
        """The pod is no more in the API: end it at once."""

        def vanish() -> None:
            meta = {**self.pod["metadata"], "deletionTimestamp": now()}
            self.pod = {**self.pod, "metadata": {**meta, "deletionGracePeriodSeconds": 0}}

        self.post(vanish)

    def end_now(self) -> None:
        """The node is being stopped: kill everything, tell nobody."""
        self._over = True
        self.post(lambda: None)
        for one in [*self.inits, *self.mains]:
            if one.run is not None:
                one.stop(one.run, 0)

    # -- what containers need (container.Surroundings) -------------------------------------------

    @property
    def clock(self) -> LogClock:
        """What gives the lines of a log their times."""
        return self._services.clock

    def post(self, act: Callable[[], None]) -> None:
        """Let the pod's thread do something."""
        self._queue.put(act)

    def event(self, kind: str, reason: str, message: str) -> None:
        """Record an event of the pod, once for each text."""
        if (reason, message) not in self._said:
            self._said.add((reason, message))
            self._services.event(self.pod, kind, reason, message)

    def image(self, name: str) -> Image | None:
        """An image that exists on this node."""
        return self._services.settings.images.get(name)

    def environment(self, container: Document, image: Image) -> dict[str, str]:
        """A container's variables; ConfigError when one cannot be had."""
        cluster = self._services.cluster
        start = {
            "PATH": PATH,
            "HOME": os.path.expanduser("~root"),
            "HOSTNAME": self._hostname,
            **image.env,
            "KUBERNETES_SERVICE_HOST": cluster.host,
            "KUBERNETES_SERVICE_PORT": str(cluster.port),
            "KUBERNETES_SERVICE_PORT_HTTPS": str(cluster.port),
        }
        node = self._services.settings.document
        result = environment.container_environment(
            self.pod,
            container,
            start,
            node,
            lambda kind, name: self._services.lookup(kind, self.namespace, name),
        )
        result.update(claims.devices_for(container, self._devices))
        if self._sandbox is None:
            # Without a network namespace of its own, this is how a pod's processes are found.
            result[MARK] = f"{self._services.settings.network.bridge}-{self.uid}"
        return result

    def mounts(self, container: Document, variables: dict[str, str]) -> list[Mount]:
        """A container's volumes and the files that every container gets."""
        own = [Mount(self._folder / "shm", "/dev/shm"), Mount(self._folder / "hosts", "/etc/hosts")]
        return [*own, *self._volumes.mounts(container, variables)]

    def launch(self, *, spec: Document, **own: Any) -> Launch:
        """Complete what a container wants to be launched with."""
        context = {**self.pod["spec"].get("securityContext", {}), **spec.get("securityContext", {})}
        return Launch(
            namespace=self._sandbox.namespace if self._sandbox else None,
            hostname=self._hostname,
            visible=self._services.settings.visible,
            user=context.get("runAsUser"),
            group=context.get("runAsGroup"),
            read_only_root=bool(context.get("readOnlyRootFilesystem")),
            **own,
        )

    def place(self, pid: int, variables: dict[str, str], launch: Launch) -> Place:
        """How to reach a running container."""
        ports = {
            port["name"]: port["containerPort"]
            for one in [*self.mains, *self.inits]
            for port in one.spec.get("ports", [])
            if "name" in port
        }
        return Place(pid, self._address, ports, variables, launch.user, launch.group)

    @property
    def _hostname(self) -> str:
        if self.pod["spec"].get("hostNetwork"):
            return self._services.settings.name
        return str(self.pod["spec"].get("hostname") or self.name)[:63].rstrip("-.")

    @property
    def _address(self) -> str:
        if self._sandbox is not None:
            return self._sandbox.address
        return self._services.settings.network.address

    # -- the thread ------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._over:
            try:
                self._advance()
                self._publish()
                if self._over:
                    break
                self._queue.get(timeout=self._pause())()
            except queue.Empty:
                continue
            except (ApiError, OSError, http.client.HTTPException) as error:
                say(f"pod {self.namespace}/{self.name}: {error}")
                time.sleep(RETRY_SECONDS)
        self._services.forget(self)

    def _pause(self) -> float:
        times = [time.monotonic() + 60]
        if not self._stopping:
            if not self._prepared:
                times.append(self._retry_at)
            elif self._volumes.changing(self.pod):
                times.append(self._refresh_at)
            times += [one.due for one in self._everyone() if one.due]
            if (deadline := self._deadline()) is not None:
                times.append(time.monotonic() + deadline - time.time())
        return max(0.001, min(times) - time.monotonic())

    def _everyone(self) -> list[Container]:
        return [*self.inits, *self.mains]

    def _note_lost_runs(self) -> None:
        status = self.pod["status"]
        for one in self._everyone():
            field = "containerStatuses" if one.kind == "main" else "initContainerStatuses"
            for known in status.get(field, []):
                if known["name"] == one.name and known.get("containerID"):
                    done = known["state"].get("terminated", {}).get("exitCode") == 0
                    if one.kind == "main" or not done:
                        one.lost(known["restartCount"])

    def _deadline(self) -> float | None:
        """When the pod has run for as long as it may, in seconds since the epoch."""
        seconds = self.pod["spec"].get("activeDeadlineSeconds")
        return None if seconds is None or not self._prepared else self._began + float(seconds)

    def _advance(self) -> None:
        if self._stopping:
            if self._stopped:
                self._finish()
            return
        deadline = self._deadline()
        if self.pod["metadata"].get("deletionTimestamp"):
            self._stop(self.pod["metadata"].get("deletionGracePeriodSeconds", GRACE_SECONDS))
        elif deadline is not None and time.time() >= deadline:
            text = "Pod was active on the node longer than the specified deadline"
            self._failure = {"phase": "Failed", "reason": "DeadlineExceeded", "message": text}
            self._stop(self._grace)
        elif self._prepared or self._prepare():
            if time.monotonic() >= self._refresh_at:
                self._refresh()
            self._run_containers()

    @property
    def _grace(self) -> float:
        return float(self.pod["spec"].get("terminationGracePeriodSeconds", GRACE_SECONDS))

    def _prepare(self) -> bool:
        """Claims, network, volumes; whether all are there."""
        if time.monotonic() < self._retry_at:
            return False
        try:
            if self.pod["spec"].get("resourceClaims"):
                self._devices = self._services.driver.prepare(self.pod)
            if self._sandbox is None and not self.pod["spec"].get("hostNetwork"):
                settings = self._services.settings
                self._sandbox = Sandbox(
                    settings.network, self._services.addresses, settings.name, self.uid
                )
            self.pod["status"].update(self._own_addresses())
            self._volumes.prepare(self.pod)
        except (claims.ClaimError, NetworkError, ConfigError) as error:
            reasons = {
                claims.ClaimError: "FailedPrepareDynamicResources",
                NetworkError: "FailedCreatePodSandBox",
                ConfigError: "FailedMount",
            }
            self.event("Warning", reasons[type(error)], str(error))
            for one in self._everyone():
                one.state = {"waiting": {"reason": "ContainerCreating", "message": str(error)}}
            self._retry_at = time.monotonic() + RETRY_SECONDS
            return False
        self._write_hosts()
        self._prepared, self._began = True, time.time()
        self._refresh_at = time.monotonic() + REFRESH_SECONDS
        return True

    def _own_addresses(self) -> Document:
        own: Document = {"hostIP": self._services.settings.network.address}
        own["hostIPs"] = [{"ip": own["hostIP"]}]
        if self._sandbox is not None or self.pod["spec"].get("hostNetwork"):
            own |= {"podIP": self._address, "podIPs": [{"ip": self._address}]}
        return own

    def _write_hosts(self) -> None:
        lines = ["127.0.0.1 localhost", f"{self._address} {self._hostname}"]
        for alias in self.pod["spec"].get("hostAliases", []):
            lines.append(f"{alias['ip']} {' '.join(alias['hostnames'])}")
        (self._folder / "hosts").write_text("\n".join([*lines, ""]), encoding="utf-8")

    def _refresh(self) -> None:
        self._refresh_at = time.monotonic() + REFRESH_SECONDS
        if self._volumes.changing(self.pod):
            try:
                self._volumes.prepare(self.pod)
            except ConfigError as error:
                self.event("Warning", "FailedMount", str(error))

    def _run_containers(self) -> None:
        for one in self.inits:
            if one.sidecar:
                one.ensure()
                if not one.started:
                    return
            elif one.exit_code != 0:
                if one.finished:
                    self._stop(self._grace)
                else:
                    one.ensure()
                return
        for one in self.mains:
            one.ensure()
        if all(one.finished for one in self.mains):
            self._stop(self._grace)

    # -- the end ---------------------------------------------------------------------------------

    def _stop(self, seconds: float) -> None:
        self._stopping = True
        threading.Thread(target=self._stop_containers, args=(seconds,), daemon=True).start()

    def _stop_containers(self, seconds: float) -> None:
        """Main containers together, then sidecars in reverse, all within the one grace period."""
        deadline = time.monotonic() + seconds
        plain = [one for one in self._everyone() if not one.sidecar]
        threads = [
            threading.Thread(target=one.stop, args=(one.run, seconds), daemon=True)
            for one in plain
            if one.run is not None
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for one in reversed([one for one in self.inits if one.sidecar]):
            one.stop(one.run, max(0.0, deadline - time.monotonic()))

        def done() -> None:
            self._stopped = True

        # Behind the news of the containers' ends, so that the last status has their exit codes.
        self.post(done)

    def _finish(self) -> None:
        """Take everything down, say the last word, and let a deleted pod go."""
        if self._sandbox is not None:
            self._sandbox.remove()
            self._sandbox = None
        self._services.driver.release(self.uid)
        self._publish(last=True)
        if not self.pod["metadata"].get("deletionTimestamp"):
            # Stays for its logs until it is deleted; then there is nothing left to stop.
            if self._queue.empty():
                self._queue.get()()
            return
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": self.uid}}
        try:
            self._services.client.delete("Pod", self.name, self.namespace, options)
        except ApiError as error:
            # 409: another pod of that name; ours is gone.
            if error.status != 409:
                raise
        shutil.rmtree(self._folder, ignore_errors=True)
        self._over = True

    def _publish(self, *, last: bool = False) -> None:
        if self._stopping and self._stopped and not last:
            return
        ended = status.phase(self.inits, self.mains, stopped=self._stopped)
        old = self._published.get("conditions") or self.pod["status"].get("conditions", [])
        new: Document = {
            "phase": ended,
            "startTime": self._start_time,
            "observedGeneration": self.pod["metadata"].get("generation", 0),
            **self._own_addresses(),
            **self._failure,
            "conditions": status.conditions(
                self.pod,
                self.inits,
                self.mains,
                sandbox=self._prepared and not self._stopped,
                ended=ended,
                old=old,
            ),
            "containerStatuses": [one.status(final=self._stopping) for one in self.mains],
        }
        if self.inits:
            new["initContainerStatuses"] = [one.status(final=self._stopping) for one in self.inits]
        if not self._stopped and self._failure:
            del new["phase"]
        if new == self._published:
            return
        path = f"{path_of('Pod', self.namespace, self.name)}/status"
        patch = {"metadata": {"uid": self.uid}, "status": new}
        try:
            self._services.client.request("PATCH", path, patch, content_type=STRATEGIC)
        except ApiError as error:
            # Gone, or another pod of that name: there is nobody left to tell.
            if error.status not in (404, 409):
                raise
        self._published = new
