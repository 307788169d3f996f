"""The program of the product with workers that can be held up (`slowed_worker`)."""

from __future__ import annotations

import os
import sys

from aicr.preflight.checks.allreduce.__main__ import World, main

if __name__ == "__main__":
    WORKER = (sys.executable, "-u", "-m", "tests.torch.slowed_worker")
    sys.exit(main(os.environ, sys.stderr, World(worker=WORKER)))
