"""Documents and orders for tests of runs, as short as they can be written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from aicr.validate.catalog import Entry, ValidatorCatalog
from aicr.validate.environment import Setting
from aicr.validate.gpu_policy import UNSPECIFIED
from aicr.validate.plan import JobPlan, Place
from aicr.validate.results import CheckResult, PhaseResult
from aicr.validate.run import Order
from aicr.validate.timing import Timing

RUN = "20260102-030405-00112233445566ff"
#: Enough for a busy machine. What is waited for so long ends as soon as it has come.
ENOUGH = 20.0
#: Short pauses; times that no test waits for.
FAST = replace(
    Timing().scaled(0.001),
    wait_buffer=ENOUGH,
    create=ENOUGH,
    cleanup=ENOUGH,
    pod_gone=ENOUGH,
    schedule=ENOUGH,
    pod_created=ENOUGH,
    pull=ENOUGH,
    log=ENOUGH,
)
#: For pods that never come to anything.
IMPATIENT = replace(FAST, wait_buffer=0.2, schedule=0.3, pod_created=0.3, pull=0.3)


def entry(name: str, phase: str = "deployment", **fields: Any) -> Entry:
    """A check of the catalogue."""
    return Entry(**{"name": name, "phase": phase, "image": "r/x:v1", "args": (name,), **fields})


def recipe(
    constraints: Sequence[Mapping[str, Any]] = (), **checks: Sequence[str]
) -> dict[str, Any]:
    """A recipe that declares checks: phase → names."""
    return {
        "kind": "RecipeResult",
        "constraints": list(constraints),
        "componentRefs": [{"name": "gpu-operator", "namespace": "gpu-operator"}],
        "validation": {phase: {"checks": list(names)} for phase, names in checks.items()},
    }


def order(
    document: Mapping[str, Any], entries: Sequence[Entry], timing: Timing = FAST, **fields: Any
) -> Order:
    """What a run is asked for."""
    stated: dict[str, Any] = {
        "recipe": document,
        "snapshot": {"kind": "Snapshot", "measurements": []},
        "catalog": ValidatorCatalog(tuple(entries)),
        "place": Place("checks", RUN),
        "setting": Setting(RUN),
        "timing": timing,
        "policy": UNSPECIFIED,
    }
    return Order(**{**stated, **fields})


class Heard:
    """A `Progress` that remembers."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.warnings: list[str] = []
        self.notes: list[str] = []
        self.logged: list[str] = []

    def phase_started(self, phase: str, names: list[str]) -> None:
        """Remember it."""
        self.events.append(f"phase {phase} {len(names)}")

    def started(self, planned: JobPlan) -> None:
        """Remember it."""
        self.events.append(f"started {planned.name}")

    def log(self, check: str, line: str) -> None:
        """Remember it."""
        self.logged.append(f"{check}: {line}")

    def finished(self, result: CheckResult) -> None:
        """Remember it."""
        self.events.append(f"finished {result.name} {result.status}")

    def phase_finished(self, result: PhaseResult) -> None:
        """Remember it."""
        self.events.append(f"done {result.phase} {result.status}")

    def note(self, text: str) -> None:
        """Remember it."""
        self.notes.append(text)

    def warn(self, text: str) -> None:
        """Remember it."""
        self.warnings.append(text)
