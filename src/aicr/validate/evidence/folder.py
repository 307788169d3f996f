"""The folder of an evidence bundle on disk: written as a whole, and read as a closed world.

```
DIR/pointer.yaml           where the bundle is published, and who signed it
DIR/summary-bundle/…       the bundle; bundle.LAYOUT says what is in it
```
A folder that holds anything else is refused, and only a bundle of ours that is whole is replaced
(decision 47). Reading follows no link and takes no file that is larger than evidence can be. It must not
know what the files mean. Source: validators spec 9.3; decisions 44 and 47.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

from aicr.artifacts import checksums, whole_files
from aicr.bundle import output
from aicr.errors import CONFLICT, AicrError, invalid, not_found

FOLDER_MODE: Final = 0o755
FILE_MODE: Final = 0o600
SUMMARY: Final = "summary-bundle"
POINTER: Final = "pointer.yaml"
#: No file of a bundle is larger: a snapshot of 20,000 nodes has some 60 MB.
MAX_FILE_BYTES: Final = 256 * 1024 * 1024
FLAG: Final = "--emit-attestation"

Files = dict[str, bytes]


def write(files: Mapping[str, bytes], directory: str, *, replace: bool) -> None:
    """Write *files* (relative path → bytes) as *directory*: all of it, or nothing changes.

    Args:
        replace: what stands there is an older bundle of ours, which goes.

    Raises:
        AicrError: INVALID_REQUEST or CONFLICT when the folder cannot be written there.
    """
    made = {path: (data, FILE_MODE) for path, data in files.items()}
    try:
        output.write_bundle(made, directory, vouched=replace)
    except AicrError as error:
        raise AicrError(
            error.code, error.message, where=FLAG, hint=error.hint, context=error.context
        ) from error


def occupied(directory: str) -> bool:
    """Whether *directory* is there and holds something.

    Raises:
        AicrError: INVALID_REQUEST when it is no folder, or cannot be looked into.
    """
    if not os.path.lexists(directory):
        return False
    if os.path.islink(directory) or not os.path.isdir(directory):
        raise invalid(f"{directory} is not a folder", where=FLAG, hint="name a new folder")
    try:
        return bool(os.listdir(directory))
    except OSError as error:
        raise _unwritable(directory, error) from error


def foreign(directory: str, problems: list[str]) -> AicrError:
    """The refusal of a folder that holds something else."""
    return AicrError(
        CONFLICT,
        f"{directory} is not empty and not a whole evidence bundle ({'; '.join(problems[:3])})",
        where=FLAG,
        hint="name a new folder, or remove this one first",
    )


def add(path: str, data: bytes) -> None:
    """Put a file into a bundle that is on disk.

    Raises:
        AicrError: INVALID_REQUEST when it cannot be written.
    """
    try:
        whole_files.replace(path, data, FILE_MODE)
    except OSError as error:
        raise _unwritable(path, error) from error


def read(directory: str) -> tuple[Files, list[str]]:
    """(files by path relative to *directory*, what in it is neither a plain file nor a folder).

    Raises:
        AicrError: NOT_FOUND when there is no such folder; INVALID_REQUEST when it is none or cannot
            be read.
    """
    if not os.path.lexists(directory):
        raise not_found(
            f"no such folder: {directory}",
            where=directory,
            hint="name the folder that aicr validate --emit-attestation wrote",
        )
    if not os.path.isdir(directory):
        raise invalid("not a folder", where=directory, hint="name the folder of the evidence")
    found: Files = {}
    problems: list[str] = []
    for path, kind in checksums.walk(directory, "", problems):
        if kind != "file":
            problems.append(f"{path}: {kind}")
            continue
        place = os.path.join(directory, path)
        if os.path.getsize(place) > MAX_FILE_BYTES:
            problems.append(f"{path}: is larger than {MAX_FILE_BYTES} bytes")
            continue
        data, fault = checksums.read_plain(place)
        if fault:
            problems.append(f"{path}: {fault}")
        else:
            found[path] = data
    return found, problems


def _unwritable(place: str, error: OSError) -> AicrError:
    return invalid(
        f"{place} cannot be written: {error.strerror or error}",
        where=FLAG,
        hint="name a folder in a place where you may write",
    )
