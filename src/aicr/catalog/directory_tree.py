"""The files of a catalogue that lie in a directory, of ``--data`` or of a checkout.

Everything below the directory is listed and checked once, before anything of it is used: links, odd files,
oversized files and folders without end are refused (recipe spec 2.3). Runs on the built-in catalogue do
not load this module. It must not know what the files mean.
"""

from __future__ import annotations

import os

from aicr.catalog.tree import (
    EXTERNAL,
    FORMAT_BITS,
    MAX_FILE_BYTES,
    REGULAR,
    check_relative,
    parse_values,
    read_checked,
)
from aicr.errors import AicrError, invalid, not_found

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, Final

#: Folders inside each other that are looked into.
MAX_DEPTH: Final = 32

#: ``stat``'s S_IFDIR and S_IFLNK.
_FOLDER: Final = 0o040000
_LINK: Final = 0o120000


def walk(root: str, unusable: Callable[[str, str, str], None], *, below: str = "") -> Iterator[str]:
    """The relative paths of the files below *root* that can be part of a tree, folder by folder.

    Links are not followed, and the folder ``.git`` is not looked into (recipe spec 2.3).

    Args:
        root: the directory.
        unusable: told path, reason and hint of each entry that is left out; may raise.
        below: the folder to begin with, relative to *root*.

    Raises:
        AicrError: INVALID_REQUEST for a folder that cannot be listed; what *unusable* raises.
    """
    folder = os.path.join(root, below) if below else root
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        raise _unlisted(folder, error) from error
    for entry in entries:
        path = f"{below}/{entry.name}" if below else entry.name
        try:
            # Where a folder may be listed and not entered, this is what fails.
            status = entry.stat(follow_symlinks=False)
        except OSError as error:
            raise _unlisted(os.path.join(folder, entry.name), error) from error
        form, size = status.st_mode & FORMAT_BITS, status.st_size
        problem = _name_problem(entry.name)
        if problem:
            unusable(
                path,
                f"the name {path!r} {problem}, so no bundle can hold it",
                "rename it, or remove it from the data directory",
            )
        elif form == _LINK:
            unusable(
                path, f"symlinks not allowed: {path}", "replace the link by a copy of its target"
            )
        elif form == _FOLDER:
            if path.count("/") >= MAX_DEPTH:
                unusable(
                    path,
                    f"folders nested more than {MAX_DEPTH} deep: {path}",
                    "nothing of a catalogue lies so far down; remove the folder",
                )
            elif entry.name != ".git":
                yield from walk(root, unusable, below=path)
        elif form != REGULAR:
            unusable(path, f"not a regular file: {path}", "remove it from the data directory")
        elif size > MAX_FILE_BYTES:
            unusable(
                path,
                f"file too large ({size} bytes, max {MAX_FILE_BYTES}): {path}",
                "keep large files outside the data directory",
            )
        else:
            yield path


def _name_problem(name: str) -> str:
    """Why a file of that name cannot be in a bundle, whose paths every system reads alike; "" if it can."""
    if "\\" in name:
        return "holds a backslash"
    if any(ord(char) < 32 or ord(char) == 127 for char in name):
        return "holds a control character"
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return "is not UTF-8 text"
    return ""


def _unlisted(place: str, error: OSError) -> AicrError:
    return invalid(
        f"cannot list {place}: {error.strerror}",
        hint=f"folders must be readable and enterable for you; look with: ls -ld {place}",
    )


def _is_absent(path: str) -> bool:
    """Whether there is surely no such file; one that may not be looked at is for ``walk`` to refuse."""
    try:
        os.stat(path)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return False


def _refuse(path: str, message: str, hint: str) -> None:
    del path
    raise invalid(message, hint=hint)


class DirectoryTree:
    """The files under one directory, listed and checked once.

    Args:
        root: the directory.
        origin: label of its files, ``embedded`` or ``external``.
        yaml_mode: how values files are read, ``helm`` or ``v3``.

    Raises:
        AicrError: NOT_FOUND or INVALID_REQUEST as recipe spec 2.3 says.
    """

    def __init__(self, root: str, *, origin: str = EXTERNAL, yaml_mode: str = "helm") -> None:
        self.root = root
        self.yaml_mode = yaml_mode
        self._origin = origin
        if not os.path.lexists(root):
            raise not_found(
                f"external data directory not found: {root}",
                hint="create it with a registry.yaml (components: [] is enough), or correct --data",
            )
        if not os.path.isdir(root):
            raise invalid(
                f"external data path is not a directory: {root}",
                hint="name the folder that holds registry.yaml",
            )
        if _is_absent(os.path.join(root, "registry.yaml")):
            raise invalid(
                f"registry.yaml is required in external data directory: {root}",
                hint="a stub is enough: kind: ComponentRegistry, apiVersion: aicr.run/v1beta1, "
                "components: []",
            )
        try:
            self._paths = sorted(walk(root, _refuse))
        except AicrError as error:
            raise invalid(f"external directory validation failed: {root}") from error
        self._known = frozenset(self._paths)

    def paths(self) -> list[str]:
        """All files, sorted."""
        return self._paths

    def exists(self, path: str) -> bool:
        """Whether a file is there."""
        return path in self._known

    def read_text(self, path: str) -> str:
        """The text of a file.

        Raises:
            AicrError: NOT_FOUND, or INVALID_REQUEST for an escaping path, a link, a file that grew
                over the limit, or bytes that are not UTF-8.
        """
        check_relative(path)
        if path not in self._known:
            raise not_found(f"file not found in the data directory: {path}", where=self.root)
        full = os.path.join(self.root, path)
        return read_checked(full, path)

    def values(self, path: str) -> dict[str, Any]:
        """A values file as a map."""
        return parse_values(self.read_text(path), self.place(path), self.yaml_mode)

    def label(self, path: str) -> str:
        """The origin of a path."""
        return self._origin

    def place(self, path: str) -> str:
        """The path to print."""
        return os.path.join(self.root, path)
