from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.bundle.sample_plans import CONFIG_MAP, chart, plan_of

from aicr.bundle import layout, output
from aicr.bundle.deployers import helm
from aicr.errors import AicrError

Files = dict[str, tuple[bytes, int]]


def bundle(name: str = "a") -> Files:
    """The files of a real bundle of one component."""
    plan = plan_of(chart(name, manifests=[("m.yaml", CONFIG_MAP)]))
    return helm.generate(plan, layout.folders(plan))


def tree(root: Path) -> dict[str, tuple[bytes, str]]:
    """Content and mode of every file, and the mode of every folder, below a folder."""
    found = {}
    for path in sorted(root.rglob("*")):
        mode = oct(stat.S_IMODE(path.lstat().st_mode))
        content = b"" if path.is_dir() else path.read_bytes()
        found[str(path.relative_to(root)) + ("/" if path.is_dir() else "")] = (content, mode)
    return found


def refused(files: Files, target: Path | str) -> AicrError:
    """The error that writing is refused with."""
    with pytest.raises(AicrError) as caught:
        output.write_bundle(files, str(target))
    return caught.value


@pytest.fixture
def umask() -> Iterator[Callable[[int], int]]:
    """Sets the umask, and puts the old one back."""
    old = os.umask(0o022)
    os.umask(old)
    yield os.umask
    os.umask(old)


@pytest.mark.covers("F10")
@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077, 0o777])
def test_modes_are_exact_whatever_the_umask(
    tmp_path: Path, umask: Callable[[int], int], mask: int
) -> None:
    """Scripts 0755, secrets 0600, files 0644, folders 0755 (decision 44)."""
    files = bundle()
    umask(mask)
    output.write_bundle(files, str(tmp_path / "out"))
    umask(0o022)
    found = tree(tmp_path / "out")
    for path, (data, mode) in files.items():
        assert found[path] == (data, oct(mode))
    assert {mode for path, (_, mode) in found.items() if path.endswith("/")} == {"0o755"}
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o755


def test_missing_parents_are_made(tmp_path: Path) -> None:
    """A new folder below new folders; nothing else appears."""
    output.write_bundle(bundle(), str(tmp_path / "x" / "y" / "out"))
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
    assert [path.name for path in (tmp_path / "x" / "y").iterdir()] == ["out"]


@pytest.mark.parametrize("suffix", ["", "/", "/."])
def test_an_empty_folder_is_filled(tmp_path: Path, suffix: str) -> None:
    """However it is spelt."""
    (tmp_path / "out").mkdir()
    output.write_bundle(bundle(), f"{tmp_path}/out{suffix}")
    assert output.is_own_bundle(str(tmp_path / "out")) == []


def test_a_bundle_of_ours_is_swapped_as_a_whole(tmp_path: Path) -> None:
    """Files that the new bundle does not have are gone, and no trace of the swap is left (47)."""
    target = tmp_path / "out"
    output.write_bundle(bundle("old"), str(target))
    output.write_bundle(bundle("new"), str(target))
    assert set(tree(target)) >= {"001-new/", "deploy.sh"}
    assert not (target / "001-old").exists()
    assert output.is_own_bundle(str(target)) == []
    assert os.listdir(tmp_path) == ["out"]


def spoil_edit(target: Path) -> None:
    """A hand-made change."""
    (target / "001-a" / "values.yaml").write_text("mine: true\n")


def spoil_add(target: Path) -> None:
    """A file of the user's."""
    (target / "notes.txt").write_text("mine")


def spoil_info(target: Path) -> None:
    """No bundle-info.yaml: a folder of somebody else, checksums and all."""
    (target / "bundle-info.yaml").unlink()


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (spoil_edit, "001-a/values.yaml: content differs"),
        (spoil_add, "notes.txt"),
        (spoil_info, "has no bundle-info.yaml"),
    ],
)
def test_a_changed_bundle_is_not_replaced(
    tmp_path: Path, spoil: Callable[[Path], None], words: str
) -> None:
    """What is in the way is named, and nothing is touched (decision 47)."""
    target = tmp_path / "out"
    output.write_bundle(bundle(), str(target))
    spoil(target)
    before = tree(tmp_path)
    error = refused(bundle("new"), target)
    assert error.code == "CONFLICT"
    assert words in error.message
    assert error.where == "--output"
    assert tree(tmp_path) == before


def test_a_checksummed_folder_that_is_no_bundle_is_not_replaced(tmp_path: Path) -> None:
    """A valid checksums.txt alone does not make a folder ours."""
    from aicr.artifacts import checksums

    target = tmp_path / "out"
    target.mkdir()
    files = {"bundle-info.yaml": b"kind: Other\napiVersion: v1\n"}
    (target / "bundle-info.yaml").write_bytes(files["bundle-info.yaml"])
    (target / "checksums.txt").write_bytes(checksums.checksums_txt(files))
    error = refused(bundle(), target)
    assert error.code == "CONFLICT"
    assert "invalid kind" in error.message


