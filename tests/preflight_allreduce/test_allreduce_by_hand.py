"""`aicr preflight run nccl-allreduce`: over this machine, or as a member of a gang, with played workers."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.preflight_allreduce.doubles import PLAYER, MemoryBoard, plays
from tests.preflight_allreduce.mounted import Mounted, formed

from aicr.cli.console import Console
from aicr.cli.main import main
from aicr.preflight.checks.allreduce import __main__ as program


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run the command with workers of two GPUs that play a part: status, stdout, stderr."""
    board = MemoryBoard()
    monkeypatch.setattr(
        program.World.__init__,
        "__defaults__",
        (
            program.World().process,
            board.meet,
            (sys.executable, "-c", PLAYER),
            *program.World.__init__.__defaults__[3:],  # type: ignore[index]
        ),
    )
    monkeypatch.setenv("AICR_TIMEOUT_FACTOR", "0.01")

    def running(busbw: float, *words: str) -> tuple[int, str, str]:
        monkeypatch.setenv("PLAY", json.dumps({"0": plays(busbw), "1": plays(busbw)}))
        out, err = io.StringIO(), io.StringIO()
        command = ["preflight", "run", "nccl-allreduce", "--processes", "2", *words]
        return main(command, Console(out, err)), out.getvalue(), err.getvalue()

    return running


@pytest.mark.parametrize(
    ("busbw", "status", "code"), [(250.0, 0, 0), (50.0, 8, 1)], ids=["passes", "slow"]
)
def test_this_machine_is_a_gang_of_one(run: Any, busbw: float, status: int, code: int) -> None:
    """A slow one can only be slow by itself; nothing is sent without a socket."""
    found, out, _ = run(busbw, "--format", "json")
    document = json.loads(out)
    assert (found, document["exitCode"]) == (status, code)
    assert document["details"]["workers"] == 2
    assert document["events"][0]["isFatal"] is (code == 1)


def test_a_member_of_a_gang_waits_for_its_files(run: Any, tmp_path: Path) -> None:
    """And is told what is missing, as "could not test"."""
    Mounted(tmp_path / "gang").write(formed(2, present=1))
    words = ("--gang-dir", str(tmp_path / "gang"), "--pod", "w-0", "--gang-timeout", "1")
    status, out, _ = run(250.0, *words)
    assert status == 6
    assert "Gang formation timeout after 1s: 1 of 2 members registered; missing: w-1" in out
    assert "the container would exit with 3" in out


def test_a_complete_gang_of_one_runs_from_its_files(run: Any, tmp_path: Path) -> None:
    """With the threshold that was given."""
    Mounted(tmp_path / "gang").write(formed(1))
    words = ("--gang-dir", str(tmp_path / "gang"), "--pod", "w-0", "--threshold", "300")
    status, out, _ = run(250.0, *words)
    assert status == 8
    assert "is below threshold 300.00 GB/s; this node is the cause (w-0" in out
