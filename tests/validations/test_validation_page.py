"""The page about validations says what the code says."""

from __future__ import annotations

import pytest
from tools.gen_validation_page import PAGE, page, words

from aicr.bundle.validations.table import FUNCTIONS


def test_the_page_is_current() -> None:
    """A stale table is written again with `python -m tools.gen_validation_page`."""
    assert PAGE.read_text(encoding="utf-8") == page()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_says_what_it_checks_and_what_to_do(name: str) -> None:
    """Both stand in its docstring (V-345)."""
    checks, remedy = words(name)
    assert checks.endswith(".")
    assert remedy.endswith(".")