def test_a_folder_with_other_things_is_refused_by_their_names(tmp_path: Path) -> None:
    """The first few are named, the rest counted."""
    for number in range(7):
        (tmp_path / f"f{number}").write_text("")
    error = refused(bundle(), tmp_path)
    assert error.code == "CONFLICT"
    assert "f0, f1, f2, f3, f4 and 2 more" in error.message
    assert len(os.listdir(tmp_path)) == 7


@pytest.mark.parametrize("suffix", ["", "/"])
@pytest.mark.parametrize("empty", [True, False])
def test_a_link_is_refused(tmp_path: Path, suffix: str, empty: bool) -> None:
    """A rename would replace the link, not the folder it points to (bundler spec 0.3)."""
    (tmp_path / "real").mkdir()
    if not empty:
        (tmp_path / "real" / "file").write_text("")
    (tmp_path / "out").symlink_to("real")
    error = refused(bundle(), f"{tmp_path}/out{suffix}")
    assert error.code == "INVALID_REQUEST"
    assert "symbolic link" in error.message
    assert str(tmp_path / "real") in error.hint
    assert (tmp_path / "out").is_symlink()


def test_a_dangling_link_is_refused(tmp_path: Path) -> None:
    """Also one that points nowhere."""
    (tmp_path / "out").symlink_to("nowhere")
    assert "symbolic link" in refused(bundle(), tmp_path / "out").message


def test_a_link_above_the_target_is_followed(tmp_path: Path) -> None:
    """Only the last part must be real (F12 g)."""
    (tmp_path / "real").mkdir()
    (tmp_path / "linked").symlink_to("real")
    output.write_bundle(bundle(), str(tmp_path / "linked" / "out"))
    assert output.is_own_bundle(str(tmp_path / "real" / "out")) == []


def test_a_file_or_pipe_in_the_way_is_refused(tmp_path: Path) -> None:
    """It is not ours to remove."""
    (tmp_path / "file").write_text("mine")
    os.mkfifo(tmp_path / "pipe")
    for name in ("file", "pipe"):
        error = refused(bundle(), tmp_path / name)
        assert error.code == "INVALID_REQUEST"
        assert "in the way" in error.message
    assert (tmp_path / "file").read_text() == "mine"


def test_a_file_as_a_parent_is_refused(tmp_path: Path) -> None:
    """Nothing can be made below a file."""
    (tmp_path / "file").write_text("mine")
    assert refused(bundle(), tmp_path / "file" / "x" / "out").code == "INVALID_REQUEST"
    assert os.listdir(tmp_path) == ["file"]


def test_a_current_folder_that_is_gone_is_an_error_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a current folder a relative target means nothing."""
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert refused(bundle(), "out").code == "INVALID_REQUEST"


@pytest.mark.parametrize("place", ["n" * 300, "new/" + "n" * 300, "round/out"])
def test_a_place_that_no_disk_can_have_is_the_callers_to_change(tmp_path: Path, place: str) -> None:
    """A name that is too long, a link that leads to itself: no room will help."""
    (tmp_path / "round").symlink_to("round")
    error = refused(bundle(), f"{tmp_path}/{place}")
    assert error.code == "INVALID_REQUEST"
    assert error.hint == "name a folder in a place where you may write"
    assert [path.name for path in tmp_path.iterdir()] == ["round"]


@pytest.mark.parametrize("target", ["", "  ", "a\0b"])
def test_no_target_is_refused(target: str) -> None:
    """Output folders have no default (decision 47)."""
    assert "no output folder" in refused(bundle(), target).message


@pytest.mark.parametrize("target", [".", "..", "../here"])
def test_the_current_folder_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    """The shell would be left in a folder that is gone."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    error = refused(bundle(), target)
    assert error.code == "INVALID_REQUEST"
    assert "current folder" in error.message
    assert os.listdir(tmp_path / "here") == []


def test_a_mount_point_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It cannot be renamed; the hint names a folder inside."""
    (tmp_path / "out").mkdir()
    monkeypatch.setattr(os.path, "ismount", lambda path: str(path).endswith("out"))
    error = refused(bundle(), tmp_path / "out")
    assert "mount point" in error.message
    assert "out/bundle" in error.hint


@pytest.mark.parametrize(
    ("paths", "words"),
    [
        (["../x"], "leads out"),
        (["/x"], "is absolute"),
        (["a/./b"], "shortest form"),
        (["a\\b"], "backslash"),
        (["a.yaml", "A.yaml"], "letter case"),
        (["d/a", "D/b"], "letter case"),
        (["a", "a/b"], "both a file and a folder"),
        (["a", "A/b"], "both a file and a folder"),
    ],
)
@pytest.mark.covers("F10")
def test_paths_that_are_no_tree_everywhere_are_refused(
    tmp_path: Path, paths: list[str], words: str
) -> None:
    """Also on file systems that fold letter case (F10)."""
    error = refused(dict.fromkeys(paths, (b"", 420)), tmp_path / "out")
    assert error.code == "INVALID_REQUEST"
    assert words in error.message
    assert os.listdir(tmp_path) == []


class Breaks:
    """A function that works until its nth call, which raises."""

    def __init__(self, real: Callable[..., Any], at: int, error: BaseException) -> None:
        self.real = real
        self.left = at
        self.error = error

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Count down, then raise once."""
        self.left -= 1
        if self.left == 0:
            raise self.error
        return self.real(*args, **kwargs)


