"""Every waiting time of the gang controllers, but those of the decision (`coordination.Rules`).

Decision 67. Tests shorten them; the defaults themselves are asserted. It must not know who waits.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Times:
    """Waiting times of the controller, in seconds."""

    #: Changes of one gang within this time are one reconcile.
    coalesce: float = 0.1
    #: A cache that has not followed the server for longer is too old to decide on: one that is known
    #: to lag at all. It is looked at again after `stale_again`.
    stale: float = 0.0
    stale_again: float = 0.5
    #: A forming gang's group is read again this often, because it may be edited; one that is not there
    #: after `absent`, twice that and so on up to `forming`.
    absent: float = 2.0
    forming: float = 10.0
    #: A ConfigMap without owner that no pod mounts is deleted after so long.
    unused: float = 3600.0
    #: A PreflightConfig that is invalid is looked at again after so long.
    invalid: float = 60.0
    #: Each of the three waits of an admission: group, ConfigMap, registration.
    admission: float = 2.5
    #: Longest pause after failures.
    longest: float = 10.0
