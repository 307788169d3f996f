"""The port to a DCGM hostengine, and the plain documents that cross it.

The real adapter is `bindings`; tests script one. Failures are AicrErrors. One that carries a DCGM status
has its name in the context under `status`: it may pass, so a run that met it is tried again. It must not
know: ctypes, retries, events.
Source: preflight specification 6.3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from aicr.errors import SERVICE_UNAVAILABLE, AicrError

GROUP_NAME: Final = "nvsentinel-preflight-diag"
ALREADY_RUNNING: Final = "DCGM_ST_DIAG_ALREADY_RUNNING"
TIMED_OUT: Final = "DCGM_ST_TIMEOUT"


@dataclass(frozen=True)
class EngineGpu:
    """A GPU as the hostengine knows it: its number there, and its UUID."""

    id: int
    uuid: str


@dataclass(frozen=True)
class Entity:
    """What a result is about; only a GPU's number is a GPU's number (preflight known bugs, S2)."""

    is_gpu: bool
    id: int


@dataclass(frozen=True)
class EntityResult:
    """The result of a test on one entity; `result` is DCGM's number."""

    entity: Entity
    result: int
    test: int


@dataclass(frozen=True)
class EntityError:
    """What DCGM says about a test on an entity; code 0 means none."""

    entity: Entity
    test: int
    code: int
    message: str


@dataclass(frozen=True)
class DiagnosticTest:
    """One test of a run; `results` are places in the answer's list of results."""

    name: str
    result: int
    results: tuple[int, ...]


@dataclass(frozen=True)
class Response:
    """The answer of a run."""

    tests: tuple[DiagnosticTest, ...]
    results: tuple[EntityResult, ...]
    errors: tuple[EntityError, ...]


class Session(Protocol):
    """A connection to one hostengine."""

    def gpus(self) -> Sequence[EngineGpu]:
        """The GPUs of the node."""

    def mnemonics(self) -> Mapping[int, str]:
        """Error code → DCGM_FR_* name."""

    def group(self, ids: Sequence[int]) -> None:
        """Make the group of these GPUs; the session has one."""

    def diagnose(self, level: int) -> Response:
        """Run the diagnostic on the group; blocks until it is done or stopped."""

    def stop(self) -> None:
        """Stop the diagnostic that the hostengine runs now, whoever started it."""

    def close(self) -> None:
        """Delete the group and disconnect; failures of that are no longer of interest."""


class Hostengine(Protocol):
    """A way to connect."""

    def connect(self, address: str) -> Session:
        """Connect to `host:port`, or raise AicrError."""


def status_error(status: str, details: str) -> AicrError:
    """A failure that carries a DCGM status."""
    return AicrError(
        SERVICE_UNAVAILABLE,
        f"{status}: {details}" if details else status,
        context={"status": status},
    )


def status_of(error: AicrError) -> str:
    """The DCGM_ST_* name of a failure, or ""."""
    return str(error.context.get("status", ""))
