"""Fixtures of the recipe tests: the command line on a small catalogue of the test's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from tests.recipe import trees

from aicr.catalog.catalog import Catalog

Install = Callable[[Mapping[str, str]], Catalog]


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Make a tree the catalogue that the commands find built in."""
    monkeypatch.delenv("AICR_CRITERIA_STRICT", raising=False)

    def install(files: Mapping[str, str]) -> Catalog:
        found = trees.catalog(tmp_path / "built-in", files)
        monkeypatch.setattr(Catalog, "builtin", classmethod(lambda cls: found))
        return found

    return install
