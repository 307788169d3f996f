"""The deployers' own programs in tests: where each is, and how it is run without a network."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests import tools_build


def built(name: str) -> str:
    """Path of a program that `make test-tools` has built; the test is skipped where it has not."""
    found = tools_build.ready(name)
    if found is None:
        pytest.skip(f"{name} is not built; run: python -m tests.tools_build {name}")
    return str(found)


def run(
    *words: str, home: Path, at: Path | None = None, extra: Mapping[str, str] | None = None
) -> str:
    """Run a program that must succeed, with nothing of the user's settings; what it printed.

    Args:
        words: the program and its arguments.
        home: where it may keep files.
        at: the folder to run it in.
        extra: more environment.
    """
    done = subprocess.run(
        words,
        cwd=at,
        env={"PATH": os.environ["PATH"], "HOME": str(home), **(extra or {})},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
