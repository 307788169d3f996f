"""A file is there whole or not at all, with exact modes, whatever comes in between (decision 44)."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from aicr.artifacts import whole_files

FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
DENIED = PermissionError(errno.EACCES, os.strerror(errno.EACCES))
CTRL_C = KeyboardInterrupt()
#: How the commands unwind when they are asked to end.
ENDED = SystemExit(143)


def entries(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Content and mode of what lies in *folder*."""
    return {
        path.name: (path.read_bytes(), stat.S_IMODE(path.lstat().st_mode))
        for path in folder.iterdir()
    }


@pytest.mark.parametrize("umask", [0, 0o022, 0o777])
@pytest.mark.parametrize("mode", [0o600, 0o644, 0o755])
def test_the_mode_is_the_one_asked_for(tmp_path: Path, umask: int, mode: int) -> None:
    """No umask shows, and the mode of a file that stood there does not either."""
    (tmp_path / "old").write_bytes(b"older")
    (tmp_path / "old").chmod(0o640)
    before = os.umask(umask)
    try:
        whole_files.write_new(str(tmp_path / "new"), b"a", mode)
        whole_files.replace(str(tmp_path / "old"), b"", mode)
    finally:
        os.umask(before)
    assert entries(tmp_path) == {"new": (b"a", mode), "old": (b"", mode)}


def test_all_is_written_however_little_the_system_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write may be cut short anywhere."""
    real = os.write
    monkeypatch.setattr(os, "write", lambda handle, data: real(handle, data[:3]))
    whole_files.replace(str(tmp_path / "f"), b"ten bytes!", 0o600)
    assert (tmp_path / "f").read_bytes() == b"ten bytes!"


def test_a_new_file_replaces_nothing(tmp_path: Path) -> None:
    """Neither a file nor a link, not even one that leads nowhere."""
    (tmp_path / "file").write_bytes(b"theirs")
    (tmp_path / "link").symlink_to("nowhere")
    for name in ("file", "link"):
        with pytest.raises(FileExistsError):
            whole_files.write_new(str(tmp_path / name), b"ours", 0o644)
    assert (tmp_path / "file").read_bytes() == b"theirs"
    assert not (tmp_path / "nowhere").exists()


def test_a_link_is_replaced_and_what_it_leads_to_is_not(tmp_path: Path) -> None:
    """Who wants a link to stay resolves it first."""
    (tmp_path / "real").write_bytes(b"theirs")
    (tmp_path / "link").symlink_to("real")
    whole_files.replace(str(tmp_path / "link"), b"ours", 0o644)
    assert not (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"theirs"


@pytest.mark.parametrize("existing", [False, True])
@pytest.mark.parametrize("error", [FULL, DENIED, CTRL_C, ENDED], ids=lambda error: repr(error)[:20])
@pytest.mark.parametrize("function", ["open", "write", "fchmod", "close", "replace"])
def test_a_failure_leaves_what_was_there(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    existing: bool,
    error: BaseException,
    function: str,
) -> None:
    """Full disk, no rights, Ctrl-C or a request to end, at each step: that error, and nothing new."""
    place = tmp_path / "f"
    if existing:
        place.write_bytes(b"older")
    before = entries(tmp_path)
    real = getattr(os, function)

    def fails(*arguments: Any) -> None:
        # What was opened is closed all the same, as the system does it.
        if function == "close":
            real(*arguments)
        raise error

    monkeypatch.setattr(os, function, fails)
    with pytest.raises(type(error)) as caught:
        whole_files.replace(str(place), b"newer", 0o644)
    monkeypatch.undo()
    assert caught.value is error
    assert entries(tmp_path) == before


@pytest.mark.parametrize("function", ["open", "replace"])
def test_ctrl_c_just_after_a_step_is_not_hidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    """The step is done and the next line never comes: no file is left half, and Ctrl-C stays Ctrl-C."""
    real = getattr(os, function)
    opened = []

    def done(*arguments: Any) -> None:
        opened.append(real(*arguments))
        raise CTRL_C

    monkeypatch.setattr(os, function, done)
    with pytest.raises(KeyboardInterrupt):
        whole_files.replace(str(tmp_path / "f"), b"newer", 0o644)
    monkeypatch.undo()
    if function == "open":
        os.close(opened[0])
        assert entries(tmp_path) == {}
    else:
        assert entries(tmp_path) == {"f": (b"newer", 0o644)}


def test_nobody_else_can_read_a_file_in_the_making(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is 0600 while it is written, beside its place and hidden."""
    seen: list[tuple[str, tuple[bytes, int]]] = []
    real = os.fchmod

    def fchmod(handle: int, mode: int) -> None:
        seen.extend(entries(tmp_path).items())
        real(handle, mode)

    monkeypatch.setattr(os, "fchmod", fchmod)
    whole_files.replace(str(tmp_path / "f"), b"secret", 0o644)
    [(name, (data, mode))] = seen
    assert name.startswith(".aicr-")
    assert (data, mode) == (b"secret", 0o600)
