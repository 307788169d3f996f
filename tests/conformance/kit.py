"""The conformance kit on disk: where it is, what it holds, and its data tree as our catalogue.

``AICR_KIT`` names the folder. Without it the suite skips, and fails where ``AICR_KIT_REQUIRED`` says
that it has to run (decision 80). The tree is read as yaml.v3 reads it, because that wrote it
(decision 43).
"""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.compare import Comparer

from aicr.catalog.catalog import Catalog

ASK = "set AICR_KIT to the folder of the conformance kit (…/conformance/aicr-v0.11.1)"


class Kit:
    """The kit in one folder.

    Attributes:
        root: the folder; relative names of the kit start here.
        comparer: reads its goldens and compares with them.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.comparer = Comparer(root.parent)
        self._loaded: dict[str, Any] = {}

    def load(self, name: str) -> Any:
        """The parsed content of a file of the kit; callers must not change it."""
        if name not in self._loaded:
            self._loaded[name] = self.comparer.load(self.root / name)
        return self._loaded[name]

    def text(self, name: str) -> str:
        """The text of a file of the kit."""
        return (self.root / name).read_text(encoding="utf-8")

    def totals(self) -> dict[str, int]:
        """How many cases each part of the suite has in this kit."""
        bundle = self.load("bundle/index.yaml")
        return {
            "resolve": len(self.load("resolve/index.yaml")["cases"]),
            "matrix": len(self.load("resolve/matrix.yaml")["bodies"]),
            "query": len(self.load("query/index.yaml")["cases"]),
            "bundle-base": len(bundle["bases"]),
            "bundle-variant": len(bundle["variants"]),
            "bundle-error": len(bundle["errors"]),
            "expression": len(self.load("constraints/index.yaml")["expressions"]),
        }

    @functools.cached_property
    def catalog(self) -> Catalog:
        """The kit's data tree, and nothing of our own."""
        return Catalog.from_dir(str(self.root / "recipes"), yaml_mode="v3")


@functools.cache
def _open(folder: str) -> Kit:
    return Kit(Path(folder).resolve())


def required() -> bool:
    """Whether a missing kit is a failure."""
    return os.environ.get("AICR_KIT_REQUIRED", "") not in ("", "0")


def kit() -> Kit:
    """The kit, or the end of the calling test module: skipped, or failed where it is required."""
    folder = os.environ.get("AICR_KIT", "")
    if folder and (Path(folder) / "resolve" / "index.yaml").is_file():
        return _open(folder)
    reason = f"AICR_KIT={folder} is not the conformance kit: {ASK}" if folder else ASK
    if required() or folder:
        raise pytest.UsageError(reason)
    pytest.skip(reason, allow_module_level=True)
