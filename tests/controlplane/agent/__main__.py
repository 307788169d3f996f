"""`python -m tests.controlplane.agent FILE`: run the agent that FILE describes until SIGTERM."""

from __future__ import annotations

import json
import signal
import sys
import threading
from pathlib import Path

from tests.controlplane.agent import settings


def main(file: str) -> None:
    """Run until SIGTERM or SIGINT."""
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    raw = json.loads(Path(file).read_text(encoding="utf-8"))
    cluster = settings.cluster(raw)
    # Only what this kind of node needs is imported, so that each process stays small.
    if raw["mode"] == "hollow":
        from tests.controlplane.agent.hollow import HollowNodes

        HollowNodes(cluster, raw["nodes"], renew=raw["renew"]).run(stopped)
    else:
        from tests.controlplane.agent.node import RunningNode

        RunningNode(cluster, settings.node(raw)).run(stopped)


if __name__ == "__main__":
    main(sys.argv[1])
