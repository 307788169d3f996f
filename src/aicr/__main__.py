"""``python -m aicr``: the same program as the ``aicr`` console script."""

from __future__ import annotations

if __name__ == "__main__":
    try:
        from aicr.cli.main import run
    except KeyboardInterrupt:
        # Ctrl-C before there is anything that could tell.
        raise SystemExit(130) from None
    run()
