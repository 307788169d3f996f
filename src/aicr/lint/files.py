"""The files of a data tree, whatever state they are in.

The loader refuses a tree at the first link or oversized file. Here each such file is noted, left out,
and the rest is looked at all the same. Otherwise this is a tree of the catalogue like any other
(protocol ``aicr.catalog.tree.Tree``), so resolution can read from it. It must not know documents.
Source: recipe spec 2.3.
"""

from __future__ import annotations

import os
from typing import Any

from aicr.catalog.directory_tree import walk
from aicr.catalog.tree import EXTERNAL, check_relative, parse_values, read_checked
from aicr.errors import AicrError, invalid, not_found
from aicr.lint.findings import Problem


class Files:
    """Every readable file below a directory.

    Args:
        root: the directory.
        prefix: what stands before a relative path in messages; the directory itself by default.
        origin: ``embedded`` or ``external``.

    Attributes:
        problems: files that the loader would refuse, with the reason.

    Raises:
        AicrError: NOT_FOUND when the directory is not there, INVALID_REQUEST when it is no directory
            or cannot be listed.
    """

    def __init__(self, root: str, *, prefix: str = "", origin: str = EXTERNAL) -> None:
        self.root = root
        self.prefix = prefix or root
        self.origin = origin
        self.problems: list[Problem] = []
        self._texts: dict[str, str] = {}
        self._values: dict[str, dict[str, Any]] = {}
        if not os.path.lexists(root):
            raise not_found(
                f"data directory not found: {root}", hint="correct the name of the directory"
            )
        if not os.path.isdir(root):
            raise invalid(f"not a directory: {root}", hint="name the directory with registry.yaml")
        self._paths = sorted(filter(self._usable, walk(root, self._note)))
        self._known = frozenset(self._paths)

    def _usable(self, path: str) -> bool:
        """Whether a file can be used; YAML is read now, so that what is wrong with it is noted."""
        # What else lies in the tree is nobody's business unless it is referred to.
        if path.endswith((".yaml", ".yml")):
            try:
                self._texts[path] = read_checked(os.path.join(self.root, path), path)
            except AicrError as error:
                self._note(path, error.message, error.hint)
                return False
        return True

    def _note(self, path: str, message: str, hint: str) -> None:
        self.problems.append(Problem(self.place(path), message, hint))

    def paths(self) -> list[str]:
        """All usable files, sorted."""
        return self._paths

    def exists(self, path: str) -> bool:
        """Whether a usable file is there."""
        return path in self._known

    def read_text(self, path: str) -> str:
        """The text of a file.

        Raises:
            AicrError: NOT_FOUND, or INVALID_REQUEST for what cannot be read as text.
        """
        check_relative(path)
        if path in self._texts:
            return self._texts[path]
        if path not in self._known:
            raise not_found(f"file not found in the data directory: {path}", where=self.root)
        return read_checked(os.path.join(self.root, path), path)

    def values(self, path: str) -> dict[str, Any]:
        """A values file as a map.

        Raises:
            AicrError: NOT_FOUND, or INVALID_REQUEST when it is no YAML map.
        """
        if path not in self._values:
            self._values[path] = parse_values(self.read_text(path), self.place(path), "helm")
        return self._values[path]

    def label(self, path: str) -> str:
        """The origin of a path."""
        del path
        return self.origin

    def place(self, path: str) -> str:
        """The path to print."""
        return os.path.join(self.prefix, path)
