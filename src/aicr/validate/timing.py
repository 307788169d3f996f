"""Every waiting time of a validation run in one object (decision 67).

Three deadlines nest, so that the inner one always speaks first: the check's own budget T, the
wait T + 2m30s, the Job's T + 3m30s. The last one deletes the pod, and its log with it.
``AICR_TIMEOUT_FACTOR`` scales all of them but T, which is the catalogue's.

Source: validators spec 3.5, 11; decision 14.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from aicr.values.waiting import Waits


@dataclass(frozen=True, slots=True)
class Timing(Waits):
    """The run of checks on a cluster."""

    KEPT: ClassVar[frozenset[str]] = frozenset(("repeat", "grace", "job_ttl"))

    #: How much longer than its budget a check is waited for.
    wait_buffer: float = 150.0
    #: How much longer than its budget a Job may live.
    job_headroom: float = 210.0
    #: To create one object, over an API server that is away.
    create: float = 30.0
    #: To read what came of a check, and to remove what a run has made.
    cleanup: float = 30.0
    #: For a deleted Job's pod to vanish.
    pod_gone: float = 60.0
    #: For a pod to be scheduled.
    schedule: float = 120.0
    #: For a Job to get its pod.
    pod_created: float = 30.0
    #: For a node to pull an image once it has failed to.
    pull: float = 30.0
    #: For the rest of a log after its container has ended.
    log: float = 10.0
    #: Between two looks at what no watch tells.
    poll: float = 2.0
    #: Before a request that a server put off is made again.
    repeat: float = 0.5
    #: For a check to end once it is told to.
    grace: float = 30.0
    #: A finished Job's life.
    job_ttl: float = 3600.0

    def wait_seconds(self, budget: float) -> float:
        """How long a check with a budget of so many seconds is waited for."""
        return budget + self.wait_buffer

    def job_deadline(self, budget: float) -> int:
        """``activeDeadlineSeconds`` of its Job: whole seconds, and always after the wait."""
        return max(
            int(budget) + math.ceil(self.job_headroom), math.ceil(self.wait_seconds(budget)) + 1
        )
