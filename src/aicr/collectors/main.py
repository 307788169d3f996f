"""The program of the agent's pod: take the snapshot of this node and leave it for the caller.

    python -m aicr.collectors.main

What it does is in its environment, which `agent_objects` writes. It logs JSON to stderr (decision 45),
leaves its error as termination message with its code, and exits with that code's status. Without
``AICR_STAGING`` it prints the snapshot as JSON to stdout, for a look by hand.

Source: validators spec 1.1, 3.8; decisions 41 and 45.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from aicr.collectors import agent_objects, kubernetes, staging, taking
from aicr.collectors.limits import Limits
from aicr.collectors.ports import Files, Machine, Programs
from aicr.collectors.readings import Document
from aicr.contract import container, labels
from aicr.errors import CONFLICT, INTERNAL, AicrError, invalid
from aicr.kube import connect, kinds
from aicr.kube.client import Client
from aicr.kube.port import Cluster
from aicr.version import __version__

_YES: Final = "true"


def plan(environ: Mapping[str, str], cluster: Client) -> taking.Plan:
    """What the environment asks for.

    Raises:
        AicrError: INVALID_REQUEST for a number that is none.
    """
    root = environ.get(agent_objects.HOST_ROOT_VARIABLE, "")
    partial = environ.get(agent_objects.PARTIAL_VARIABLE) == _YES
    # Without the host's files only the cluster can be measured; a pod's own files are no node's.
    required = taking.REQUIRED_OF_CLUSTER | (taking.REQUIRED_OF_MACHINE if root else frozenset())
    return taking.Plan(
        machine=Machine(Files(Path(root or "/nonexistent")), Programs()),
        cluster=cluster,
        node=kubernetes.node_name(environ),
        host=socket.gethostname(),
        os=environ.get(agent_objects.OS_VARIABLE, ""),
        most_names=_number(environ, agent_objects.MOST_NAMES_VARIABLE),
        require_gpu=environ.get(agent_objects.REQUIRE_GPU_VARIABLE) == _YES,
        required=frozenset() if partial else required | {"K8s.node"},
        limits=Limits.from_environment(environ),
    )


def _number(environ: Mapping[str, str], name: str) -> int:
    text = environ.get(name, "") or "0"
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise invalid(f'{name} must be a whole number, not "{text}"', where=name)
    return int(text)


async def stage(cluster: Cluster, document: Document, environ: Mapping[str, str]) -> None:
    """Leave the snapshot in ConfigMaps of the run; the first part is written last."""
    name, run = environ[agent_objects.STAGING_VARIABLE], environ.get(container.RUN_ID, "")
    place = environ.get(container.NAMESPACE, container.DEFAULT_NAMESPACE)
    marks = {**agent_objects.marks(run)} if run else {labels.NAME: labels.PRODUCT}
    for part in staging.config_maps(
        staging.pack(document), name=name, namespace=place, marks=marks
    ):
        try:
            await cluster.create(part)
        except AicrError as error:
            if error.code != CONFLICT:
                raise
            # The pod was started again by the node before it was known to have ended.
            present = await cluster.get(kinds.CONFIG_MAP, part["metadata"]["name"], namespace=place)
            version = present["metadata"]["resourceVersion"]
            part["metadata"]["resourceVersion"] = version
            await cluster.update(part)


async def run(environ: Mapping[str, str]) -> None:
    """Take the snapshot and leave it.

    Raises:
        AicrError: a required reading is missing, or the result cannot be left.
    """
    async with connect(environ=environ) as cluster:
        taken = await taking.take(plan(environ, cluster), now=lambda: datetime.now(UTC))
        for each in taken.missing:
            log("WARN", f"failed to collect {each.name} - skipping", error=str(each.error))
        for remark in taken.remarks:
            log("INFO", remark)
        if environ.get(agent_objects.STAGING_VARIABLE):
            await stage(cluster, taken.document, environ)
            log("INFO", "snapshot is there", configMap=environ[agent_objects.STAGING_VARIABLE])
        else:
            json.dump(taken.document, sys.stdout, indent=2)


def log(level: str, message: str, **fields: Any) -> None:
    """One JSON line on stderr (decision 45)."""
    entry = {
        "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "level": level,
        "msg": message,
        "module": "collectors.main",
        "version": __version__,
        **fields,
    }
    print(json.dumps(entry), file=sys.stderr, flush=True)


def main(environ: Mapping[str, str] | None = None) -> int:
    """Run, and turn every failure into a log line, a termination message and an exit status."""
    environ = os.environ if environ is None else environ
    try:
        asyncio.run(run(environ))
    except AicrError as error:
        return _failed(error, environ)
    except Exception as error:
        return _failed(AicrError(INTERNAL, f"unexpected {type(error).__name__}: {error}"), environ)
    return 0


def _failed(error: AicrError, environ: Mapping[str, str]) -> int:
    log("ERROR", str(error), code=error.code, hint=error.hint)
    path = environ.get(container.TERMINATION_LOG_PATH) or container.TERMINATION_LOG
    try:
        Path(path).write_text(container.fit(str(error)), encoding="utf-8")
    except OSError as problem:
        log("WARN", f"no termination message could be left: {problem}")
    return error.exit_status


if __name__ == "__main__":
    sys.exit(main())
