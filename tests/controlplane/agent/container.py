"""One container of a pod over all its runs: start, watch, stop, and what its status says.

Threads wait for the process and for probes; what they find out goes to the pod's own thread through
`post`, and only that thread changes a container. So nothing here needs a lock.

It must not know: the order in which a pod's containers run.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from tests.controlplane.agent.environment import ConfigError, expand
from tests.controlplane.agent.handlers import Place, act
from tests.controlplane.agent.launch import Launch, Mount, command
from tests.controlplane.agent.logs import Log, LogClock
from tests.controlplane.agent.probes import Probes
from tests.controlplane.agent.registration import now
from tests.controlplane.agent.settings import Image
from tests.controlplane.client import Document

#: First pause before a container is started again, and the longest. The real ones are 10 s and
#: 5 min; a test should not wait for that.
BACK_OFF_SECONDS: Final = 1.0
BACK_OFF_LIMIT: Final = 10.0
CONFIG_RETRY_SECONDS: Final = 1.0
LAUNCH_SECONDS: Final = 30.0
#: How much of a log becomes the termination message on FallbackToLogsOnError.
MESSAGE_BYTES: Final = 2048
MESSAGE_LINES: Final = 80


class Surroundings(Protocol):
    """What a container needs from its pod."""

    @property
    def clock(self) -> LogClock:
        """What gives the lines of a log their times."""

    def post(self, act: Callable[[], None]) -> None:
        """Let the pod's thread do something."""

    def event(self, kind: str, reason: str, message: str) -> None:
        """Record an event of the pod."""

    def image(self, name: str) -> Image | None:
        """An image that exists on this node."""

    def environment(self, container: Document, image: Image) -> dict[str, str]:
        """A container's variables."""

    def mounts(self, container: Document, variables: dict[str, str]) -> list[Mount]:
        """A container's volumes and the files that every container gets."""

    def launch(self, *, spec: Document, **own: Any) -> Launch:
        """Complete what a container wants to be launched with."""

    def place(self, pid: int, variables: dict[str, str], launch: Launch) -> Place:
        """How to reach a running container."""


@dataclass
class Run:
    """One run of the container."""

    number: int
    folder: Path
    child: subprocess.Popen[bytes]
    place: Place
    ended: threading.Event
    mounts_of: int = 0
    stopping: bool = False


