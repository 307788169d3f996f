"""Ctrl-C, a request to end, a full disk, a place without rights: no half bundle, ever.

These run the program as a process of its own, because signals, limits and rights belong to processes.
"""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

import pytest
from tests.cli.program import (
    EKS,
    STATUSES,
    Result,
    aicr,
    checked,
    environment,
    left_over,
    shell,
    spawn,
    start,
    tree,
)

from aicr.artifacts.checksums import verify_tree

#: Enough files that writing them takes much longer than it takes to see that it has begun.
MANY = 4000

#: From linux/prctl.h and linux/capability.h.
PR_CAPBSET_DROP = 24
CAP_DAC_OVERRIDE = 1
CAP_DAC_READ_SEARCH = 2

Process = subprocess.Popen[str]


@pytest.fixture(scope="module")
def many_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A --data folder that makes a bundle of thousands of files."""
    folder = tmp_path_factory.mktemp("many") / "data"
    folder.mkdir()
    (folder / "registry.yaml").write_text(
        "kind: ComponentRegistry\napiVersion: aicr.run/v1beta1\ncomponents: []\n"
    )
    for number in range(MANY):
        (folder / f"note-{number}.txt").write_text(f"{number}\n")
    return folder


def finish(process: Process) -> Result:
    """Wait for the end, and look at what was said as every run is looked at."""
    out, err = process.communicate(timeout=300)
    return checked(Result(process.returncode, out, err))


def reader_of(pipe: Path, process: Process) -> TextIO:
    """The pipe, open for writing, as soon as the process waits at its other end."""
    while process.poll() is None:
        try:
            descriptor = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            time.sleep(0.001)
        else:
            os.set_blocking(descriptor, True)
            return os.fdopen(descriptor, "w", encoding="utf-8")
    pytest.fail(f"the program ended before it read: {finish(process)}")


def given_up(process: Process, number: signal.Signals) -> Result:
    """Send the signal, again each second as a person would, until the process has ended.

    Python hears of a signal between two steps; one that comes in the instant between its last look and
    the call that waits is heard when the next one ends that call.
    """
    for _ in range(60):
        process.send_signal(number)
        try:
            out, err = process.communicate(timeout=1)
        except subprocess.TimeoutExpired:
            continue
        return checked(Result(process.returncode, out, err))
    process.kill()
    pytest.fail(f"the program did not end: {finish(process)}")


def stopped_while_writing(process: Process, folder: Path) -> bool:
    """Stop the process as soon as its scratch folder fills; whether that was in time."""
    while process.poll() is None:
        scratch = [path for path in folder.iterdir() if path.name.startswith(".aicr-")]
        if scratch and any(scratch[0].iterdir()):
            process.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
            return process.poll() is None and scratch[0].exists()
        time.sleep(0.001)
    return False


@pytest.mark.parametrize(
    ("number", "status", "words"),
    [
        (signal.SIGINT, 130, "error: [CANCELED] interrupted; nothing was left half written"),
        (signal.SIGTERM, 143, ""),
    ],
)
@pytest.mark.parametrize("older", [False, True], ids=["new place", "over a bundle"])
def test_a_signal_while_the_bundle_is_written_leaves_the_place_as_it_was(
    number: signal.Signals,
    status: int,
    words: str,
    older: bool,
    many_files: Path,
    recipe_file: Path,
    tmp_path: Path,
) -> None:
    """The issue: Ctrl-C → no half bundle. The same holds for the polite kill of a CI system."""
    place = tmp_path / "place"
    place.mkdir()
    if older:
        assert aicr("bundle", "-r", recipe_file, "-o", place / "out").status == 0
    before = tree(place)
    process = start(
        *("bundle", "-r", recipe_file, "-o", place / "out", "--data", many_files),
    )
    assert stopped_while_writing(process, place), "the bundle was written before it could be seen"
    process.send_signal(number)
    process.send_signal(signal.SIGCONT)
    found = finish(process)
    assert (found.status, found.out) == (status, "")
    assert words in found.err
    assert tree(place) == before
    assert left_over(place, *(["out"] if older else [])) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_the_input_is_awaited_ends_the_run(
    number: signal.Signals, tmp_path: Path
) -> None:
    """A recipe that never comes (a pipe without writer) can be given up with Ctrl-C."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    process = start("bundle", "-r", pipe, "-o", tmp_path / "out")
    with reader_of(pipe, process):
        found = given_up(process, number)
    assert found.status == {signal.SIGINT: 130, signal.SIGTERM: 143}[number]
    assert left_over(tmp_path, "pipe") == []


