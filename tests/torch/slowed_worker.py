"""A worker of the product on a node whose collectives are held up: `SLOWED` is node=seconds, comma
separated. With `DIES`, a node's worker kills itself in the benchmark; with `SPOILS` its data is wrong."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

from aicr.preflight.checks.allreduce.worker import Worker, main


class SlowedWorker(Worker):
    """See the module."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        node = str(self.job.node_of(self.rank))
        delays = dict(one.split("=") for one in os.environ.get("SLOWED", "").split(",") if one)
        self.delay = float(delays.get(node, 0))
        self.dies = os.environ.get("DIES") == node
        self.spoils = os.environ.get("SPOILS") == node

    def all_reduce(self, tensor: Any, group: Any, times: int) -> None:
        """Late by the delay, once for each all-reduce."""
        if self.dies and self.steps > 2:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(self.delay * times)
        if self.spoils:
            tensor[0] = float("nan")
        super().all_reduce(tensor, group, times)


if __name__ == "__main__":
    main(SlowedWorker)
