"""A hostengine that does as it is told, and the pieces that a run of the check needs around it."""

from __future__ import annotations

import io
import json
import os
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from aicr.errors import SERVICE_UNAVAILABLE, AicrError
from aicr.preflight.checks.dcgm import __main__ as program
from aicr.preflight.checks.dcgm.hostengine import (
    DiagnosticTest,
    EngineGpu,
    Entity,
    EntityError,
    EntityResult,
    Response,
    status_error,
)
from aicr.preflight.checks.environment_process import Completed
from aicr.preflight.health.events import Event

PASS, SKIP, WARN, FAIL, NOT_RUN = range(5)
#: Codes that the scripted bindings know, with their numbers in DCGM 4.
CODES: Mapping[int, str] = {
    27: "DCGM_FR_FIELD_QUERY",
    29: "DCGM_FR_PERSISTENCE_MODE",
    56: "DCGM_FR_MEMORY_ALLOC",
    62: "DCGM_FR_MEMORY_BANDWIDTH",
    101: "DCGM_FR_XID_ERROR",
}
#: A result: test, entity, DCGM's number. An entity is a GPU's number, or `switch`.
Result = tuple[str, int | str, int]
#: An error: test ("" for none), entity, code, text.
Problem = tuple[str, int | str, int, str]


def uuid(number: int) -> str:
    """The UUID of GPU *number* of the node."""
    return f"GPU-{number:08d}-aaaa-bbbb-cccc-dddddddddddd"


def answer(
    *results: Result, errors: Sequence[Problem] = (), tests: Mapping[str, int] | None = None
) -> Response:
    """An answer with these results; a test fails as a whole if a result of it does."""
    names = list(dict.fromkeys([result[0] for result in results] + list(tests or {})))
    made = []
    for name in names:
        places = tuple(place for place, result in enumerate(results) if result[0] == name)
        whole = max((results[place][2] % 4 for place in places), default=PASS)
        made.append(DiagnosticTest(name, (tests or {}).get(name, whole), places))
    return Response(
        tuple(made),
        tuple(
            EntityResult(_entity(who), number, names.index(name)) for name, who, number in results
        ),
        tuple(
            EntityError(_entity(who), names.index(name) if name in names else 127, code, text)
            for name, who, code, text in errors
        ),
    )


def _entity(who: int | str) -> Entity:
    return Entity(True, who) if isinstance(who, int) else Entity(False, 0)


def busy(name: str) -> AicrError:
    """A DCGM status."""
    return status_error(name, "said the hostengine")


#: What a run of the diagnostic does: answer, fail, or wait until it is stopped.
Step = Response | AicrError | Callable[["Engine"], Response]


@dataclass
class Engine:
    """A hostengine at `good:5555` on a node with eight GPUs; it is its own session."""

    steps: list[Step] = field(default_factory=list)
    known: Sequence[int] = tuple(range(8))
    good: str = "good:5555"
    asked: list[str] = field(default_factory=list)
    groups: list[list[int]] = field(default_factory=list)
    levels: list[int] = field(default_factory=list)
    stops: int = 0
    closed: int = 0
    stopped: threading.Event = field(default_factory=threading.Event)

    def connect(self, address: str) -> Engine:
        """Only the good address answers."""
        self.asked.append(address)
        if address != self.good:
            raise AicrError(SERVICE_UNAVAILABLE, "connection refused")
        return self

    def gpus(self) -> list[EngineGpu]:
        """In an order of its own, in capitals: UUIDs are no sensitive text."""
        return [EngineGpu(one, uuid(one).upper()) for one in reversed(self.known)]

    def mnemonics(self) -> Mapping[int, str]:
        """The codes above."""
        return CODES

    def group(self, ids: Sequence[int]) -> None:
        """Note the group."""
        self.groups.append(list(ids))

    def diagnose(self, level: int) -> Response:
        """Take the next step; the last one is repeated."""
        self.levels.append(level)
        step = self.steps.pop(0) if len(self.steps) > 1 else self.steps[0]
        if isinstance(step, AicrError):
            raise step
        return step if isinstance(step, Response) else step(self)

    def stop(self) -> None:
        """Note the stop, and end a run that waits."""
        self.stops += 1
        self.stopped.set()

    def close(self) -> None:
        """Note the end."""
        self.closed += 1


def waits(engine: Engine) -> Response:
    """A run that ends only when it is stopped."""
    engine.stopped.wait(20)
    raise busy("DCGM_ST_NVVS_KILLED")


def signals(number: signal.Signals) -> Callable[[Engine], Response]:
    """A run during which the process gets a signal."""

    def step(engine: Engine) -> Response:
        os.kill(os.getpid(), number)
        return waits(engine)

    return step


@dataclass
class Ended:
    """How a run of the program ended."""

    code: int
    events: list[Event]
    slept: list[float]
    log: list[dict[str, Any]]

    def messages(self) -> list[str]:
        """The log's messages."""
        return [line["msg"] for line in self.log]

    def line(self, message: str) -> dict[str, Any]:
        """The one line with a message."""
        (found,) = [line for line in self.log if line["msg"] == message]
        return found


def smi(*gpus: int, mig: Sequence[int] = (), failure: str = "") -> Callable[..., Completed]:
    """An nvidia-smi of a container that has these GPUs of the node."""

    def process(argv: Sequence[str], *, timeout: float, environ: Mapping[str, str]) -> Completed:
        assert argv[0] == "nvidia-smi"
        if failure:
            return Completed(9, "", failure)
        lines = [
            f"{uuid(one)}, {'Enabled' if one in mig else 'Disabled'}, NVIDIA H100 80GB HBM3"
            for one in gpus
        ]
        return Completed(0, "\n".join(lines) + "\n", "")

    return process


ENVIRON: Mapping[str, str] = {
    "DCGM_HOSTENGINE_ADDR": "good:5555",
    "PLATFORM_CONNECTOR_SOCKET": "/none",
    "NODE_NAME": "node-1",
    "AICR_LOG_FORMAT": "json",
}


def run(
    *steps: Step,
    gpus: Sequence[int] = (0, 1),
    mig: Sequence[int] = (),
    engine: Engine | None = None,
    process: Callable[..., Completed] | None = None,
    report: Callable[[Event], None] | None = None,
    environ: Mapping[str, str] | None = None,
    **variables: str,
) -> Ended:
    """Run the program; variables are keywords, and events are noted instead of sent."""
    events: list[Event] = []
    slept: list[float] = []
    stream = io.StringIO()
    made = engine or Engine()
    made.steps = list(steps) or made.steps or [answer(*(("software", one, PASS) for one in gpus))]

    def note(event: Event) -> None:
        events.append(event)
        if report is not None:
            report(event)

    code = program.main(
        {**ENVIRON, **(environ or {}), **variables},
        stream,
        engine=made,
        process=process or smi(*gpus, mig=mig),
        sleep=slept.append,
        report=note,
    )
    log = [json.loads(line) for line in stream.getvalue().splitlines()]
    return Ended(code, events, slept, log)
