"""A context for one check, with what it printed and logged: what tests of checks start from.

```
seen = Seen()
async with loopback.cluster() as (api, client):
    await CHECK.run(seen.context(client, name="operator-health"))
assert seen.lines == [...]
```
"""

from __future__ import annotations

import io
import logging
from dataclasses import dataclass, field, replace
from typing import Any, cast

from aicr.checks.sdk.context import Context
from aicr.checks.sdk.timeouts import Timeouts
from aicr.contract.sentinels import Output, parse_output
from aicr.kube.kinds import Resource
from aicr.kube.port import Cluster

Document = dict[str, Any]

#: Enough for a busy machine. What is waited for so long ends as soon as it has come.
ENOUGH = 20.0
#: Short pauses, so that nothing waits; nothing asserts on time.
TIMES = replace(
    Timeouts().scaled(0.01),
    cleanup=ENOUGH,
    resource_verification=ENOUGH,
    namespace_termination=ENOUGH,
    pod_creation=ENOUGH,
    pod_termination=ENOUGH,
    pod_wait=ENOUGH,
    diagnostic=ENOUGH,
    unschedulable_grace=0.05,
)


@dataclass
class Seen:
    """What a check said."""

    stdout: list[str] = field(default_factory=list)
    stderr: io.StringIO = field(default_factory=io.StringIO)

    @property
    def output(self) -> Output:
        """Stdout as the orchestrator reads it."""
        return parse_output("\n".join(self.stdout))

    @property
    def lines(self) -> list[str]:
        """The evidence."""
        return self.output.lines

    @property
    def log(self) -> str:
        """What was logged, a line each."""
        return self.stderr.getvalue()

    def context(self, cluster: Cluster | None = None, **settings: Any) -> Context:
        """A context that prints here; *settings* are fields of `Context`."""
        logger = logging.Logger("test")
        handler = logging.StreamHandler(self.stderr)
        handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
        logger.addHandler(handler)
        standard: dict[str, Any] = {
            "cluster": cast("Cluster", cluster),
            "name": "operator-health",
            "phase": "deployment",
            "run_id": "20260101-000000-0123456789abcdef",
            "namespace": "aicr-validation",
            "write": self.stdout.append,
            "log": logger,
            "timeouts": TIMES,
        }
        return Context(**{**standard, **settings})


def validation(*enabled: str, disabled: tuple[str, ...] = (), **phases: Any) -> Document:
    """A validation input that declares components, and constraints of phases as name → expression."""
    refs: list[Document] = [{"name": name, "namespace": name} for name in enabled]
    refs += [{"name": name, "overrides": {"enabled": False}} for name in disabled]
    return {
        "componentRefs": refs,
        "gpuAllocationPolicy": "unspecified",
        "config": {
            phase: {"constraints": [{"name": key, "value": text} for key, text in stated.items()]}
            for phase, stated in phases.items()
        },
    }


def node(
    name: str,
    *,
    gpus: int | None = None,
    cordoned: bool = False,
    ready: bool = True,
    labels: dict[str, str] | None = None,
) -> Document:
    """A Node; *gpus* is its allocatable ``nvidia.com/gpu``."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"unschedulable": True} if cordoned else {},
        "status": {
            "allocatable": {} if gpus is None else {"nvidia.com/gpu": str(gpus)},
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        },
    }


def pod(name: str, namespace: str, *, phase: str = "Running", **more: Any) -> Document:
    """A Pod; *more* is merged into its top level."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{name}",
            "labels": more.pop("labels", {}),
        },
        "spec": more.pop("spec", {"containers": [{"name": "main", "image": "busybox:1"}]}),
        "status": {"phase": phase, **more.pop("status", {})},
    }


async def put(api: Any, resource: Resource, *documents: Document) -> None:
    """Store objects in the fake API server as they are, status included."""
    for document in documents:
        document["metadata"].setdefault("uid", f"uid-{document['metadata']['name']}")
        await api.store("ADDED", resource, document)
