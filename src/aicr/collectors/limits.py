"""Every waiting time of taking a snapshot in one object (decision 67).

The three limits of collectors are the original's (recipe spec 8.4); the outer one for the agent's Job is
the caller's ``--timeout``. Tests shorten all by ``AICR_TIMEOUT_FACTOR``. It must not know who waits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from aicr.values.waiting import Waits


@dataclass(frozen=True, slots=True)
class Limits(Waits):
    """Taking a snapshot."""

    KEPT: ClassVar[frozenset[str]] = frozenset(("doctor", "killed", "job_margin", "job_ttl"))

    #: One collector that looks at the machine.
    machine: float = 10.0
    #: The collector that asks the Kubernetes API.
    kubernetes: float = 60.0
    #: The collector that lists all nodes.
    topology: float = 90.0
    #: From the Job's creation until its snapshot is there (validators spec 1.1, ``--timeout``).
    agent: float = 300.0
    #: Between two looks at the agent's Job.
    poll: float = 1.0
    #: How long the scheduler may find no place before waiting is given up (decision 14).
    unschedulable: float = 30.0
    #: One question of `aicr doctor`; what does not answer must not hold it up.
    doctor: float = 20.0
    #: For a program that was killed to be gone; one that a driver holds in the kernel stays.
    killed: float = 2.0
    #: Removing what a run made, whatever happened to the run.
    cleanup: float = 30.0
    #: How much longer than `agent` its Job may live.
    job_margin: float = 60.0
    #: How long a finished one stays.
    job_ttl: float = 3600.0
