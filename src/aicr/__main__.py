"""``python -m aicr``: the same program as the ``aicr`` console script."""

from __future__ import annotations

from aicr.cli.main import run

if __name__ == "__main__":
    run()