def test_a_signal_at_any_moment_leaves_the_old_bundle_or_the_new_one(
    recipe_text: str, tmp_path: Path
) -> None:
    """Whatever Ctrl-C hits, planning, writing, swapping or reporting: what stands there verifies."""
    place = tmp_path / "place"
    place.mkdir()
    target = place / "out"
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(recipe_text)
    assert aicr("bundle", "-r", recipe, "-o", target, "--set", "nfd:a.b=1").status == 0
    old = tree(target)
    assert aicr("bundle", "-r", recipe, "-o", tmp_path / "new").status == 0
    new = tree(tmp_path / "new")
    statuses = set()
    for milliseconds in range(0, 96, 8):
        pipe = tmp_path / f"pipe-{milliseconds}"
        os.mkfifo(pipe)
        process = start("bundle", "-r", pipe, "-o", target)
        with reader_of(pipe, process) as stream:
            stream.write(recipe_text)
        time.sleep(milliseconds / 1000)
        process.send_signal(signal.SIGINT)
        statuses.add(finish(process).status)
        assert tree(target) in (old, new)
        assert verify_tree(str(target)) == []
        assert left_over(place, "out") == []
    assert statuses <= {0, 130}
    assert 130 in statuses


def limited(size: int) -> Callable[[], None]:
    """What a child does first: let no file grow beyond *size* bytes."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return limit


@pytest.mark.parametrize("older", [False, True], ids=["new place", "over a bundle"])
def test_a_disk_that_fills_leaves_nothing_of_a_new_bundle(
    older: bool, recipe_file: Path, tmp_path: Path
) -> None:
    """The issue: a full output folder → nothing written; an older bundle stays as it was."""
    place = tmp_path / "place"
    place.mkdir()
    if older:
        assert aicr("bundle", "-r", recipe_file, "-o", place / "out").status == 0
    before = tree(place)
    found = spawn(
        *("bundle", "-r", recipe_file, "-o", place / "out", "--nodes", "7"),
        preexec_fn=limited(4096),
    )
    found.refused(8, "cannot be written", os.strerror(errno.EFBIG), "next: ", "nothing was left")
    assert tree(place) == before
    assert left_over(place, *(["out"] if older else [])) == []


def test_a_small_disk_leaves_nothing_of_a_bundle(recipe_file: Path, tmp_path: Path) -> None:
    """A real file system without room, as far as this machine lets us mount one."""
    mount = tmp_path / "disk"
    mount.mkdir()
    words = ["unshare", "--user", "--map-root-user", "--mount"]
    probe = subprocess.run(
        [*words, "mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", mount],
        capture_output=True,
        text=True,
        check=False,
    )
    if probe.returncode != 0:
        pytest.skip(f"no file system can be mounted here: {probe.stderr.strip()}")
    script = (
        f'mount -t tmpfs -o size=64k tmpfs "{mount}" && '
        f'{{ "$0" -m aicr bundle -r "{recipe_file}" -o "{mount}/out"; echo "status $?"; '
        f'ls -A "{mount}"; }}'
    )
    done = subprocess.run(
        [*words, "bash", "-c", script, sys.executable],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "status 8\n", done
    assert os.strerror(errno.ENOSPC) in done.stderr
    assert "Traceback" not in done.stderr


def test_a_recipe_that_does_not_fit_leaves_the_older_file(tmp_path: Path) -> None:
    """The single file is written beside its place and moved there whole."""
    target = tmp_path / "recipe.yaml"
    target.write_text("old")
    found = spawn("recipe", *EKS, "-o", target, preexec_fn=limited(4096))
    found.refused(8, f"cannot write {target}: {os.strerror(errno.EFBIG)}", "nothing was left half")
    assert target.read_text() == "old"
    assert left_over(tmp_path, "recipe.yaml") == []


@pytest.mark.parametrize("unbuffered", [None, "1"], ids=["buffered", "unbuffered"])
def test_a_full_device_is_an_error_in_words(unbuffered: str | None) -> None:
    """/dev/full as a file, and as standard output, whether Python writes at once or at the end."""
    no_space = os.strerror(errno.ENOSPC)
    env = environment(PYTHONUNBUFFERED=unbuffered)
    spawn("recipe", *EKS, "-o", "/dev/full").refused(8, f"cannot write /dev/full: {no_space}")
    for argv in (
        ["recipe", *EKS],
        ["version"],
        ["--help"],
        ["recipe", "--help"],
        ["bundle", "--help"],
        ["completion", "bash"],
    ):
        with Path("/dev/full").open("w") as full:
            found = spawn(*argv, stdout=full, env=env)
        found.refused(8, f"cannot write to standard output: {no_space}", "next: ")


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    """`| head -1` gets its line, and nothing is said about a pipe."""
    for argv in (["recipe", *EKS], ["completion", "zsh"], ["recipe", "--help"]):
        reading, writing = os.pipe()
        os.close(reading)
        try:
            found = spawn(*argv, stdout=writing)
        finally:
            os.close(writing)
        assert found.status == 0
        assert "ipe" not in found.err.replace("recipe", "")


@pytest.mark.parametrize(
    "command",
    [
        "recipe --service eks --intent training -o recipe.yaml",
        "bundle -r ../recipe.yaml -o out --data {data}",
        "schema Snapshot -o snapshot.json",
    ],
)
def test_a_current_folder_that_was_removed_is_said_in_words(command: str, tmp_path: Path) -> None:
    """Python's own error names no file; that is no bug of ours, and status 2."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "registry.yaml").write_text(
        "kind: ComponentRegistry\napiVersion: aicr.run/v1beta1\ncomponents: []\n"
    )
    line = command.format(data=tmp_path / "data")
    found = shell(f"mkdir gone && cd gone && rmdir ../gone\naicr {line}", cwd=tmp_path)
    found.refused(2, "the current folder has been removed", "next: change to another folder")
    assert left_over(tmp_path) == ["data"]


