"""Where the catalogue's files come from: a directory, the built-in tree, or one laid over another.

A tree answers four questions about relative paths with ``/`` (exists, text, parsed values, origin) and
nothing else. Path safety is decided here, once: links, escapes and oversized files never get past this
module (recipe spec 2.3).
"""

from __future__ import annotations

import os

from aicr.errors import INTERNAL, AicrError, invalid, not_found
from aicr.values.merge import copy_tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, Final, Protocol

    class Tree(Protocol):
        """Read access to the files of a catalogue."""

        def paths(self) -> list[str]:
            """All files, sorted."""
            ...

        def exists(self, path: str) -> bool:
            """Whether a file is there."""
            ...

        def read_text(self, path: str) -> str:
            """The text of a file; NOT_FOUND if it is absent."""
            ...

        def values(self, path: str) -> dict[str, Any]:
            """A values file as a map (a fresh copy); NOT_FOUND if it is absent."""
            ...

        def label(self, path: str) -> str:
            """``embedded``, ``external`` or ``merged (embedded + external)``."""
            ...

        def place(self, path: str) -> str:
            """How a person finds the file: the path to print in messages."""
            ...


EMBEDDED: Final = "embedded"
EXTERNAL: Final = "external"
MERGED: Final = "merged (embedded + external)"

#: Files larger than this are refused (recipe spec 2.3), in bytes.
MAX_FILE_BYTES: Final = 10 * 1024 * 1024
#: Folders inside each other that are looked into.
MAX_DEPTH: Final = 32

#: ``stat``'s S_IFMT, S_IFREG, S_IFDIR and S_IFLNK.
_FORMAT_BITS: Final = 0o170000
_REGULAR: Final = 0o100000
_FOLDER: Final = 0o040000
_LINK: Final = 0o120000
#: Where the texts lie that every recipe needs: health checks.
_CHECKS: Final = "checks/"

#: Merged by name when one tree lies over another; every other path is replaced.
MERGED_PATHS: Final = ("registry.yaml", "validators/catalog.yaml")


def check_relative(path: str) -> None:
    """Refuse a path that is absolute or leaves the tree.

    Raises:
        AicrError: INVALID_REQUEST naming the path.
    """
    odd = not path or path.startswith("/") or "\\" in path or "\0" in path
    if odd or any(part in ("", ".", "..") for part in path.split("/")):
        raise invalid(
            f"path traversal or non-local path detected: {path!r}",
            hint="name a file inside the catalogue, for example components/NAME/values.yaml",
        )


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
        form, size = status.st_mode & _FORMAT_BITS, status.st_size
        if form == _LINK:
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
        elif form != _REGULAR:
            unusable(path, f"not a regular file: {path}", "remove it from the data directory")
        elif size > MAX_FILE_BYTES:
            unusable(
                path,
                f"file too large ({size} bytes, max {MAX_FILE_BYTES}): {path}",
                "keep large files outside the data directory",
            )
        else:
            yield path


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


class LayeredTree:
    """One tree laid over another: the upper tree's file replaces the lower one's at the same path."""

    def __init__(self, lower: Tree, upper: Tree) -> None:
        self.lower = lower
        self.upper = upper

    def paths(self) -> list[str]:
        """All files of both trees, sorted."""
        return sorted({*self.lower.paths(), *self.upper.paths()})

    def exists(self, path: str) -> bool:
        """Whether either tree has the file."""
        return self.upper.exists(path) or self.lower.exists(path)

    def _of(self, path: str) -> Tree:
        return self.upper if self.upper.exists(path) else self.lower

    def read_text(self, path: str) -> str:
        """The text of the uppermost file."""
        return self._holder(path).read_text(path)

    def values(self, path: str) -> dict[str, Any]:
        """The uppermost values file as a map."""
        return self._holder(path).values(path)

    def _holder(self, path: str) -> Tree:
        """The tree that has the file; NOT_FOUND when neither does, which names both."""
        check_relative(path)
        if not self.exists(path):
            raise not_found(
                f"file not found in the data directory, nor in the catalogue below it: {path}",
                where=self.upper.place(path),
            )
        return self._of(path)

    def label(self, path: str) -> str:
        """The origin of a path; registry and validator catalogue are merged."""
        if path in MERGED_PATHS and self.upper.exists(path) and self.lower.exists(path):
            return MERGED
        return self._of(path).label(path)

    def place(self, path: str) -> str:
        """The path to print."""
        return self._of(path).place(path)


