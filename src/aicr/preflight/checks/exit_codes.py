"""How the check programs end: exit codes, what each means, and what STORE_ONLY does to them.

The exit code decides whether the pod starts; the events have said already what happens to the node. The
two are independent: a check can exit 0 with an unhealthy event, and 1 without a fatal one.
Source: preflight seed, "Check the exit code"; preflight specification 6.5 and 7.4.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from aicr.preflight.health.events import STORE_ONLY, Event

DCGM_DIAG: Final = "preflight-dcgm-diag"
NCCL_LOOPBACK: Final = "preflight-nccl-loopback"
NCCL_ALLREDUCE: Final = "preflight-nccl-allreduce"

PASSED: Final = 0
FAILED: Final = 1
#: Second code of the NCCL checks; dcgm-diag reports a wrong configuration as 1.
MISCONFIGURED: Final = 2
LOOPBACK_NOT_SENT: Final = 3
GANG_TIMEOUT: Final = 3
ALLREDUCE_NOT_SENT: Final = 4

#: Check → code → meaning (preflight seed); `aicr preflight run` says it, and a test holds the manual to it.
MEANING: Final[Mapping[str, Mapping[int, str]]] = {
    DCGM_DIAG: {
        PASSED: "passed, or reported a finding that is not fatal",
        FAILED: "a test failed, DCGM could not be reached, or the configuration is wrong",
    },
    NCCL_LOOPBACK: {
        PASSED: "passed, or there is one GPU and so nothing to test",
        FAILED: "the bandwidth is below the threshold, or the benchmark did not run",
        MISCONFIGURED: "the configuration is wrong",
        LOOPBACK_NOT_SENT: "the health event could not be sent",
    },
    NCCL_ALLREDUCE: {
        PASSED: "passed",
        FAILED: "the bandwidth is degraded, the all-reduce timed out, or NCCL did not start",
        MISCONFIGURED: "the gang's configuration is wrong (NCCL_GANG_CONFIG_ERROR)",
        GANG_TIMEOUT: "the gang did not form in time (NCCL_GANG_TIMEOUT)",
        ALLREDUCE_NOT_SENT: "the health event could not be sent",
    },
}

#: What operators search logs for.
MASKED: Final = "Check failed (STORE_ONLY — not blocking pod)"

#: Verdicts of an outcome.
PASS: Final = "passed"
WARNED: Final = "passed with warnings"
FAIL: Final = "failed"
NOT_TESTED: Final = "could not test"


@dataclass(frozen=True)
class Outcome:
    """How a run ended, before STORE_ONLY is applied."""

    check: str
    exit_code: int
    verdict: str
    #: One sentence for a person.
    message: str
    events: tuple[Event, ...] = ()
    #: Messages of the sends that failed.
    unsent: tuple[str, ...] = ()
    #: Figures of the run, under wire-style keys.
    details: Mapping[str, Any] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """The outcome as a plain document."""
        return {
            "check": self.check,
            "exitCode": self.exit_code,
            "verdict": self.verdict,
            "message": self.message,
            "details": dict(self.details),
            "events": [event.document() for event in self.events],
            "unsent": list(self.unsent),
        }


def gate(code: int, strategy: str, warn: Callable[[str], None]) -> int:
    """The code that the program exits with: under STORE_ONLY, and only then, a failure becomes 0.

    Not for a wrong configuration: whoever calls this has read the configuration.
    """
    if code and strategy == STORE_ONLY:
        warn(MASKED)
        return PASSED
    return code


def of_signal(number: int) -> int:
    """What a program says that a signal ended (143 for SIGTERM, 130 for SIGINT)."""
    return 128 + number
