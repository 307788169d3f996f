"""What stays of ended planes: nothing of good ones, a few logs of failed ones; no plane is needed."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from tests.controlplane import leftovers
from tests.controlplane.network import owner_tag
from tests.controlplane.plane import ControlPlane


@pytest.fixture
def parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def dead_owner() -> str:
    """The tag of a process that has ended."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        tag = owner_tag(child.pid)
        child.communicate(b"\n")
    return tag


def left(parent: Path, name: str, *, owner: str = "", kept: bool = False, age: float = 0) -> Path:
    """A folder of a plane, *age* seconds old."""
    folder = parent / f"{leftovers.PREFIX}{name}"
    (folder / "logs").mkdir(parents=True)
    if owner:
        (folder / leftovers.OWNER).write_text(owner)
    if kept:
        leftovers.keep(folder)
    then = folder.stat().st_mtime - age
    os.utime(folder, (then, then))
    return folder


def test_the_folder_of_a_killed_run_goes_with_the_next_plane(parent: Path) -> None:
    """Its data too, which is most of it; a living owner's folder stays, and so does one in the making."""
    killed = left(parent, "killed", owner=dead_owner())
    alive = left(parent, "alive", owner=owner_tag(os.getpid()))
    making = left(parent, "making")
    other = parent / "something-else"
    other.mkdir()
    made = leftovers.make()
    assert made.parent == parent
    assert not killed.exists()
    assert sorted(path.name for path in parent.iterdir()) == sorted(
        path.name for path in (alive, making, made, other)
    )


def test_of_failed_planes_the_newest_few_are_kept(parent: Path) -> None:
    """Those of an earlier version, which name no owner, count."""
    tag = dead_owner()
    folders = [
        left(parent, str(age), owner=tag if age % 2 else "", kept=bool(age % 2), age=100 + age)
        for age in range(leftovers.MOST + 3)
    ]
    assert sorted(leftovers.sweep(parent)) == sorted(folders[leftovers.MOST :])
    assert [folder.exists() for folder in folders] == [True] * leftovers.MOST + [False] * 3


def test_a_plane_that_cannot_start_keeps_its_logs_and_says_where(
    parent: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Programs that end at once: the place, and how long it stays."""
    programs = parent / "programs"
    programs.mkdir()
    for name in ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"):
        (programs / name).write_text("#!/bin/sh\necho cannot >&2\nexit 3\n")
        (programs / name).chmod(0o755)
    plane = ControlPlane(programs_folder=programs)
    with pytest.raises(Exception, match="etcd ended with 3"):
        plane.start()
    said = capfd.readouterr().err
    assert f"controlplane: logs are kept in {plane.folder}" in said
    assert f"newest {leftovers.MOST}" in said
    assert (plane.folder / "logs" / "etcd.log").read_text() == "cannot\n"
    assert (plane.folder / leftovers.KEPT).exists()
