"""What the tests of the command line share: a recipe as the program writes it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.program import EKS, aicr


@pytest.fixture(scope="session")
def recipe_text() -> str:
    """The recipe of EKS, H100, training and Ubuntu, as printed."""
    return aicr("recipe", *EKS).out


@pytest.fixture
def recipe_file(tmp_path: Path, recipe_text: str) -> Path:
    """That recipe in a file of its own folder."""
    folder = tmp_path / "in"
    folder.mkdir()
    path = folder / "recipe.yaml"
    path.write_text(recipe_text, encoding="utf-8")
    return path
