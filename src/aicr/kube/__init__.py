"""Access to a Kubernetes cluster: our own thin client on plain documents (decision 42).

```
config ─► http (aiohttp) ─► client ─► informer, lease, queue
            ▲ carries           ▲ asks
request, status, decoding   discovery, watching, logs, exec          (no I/O in the first line)
```

`connect` is the way in. Importing this package, or any module of it but `http` and `http_errors`,
needs no extra; `connect` does, and says which pip line brings it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aicr.kube.client import Client
    from aicr.kube.config import ClusterConfig
    from aicr.kube.timeouts import Timeouts

__all__ = ["connect", "connect_to"]


def connect(
    *,
    kubeconfig: str = "",
    context: str = "",
    environ: Mapping[str, str] | None = None,
    timeouts: Timeouts | None = None,
) -> Client:
    """A client for the cluster that applies here; nothing is sent yet. Close it when done.

    The order: *kubeconfig*, ``KUBECONFIG``, in-cluster, ``~/.kube/config``. INVALID_REQUEST if
    there is none, if it is wrong, or if the extra ``cluster`` is not installed (decision 39).
    """
    from aicr.kube import config as configs
    from aicr.kube.timeouts import Timeouts

    environ = os.environ if environ is None else environ
    times = timeouts or Timeouts.from_environment(environ)
    found = configs.load(kubeconfig=kubeconfig, context=context, environ=environ, timeouts=times)
    return connect_to(found, timeouts=times)


def connect_to(config: ClusterConfig, *, timeouts: Timeouts | None = None) -> Client:
    """A client for a cluster whose settings are known."""
    try:
        from aicr.kube.http import HttpTransport
    except ImportError as error:
        from aicr.kube.extras import missing

        raise missing("aiohttp", "cluster", error) from error
    from aicr.kube.client import Client
    from aicr.kube.timeouts import Timeouts

    times = timeouts or Timeouts()
    return Client(HttpTransport(config, timeouts=times), config, timeouts=times)
