"""Every waiting time of cluster access in one object (decision 67).

Nothing else in this package holds a number of seconds that a user could want to change, but for the
terms of an election (`aicr.kube.lease`). The defaults are asserted. It must not know who waits.
"""

from __future__ import annotations

from dataclasses import dataclass

from aicr.values.waiting import Waits


@dataclass(frozen=True, slots=True)
class Timeouts(Waits):
    """Access to a cluster."""

    #: Name resolution, TCP and TLS of one connection.
    connect: float = 10.0
    #: One ordinary request, answer included.
    request: float = 30.0
    #: One page of a list; a page of 500 pods over a slow line is some megabytes.
    page: float = 60.0
    #: How long one watch is asked to last at least; the server is told up to twice this, jittered.
    watch: float = 300.0
    #: A watch or a followed log with no byte for this long counts as broken. Bookmarks come about
    #: once a minute.
    idle: float = 150.0
    #: All repetitions of one request that the server puts off (429 or 5xx with Retry-After).
    busy: float = 30.0
    #: First pause between attempts to list or watch again.
    backoff: float = 0.8
    #: The longest such pause.
    backoff_cap: float = 30.0
    #: A credential plugin; long, because a person may be asked to log in.
    exec_plugin: float = 120.0
    #: Age at which a token file is read again.
    token_reread: float = 60.0
    #: Age at which what the server said about its kinds is asked again.
    discovery: float = 600.0
    #: Least time between two discoveries caused by a kind that was not there.
    discovery_miss: float = 2.0
    #: One command run in a container, unless the caller says otherwise.
    command: float = 300.0
    #: First pause after a failure of one key of a work queue (client-go's is the same).
    queue_first: float = 0.005
    #: The longest such pause (client-go's is 1000 s).
    queue_longest: float = 300.0
