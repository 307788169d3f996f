"""The examples of docs/api.md and of the docstrings run as they stand, and leave no public name out."""

from __future__ import annotations

import doctest
import importlib
import re
from pathlib import Path

import pytest

import aicr

PAGE = Path(__file__).resolve().parents[2] / "docs" / "api.md"
TEXT = PAGE.read_text(encoding="utf-8")


def test_the_examples_of_the_page_run_as_they_stand() -> None:
    """Each block continues where the last one stopped; a failing line is that of the page."""
    names: dict[str, object] = {}
    runner = doctest.DocTestRunner(verbose=False)
    parser = doctest.DocTestParser()
    blocks = list(re.finditer(r"^```pycon\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL))
    for block in blocks:
        line = TEXT.count("\n", 0, block.start(1))
        test = parser.get_doctest(block[1], {}, PAGE.name, str(PAGE), line)
        test.globs = names
        runner.run(test, clear_globs=False)
    found = runner.summarize(verbose=False)
    assert len(blocks) >= 9
    assert found.attempted >= 40
    assert found.failed == 0


@pytest.mark.parametrize("name", aicr.__all__)
def test_the_page_has_a_section_for_every_public_name(name: str) -> None:
    """A new public name cannot be forgotten in the manual."""
    section = re.search(rf"^## {name}\n(.*?)(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL)
    assert section is not None
    assert f"aicr.{name}" in section[1]
    assert ">>> " in section[1]


@pytest.mark.parametrize("module", ["aicr", "aicr.recipe.criteria"])
def test_the_examples_in_docstrings_run(module: str) -> None:
    """What `help()` shows is true."""
    found = doctest.testmod(importlib.import_module(module))
    assert found.attempted > 0
    assert found.failed == 0
