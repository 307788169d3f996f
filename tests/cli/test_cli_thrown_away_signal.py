"""A signal that arrives where the interpreter throws exceptions away still ends the run."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.cli.program import environment

#: A weak reference's callback, as import locks have one: what is raised in it is printed and dropped.
PROGRAM = """
import os, signal, time, weakref
from aicr.cli.main import _end_on_signals
_end_on_signals()
class Thing: pass
def callback(_):
    os.kill(os.getpid(), signal.{name})
    for _ in range(1000): pass
thing = Thing()
kept = weakref.ref(thing, callback)
try:
    del thing
    until = time.monotonic() + 30
    while time.monotonic() < until: pass
except BaseException as error:
    print(type(error).__name__, flush=True)
"""


@pytest.mark.parametrize(
    ("name", "error"), [("SIGINT", "KeyboardInterrupt"), ("SIGTERM", "SystemExit")]
)
def test_a_signal_that_was_thrown_away_is_raised_again(name: str, error: str) -> None:
    """One Ctrl-C is enough wherever it comes, and no traceback is printed for it."""
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(name=name)],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert ended.stdout == f"{error}\n"
    assert ended.stderr == ""
