"""Probes of one run of a container: a thread for each that asks at its period and tells what changed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from tests.controlplane.agent.handlers import Place, act
from tests.controlplane.client import Document

#: Field of a container → name of the probe in events.
KINDS: Final = {
    "startupProbe": "Startup",
    "livenessProbe": "Liveness",
    "readinessProbe": "Readiness",
}
#: Kind of probe, whether the container passes it now, why not.
Verdict = Callable[[str, bool, str], None]


class Probes:
    """The probes of one run; they end when *ended* is set."""

    def __init__(
        self, container: Document, place: Place, ended: threading.Event, tell: Verdict
    ) -> None:
        self._place, self._ended, self._tell = place, ended, tell
        self._started = threading.Event()
        if "startupProbe" not in container:
            self._started.set()
        for field, name in KINDS.items():
            if field in container:
                threading.Thread(
                    target=self._ask, args=(name, container[field]), daemon=True
                ).start()

    def _ask(self, name: str, probe: Document) -> None:
        # The other probes hold their tongue until the container has started.
        if name != "Startup":
            while not self._started.wait(0.1):
                if self._ended.is_set():
                    return
        if self._ended.wait(probe.get("initialDelaySeconds", 0)):
            return
        passes, fails, period = 0, 0, probe.get("periodSeconds", 10)
        while True:
            reason = act(probe, self._place, probe.get("timeoutSeconds", 1))
            if self._ended.is_set():
                return
            passes, fails = (0, fails + 1) if reason else (passes + 1, 0)
            if passes == probe.get("successThreshold", 1):
                self._tell(name, True, "")
                if name == "Startup":
                    self._started.set()
                    return
            elif fails == probe.get("failureThreshold", 3):
                self._tell(name, False, reason)
            if self._ended.wait(period):
                return
