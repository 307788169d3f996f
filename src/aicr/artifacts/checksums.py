"""checksums.txt of a bundle, and the closed-world check of a tree against it.

```
files  --checksums_txt-->  "<sha256>  <path>" lines        (writing; pure)
folder --verify_tree---->  list of problems, [] = whole    (reading; never follows a link)
```
"Closed world" means that the list is the whole truth in both directions: each listed file is there
with those bytes, and nothing else is there, neither a file nor a link nor a folder (bundler spec
7.1, 7.2).

This module must not know what a bundle contains or means; only paths, bytes and the two excluded
attestation files.
"""

from __future__ import annotations

import os

try:  # CPython's own SHA-2: importing hashlib would load OpenSSL, most of a run's start-up time
    from _sha2 import sha256 as _sha256  # type: ignore[import-not-found,unused-ignore]
except ImportError:
    try:
        from _sha256 import sha256 as _sha256  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        from hashlib import sha256 as _sha256

from aicr.errors import invalid, not_found

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping
    from typing import Final

CHECKSUMS: Final = "checksums.txt"
#: Written after the list, because they sign it (bundler spec 7.1).
EXCLUDED: Final = frozenset(
    {
        CHECKSUMS,
        "attestation/bundle-attestation.sigstore.json",
        "attestation/aicr-attestation.sigstore.json",
    }
)
MODE: Final = 0o600

_LINE: Final = r"([0-9a-f]{64})  (.+)"
_BLOCK: Final = 1 << 20


def sha256_hex(data: bytes) -> str:
    """SHA-256 of *data* as 64 lower-case hex digits."""
    digest: str = _sha256(data).hexdigest()
    return digest


def path_problem(path: str) -> str:
    """Why *path* is not a plain path inside a tree, or "" if it is one.

    Plain means relative, with ``/`` between segments, no empty, ``.`` or ``..`` segment, and no
    backslash, colon-led drive or control character, so that every system reads the same path.
    """
    if not path:
        return "is empty"
    drive = path[1:2] == ":" and path[0].isascii() and path[0].isalpha()
    if path.startswith("/") or drive:
        return "is absolute"
    if not path.isprintable() and any(ord(char) < 32 or ord(char) == 127 for char in path):
        return "holds a control character"
    if "\\" in path:
        return "holds a backslash"
    segments = path.split("/")
    if ".." in segments:
        return "leads out of the tree"
    if "" in segments or "." in segments:
        return "is not in its shortest form"
    return ""


def checksums_txt(files: Mapping[str, bytes | tuple[bytes, int]]) -> bytes:
    """The text of checksums.txt for *files* (relative path -> bytes, or (bytes, mode)).

    Lines are sorted by path in code-point order; the excluded files are left out (bundler spec
    7.1).

    Raises:
        AicrError: INVALID_REQUEST for a path that is not plain (see ``path_problem``).
    """
    lines = []
    for path in sorted(files):
        problem = path_problem(path)
        if problem:
            raise invalid(f"path {path!r} {problem} and cannot be listed in {CHECKSUMS}")
        if path not in EXCLUDED:
            held = files[path]
            data = held if isinstance(held, bytes) else held[0]
            lines.append(f"{sha256_hex(data)}  {path}\n")
    return "".join(lines).encode()


def parse(data: bytes) -> tuple[dict[str, str], list[str]]:
    """Digest by path of a checksums.txt, and the problems of its lines.

    Lines may end in CRLF (a checkout on Windows); their order does not matter (bundler spec 7.2).
    """
    import re

    try:
        text = data.decode()
    except UnicodeDecodeError:
        return {}, [f"{CHECKSUMS}: is not UTF-8 text"]
    listed: dict[str, str] = {}
    problems = []
    lines = text.split("\n")
    if lines[-1]:
        problems.append(f"{CHECKSUMS}: the last line is cut off (no newline at its end)")
    for number, raw in enumerate(lines, 1):
        line = raw.removesuffix("\r")
        if not line and number == len(lines):
            continue
        match = re.fullmatch(_LINE, line)
        if match is None:
            problems.append(f"{CHECKSUMS}:{number}: unparsable line {line[:80]!r}")
            continue
        digest, path = match.groups()
        fault = listing_fault(path, listed, EXCLUDED)
        if fault:
            problems.append(f"{CHECKSUMS}:{number}: path {path!r} {fault}")
        else:
            listed[path] = digest
    return listed, problems


def listing_fault(path: str, listed: Container[str], excluded: Container[str]) -> str:
    """What is wrong with one more *path* of a list of files, "" when it may be there.

    Args:
        listed: the paths before it.
        excluded: what no list covers: itself, and what is made of it.
    """
    fault = path_problem(path)
    if not fault and path in excluded:
        fault = "cannot be covered by the list itself"
    if not fault and path in listed:
        fault = "is listed twice"
    return fault