class BuiltinTree:
    """The tree that ships with the product: parsed values at hand, other files read when asked for.

    Args:
        root: directory with the source files (for manifests and checks).
        files: all relative paths.
        values: loader of the parsed values files, called once when the first is asked for.
        texts: loader of the texts below ``checks/`` that every recipe needs, called once likewise.
    """

    def __init__(
        self,
        root: str,
        files: tuple[str, ...],
        values: Callable[[], dict[str, dict[str, Any]]],
        texts: Callable[[], dict[str, str]],
    ) -> None:
        self.root = root
        self._files = files
        self._known = frozenset(files)
        self._load_values = values
        self._values: dict[str, dict[str, Any]] | None = None
        self._load_texts = texts
        self._texts: dict[str, str] | None = None

    def paths(self) -> list[str]:
        """All files, sorted."""
        return list(self._files)

    def exists(self, path: str) -> bool:
        """Whether a file is there."""
        return path in self._known

    def read_text(self, path: str) -> str:
        """The text of a file; INTERNAL if the installation lost it."""
        check_relative(path)
        if path not in self._known:
            raise not_found(f"file not found in the built-in catalogue: {path}")
        if path.startswith(_CHECKS):
            # A bundle reads manifests and upgrade records, and must not pay for these.
            if self._texts is None:
                self._texts = self._load_texts()
            if path in self._texts:
                return self._texts[path]
        full = os.path.join(self.root, path)
        try:
            return read_checked(full, path)
        except AicrError as error:
            if error.code == "NOT_FOUND":
                raise AicrError(
                    INTERNAL,
                    f"the installation is incomplete: {path} is missing",
                    hint="reinstall aicr",
                ) from error
            raise

    def values(self, path: str) -> dict[str, Any]:
        """A values file as a map."""
        if self._values is None:
            self._values = self._load_values()
        if path not in self._values:
            if path in self._known:
                return parse_values(self.read_text(path), self.place(path), "helm")
            raise not_found(f"file not found in the built-in catalogue: {path}")
        copied: dict[str, Any] = copy_tree(self._values[path])
        return copied

    def label(self, path: str) -> str:
        """Always ``embedded``."""
        return EMBEDDED

    def place(self, path: str) -> str:
        """The path to print, relative to the catalogue's root: the same on every machine."""
        return f"recipes/{path}"


def read_checked(full: str, path: str) -> str:
    """Read a text file of a tree, following no link and no more than the size limit.

    Raises:
        AicrError: NOT_FOUND, or INVALID_REQUEST for a link, size, or undecodable bytes.
    """
    try:
        # O_NONBLOCK: a pipe that took the file's place after the check must not hang us.
        handle = os.open(
            full, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        )
    except FileNotFoundError as error:
        raise not_found(f"file not found: {path}") from error
    except OSError as error:
        raise invalid(
            f"cannot read {path}: {error.strerror}", where=full, hint=f"look with: ls -l {full}"
        ) from error
    try:
        status = os.fstat(handle)
        if status.st_mode & _FORMAT_BITS != _REGULAR:
            raise invalid(f"not a regular file: {path}")
        size = status.st_size
        if size > MAX_FILE_BYTES:
            raise invalid(f"file too large ({size} bytes, max {MAX_FILE_BYTES}): {path}")
        chunks = []
        while chunk := os.read(handle, 1 << 20):
            chunks.append(chunk)
    except OSError as error:
        raise invalid(f"cannot read {path}: {error.strerror}") from error
    finally:
        os.close(handle)
    content = b"".join(chunks)
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        before = content[: error.start]
        column = len(before[before.rfind(b"\n") + 1 :].decode("utf-8")) + 1
        raise invalid(
            f"{path} is not UTF-8 text (byte {error.start})",
            where=f"{full}:{before.count(10) + 1}:{column}",
            hint="save the file as UTF-8",
        ) from error


def parse_values(text: str, source: str, mode: str) -> dict[str, Any]:
    """A values file as a map; an empty file is an empty map.

    Raises:
        AicrError: INVALID_REQUEST when it is not YAML or not a map.
    """
    from aicr.yamlio import read

    value = read.load(text, source=source, mode=mode)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise invalid("a values file must be a map", where=source)
    return value