class Container:
    """See the module."""

    def __init__(
        self, spec: Document, kind: str, around: Surroundings, folder: Path, restart: str
    ) -> None:
        self.spec, self.kind, self._around, self._folder = spec, kind, around, folder
        self.name = str(spec["name"])
        # A restart policy of its own makes an init container a sidecar.
        self.sidecar = kind == "init" and spec.get("restartPolicy") == "Always"
        self._restart = "Always" if self.sidecar else restart
        self.state: Document = {"waiting": {"reason": "PodInitializing"}}
        self.last_state: Document = {}
        self.restarts = 0
        self.started = False
        self.ready = False
        self.run: Run | None = None
        self._logs: dict[int, Log] = {}
        #: When to try again, on the monotonic clock; None while there is nothing to wait for.
        self.due: float | None = 0.0

    # -- what it is ------------------------------------------------------------------------------

    @property
    def exit_code(self) -> int | None:
        """Exit code of the last run, once it has ended and no other run is to come."""
        if "terminated" in self.state:
            return int(self.state["terminated"]["exitCode"])
        return None

    @property
    def finished(self) -> bool:
        """Whether it has ended and will not be started again."""
        code = self.exit_code
        return code is not None and not self._starts_again(code)

    @property
    def running(self) -> bool:
        """Whether its program runs."""
        return "running" in self.state

    @property
    def _has_run(self) -> bool:
        return bool(self.run or self.last_state or self.exit_code is not None)

    def _starts_again(self, code: int) -> bool:
        if self.kind == "init" and not self.sidecar:
            return code != 0 and self._restart != "Never"
        return self._restart == "Always" or (self._restart == "OnFailure" and code != 0)

    def lost(self, restarts: int) -> None:
        """Take note of a run that an earlier agent has started and nobody can watch any more."""
        stamp = now()
        gone = {
            "terminated": {
                "exitCode": 137,
                "reason": "ContainerStatusUnknown",
                "message": "the node agent was started again and its containers are gone",
                "startedAt": stamp,
                "finishedAt": stamp,
            }
        }
        if self._starts_again(137):
            self.restarts, self.last_state = restarts + 1, gone
        else:
            self.restarts, self.state, self.due = restarts, gone, None

    # -- starting --------------------------------------------------------------------------------

    def ensure(self) -> None:
        """Start it if it should run, does not, and its time has come."""
        if self.run is not None or self.finished:
            return
        if self.due is not None and time.monotonic() >= self.due:
            self._start()

    def _start(self) -> None:
        image = self._image()
        if image is None:
            return
        try:
            variables = self._around.environment(self.spec, image)
            mounts = self._around.mounts(self.spec, variables)
        except ConfigError as error:
            self._wait("CreateContainerConfigError", str(error), CONFIG_RETRY_SECONDS)
            self._around.event("Warning", "Failed", f"Error: {error}")
            return
        if "terminated" in self.state:
            self.last_state, self.restarts = self.state, self.restarts + 1
        folder = self._folder / str(self.restarts)
        folder.mkdir(parents=True)
        message = folder / "termination"
        message.touch()
        mounts.append(
            Mount(message, self.spec.get("terminationMessagePath", "/dev/termination-log"))
        )
        launch = self._around.launch(
            spec=self.spec,
            folder=folder,
            argv=_argv(self.spec, image, variables),
            workdir=self.spec.get("workingDir") or image.workdir,
            mounts=mounts,
        )
        log = Log(folder / "log")
        with log.path.open("ab") as output:
            child = subprocess.Popen(
                command(launch),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=variables,
                start_new_session=True,
            )
        self._around.clock.add(log)
        self.due = None
        self.state = {"waiting": {"reason": "ContainerCreating"}}
        place = self._around.place(child.pid, variables, launch)
        self.run = Run(self.restarts, folder, child, place, threading.Event())
        # After the run: a log without one has ended, and whoever follows it would be told so.
        self._logs[self.restarts] = log
        threading.Thread(target=self._follow, args=(self.run,), daemon=True).start()

    def _image(self) -> Image | None:
        name = self.spec["image"]
        image = self._around.image(name)
        if image is not None:
            return image
        if self.spec.get("imagePullPolicy") == "Never":
            text = f'Container image "{name}" is not present with pull policy of Never'
            self._wait("ErrImageNeverPull", text, None)
            self._around.event("Warning", "ErrImageNeverPull", text)
        elif self.state.get("waiting", {}).get("reason") == "ErrImagePull":
            self._wait("ImagePullBackOff", f'Back-off pulling image "{name}"', None)
            self._around.event("Normal", "BackOff", f'Back-off pulling image "{name}"')
        else:
            text = f'failed to pull image "{name}": not in images.yaml of the test node agent'
            self._wait("ErrImagePull", text, BACK_OFF_SECONDS)
            self._around.event("Warning", "Failed", f"Failed to pull: {text}")
        return None

    def _wait(self, reason: str, message: str, seconds: float | None) -> None:
        self.state = {"waiting": {"reason": reason, "message": message}}
        self.due = None if seconds is None else time.monotonic() + seconds

    # -- running ---------------------------------------------------------------------------------

    def _follow(self, run: Run) -> None:
        """Wait until the program runs, then until it has ended; in a thread of its own."""
        deadline = time.monotonic() + LAUNCH_SECONDS
        up = run.folder / "up"
        while run.child.poll() is None and not (up.exists() and up.stat().st_size):
            if time.monotonic() > deadline:
                run.child.kill()
            time.sleep(0.005)
        if up.exists() and up.stat().st_size:
            # Held open until its processes are gone: a number that is free again may be another's.
            held = None
            with contextlib.suppress(OSError):
                held = os.open(f"/proc/{run.child.pid}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
                run.mounts_of = os.fstat(held).st_ino
            started = now()
            self._around.post(lambda: self._on_running(run, started))
            code = run.child.wait()
            end_all(run.mounts_of)
            if held is not None:
                os.close(held)
            self._around.clock.remove(self._logs[run.number])
            run.ended.set()
            self._around.post(lambda: self._on_exit(run, code, started))
            return
        run.child.wait()
        self._around.clock.remove(self._logs[run.number])
        run.ended.set()
        reason = (run.folder / "setup").read_text(errors="replace").strip()
        self._around.post(lambda: self._on_broken(run, reason))

    def _on_running(self, run: Run, started: str) -> None:
        self.state = {"running": {"startedAt": started}}
        self.started = "startupProbe" not in self.spec
        self.ready = self.started and "readinessProbe" not in self.spec
        self._around.event("Normal", "Started", f"Started container {self.name}")
        Probes(
            self.spec,
            run.place,
            run.ended,
            lambda name, good, why: self._around.post(lambda: self._on_probe(run, name, good, why)),
        )
        if hook := self.spec.get("lifecycle", {}).get("postStart"):
            threading.Thread(target=self._post_start, args=(run, hook), daemon=True).start()

    def _post_start(self, run: Run, hook: Document) -> None:
        if reason := act(hook, run.place, LAUNCH_SECONDS):
            self._around.event("Warning", "FailedPostStartHook", reason)
            self.stop(run, 0)

    def _on_probe(self, run: Run, name: str, good: bool, why: str) -> None:
        if run is not self.run or not self.running:
            return
        if not good:
            self._around.event("Warning", "Unhealthy", f"{name} probe failed: {why}")
        if name == "Readiness":
            self.ready = good and self.started
        elif good and name == "Startup":
            self.started = True
            self.ready = "readinessProbe" not in self.spec
        elif not good:
            text = f"Container {self.name} failed {name.lower()} probe, will be restarted"
            self._around.event("Normal", "Killing", text)
            seconds = self.spec.get(f"{name.lower()}Probe", {}).get("terminationGracePeriodSeconds")
            threading.Thread(
                target=self.stop, args=(run, 5 if seconds is None else seconds), daemon=True
            ).start()

    def _on_exit(self, run: Run, code: int, started: str) -> None:
        # A process that a signal ended has that number plus 128, as a shell says it.
        code = 128 - code if code < 0 else code
        ended: Document = {
            "exitCode": code,
            "reason": "Completed" if code == 0 else "Error",
            "startedAt": started,
            "finishedAt": now(),
            "containerID": self.container_id,
        }
        if message := self._message(run, code):
            ended["message"] = message
        self._ended({"terminated": ended}, code)

    def _on_broken(self, run: Run, reason: str) -> None:
        text = f"failed to create containerd task: {reason or 'the container did not come up'}"
        self._around.event("Warning", "Failed", f"Error: {text}")
        stamp = now()
        ended = {"exitCode": 128, "reason": "StartError", "message": text}
        self._ended({"terminated": {**ended, "startedAt": stamp, "finishedAt": stamp}}, 128)

    def _ended(self, state: Document, code: int) -> None:
        self.state, self.run, self.started, self.ready = state, None, False, False
        if not self._starts_again(code):
            self.due = None
            return
        pause = min(BACK_OFF_SECONDS * 2**self.restarts, BACK_OFF_LIMIT)
        self.due = time.monotonic() + pause
        if self.restarts:
            self._around.event(
                "Warning", "BackOff", f"Back-off restarting failed container {self.name}"
            )

    def _message(self, run: Run, code: int) -> str:
        message = (run.folder / "termination").read_bytes()[:4096]
        if (
            not message
            and code
            and self.spec.get("terminationMessagePolicy", "").startswith("Fallb")
        ):
            log = (run.folder / "log").read_bytes()[-MESSAGE_BYTES:]
            message = b"".join(log.splitlines(keepends=True)[-MESSAGE_LINES:])
        return message.decode(errors="replace")

    # -- stopping --------------------------------------------------------------------------------

    def stop(self, run: Run | None, seconds: float) -> None:
        """preStop hook, TERM, and KILL when it has not ended after *seconds*; waits for the end."""
        if run is None or run.stopping:
            if run is not None:
                run.ended.wait()
            return
        run.stopping = True
        deadline = time.monotonic() + seconds
        hook = self.spec.get("lifecycle", {}).get("preStop")
        if hook and seconds > 0 and (reason := act(hook, run.place, seconds)):
            self._around.event("Warning", "FailedPreStopHook", reason)
        if not run.ended.is_set():
            with contextlib.suppress(ProcessLookupError):
                run.child.send_signal(signal.SIGTERM)
        if not run.ended.wait(max(0.0, deadline - time.monotonic())):
            with contextlib.suppress(ProcessLookupError):
                run.child.kill()
            run.ended.wait()

    # -- status ----------------------------------------------------------------------------------

    @property
    def container_id(self) -> str:
        """Names this run of the container."""
        return f"aicr-test://{self._folder.parent.parent.name}-{self.name}-{self.restarts}"

    def status(self, *, final: bool) -> Document:
        """Its entry in the pod's status; *final* when it will not be started again whatever happens."""
        state = self.state
        last = self.last_state
        if "terminated" in state and not final and not self.finished and self.restarts:
            last = state
            text = f"back-off restarting failed container={self.name}"
            state = {"waiting": {"reason": "CrashLoopBackOff", "message": text}}
        status: Document = {
            "name": self.name,
            "image": self.spec["image"],
            "imageID": f"aicr-test://{self.spec['image']}" if self._has_run else "",
            "restartCount": self.restarts,
            "ready": self.exit_code == 0
            if self.kind == "init" and not self.sidecar
            else self.ready,
            "started": self.started,
            "state": state,
            "lastState": last,
        }
        if self.running or "terminated" in self.state:
            status["containerID"] = self.container_id
        return status

    def log(self, previous: bool) -> tuple[Log, Callable[[], bool]]:
        """The log of the present or the previous run, and whether it can grow no more.

        Raises:
            LookupError: there was no such run.
        """
        number = self.restarts - 1 if previous else self.restarts
        log = self._logs.get(number)
        if log is None:
            if previous:
                raise LookupError(f'previous terminated container "{self.name}" not found')
            reason = self.state.get("waiting", {}).get("reason", "")
            raise LookupError(f'container "{self.name}" is waiting to start: {reason}')
        run = self.run
        if run is None or run.number != number:
            return log, lambda: True
        return log, run.ended.is_set


def _argv(spec: Document, image: Image, variables: dict[str, str]) -> list[str]:
    """Command and arguments: the pod's replace the image's as in any container runtime."""
    command, arguments = spec.get("command") or [], spec.get("args") or []
    ours = [expand(word, variables) for word in [*command, *arguments]]
    if command:
        return ours
    return [*image.entrypoint, *(ours or image.cmd)]


def end_all(mounts_of: int) -> None:
    """Kill every process of a mount namespace: what a container's first process has left behind."""
    # Never our own namespace, whatever happened to the pid that it was read from.
    if mounts_of in (0, os.stat("/proc/self/ns/mnt").st_ino):
        return
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError):
                if os.stat(f"/proc/{entry}/ns/mnt").st_ino == mounts_of:
                    os.kill(int(entry), signal.SIGKILL)