FULL = OSError(errno.ENOSPC, "No space left on device")
DENIED = PermissionError(errno.EACCES, "Permission denied")
CASES = [
    ("write", 3, FULL, "INTERNAL"),
    ("write", 3, KeyboardInterrupt(), ""),
    ("mkdir", 1, DENIED, "INVALID_REQUEST"),
    ("mkdir", 2, FULL, "INTERNAL"),
    ("mkdir", 3, FULL, "INTERNAL"),
    ("mkdir", 3, KeyboardInterrupt(), ""),
    ("fchmod", 1, OSError(errno.EIO, "Input/output error"), "INTERNAL"),
    ("rename", 1, OSError(errno.EIO, "Input/output error"), "INTERNAL"),
    ("rename", 1, KeyboardInterrupt(), ""),
]


@pytest.mark.parametrize("existing", [False, True])
@pytest.mark.parametrize(("function", "at", "error", "code"), CASES)
def test_a_failure_leaves_nothing_behind(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    existing: bool,
    function: str,
    at: int,
    error: BaseException,
    code: str,
) -> None:
    """Full disk, no permission or Ctrl-C: no new file, no new folder, the old bundle untouched."""
    target = tmp_path / "x" / "y" / "out"
    if existing:
        output.write_bundle(bundle("old"), str(target))
    before = tree(tmp_path)
    monkeypatch.setattr(os, function, Breaks(getattr(os, function), at, error))
    if code:
        assert refused(bundle("new"), target).code == code
    else:
        with pytest.raises(KeyboardInterrupt):
            output.write_bundle(bundle("new"), str(target))
    monkeypatch.undo()
    assert tree(tmp_path) == before


@pytest.mark.parametrize("error", [OSError(errno.EIO, "Input/output error"), KeyboardInterrupt()])
def test_the_old_bundle_is_put_back_when_the_swap_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    """The old one was put aside, the new one could not take its place."""
    target = tmp_path / "out"
    output.write_bundle(bundle("old"), str(target))
    before = tree(tmp_path)
    monkeypatch.setattr(os, "rename", Breaks(os.rename, 2, error))
    with pytest.raises((AicrError, KeyboardInterrupt)):
        output.write_bundle(bundle("new"), str(target))
    monkeypatch.undo()
    assert tree(tmp_path) == before


def test_ctrl_c_after_the_swap_leaves_the_new_bundle_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Interrupted between the second rename and the clean-up, the swap is finished."""
    target = tmp_path / "out"
    output.write_bundle(bundle("old"), str(target))
    real = os.rename

    def rename(source: str, to: str) -> None:
        real(source, to)
        if to == str(target):
            raise KeyboardInterrupt

    monkeypatch.setattr(os, "rename", rename)
    with pytest.raises(KeyboardInterrupt):
        output.write_bundle(bundle("new"), str(target))
    monkeypatch.undo()
    assert os.listdir(tmp_path) == ["out"]
    assert (target / "001-new").is_dir()
    assert output.is_own_bundle(str(target)) == []


def test_an_old_bundle_that_cannot_be_removed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new bundle is in place; the error says what is left and where."""
    target = tmp_path / "out"
    output.write_bundle(bundle("old"), str(target))
    monkeypatch.setattr(os, "unlink", Breaks(os.unlink, 1, DENIED))
    error = refused(bundle("new"), target)
    monkeypatch.undo()
    assert error.code == "INTERNAL"
    [left] = [name for name in os.listdir(tmp_path) if name != "out"]
    assert left in error.message
    assert output.is_own_bundle(str(target)) == []


def test_a_target_filled_meanwhile_is_a_conflict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process was faster; its files stay."""
    target = tmp_path / "out"
    real = os.rename

    def rename(source: str, to: str) -> None:
        target.mkdir()
        (target / "theirs").write_text("")
        real(source, to)

    monkeypatch.setattr(os, "rename", rename)
    error = refused(bundle(), target)
    monkeypatch.undo()
    assert error.code == "CONFLICT"
    assert os.listdir(tmp_path) == ["out"]
    assert os.listdir(target) == ["theirs"]


def test_nobody_else_can_read_a_bundle_in_the_making(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until it is whole, the folder is 0700 and a file 0600."""
    seen: list[str] = []
    real = os.fchmod

    def fchmod(handle: int, mode: int) -> None:
        [scratch] = [path for path in tmp_path.iterdir() if path.name.startswith(".aicr-")]
        seen.append(oct(stat.S_IMODE(os.fstat(handle).st_mode)))
        seen.append(oct(stat.S_IMODE(scratch.stat().st_mode)))
        real(handle, mode)

    monkeypatch.setattr(os, "fchmod", fchmod)
    output.write_bundle(bundle(), str(tmp_path / "out"))
    assert set(seen) == {"0o600", "0o700"}
