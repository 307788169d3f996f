"""Write a bundle to disk as a whole: all of it is there, or the folder is as it was before.

```
files --> hidden sibling folder --rename--> target
                                   (a bundle of ours that stood there is put aside first,
                                    put back if the rename fails, removed if it succeeds)
```
A folder with anything else in it is refused: a bundle is a closed world, so what stays behind would
make it fail its own check, and what is removed may be somebody's work (decision 47).

It knows the file system and how to recognise a bundle of ours; it must not know deployers or how
the files came about. Source: decisions 44 and 47, bundler spec 0.3 (step 17).
"""

from __future__ import annotations

import errno
import os

from aicr.artifacts import checksums, whole_files
from aicr.errors import CONFLICT, INTERNAL, AicrError, invalid, some_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Final

FOLDER_MODE: Final = 0o755

_SHOWN: Final = 5
#: Failures that the caller can mend by naming another folder.
_CALLERS: Final = (PermissionError, NotADirectoryError, IsADirectoryError, FileNotFoundError)


def write_bundle(
    files: Mapping[str, tuple[bytes, int]], target: str, *, vouched: bool = False
) -> None:
    """Write *files* (relative path -> (bytes, mode)) as the folder *target*.

    Missing parent folders are made. Modes are exact, whatever the umask. On any failure, Ctrl-C
    included, nothing new is left and an older bundle at *target* is untouched.

    Args:
        vouched: the caller has found what stands at *target* to be its own, of another kind than a
            bundle, and to be replaced.

    Raises:
        AicrError: INVALID_REQUEST for a target that is a link, a file, a mount point, the current
            folder or not writable, and for paths that cannot be files of one tree; CONFLICT when
            the target holds something other than an unchanged bundle of ours; INTERNAL when the
            disk fails or is full.
    """
    _guard_paths(files)
    if not target.strip() or "\0" in target:
        raise invalid(
            "no output folder is named", where="--output", hint="pass --output with a folder"
        )
    try:
        place = os.path.abspath(target)
        replace = _guard_target(target, place, vouched)
    except OSError as error:
        raise _explained(error, target) from error
    made: list[str] = []
    scratch = ""
    try:
        _make_parents(os.path.dirname(place), made)
        scratch = whole_files.sibling(place)
        os.mkdir(scratch, 0o700)
        _write_tree(scratch, files)
        if replace:
            _swap(scratch, place)
        else:
            # Onto an empty folder as well: rename replaces it, and fails if it filled meanwhile.
            os.rename(scratch, place)
    except OSError as error:
        _clean_up(scratch, made)
        raise _explained(error, target) from error
    except BaseException:
        _clean_up(scratch, made)
        raise


def is_own_bundle(directory: str) -> list[str]:
    """Why *directory* is not an unchanged bundle of ours; [] when it is one.

    Raises:
        AicrError: as ``checksums.verify_tree``.
    """
    from aicr.bundle import info

    path = os.path.join(directory, info.BUNDLE_INFO)
    if not os.path.isfile(path) or os.path.islink(path):
        return [f"it has no {info.BUNDLE_INFO}"]
    problems = checksums.verify_tree(directory)
    if problems:
        return problems
    try:
        with open(path, encoding="utf-8") as stream:
            info.read(stream.read())
    except (AicrError, OSError, UnicodeDecodeError) as error:
        return [str(error)]
    return []


def _guard_paths(files: Mapping[str, tuple[bytes, int]]) -> None:
    """Refuse what cannot be one tree on every file system, letter case folded (field case F10)."""
    folded: dict[str, str] = {}
    folders: dict[str, str] = {}
    for path in sorted(files):
        problem = checksums.path_problem(path)
        if problem:
            raise invalid(f"bundle file {path!r} {problem}")
        other = folded.setdefault(path.casefold(), path)
        if other != path:
            raise invalid(f"bundle files {other!r} and {path!r} differ only in letter case")
        parent = path.rpartition("/")[0]
        while parent:
            other = folders.setdefault(parent.casefold(), parent)
            if other != parent:
                raise invalid(f"bundle folders {other!r} and {parent!r} differ only in letter case")
            parent = parent.rpartition("/")[0]
    both = sorted(set(folded) & set(folders))
    if both:
        raise invalid(f"bundle path {folded[both[0]]!r} is both a file and a folder")


