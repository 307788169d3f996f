"""Where the catalogue's files come from: the built-in tree, a directory, or one laid over another.

A tree answers four questions about relative paths with ``/`` (exists, text, parsed values, origin) and
nothing else. What is safe to read is decided here, once: escapes, links and oversized files never get past
`check_relative` and `read_checked` (recipe spec 2.3). The tree of a directory is in `directory_tree`.
"""

from __future__ import annotations

import os

from aicr.errors import INTERNAL, AicrError, invalid, not_found
from aicr.values.merge import copy_tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
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

#: ``stat``'s S_IFMT and S_IFREG.
FORMAT_BITS: Final = 0o170000
REGULAR: Final = 0o100000
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
        if status.st_mode & FORMAT_BITS != REGULAR:
            raise invalid(f"not a regular file: {path}", hint=f"look with: ls -l {full}")
        size = status.st_size
        if size > MAX_FILE_BYTES:
            raise invalid(
                f"file too large ({size} bytes, max {MAX_FILE_BYTES}): {path}",
                hint="keep large files outside the data directory",
            )
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
        raise invalid(
            "a values file must be a map",
            where=source,
            hint="write keys with values, as in the values.yaml of the chart",
        )
    return value