@pytest.mark.parametrize(
    ("closed", "argv", "status"),
    [
        ((1,), ["recipe", *EKS], 8),
        ((2,), ["recipe", *EKS], 0),
        ((2,), ["bogus"], 2),
        ((1, 2), ["recipe", *EKS], 8),
        ((0,), ["bundle", "-r", "-", "-o", "out"], 2),
        ((0, 1, 2), ["bundle", "-r", "-", "-o", "out"], 2),
    ],
)
def test_a_closed_stream_does_not_end_in_a_traceback(
    closed: tuple[int, ...], argv: list[str], status: int, tmp_path: Path
) -> None:
    """Started by something that closed a stream, the program keeps its exit status."""

    def close() -> None:
        for descriptor in closed:
            os.close(descriptor)

    assert spawn(*argv, cwd=tmp_path, preexec_fn=close).status == status
    assert left_over(tmp_path) == []


def without_root_rights() -> None:
    """What a child does first: give up root's rights to pass over modes (Linux capabilities)."""
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH):
        if libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl(PR_CAPBSET_DROP)")


def as_anybody(*argv: object, cwd: Path) -> Result:
    """Run the program under the modes of files, which do not hold root up."""
    drop = without_root_rights if os.geteuid() == 0 else None
    return spawn(*argv, cwd=cwd, preexec_fn=drop)


def test_a_folder_without_rights_is_refused_and_left(recipe_file: Path, tmp_path: Path) -> None:
    """The issue: an unwritable output folder → nothing written, and a place is asked for."""
    closed = tmp_path / "closed"
    closed.mkdir()
    closed.chmod(0o555)
    for argv in (
        ("bundle", "-r", recipe_file, "-o", closed / "out"),
        ("bundle", "-r", recipe_file, "-o", closed / "a" / "b"),
        ("recipe", *EKS, "-o", closed / "recipe.yaml"),
    ):
        found = as_anybody(*argv, cwd=tmp_path)
        found.refused(2, "--output", os.strerror(errno.EACCES), "next: ")
        assert left_over(closed) == []