def verify_tree(directory: str) -> list[str]:
    """Every difference between the tree at *directory* and its checksums.txt; [] when there is
    none.

    The folder itself may be reached through links; inside it none is followed (field case F12).

    Raises:
        AicrError: NOT_FOUND or INVALID_REQUEST when *directory* is not there or is no folder.
    """
    return examine(directory)[0]


def examine(directory: str) -> tuple[list[str], bytes, list[str]]:
    """(differences as ``verify_tree``, the bytes of checksums.txt, the paths that it lists).

    The list is read once, so that who compares its digest with a signed one speaks of the very
    bytes that the tree was compared with (bundler spec 7.2).

    Raises:
        AicrError: as ``verify_tree``.
    """
    if not os.path.lexists(directory):
        raise not_found(
            f"no such folder: {directory}",
            where=directory,
            hint="name the folder that aicr bundle wrote",
        )
    if not os.path.isdir(directory):
        raise invalid("not a folder", where=directory, hint="name the folder of the bundle")
    data, fault = read_plain(os.path.join(directory, CHECKSUMS))
    if fault:
        return [f"{CHECKSUMS}: {fault}"], b"", []
    listed, problems = parse(data)
    seen: set[str] = set()
    for path, kind in walk(directory, "", problems):
        if kind != "file":
            problems.append(f"{path}: {kind}")
            seen.add(path)
        elif path in listed:
            seen.add(path)
            problem = _compare(os.path.join(directory, path), listed[path])
            if problem:
                problems.append(f"{path}: {problem}")
        elif path not in EXCLUDED:
            problems.append(f"{path}: file is not listed in {CHECKSUMS}")
    problems.extend(f"{path}: listed file is missing" for path in listed if path not in seen)
    return sorted(problems), data, sorted(listed)


def examine_files(files: Mapping[str, bytes | tuple[bytes, int]]) -> list[str]:
    """The same comparison for a tree that is still in memory, for example just received."""
    held = {path: data if isinstance(data, bytes) else data[0] for path, data in files.items()}
    if CHECKSUMS not in held:
        return [f"{CHECKSUMS}: is missing"]
    listed, problems = parse(held[CHECKSUMS])
    for path, data in held.items():
        if path in listed:
            if sha256_hex(data) != listed[path]:
                problems.append(f"{path}: content differs from its checksum")
        elif path not in EXCLUDED:
            problems.append(f"{path}: file is not listed in {CHECKSUMS}")
    problems.extend(f"{path}: listed file is missing" for path in listed if path not in held)
    return sorted(problems)


def walk(root: str, inside: str, problems: list[str]) -> Iterator[tuple[str, str]]:
    """(relative path, "file" or what is wrong with it) of all below *inside*, links not
    followed."""
    # Not recursive: how deep folders are nested is for whoever made them to choose.
    stack = [_entries(root, inside, problems)]
    while stack:
        found = next(stack[-1], None)
        if found is None:
            stack.pop()
        elif found[1] == "folder":
            stack.append(_entries(root, found[0], problems))
        else:
            yield found


def _entries(root: str, inside: str, problems: list[str]) -> Iterator[tuple[str, str]]:
    """What is directly in one folder, by name."""
    try:
        with os.scandir(os.path.join(root, inside)) as scan:
            entries = sorted(scan, key=lambda entry: entry.name)
    except OSError as error:
        problems.append(f"{inside or '.'}: folder cannot be read: {error.strerror}")
        return
    if not entries and inside:
        yield inside, "folder is empty"
    for entry in entries:
        path = f"{inside}/{entry.name}" if inside else entry.name
        if entry.is_symlink():
            yield path, "symbolic link"
        elif entry.is_dir(follow_symlinks=False):
            yield path, "folder"
        elif entry.is_file(follow_symlinks=False):
            yield path, "file"
        else:
            yield path, "special file"


def read_plain(path: str) -> tuple[bytes, str]:
    """Bytes of a regular file that is not a link, or why they cannot be had."""
    if os.path.islink(path):
        return b"", "symbolic link"
    if not os.path.lexists(path):
        return b"", "is missing"
    if not os.path.isfile(path):
        return b"", "is not a regular file"
    try:
        with open(path, "rb", opener=_open_plain) as stream:
            return stream.read(), ""
    except OSError as error:
        return b"", f"cannot be read: {error.strerror}"


def _compare(path: str, digest: str) -> str:
    found = _sha256()
    try:
        with open(path, "rb", opener=_open_plain) as stream:
            while block := stream.read(_BLOCK):
                found.update(block)
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    return "" if found.hexdigest() == digest else "content differs from its checksum"


def _open_plain(path: str, flags: int) -> int:
    # A link or a pipe swapped in after the walk must not be followed or waited for.
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
