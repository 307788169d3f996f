"""Runs the program for tests: in this process, or as a process of its own where that matters.

Whatever a test does, what is printed is looked at for a traceback, and the exit status for one that the
manual names: no run of any test may end otherwise.
"""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from aicr.cli.console import Console
from aicr.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
STATUSES = frozenset(range(9)) | {130, 143}

#: Criteria of a recipe that every test may use, and the same as flags.
CRITERIA = {"service": "eks", "accelerator": "h100", "intent": "training", "os": "ubuntu"}
EKS = tuple(word for field, value in CRITERIA.items() for word in (f"--{field}", value))


class Result(NamedTuple):
    """What a run left: exit status, stdout, stderr."""

    status: int
    out: str
    err: str

    def refused(self, status: int, *words: str) -> None:
        """Assert that the run failed with this status, said these words and printed nothing else."""
        assert self.status == status, f"exit {self.status}\n{self.err}"
        assert self.out == ""
        for word in words:
            assert word in self.err, f"{word!r} is not in:\n{self.err}"

    @property
    def lines(self) -> list[str]:
        """The lines on stderr."""
        return self.err.splitlines()


def aicr(*argv: object) -> Result:
    """Run one command line in this process."""
    out, err = io.StringIO(), io.StringIO()
    status = main([str(word) for word in argv], Console(out, err))
    return checked(Result(status, out.getvalue(), err.getvalue()))


def checked(result: Result) -> Result:
    """*result*, after the look that every run gets."""
    assert "Traceback" not in result.out + result.err, result.err
    assert "Exception ignored" not in result.err, result.err
    assert "this is a bug in aicr" not in result.err, result.err
    assert result.status in STATUSES, result
    return result


def environment(**changes: str | None) -> dict[str, str]:
    """The environment of a child: this one, with the checkout on the path and *changes*."""
    found = dict(os.environ, PYTHONPATH=str(ROOT / "src"), PYTHONDONTWRITEBYTECODE="1")
    for name, value in changes.items():
        found.pop(name, None)
        if value is not None:
            found[name] = value
    return found


def command(*argv: object) -> list[str]:
    """The words that start the program as a process."""
    return [sys.executable, "-m", "aicr", *(str(word) for word in argv)]


def start(*argv: object, **options: Any) -> subprocess.Popen[str]:
    """Start the program as a process whose stderr is kept.

    A test run in the background inherits a Ctrl-C that is switched off, so it is switched on first.
    """
    options.setdefault("preexec_fn", lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    options.setdefault("env", environment())
    options.setdefault("stdout", subprocess.PIPE)
    return subprocess.Popen(command(*argv), stderr=subprocess.PIPE, text=True, **options)


def spawn(*argv: object, **options: Any) -> Result:
    """Run the program as a process to its end."""
    options.setdefault("env", environment())
    options.setdefault("stdout", subprocess.PIPE)
    options.setdefault("stderr", subprocess.PIPE)
    done = subprocess.run(command(*argv), text=True, check=False, timeout=600, **options)
    return checked(Result(done.returncode, done.stdout or "", done.stderr or ""))


def shell(script: str, *, cwd: Path, env: Mapping[str, str] | None = None) -> Result:
    """Run bash with ``$AICR`` as the program; the status is that of the first part of a pipe."""
    words = [sys.executable, "-m", "aicr"]
    prelude = f'aicr() {{ {" ".join(words)} "$@"; }}\n'
    done = subprocess.run(
        ["bash", "-c", f"{prelude}{script}\nexit ${{PIPESTATUS[0]}}"],
        cwd=cwd,
        env=env or environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    return checked(Result(done.returncode, done.stdout, done.stderr))


def tree(folder: Path) -> dict[str, tuple[int, bytes | None]]:
    """Everything below *folder*: relative path -> (mode, bytes; None for a folder)."""
    found: dict[str, tuple[int, bytes | None]] = {}
    for path in sorted(folder.rglob("*")):
        content = None if path.is_dir() else path.read_bytes()
        found[path.relative_to(folder).as_posix()] = (path.stat().st_mode & 0o7777, content)
    return found


def left_over(folder: Path, *expected: str) -> Sequence[str]:
    """Names in *folder* beside the expected ones, hidden ones too."""
    return sorted({path.name for path in folder.iterdir()} - set(expected))