def test_a_bundle_is_not_replaced_in_a_folder_without_rights(
    recipe_file: Path, tmp_path: Path
) -> None:
    """The older bundle stays as it was."""
    place = tmp_path / "place"
    assert aicr("bundle", "-r", recipe_file, "-o", place / "out").status == 0
    before = tree(place)
    place.chmod(0o555)
    found = as_anybody("bundle", "-r", recipe_file, "-o", place / "out", cwd=tmp_path)
    found.refused(2, "--output", os.strerror(errno.EACCES))
    assert tree(place) == before


def test_a_file_without_rights_is_refused(tmp_path: Path) -> None:
    """What cannot be read is named, for every kind of input."""
    secret = tmp_path / "secret.yaml"
    secret.write_text("kind: RecipeCriteria\n")
    secret.chmod(0)
    for argv in (
        ("recipe", "--criteria", secret),
        ("recipe", "--snapshot", secret),
        ("bundle", "-r", secret, "-o", "out"),
    ):
        as_anybody(*argv, cwd=tmp_path).refused(2, f"{secret}: permission denied", "ls -l")


def test_a_pseudo_file_system_is_refused(recipe_file: Path) -> None:
    """Even root cannot make a folder everywhere."""
    for place in ("/proc/aicr-bundle", "/sys/aicr-bundle"):
        found = spawn("bundle", "-r", recipe_file, "-o", place)
        assert found.status in STATUSES - {0}
        assert "--output" in found.err
        assert "next: " in found.err


@pytest.mark.covers("F10")
def test_surroundings_change_no_byte_and_no_mode(tmp_path: Path, recipe_text: str) -> None:
    """Field case F10: hash seed, time zone, locale, umask, folder and order of the environment."""
    runs = {
        "one": ({"PYTHONHASHSEED": "0", "TZ": "UTC", "LC_ALL": "C"}, 0o022),
        "two": ({"PYTHONHASHSEED": "1", "TZ": "Asia/Tokyo", "LANG": "de_DE.UTF-8"}, 0o077),
        "three": ({"PYTHONHASHSEED": "77", "TZ": "Pacific/Apia", "LC_ALL": "tr_TR.UTF-8"}, 0),
    }
    found = {}
    for name, (variables, umask) in runs.items():
        folder = tmp_path / name / "deeper"
        folder.mkdir(parents=True)
        env = environment(**variables)
        printed = spawn("recipe", *EKS, cwd=folder, env=env, umask=umask)
        saved = spawn("recipe", *EKS, "-o", "r.yaml", cwd=folder, env=env, umask=umask)
        made = spawn(
            *("bundle", "-r", "r.yaml", "-o", "new/out", "--set", "nfd:a.b=1"),
            *("--system-node-selector", "pool=system", "--storage-class", "gp3"),
            cwd=folder,
            env=env,
            umask=umask,
        )
        assert (printed.status, saved.status, made.status) == (0, 0, 0), made.err
        assert printed.out == recipe_text
        found[name] = (printed, made, tree(folder))
    assert found["one"] == found["two"] == found["three"]
    assert str(tmp_path).encode() not in b"".join(
        content or b"" for _, content in found["one"][2].values()
    )


def test_modes_are_exact_whatever_the_umask(recipe_file: Path, tmp_path: Path) -> None:
    """Decision 44: folders 0755, scripts 0755, files 0644 or 0600."""
    for umask in (0, 0o077, 0o777):
        target = tmp_path / f"out-{umask:o}"
        assert spawn("bundle", "-r", recipe_file, "-o", target, umask=umask).status == 0
        modes = {path: mode for path, (mode, _) in tree(target).items()}
        assert set(modes.values()) <= {0o755, 0o644, 0o600}
        assert modes["deploy.sh"] == 0o755
        assert target.stat().st_mode & 0o777 == 0o755