def _guard_target(target: str, place: str, vouched: bool) -> bool:
    """Check what stands at the target; whether an older bundle has to be swapped out."""
    if os.path.islink(place):
        raise invalid(
            f"the output folder {target} is a symbolic link",
            where="--output",
            hint=f"name the folder that it points to: {os.path.realpath(place)}",
        )
    if not os.path.lexists(place):
        return False
    if not os.path.isdir(place):
        raise invalid(f"a file is in the way at {target}", where="--output", hint="name a folder")
    if os.path.ismount(place):
        raise invalid(
            f"the output folder {target} is a mount point, which cannot be replaced as a whole",
            where="--output",
            hint=f"name a folder inside it, for example {os.path.join(target, 'bundle')}",
        )
    here = os.path.realpath(os.getcwd())
    real = os.path.realpath(place)
    if here == real or here.startswith(real + os.sep):
        raise invalid(
            f"the output folder {target} holds the current folder; it is replaced as a whole, "
            "which would leave this shell in a removed folder",
            where="--output",
            hint="name a folder below the current one, for example ./bundle",
        )
    entries = sorted(os.listdir(place))
    if not entries:
        return False
    problems = [] if vouched else is_own_bundle(place)
    if problems:
        raise AicrError(
            CONFLICT,
            f"the output folder {target} is not empty and not an unchanged bundle: it holds "
            f"{some_of(entries, _SHOWN)} ({some_of(problems, _SHOWN)})",
            where="--output",
            hint="name a new folder, or remove this one first",
        )
    return True


def _make_parents(folder: str, made: list[str]) -> None:
    """Make *folder* and what is missing above it; each folder made is added to *made* at once."""
    missing = []
    while not os.path.isdir(folder):
        if os.path.lexists(folder):
            raise NotADirectoryError(errno.ENOTDIR, f"{folder} is not a folder")
        missing.append(folder)
        folder = os.path.dirname(folder)
    for name in reversed(missing):
        made.append(name)
        os.mkdir(name)
        os.chmod(name, FOLDER_MODE)


def _clean_up(scratch: str, made: list[str]) -> None:
    """Remove what a failed run has made; folders that hold something by now are left."""
    if scratch:
        _remove_tree(scratch)
    for folder in reversed(made):
        try:
            os.rmdir(folder)
        except OSError:
            continue


def _write_tree(root: str, files: Mapping[str, tuple[bytes, int]]) -> None:
    folders: set[str] = set()
    for path in sorted(files):
        data, mode = files[path]
        segments = path.split("/")[:-1]
        for depth in range(1, len(segments) + 1):
            folder = "/".join(segments[:depth])
            if folder not in folders:
                folders.add(folder)
                os.mkdir(f"{root}/{folder}")
                os.chmod(f"{root}/{folder}", FOLDER_MODE)
        whole_files.write_new(f"{root}/{path}", data, mode)
    os.chmod(root, FOLDER_MODE)


def _swap(scratch: str, place: str) -> None:
    """Put *scratch* at *place*, whose folder is removed afterwards, or put back on a failure."""
    old = whole_files.sibling(place)
    try:
        os.rename(place, old)
        os.rename(scratch, place)
    except BaseException:
        # Which of the two was done is read from the disk, as Ctrl-C may come between two lines.
        if os.path.lexists(old):
            if os.path.lexists(scratch):
                os.rename(old, place)
            else:
                _remove_tree(old)
        raise
    try:
        gone = _remove_tree(old)
    except BaseException:
        # The new bundle stands; Ctrl-C ends the run, but does not leave half of the old one.
        _remove_tree(old)
        raise
    if not gone:
        raise AicrError(
            INTERNAL,
            f"the bundle is written, but the one before it could not be removed: {old}",
            hint=f"remove {old}",
        )


def _remove_tree(path: str) -> bool:
    """Remove a folder with all in it, links not followed; whether it is gone."""
    try:
        for folder, names, files in os.walk(path, topdown=False):
            for name in (*files, *names):
                entry = os.path.join(folder, name)
                if os.path.isdir(entry) and not os.path.islink(entry):
                    os.rmdir(entry)
                else:
                    os.unlink(entry)
        os.rmdir(path)
    except OSError:
        return not os.path.lexists(path)
    return True


def _explained(error: OSError, target: str) -> AicrError:
    said = error.strerror or str(error)
    if isinstance(error, _CALLERS) or error.errno in whole_files.BAD_NAMES:
        return invalid(
            f"the output folder {target} cannot be written: {said}",
            where="--output",
            hint="name a folder in a place where you may write",
        )
    if isinstance(error, FileExistsError) or error.errno == errno.ENOTEMPTY:
        return AicrError(
            CONFLICT,
            f"the output folder {target} was filled by another process meanwhile",
            where="--output",
            hint="run again",
        )
    return AicrError(
        INTERNAL,
        f"the bundle cannot be written to {target}: {said}",
        where="--output",
        hint="nothing was left behind; make room or mend the disk and run again",
    )
