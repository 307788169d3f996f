"""Every waiting time of the checks that run in front of a workload (decision 67).

What a person sets by a variable (`GANG_TIMEOUT_SECONDS` and the like) has its default with the setting;
both are multiplied by ``AICR_TIMEOUT_FACTOR``. It must not know who waits.
Source: preflight specification 7.1 to 7.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from aicr.values.waiting import Waits


@dataclass(frozen=True, slots=True)
class CheckTimes(Waits):
    """Checks in front of a workload."""

    #: What waits for processes of this pod, and what holds rank 0 and the others together.
    KEPT: ClassVar[frozenset[str]] = frozenset(
        (
            *("nvidia_smi", "end", "end_look", "workers_look", "gpu_look", "behind"),
            *("connect", "connect_again", "board", "board_look", "heard"),
        )
    )

    # Programs
    #: nvidia-smi; a GPU that is being lost makes it slow.
    nvidia_smi: float = 30.0
    #: The loopback benchmark.
    loopback: float = 300.0
    #: For a program to end after SIGTERM, and again after SIGKILL.
    end: float = 5.0
    #: Between two looks whether it has.
    end_look: float = 0.05

    # The gang
    #: Between two readings of the mounted ConfigMap.
    gang: float = 5.0
    #: How long a mounted file may be behind: the kubelet's sync period and its cache.
    late: float = 120.0
    #: Between two lines of progress while nothing changes.
    quiet: float = 60.0

    # The board of rank 0
    #: One attempt to connect; signals are noticed in between.
    connect: float = 5.0
    #: Before the next.
    connect_again: float = 1.0
    #: One call, once connected: it is answered at once or not at all.
    board: float = 30.0
    #: Between two looks at the board.
    board_look: float = 0.5
    #: For others to hear from rank 0 that it comes to nothing.
    heard: float = 10.0
    #: For others to read the verdict before rank 0 goes.
    stay: float = 10.0

    # The workers of a node
    #: Between two looks at them.
    workers_look: float = 0.1
    #: Between two looks of a worker whether its GPU is done.
    gpu_look: float = 0.0002
    #: How far torch's own time limit lies behind ours.
    behind: float = 60.0
    #: Between two looks at the board for trouble elsewhere.
    trouble: float = 1.0
    #: For other workers to notice a failure themselves and say what they saw.
    settle: float = 10.0
    #: In which all ends must be on the board once one is.
    gather: float = 60.0
    #: Without a step, after twice the time limit of one: hung.
    hung: float = 120.0
    #: Finding out which node or link is slow, unless a variable says otherwise.
    localise: float = 300.0
