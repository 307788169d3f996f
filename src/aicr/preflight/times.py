"""Every waiting time of the webhook and of the gang controllers, but those of a gang's decision
(`gang.coordination.Rules`).

Decision 67. Tests shorten them; the defaults themselves are asserted. ``AICR_TIMEOUT_FACTOR`` scales none
of them: the API server waits its own ten seconds for an admission, whatever we are told. It must not know
who waits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from aicr.values.waiting import Waits

_FIXED = "an admission must be answered within the time that the API server gives a webhook"


@dataclass(frozen=True, slots=True)
class Times(Waits):
    """The gang controllers."""

    FIXED: ClassVar[str] = _FIXED

    #: Changes of one gang within this time are one reconcile.
    coalesce: float = 0.1
    #: A cache that has not followed the server for longer is too old to decide on: one that is known
    #: to lag at all.
    stale: float = 0.0
    #: After which it is looked at again.
    stale_again: float = 0.5
    #: A cache that has not followed the server for longer makes the replica unready.
    stale_unready: float = 60.0
    #: A group that is not there is read again after so long, then twice that and so on up to `forming`.
    absent: float = 2.0
    #: A forming gang's group is read again this often, because it may be edited.
    forming: float = 10.0
    #: A ConfigMap without owner that no pod mounts is deleted after so long.
    unused: float = 3600.0
    #: A PreflightConfig that is invalid is looked at again after so long.
    invalid: float = 60.0
    #: Each of the three waits of an admission: group, ConfigMap, registration.
    admission: float = 2.5
    #: An answer of the server serves those who ask within this time.
    shared: float = 1.0
    #: The topology of a gang's nodes serves for so long.
    topology: float = 60.0
    #: Before a write that met another is tried again; five times that before the next (spec 4.4).
    retry: float = 0.01
    #: First pause between two writes about a forming gang; it doubles.
    pace: float = 0.1
    #: The longest such pause is so long for each member of the gang.
    pace_member: float = 0.03
    #: But at least so long.
    pace_least: float = 1.0
    #: And at most so long.
    pace_most: float = 30.0
    #: Longest pause after failures.
    longest: float = 10.0


@dataclass(frozen=True, slots=True)
class ServerTimes(Waits):
    """The webhook."""

    FIXED: ClassVar[str] = _FIXED

    #: An idle connection. Longer than the API server keeps one, so that it is never we who close one
    #: that it is about to use.
    keep_alive: float = 120.0
    #: In which a request must have arrived (spec 2.1).
    read: float = 10.0
    #: All claims of one pod.
    claims: float = 3.0
    #: Between two looks at the device classes.
    classes: float = 60.0
    #: Between two looks at the certificate's files.
    certificate: float = 1.0
    #: Between two looks whether the servers have started.
    start: float = 0.01
    #: For connections that have been accepted to bring a request, or to be closed as idle.
    settle: float = 1.0
    #: Between two looks at them.
    settle_look: float = 0.02
    #: For requests that have arrived, once nothing new is accepted.
    grace: float = 5.0
    #: For calls to the connector that `aicr preflight connector` plays, once it ends.
    connector: float = 1.0
